"""Record what exactshap answers, and compare another state of the sources with the record.

``python tests/golden.py record`` writes ``tests/data/golden.npz``: values, baselines, certificates, methods and errors of some hundred
models, of their value functions and questions. ``compare`` says where today's answers differ: in a value beyond the certificates'
tolerances, in being exact, in the class of an error. ``--only TEXT`` limits both to the cases with TEXT in their names: that is how
a change of behaviour that is meant enters the record. Models whose library fits another model than the one recorded are left out.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import exactshap
from exactshap.semivalues import asymmetric, beta, owen
from exactshap.solvers import solve
from golden_models import BACKGROUND, GROUPS, MODELS, ROWS, Data, Model

FILE = Path(__file__).parent / "data" / "golden.npz"
SAME_MODEL = (
    1e-6  # relative difference of predictions below which two fits are one model: solvers stop there, boosters add in float32
)
ROUNDING = 16.0  # values of sets are sums of up to 2^order v(S), of which each is off by a tolerance; and two sides
STANDARD_ERRORS = 6.0  # of a sampled value: one in 10^9 is further off by chance
EPSILON = float(np.finfo(np.float64).eps)


def _in_stages(n_columns: int) -> Any:
    return asymmetric([[0, 1], list(range(2, n_columns))])


# name -> (with a background, settings of the explainer, settings of the call)
QUESTIONS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "no background": ("", {}, {}),
    "no background, pairs": ("", {}, {"index": "k-sii", "order": 2}),
    "no background, groups": ("", {"groups": GROUPS}, {}),
    "background": ("background", {}, {}),
    "background, weights": ("background", {"background_weights": np.arange(1.0, 11.0)}, {}),
    "background, Banzhaf": ("background", {}, {"index": "banzhaf"}),
    "background, beta": ("background", {}, {"index": beta(4, 1)}),
    "background, pairs": ("background", {}, {"index": "k-sii", "order": 2}),
    "background, Taylor pairs": ("background", {}, {"index": "stii", "order": 2}),
    "background, faithful triples": ("background", {}, {"index": "fsii", "order": 3}),
    "background, groups": ("background", {"groups": GROUPS}, {}),
    "background, Owen": ("background", {}, {"index": owen(GROUPS)}),
    "background, asymmetric": ("background", {}, {"index": _in_stages}),
    "background, all outputs": ("background", {"output": "all"}, {}),
    "background, probability": ("background", {"output": "probability"}, {}),
    "one row": ("row", {"value_function": "baseline"}, {}),
    "observational": ("background", {"value_function": "observational"}, {}),
}
SAMPLED = (
    "background",
    "background, Banzhaf",
    "background, pairs",
    "background, groups",
)  # of models on 20 columns: seconds each


Case = tuple[str, np.ndarray, Callable[[], Any]]


def cases(only: str = "") -> Iterator[Case]:
    """Yield name, the model's own predictions and the call of each case whose name has the text in it."""
    for part in PARTS:
        yield from cases_of(part, only)


def cases_of(part: str, only: str = "") -> Iterator[Case]:
    """Yield the cases of one of ``PARTS``, whose model is fitted only if a name has the text in it."""
    data = _data()
    if part in OTHERS:
        yield from ((name, inputs, call) for name, (inputs, call) in OTHERS[part](data).items() if only in name)
        return
    model = MODELS[part]
    names = [question for question in questions(part) if only in f"{part}: {question}"]
    if names:
        fitted, table = model.fitted(data), getattr(data, model.table)
        own, explainers = _own_predictions(fitted, table), _explainers(fitted, model, table)
        for question in names:
            yield f"{part}: {question}", own, _call(question, explainers, table)


def questions(name: str) -> list[str]:
    """Return the questions to a model."""
    return [question for question in QUESTIONS if MODELS[name].table != "wide" or question in SAMPLED]


_data = functools.cache(Data)


def _call(question: str, explainers: Callable[[str, str], Any], table: Any) -> Callable[[], Any]:
    kind, settings, call = QUESTIONS[question]
    if call.get("index") is _in_stages:
        call = {"index": _in_stages(table.shape[1])}
    with_settings = question if settings else ""
    return lambda: explainers(kind, with_settings)(_rows(table, ROWS), **call)


