"""Remember what a model holds, so that a change after it was read is seen.

Predictions show most changes, not all: two models may agree for the few rows that the certificate predicts, and credit other columns.
Fitting replaces what a model holds: arrays, steps, trees. They are compared by identity, which costs nanoseconds each; arrays and
boosters, which may be changed in place, by some of their numbers. What is seen is a hint, and no error: a cache or a counter may
change with each prediction. The explainer then reads the model anew, and compares the values.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

import numpy as np

from exactshap._runtime.types import Foreign, Model

# Methods that predict or transform, on classes: another one there is seen as well.
_METHODS = ("predict", "predict_proba", "decision_function", "score_samples", "transform", "inplace_predict", "__call__")
# Settings that change no number.
_WITHOUT_EFFECT = frozenset(
    ("n_jobs", "verbose", "verbosity", "random_state", "copy", "copy_X", "nthread", "thread_count", "n_threads", "memory")
)
# Packages with objects that are compared by identity: they hold more than a model does.
_OPAQUE = frozenset(("pandas", "polars", "pyarrow", "narwhals", "torch", "logging", "threading", "builtins", "exactshap"))
_ATOMS = (bool, int, float, complex, str, bytes, type(None), np.generic, type, ModuleType, FunctionType, BuiltinFunctionType)
# Numbers of an array that are compared: all of a short one, else those at equal distances.
COMPARED_NUMBERS = 64
# Comparisons at a time: all of the first ones, and a run of the others at a random place. They take some 0.2 ms together
# (benchmarks/bench_checks.py), and a forest of so many trees predicts for milliseconds.
FIRST, RUN = 160, 128
# Comparisons that are remembered.
MOST = 2**15
# Calls between two looks at what takes long to get, on average.
CALLS_BETWEEN = 16

# Compares what is held now with what was read first; returns a name of what is another one, None if nothing is.
Comparison = Callable[[], str | None]


class ModelState:
    """Remember what a model holds.

    A copy through pickle remembers the model as it is then, and what had changed before.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> model = Ridge().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> state = ModelState(model)
    >>> state.change(), model.fit([[0.0], [1.0]], [0.0, 3.0]) and state.change()
    (None, 'Ridge.coef_')
    """

    def __init__(self, model: Model, changed: str | None = None) -> None:
        self._model, self._changed = model, changed
        self._comparisons = list(_comparisons_of(model))

    def __reduce__(self) -> tuple[type[ModelState], tuple[Foreign, str | None]]:
        return ModelState, (self._model, self.change())

    def change(self) -> str | None:
        """Return a name of what has changed; None if nothing is seen."""
        if self._changed is not None:
            return self._changed
        comparisons = self._comparisons
        if len(comparisons) > FIRST + RUN:
            start = random.randrange(FIRST, len(comparisons) - RUN)
            comparisons = comparisons[:FIRST] + comparisons[start : start + RUN]
        return next((change for one in comparisons if (change := one()) is not None), None)

    def without_own_changes(self) -> ModelState:
        """Return the state without what has changed, as predictions may change a cache or a counter."""
        kept = [one for one in self._comparisons if one() is None]
        if len(kept) == len(self._comparisons):
            return self
        state = ModelState.__new__(ModelState)
        state._model, state._changed, state._comparisons = self._model, self._changed, kept
        return state


def _names(path: str, held: dict[str, Foreign], owner: type | None) -> Comparison:
    """Compare the attributes of an object, or the items of a dictionary."""
    first = dict(held)

    def changes() -> Iterator[str]:
        for key, before in first.items():
            if key not in _WITHOUT_EFFECT and not _equal(held.get(key), before):
                yield key
        # A new attribute changes predictions where it hides a method or property of the class; a new item may.
        new = [key for key in list(held) if key not in first and key not in _WITHOUT_EFFECT]
        yield from (key for key in new if owner is None or hasattr(owner, key))

    return lambda: next((f"{path}.{key}" for key in changes()), None)


def _methods(kind: type) -> Comparison:
    """Compare the methods of a class, and of those that it inherits from."""
    # Only these names count: pickling, for one, notes something on a class. One that is inherited may be put on the class, too.
    first = [(cls, key, vars(cls).get(key)) for cls in kind.__mro__[:-1] for key in _METHODS]

    def change() -> str | None:
        return next((f"{cls.__name__}.{key}" for cls, key, before in first if vars(cls).get(key) is not before), None)

    return change


def _items(path: str, held: Foreign) -> Comparison:
    """Compare the items of a list, or of an array of objects."""
    items = list(_items_of(held))
    return lambda: None if _equal(list(_items_of(held)), items) else path


def _numbers(path: str, array: np.ndarray) -> Comparison:
    """Compare numbers of an array, which may be changed in place."""
    flat = array.ravel(order="K")  # a view where the array has no gaps
    some = flat[:: -(-flat.size // COMPARED_NUMBERS) or 1]
    before = some.tobytes()
    return lambda: None if some.tobytes() == before else path


def _answers(path: str, held: Foreign, ask: Callable[[Foreign], Foreign], *, rarely: bool = False) -> Comparison:
    """Compare what a library's object says of its content."""
    before = _answer(ask, held)

    def change() -> str | None:
        is_passed_over = rarely and random.random() * CALLS_BETWEEN > 1.0
        return None if is_passed_over or _answer(ask, held) == before else path

    return change


