"""Remember what a model holds, so that a change after it was read is seen.

Predictions show most changes, not all: two models may agree for the few rows that the certificate predicts, and credit other columns.
Fitting replaces what a model holds: arrays, steps, trees. They are compared by identity, which costs nanoseconds each; arrays and
boosters, which may be changed in place, by some of their numbers. What is seen is a hint, and no error: a cache or a counter may
change with each prediction. The explainer then reads the model anew, and compares the values.
"""

from __future__ import annotations

import operator
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
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
FIRST, RUN = 192, 128
MOST = 2**15  # comparisons that are remembered
# Calls between two looks at what takes long to get, on average.
CALLS_BETWEEN = 16


class _Names:
    """Compare the attributes of an object, the items of a dictionary, or the methods of a class."""

    __slots__ = ("_held", "_keys", "_n", "_owner", "_path", "_values")

    def __init__(self, path: str, held: Mapping[str, Foreign], owner: type | None, keys: Sequence[str] | None = None) -> None:
        self._path, self._held, self._owner = path, held, owner
        self._keys = [key for key in list(held) if key not in _WITHOUT_EFFECT] if keys is None else list(keys)
        self._values = [held.get(key) for key in self._keys]
        # Of a class only these names count: pickling, for one, notes something there.
        self._n = len(held) if keys is None else None

    def change(self) -> str | None:
        held = self._held
        is_complete = self._n is None or len(held) == self._n
        if is_complete and not any(map(operator.is_not, map(held.get, self._keys), self._values)):
            return None
        return next((f"{self._path}.{key}" for key in self._changed(is_complete)), None)

    def _changed(self, is_complete: bool) -> Iterator[str]:
        for key, before in zip(self._keys, self._values, strict=True):
            if not _equal(self._held.get(key), before):
                yield key
        if not is_complete:
            # A new attribute changes predictions where it hides a method or property of the class; a new item may.
            known = {*self._keys, *_WITHOUT_EFFECT}
            new = [key for key in list(self._held) if key not in known]
            yield from (key for key in new if self._owner is None or hasattr(self._owner, key))


class _Items:
    """Compare the items of a list, or of an array of objects."""

    __slots__ = ("_held", "_path", "_values")

    def __init__(self, path: str, held: Foreign) -> None:
        self._path, self._held, self._values = path, held, _items_of(held)

    def change(self) -> str | None:
        now, before = _items_of(self._held), self._values
        if len(now) == len(before) and not any(map(operator.is_not, now, before)):
            return None
        if len(now) == len(before) and all(map(_equal, now, before)):
            return None
        return self._path