def _explainers(fitted: Any, model: Model, table: Any) -> Callable[[str, str], Any]:
    """Return what makes an explainer, once for the questions that differ in their call only; an error is raised to each."""

    @functools.cache
    def make(kind: str, with_settings: str) -> Any:
        settings = QUESTIONS[with_settings][1] if with_settings else {}
        settings = settings | {name: value for name, value in model.settings.items() if kind or name != "budget"}
        background = {"": None, "background": _rows(table, BACKGROUND), "row": _rows(table, slice(20, 21))}[kind]
        return exactshap.Explainer(fitted, background, **settings)

    return make


def _rows(table: Any, rows: slice) -> Any:
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def _own_predictions(model: Any, table: Any) -> np.ndarray:
    """Return what the model itself says of the rows and the background: it tells whether two fits are one model."""
    for method in ("decision_function", "predict_proba", "predict", "__call__"):
        if callable(getattr(model, method, None)):
            break
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = [np.ravel(getattr(model, method)(_rows(table, rows))) for rows in (ROWS, BACKGROUND)]
    return np.concatenate(answers).astype(float)


def _games(data: Data) -> dict[str, tuple[np.ndarray, Callable[[], Any]]]:
    """Return decompositions and games of one's own: their numbers that must agree, and the call."""
    from exactshap.decompose import decompose_conditional_hsic
    from exactshap.games import AdditiveGame, OracleGame, ProductGame

    X, y = data.X, data.y
    a, c = X[:20], y[:20]
    product = ProductGame(c, a, 0.5)
    terms = AdditiveGame(3, [(0,), (1, 2)], [[0.0, 1.0], [0.0, 2.0, 3.0, 1.0]])
    oracle = OracleGame(lambda masks: masks @ np.arange(1.0, 9.0) + masks[:, 0] * masks[:, 3], 8)
    large = OracleGame(lambda masks: np.tanh(masks @ np.linspace(-1.0, 1.0, 24)), 24)
    calls: dict[str, Callable[[], Any]] = {
        f"game: {kind}, {index} {order}": lambda game=game, index=index, order=order: solve(game, index, order)
        for kind, game in {"product": product, "additive": terms, "oracle": oracle}.items()
        for index, order in (("shapley", 1), ("banzhaf", 1), ("sii", 2), ("stii", 2), ("fsii", 2), ("moebius", 3))
    }
    calls["game: 24 players, sampled"] = lambda: solve(large, budget=500, random_state=0)
    calls["unknown index"] = lambda: solve(product, "shaply")
    calls["game: 24 players, refused"] = lambda: solve(large)
    for estimator in ("unbiased", "biased"):
        calls[f"MMD: {estimator}"] = lambda estimator=estimator: exactshap.decompose_mmd(X[:60], X[60:], estimator=estimator)
        calls[f"HSIC: {estimator}"] = lambda estimator=estimator: exactshap.decompose_hsic(X, y, estimator=estimator)
    calls["MMD: pairs, laplacian"] = lambda: exactshap.decompose_mmd(X[:60], X[60:], kernel="laplacian", order=2, index="k-sii")
    calls["MMD: groups, permutations"] = lambda: exactshap.decompose_mmd(X[:60], X[60:], groups=GROUPS, n_permutations=19)
    calls["MMD: frame"] = lambda: exactshap.decompose_mmd(data.frame[:60], data.frame[60:])
    calls["HSIC: joint"] = lambda: exactshap.decompose_hsic(X[:, :3], X[:, 3:], joint=True)
    calls["conditional HSIC"] = lambda: decompose_conditional_hsic(X[:, :3], y, X[:, 3:])
    return {name: (np.array([float(X.sum())]), call) for name, call in calls.items()}


def _shares(data: Data) -> dict[str, tuple[np.ndarray, Callable[[], Any]]]:
    """Return shares of R2 and of a loss."""
    found: dict[str, tuple[np.ndarray, Callable[[], Any]]] = {}
    wanted = ["tree", "random forest", "extra trees", "gradient boosting", "histogram boosting"]
    wanted += ["XGBoost", "LightGBM", "CatBoost", "SVR"]
    for name in wanted:
        if name in MODELS:
            model = MODELS[name].fitted(data)
            own = _own_predictions(model, data.X)
            for settings in ({}, {"game": "ensemble"}, {"groups": GROUPS}, {"per_row": True}):
                label = ", ".join(f"{key}={value}" for key, value in settings.items() if key != "groups") or "plain"
                label = "groups" if "groups" in settings else label
                found[f"R2: {name}, {label}"] = (
                    own,
                    lambda model=model, settings=settings: exactshap.decompose_r2(model, data.X, data.y, **settings),
                )
    return found