def _comparisons_of(model: Model) -> Iterator[Comparison]:
    """Yield the comparisons of all that a model holds, nearest first."""
    waiting: deque[tuple[str, Foreign]] = deque([(type(model).__name__, model)])
    seen: dict[int, Foreign] = {}  # objects are kept, as another one may get the place of a lost one
    classes: set[type] = set()
    n = 0
    while waiting and n < MOST:
        path, held = waiting.popleft()
        if id(held) in seen or isinstance(held, _ATOMS):
            continue
        seen[id(held)] = held
        comparisons, inside = _looked_into(path, held, classes)
        n += len(comparisons)
        yield from comparisons
        waiting.extend(inside)


def _looked_into(path: str, held: Foreign, classes: set[type]) -> tuple[list[Comparison], Iterable[tuple[str, Foreign]]]:
    """Return the comparisons of one object, and what it holds, with paths."""
    if isinstance(held, np.ndarray):
        if not held.dtype.hasobject:
            return [_numbers(path, held)], ()
        return [_items(path, held)], ((path, item) for item in _items_of(held))
    if isinstance(held, (list, tuple)):
        # A name in front is that of a step.
        return [_items(path, held)] if isinstance(held, list) else [], ((path, item) for item in held)
    if isinstance(held, dict):
        return [_names(path, held, None)], [(f"{path}[{key!r}]", item) for key, item in list(held.items())]
    if isinstance(held, MethodType):
        return [], [(type(held.__self__).__name__, held.__self__)]
    if (attributes := _attributes(held)) is None:
        return [*_of_library(path, held)], ()
    kind = type(held)
    methods = [] if kind in classes else [_methods(kind)]
    classes.add(kind)
    inside = [(f"{kind.__name__}.{key}", item) for key, item in list(attributes.items()) if key not in _WITHOUT_EFFECT]
    return [_names(kind.__name__, attributes, kind), *_of_library(path, held), *methods], inside


def _of_library(path: str, held: Foreign) -> Iterator[Comparison]:
    """Yield comparisons of the content of objects of compiled libraries."""
    known = {f"{cls.__module__}.{cls.__qualname__}" for cls in type(held).__mro__}
    if "sklearn.tree._tree.Tree" in known:
        for name in ("value", "threshold", "feature", "weighted_n_node_samples"):
            yield _numbers(f"{path}.{name}", getattr(held, name))
    elif "xgboost.core.Booster" in known:
        yield _answers(path, held, lambda booster: (booster.handle.value, booster.num_boosted_rounds()))
        if not _ends_in_its_scores(held):
            yield _answers(path, held, lambda booster: booster.get_score(importance_type="total_gain"), rarely=True)
    elif "lightgbm.basic.Booster" in known:
        yield _answers(path, held, lambda booster: (booster.num_trees(), booster.lower_bound(), booster.upper_bound()))
        yield _answers(path, held, lambda booster: booster.feature_importance("gain").tobytes())
    elif "catboost.core.CatBoost" in known:
        yield _answers(path, held, lambda model: (model.get_scale_and_bias(), model.get_leaf_values().tobytes()))


def _ends_in_its_scores(booster: Foreign) -> bool:
    """Say whether ``get_score`` may end the process, as it does in XGBoost 2 for trees with several targets in a leaf."""
    import xgboost

    return xgboost.__version__.startswith("2.") and '"num_target":"1"' not in booster.save_config()


def _attributes(held: Foreign) -> dict[str, Foreign] | None:
    """Return the attributes of an object that is looked into."""
    if type(held).__module__.partition(".")[0] in _OPAQUE and not hasattr(held, "predict"):
        return None
    return getattr(held, "__dict__", None)


def _items_of(held: Foreign) -> Foreign:
    """Return the items of a list or an array; of a long one, some."""
    items = held.ravel(order="K") if isinstance(held, np.ndarray) else held
    return items[:: -(-len(items) // MOST) or 1]


def _answer(ask: Callable[[Foreign], Foreign], held: Foreign) -> Foreign:
    try:
        return ask(held)
    except Exception as error:  # not fitted, or without that method: as it was before
        return type(error).__name__


def _equal(now: Foreign, before: Foreign) -> bool:
    """Say whether two values are the same numbers, texts or arrays."""
    if now is before:
        return True
    if type(now) is not type(before):
        return False
    if isinstance(now, np.ndarray):
        return now.dtype == before.dtype and now.shape == before.shape and now.tobytes() == before.tobytes()
    if isinstance(now, (list, tuple)):
        return len(now) == len(before) and all(map(_equal, now, before))
    return isinstance(now, _ATOMS) and bool(now == before or (now != now and before != before))