class _Numbers:
    """Compare numbers of an array, which may be changed in place."""

    __slots__ = ("_before", "_path", "_some")

    def __init__(self, path: str, array: np.ndarray) -> None:
        flat = array.ravel(order="K")  # a view where the array has no gaps
        self._path, self._some = path, flat[:: -(-flat.size // COMPARED_NUMBERS) or 1]
        self._before = self._some.tobytes()

    def change(self) -> str | None:
        return None if self._some.tobytes() == self._before else self._path


class _Answers:
    """Compare what a library's object says of its content."""

    __slots__ = ("_ask", "_before", "_held", "_path", "_rarely")

    def __init__(self, path: str, held: Foreign, ask: Callable[[Foreign], Foreign], *, rarely: bool = False) -> None:
        self._path, self._held, self._ask, self._rarely, self._before = path, held, ask, rarely, _answer(ask, held)

    def change(self) -> str | None:
        if self._rarely and random.random() * CALLS_BETWEEN > 1.0:
            return None
        return None if _answer(self._ask, self._held) == self._before else self._path


_Comparison = _Names | _Items | _Numbers | _Answers


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
        self._comparisons = list(_comparisons(model))

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
        for one in comparisons:
            change = one.change()
            if change is not None:
                return change
        return None

    def without_own_changes(self) -> ModelState:
        """Return the state without what has changed, as predictions may change a cache or a counter."""
        kept = [one for one in self._comparisons if one.change() is None]
        if len(kept) == len(self._comparisons):
            return self
        state = ModelState.__new__(ModelState)
        state._model, state._changed, state._comparisons = self._model, self._changed, kept
        return state


def _comparisons(model: Model) -> Iterator[_Comparison]:
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
        for one in _of_object(path, held, classes):
            n += 1
            yield one
        waiting.extend(_inside(path, held))


def _of_object(path: str, held: Foreign, classes: set[type]) -> Iterator[_Comparison]:
    """Yield the comparisons of one object."""
    if isinstance(held, np.ndarray):
        yield _Items(path, held) if held.dtype.hasobject else _Numbers(path, held)
    elif isinstance(held, list):
        yield _Items(path, held)
    elif isinstance(held, dict):
        yield _Names(path, held, None)
    elif (attributes := _attributes(held)) is not None:
        kind = type(held)
        yield _Names(kind.__name__, attributes, kind)
        yield from _of_library(path, held)
        if kind not in classes:
            classes.add(kind)
            yield from _of_classes(kind)
    else:
        yield from _of_library(path, held)


def _of_classes(kind: type) -> Iterator[_Comparison]:
    """Yield comparisons of the methods of an object's classes."""
    # One that a class inherits may be put on it, too.
    known = [name for name in _METHODS if any(name in vars(cls) for cls in kind.__mro__[:-1])]
    if known:
        yield from (_Names(cls.__name__, vars(cls), cls, known) for cls in kind.__mro__[:-1])


def _of_library(path: str, held: Foreign) -> Iterator[_Comparison]:
    """Yield comparisons of the content of objects of compiled libraries."""
    known = {f"{cls.__module__}.{cls.__qualname__}" for cls in type(held).__mro__}
    if "sklearn.tree._tree.Tree" in known:
        for name in ("value", "threshold", "feature", "weighted_n_node_samples"):
            yield _Numbers(f"{path}.{name}", getattr(held, name))
    elif "xgboost.core.Booster" in known:
        yield _Answers(path, held, lambda booster: (booster.handle.value, booster.num_boosted_rounds()))
        yield _Answers(path, held, lambda booster: booster.get_score(importance_type="total_gain"), rarely=True)
    elif "lightgbm.basic.Booster" in known:
        yield _Answers(path, held, lambda booster: (booster.num_trees(), booster.lower_bound(), booster.upper_bound()))
        yield _Answers(path, held, lambda booster: booster.feature_importance("gain").tobytes())
    elif "catboost.core.CatBoost" in known:
        yield _Answers(path, held, lambda model: (model.get_scale_and_bias(), model.get_leaf_values().tobytes()))


def _inside(path: str, held: Foreign) -> Iterator[tuple[str, Foreign]]:
    """Yield what an object holds, with paths."""
    if isinstance(held, np.ndarray):
        yield from ((path, item) for item in _items_of(held)) if held.dtype.hasobject else ()
    elif isinstance(held, (list, tuple)):
        # A name in front is that of a step.
        yield from ((path, item) for item in held)
    elif isinstance(held, dict):
        yield from ((f"{path}[{key!r}]", item) for key, item in list(held.items()))
    elif isinstance(held, MethodType):
        yield type(held.__self__).__name__, held.__self__
    elif (attributes := _attributes(held)) is not None:
        of_parts = type(held).__name__
        yield from ((f"{of_parts}.{key}", item) for key, item in list(attributes.items()) if key not in _WITHOUT_EFFECT)


def _attributes(held: Foreign) -> dict[str, Foreign] | None:
    """Return the attributes of an object that is looked into."""
    if type(held).__module__.partition(".")[0] in _OPAQUE and not hasattr(held, "predict"):
        return None
    return getattr(held, "__dict__", None)


def _items_of(held: Foreign) -> list[Foreign]:
    """Return the items of a list, or some of a long one's."""
    step = -(-len(held) // MOST) or 1
    return held.ravel(order="K")[::step].tolist() if isinstance(held, np.ndarray) else held[::step]


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