# what is compared at once: a model each, and what asks for no explanation of one
OTHERS = {"games and two samples": _games, "shares of R2": _shares}
PARTS = (*MODELS, *OTHERS)


def outcome(call: Callable[[], Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return words and arrays of what a call gives, or the error's class and text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call()
        except Exception as error:
            return {"error": type(error).__name__, "message": str(error)}, {}
    return _facts(result), _arrays(result)


def _facts(result: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"type": type(result).__name__}
    for name in ("method", "value_function", "unit", "exact", "index", "order"):
        if hasattr(result, name):
            facts[name] = getattr(result, name) if name != "exact" else bool(result.exact)
    for name in ("feature_names", "output_names"):
        facts[name] = list(map(str, getattr(result, name, None) or ()))
    if isinstance(result, exactshap.Explanation):
        certificate = result.certificate()
        tolerance = np.max(getattr(result, "tolerance", certificate.tolerance), initial=0.0)
        facts |= {"passed": certificate.passed, "tolerance": float(tolerance), "checks": certificate.checks}
        facts["error_bound"] = float(np.max(getattr(result, "error_bound", 0.0), initial=0.0))
    return facts


def _arrays(result: Any) -> dict[str, np.ndarray]:
    found = {
        name: getattr(result, name, None)
        for name in ("values", "baseline", "prediction", "std_error", "empty", "full", "total")
    }
    if getattr(result, "order", 1) > 1 and getattr(result, "set_values", None) is not None:
        found |= {"values": result.set_values, "std_error": getattr(result, "set_std_error", None)}
    found |= {name: getattr(result, name, None) for name in ("per_row", "std", "p_values", "p_value")}
    return {name: np.asarray(array, float) for name, array in found.items() if array is not None and not callable(array)}


def record(only: str = "") -> None:
    """Write the record, or replace the cases whose names have the text in them."""
    found = {} if not only else dict(read())
    for name, own, call in cases(only):
        facts, arrays = outcome(call)
        found[name] = (facts, {"own": own, **arrays})
    numbers, words, position = [], {}, 0
    for name, (facts, arrays) in found.items():
        words[name] = {**facts, "arrays": {key: [position, list(array.shape)] for key, array in arrays.items()}}
        for key, array in arrays.items():
            words[name]["arrays"][key][0] = position
            numbers.append(array.ravel())
            position += array.size
    text = json.dumps({"versions": versions(), "cases": words}).encode()
    FILE.parent.mkdir(exist_ok=True)
    np.savez_compressed(FILE, numbers=np.concatenate(numbers), words=np.frombuffer(text, np.uint8))


def versions() -> dict[str, str]:
    """Return the versions of the libraries that fit models."""
    names = ("numpy", "scikit-learn", "xgboost-cpu", "xgboost", "lightgbm", "catboost", "interpret-core", "pygam")
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@functools.cache
def read(file: Path = FILE) -> dict[str, tuple[dict[str, Any], dict[str, np.ndarray]]]:
    """Return facts and arrays by case."""
    with np.load(file) as stored:
        numbers, words = stored["numbers"], json.loads(bytes(stored["words"]))["cases"]
    found = {}
    for name, facts in words.items():
        places = facts.pop("arrays")
        arrays = {key: numbers[at : at + int(np.prod(shape))].reshape(shape) for key, (at, shape) in places.items()}
        found[name] = (facts, arrays)
    return found


def recorded_versions() -> dict[str, str]:
    """Return the versions of the libraries that fitted the recorded models."""
    with np.load(FILE) as stored:
        found: dict[str, str] = json.loads(bytes(stored["words"]))["versions"]
    return found


def compare(cases: Iterable[Case], words: bool = False) -> tuple[list[str], list[str], int]:
    """Return what differs, the cases left out because their model is another one, and how many were compared."""
    recorded, found, left_out, compared = read(), [], [], 0
    for name, own, call in cases:
        if name not in recorded:
            found.append(f"{name}: not in the record")
            continue
        facts, arrays = recorded[name]
        shift = _difference(own, arrays["own"])
        if not shift <= SAME_MODEL * (1.0 + np.max(np.abs(own), initial=0.0)):
            left_out.append(name)
            continue
        compared += 1
        found += [f"{name}: {text}" for text in differences(facts, arrays, *outcome(call), shift, words)]
    return found, left_out, compared


def _difference(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.max(np.abs(one - other), initial=0.0)) if one.shape == other.shape else np.inf


def differences(
    old: dict[str, Any],
    before: dict[str, np.ndarray],
    new: dict[str, Any],
    after: dict[str, np.ndarray],
    shift: float = 0.0,
    words: bool = False,
) -> Iterator[str]:
    """Yield a text for each difference of two outcomes; ``shift`` is how far the predictions of the two fits are apart."""
    if "error" in old or "error" in new:
        if old.get("error") != new.get("error"):
            yield f"{_said(old)} before, {_said(new)} now"
        elif words and old["message"] != new["message"]:
            yield f"message: {old['message']!r} before, {new['message']!r} now"
        return
    for key in ("exact", "passed", "value_function", "index", "order"):
        if old.get(key) != new.get(key):
            yield f"{key}: {old.get(key)!r} before, {new.get(key)!r} now"
    if words:
        for key in ("method", "unit", "feature_names", "output_names", "checks"):
            if old.get(key) != new.get(key):
                yield f"{key}: {old.get(key)!r} before, {new.get(key)!r} now"
    for key in before.keys() - {"own", "std_error"}:
        if key not in after or after[key].shape != before[key].shape:
            yield f"{key}: of shape {before[key].shape} before, {after[key].shape if key in after else 'absent'} now"
            continue
        allowed = _allowed(old, new, before, after, key, shift)
        excess = np.abs(after[key] - before[key]) - allowed
        if not np.all((excess <= 0.0) | (np.isnan(before[key]) & np.isnan(after[key]))):
            worst = np.unravel_index(np.nanargmax(excess), excess.shape) if excess.size else ()
            yield (
                f"{key}: {before[key][worst]!r} before, {after[key][worst]!r} now, "
                f"{np.broadcast_to(allowed, excess.shape)[worst]:.2g} allowed"
            )


def _said(facts: dict[str, Any]) -> str:
    return f"{facts['error']} ({facts['message']})" if "error" in facts else f"values by {facts.get('method', '')!r}"


def _allowed(
    old: dict[str, Any],
    new: dict[str, Any],
    before: dict[str, np.ndarray],
    after: dict[str, np.ndarray],
    key: str,
    shift: float,
) -> Any:
    """Return what rounding, another fit of the same model, and sampling allow."""
    scale = max(float(np.max(np.abs(array), initial=0.0)) for name, array in before.items() if name != "own")
    tolerance = max(old.get("tolerance", 0.0) + new.get("tolerance", 0.0), 256.0 * EPSILON * scale)
    bounds = old.get("error_bound", 0.0) + new.get("error_bound", 0.0)
    allowed = ROUNDING * (tolerance + bounds + shift)
    errors = [arrays["std_error"] for arrays in (before, after) if key == "values" and "std_error" in arrays]
    if errors and all(error.shape == before[key].shape for error in errors):
        return allowed + STANDARD_ERRORS * np.sqrt(sum(error**2 for error in errors))
    return allowed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=["record", "compare"])
    parser.add_argument("--only", default="", help="cases with this text in their names")
    parser.add_argument("--words", action="store_true", help="compare methods, units, names and messages as well")
    chosen = parser.parse_args()
    started = time.perf_counter()
    if chosen.work == "record":
        record(chosen.only)
        print(f"{FILE}: {FILE.stat().st_size} bytes, {time.perf_counter() - started:.0f} s")
        return 0
    found, left_out, compared = compare(cases(chosen.only), chosen.words)
    print("\n".join(found))
    print(f"{compared} compared, {len(left_out)} left out, {len(found)} differences, {time.perf_counter() - started:.0f} s")
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
