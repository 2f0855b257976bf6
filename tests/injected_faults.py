"""Faults of reading and solving, put into a reader's own arrays: what the certificate and ``verify`` must be able to see."""

from __future__ import annotations

import copy
import importlib
import warnings
from contextlib import ExitStack
from dataclasses import dataclass, replace
from unittest import mock

import numpy as np

from exactshap import Explainer
from exactshap.errors import ExactshapError
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.kernel_machines import KernelReader

VISIBLE = 1e-6
"""A fault must be seen if it moves a value by this much of the largest value."""


@dataclass(frozen=True)
class Case:
    """A fitted model with rows, and the module or class whose arrays are damaged."""

    name: str
    model: object
    X: np.ndarray
    background: np.ndarray | None
    family: str  # "trees", "kernel" or "additive"
    module: str = ""
    settings: tuple = ()

    def explainer(self):
        return Explainer(self.model, self.background, on_inexact="warn", **dict(self.settings))


@dataclass(frozen=True)
class Outcome:
    """Whether a fault moved a value visibly, and who saw it."""

    moved: bool
    certificate: bool
    verify: bool


# -- faults in trees: (rng, FlatTrees) -> FlatTrees, or None where there is nothing to damage -----------------------------------


def _inner(trees):
    return np.flatnonzero((trees.feature >= 0) & (trees.category_start < 0))


def thresholds_swapped(rng, trees):
    some = rng.choice(_inner(trees), 2, replace=False)
    threshold = trees.threshold.copy()
    threshold[some] = threshold[some[::-1]]
    return replace(trees, threshold=threshold)


def feature_of_a_node(rng, trees):
    feature, q = trees.feature.copy(), rng.choice(_inner(trees))
    feature[q] = (feature[q] + rng.integers(1, trees.n_features)) % trees.n_features
    return replace(trees, feature=feature)


def missing_direction(rng, trees):
    missing, q = trees.missing.copy(), rng.choice(_inner(trees))
    missing[q] = 1 - min(missing[q], 1)
    return replace(trees, missing=missing)


def one_leaf(rng, trees):
    value, q = trees.value.copy(), rng.choice(np.flatnonzero(trees.feature < 0))
    value[q] *= 1.01
    return replace(trees, value=value)


def covers(rng, trees):
    cover, q = trees.cover.copy(), rng.choice(np.flatnonzero(trees.left >= 0))
    left, right = trees.left[q], trees.right[q]
    cover[[left, right]] = cover[[right, left]]
    return replace(trees, cover=cover)


TREE_FAULTS = (thresholds_swapped, feature_of_a_node, missing_direction, one_leaf, covers)


# -- faults in kernel machines and additive models, in place --------------------------------------------------------------------


def one_coefficient(rng, expansion):
    c = expansion.parts[rng.integers(len(expansion.parts))].coefficients
    c[:, rng.integers(c.shape[1])] *= 1.01


def gamma(rng, expansion):
    for part in expansion.parts:
        part.component.squared[...] *= 1.001


def gamma_of_one_column(rng, expansion):
    for part in expansion.parts:
        part.component.squared[rng.integers(len(part.component.squared))] *= 1.001


KERNEL_FAULTS = (one_coefficient, gamma, gamma_of_one_column)


def one_term(rng, form):
    block = form.blocks[rng.integers(len(form.blocks))]
    if hasattr(block, "scores"):
        table = block.scores[rng.integers(len(block.scores))]
        table[rng.integers(len(table))] *= 1.01
        return
    c = block.coefficients if hasattr(block, "coefficients") else block.function.args[0]
    c[rng.integers(len(c))] *= 1.001


# -- faults of solving ----------------------------------------------------------------------------------------------------------


def spoil(patch, reader_class, change, question=None):
    """Let all readers of a class change the values of their solutions, of every question or of one, an index and an order.

    ``change`` takes a copy of the values.
    """
    solve = reader_class.solve

    def broken(self, table, semivalue, order):
        solution = solve(self, table, semivalue, order)
        if question not in (None, (semivalue.name, order)):
            return solution
        return replace(solution, part=replace(solution.part, values=change(solution.values.copy())))

    patch.setattr(reader_class, "solve", broken)


def swap_before(rng, reader_class):
    """Two columns of the rows change places on their way into the solver."""
    solve = reader_class.solve

    def broken(self, X, semivalue, order):
        order_of = np.arange(X.n_columns)
        order_of[list(pair)] = order_of[list(pair)[::-1]]
        return solve(self, X.select(order_of), semivalue, order)

    pair = rng.choice(5, 2, replace=False)
    return broken


def swap_after(rng, reader_class):
    """Two columns of the values change places on their way out: their sum is right."""
    solve = reader_class.solve

    def broken(self, X, semivalue, order):
        solution = solve(self, X, semivalue, order)
        values = solution.values.copy()
        values[:, pair] = values[:, pair[::-1]]
        return replace(solution, part=replace(solution.part, values=values))

    pair = rng.choice(5, 2, replace=False)
    return broken


SOLVER_FAULTS = (swap_before, swap_after)


def faults_of(case):
    return {"trees": TREE_FAULTS, "kernel": KERNEL_FAULTS, "additive": (one_term,)}[case.family] + SOLVER_FAULTS


def inject(case, fault, rng, stack):
    """Damage what the reader of the case is made of, until the stack is closed."""
    if fault in SOLVER_FAULTS:
        cls = type(case.explainer().reader)
        stack.enter_context(mock.patch.object(cls, "solve", fault(rng, cls)))
    elif case.family == "trees":
        module = importlib.import_module(case.module)
        convert = module.convert

        def damaged(model):
            ensemble = convert(model)
            return replace(ensemble, trees=fault(rng, ensemble.trees))

        stack.enter_context(mock.patch.object(module, "convert", damaged))
    else:
        cls = KernelReader if case.family == "kernel" else AdditiveReader
        made = cls.__init__

        def init(self, model, request, formula, *args, **settings):
            formula = formula if case.family == "kernel" else _own_arrays(formula)
            formula = copy.deepcopy(formula) if case.family == "kernel" else formula
            fault(rng, formula)
            made(self, model, request, formula, *args, **settings)

        stack.enter_context(mock.patch.object(cls, "__init__", init))


def _own_arrays(form):
    """Return the form with arrays of its own: some are the model's."""
    blocks = []
    for block in form.blocks:
        if hasattr(block, "scores"):
            block = replace(block, scores=tuple(np.array(table) for table in block.scores))
        elif hasattr(block, "coefficients"):
            block = replace(block, coefficients=np.array(block.coefficients))
        blocks.append(block)
    return replace(form, blocks=tuple(blocks))


def outcome(case, fault, seed, expected):
    """Inject a fault and see who notices."""
    rng = np.random.default_rng(seed)
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inject(case, fault, rng, stack)
        try:
            explainer = case.explainer()
        except ExactshapError:
            return Outcome(True, True, True)  # refused where it is read
        explanation = explainer(case.X)
        moved = np.abs(explanation.values - expected).max() > VISIBLE * np.abs(expected).max()
        return Outcome(bool(moved), not explanation.certificate().passed, not explainer.verify(case.X).passed)


def campaign(case, n_each, seed=0):
    """Return {fault name: [outcomes]} of ``n_each`` faults of each kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        intact = case.explainer()
        explanation = intact(case.X)
        assert explanation.certificate().passed, (case.name, str(explanation.certificate()))
        verification = intact.verify(case.X)
        assert verification.passed, (case.name, str(verification))
    return {
        fault.__name__: [outcome(case, fault, [seed, k], explanation.values) for k in range(n_each)]
        for fault in faults_of(case)
    }
