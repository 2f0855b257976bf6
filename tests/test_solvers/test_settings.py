"""What solve passes on: every solver's own settings, and nothing else."""

import dataclasses
import inspect
import re

import numpy as np
import pytest

from exactshap.errors import InputError, UnknownNameError
from exactshap.games import AdditiveGame, OracleGame, ProductGame
from exactshap.solvers import solve
from exactshap.solvers._solve import METHODS, SETTINGS
from exactshap.solvers.additive import solve_additive
from exactshap.solvers.core import solve_enumerated
from exactshap.solvers.product import solve_folded, solve_product
from exactshap.solvers.sampled import solve_regression
from exactshap.solvers.sampled._problem import SamplingSettings

PRODUCT = ProductGame([1.0], [[2.0, 3.0, 0.5]], [[1.0, 1.0, 1.0]])
ADDITIVE = AdditiveGame(3, [(0,), (1, 2)], [np.array([0.0, 1.0]), np.arange(4.0)])
ORACLE = OracleGame(lambda masks: masks.sum(axis=1), 3)
SOLVERS = {
    "quadrature": (solve_product, PRODUCT),
    "folded enumeration": (solve_folded, PRODUCT),
    "per-term enumeration": (solve_additive, ADDITIVE),
    "enumeration": (solve_enumerated, ORACLE),
    "regression": (solve_regression, ORACLE),
}
VALUES = {
    "all_nodes": True,
    "batch_size": 2,
    "progress": lambda count: None,
    "estimator": "process",
    "polynomial_order": 1,
    "frontier": [(0, 1)],
    "pairing": True,
    "sampling": "leverage",
    "surrogate": "none",
    "relevance_rows": 9,
    "start_relevance": 2.5,
}


def test_the_table_is_what_the_solvers_take():
    assert tuple(SETTINGS) == METHODS
    for method, (solver, _) in SOLVERS.items():
        keywords = {
            name for name, parameter in inspect.signature(solver).parameters.items() if parameter.kind is parameter.KEYWORD_ONLY
        }
        if method == "regression":
            keywords |= {field.name for field in dataclasses.fields(SamplingSettings)}
        assert set(SETTINGS[method]) == keywords - {"budget", "tol", "random_state"}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", VALUES)
def test_settings_of_other_methods_are_refused_and_their_owners_named(method, name):
    game = SOLVERS[method][1]
    if name in SETTINGS[method]:
        needs = dict.fromkeys(("polynomial_order", "frontier", "pairing", "sampling"), "polynomial") | {"surrogate": "unbiased"}
        extra = {"estimator": needs[name]} if name in needs else {}
        assert len(solve(game, method=method, **{name: VALUES[name]}, **extra).values) == 3
        return
    owners = " or ".join(repr(other) for other in METHODS if name in SETTINGS[other])
    text = (
        f"The {method} solver does not take {name!r}. Got {VALUES[name]!r}. Leave it out, or pass method={owners}, which take"
    )
    with pytest.raises(InputError, match=re.escape(text)) as caught:
        solve(game, method=method, **{name: VALUES[name]})
    assert type(caught.value) is InputError
    hint = "Remove it" if not SETTINGS[method] else "Available: "
    with pytest.raises(UnknownNameError, match=rf"The {method} solver has no setting 'colour'\. .*{hint}"):
        solve(game, method=method, colour="red")


CHOSEN = [
    (PRODUCT, {"estimator": "process"}, "The quadrature solver does not take 'estimator'. Got 'process'.*method='regression'"),
    (ADDITIVE, {"batch_size": 5}, "not take 'batch_size'. Got 5. .*method='enumeration' or 'regression', which take it"),
    (ORACLE, {"all_nodes": True}, "The regression solver does not take 'all_nodes'.*'quadrature' or 'folded enumeration'"),
    (ORACLE, {"batch_sise": 5}, r"has no setting 'batch_sise'\. Did you mean 'batch_size'\?"),
]


@pytest.mark.parametrize(("game", "settings", "text"), CHOSEN, ids=["product", "additive", "oracle", "typing error"])
def test_the_method_that_was_chosen_refuses(game, settings, text):
    with pytest.raises(InputError, match=text):
        solve(game, **settings)
