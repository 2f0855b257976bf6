"""Every result object works after every way of naming columns and players."""

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest

from exactshap import Explainer, Explanation
from exactshap.results.report._interactive import pack

matplotlib.use("Agg")
from matplotlib import pyplot
from sklearn.ensemble import RandomForestRegressor
from sklearn.svm import SVR

RNG = np.random.default_rng(1)
ARRAY = RNG.normal(size=(60, 6))
Y = ARRAY[:, 0] * ARRAY[:, 1] + ARRAY[:, 5]
NAMES = [f"{letter}[t-{lag}]" for letter in "ab" for lag in range(3)]
BY_NAME = {letter: [name for name in NAMES if name[0] == letter] for letter in "ab"}
BY_NUMBER = {"a": [0, 1, 2], "b": [3, 4, 5]}

WAYS = {  # table, settings
    "array": (ARRAY, {}),
    "array, groups by number": (ARRAY, {"groups": {"a": [0, 2], "b": [4, 5]}}),
    "array, groups by default names": (ARRAY, {"groups": {"a": ["x0", "x2"], "b": ["x4", "x5"]}}),
    "array, names": (ARRAY, {"feature_names": NAMES}),
    "array, names, groups by name": (ARRAY, {"feature_names": NAMES, "groups": BY_NAME}),
    "array, names, groups by number": (ARRAY, {"feature_names": NAMES, "groups": BY_NUMBER}),
    "array, names, groups apart": (
        ARRAY,
        {"feature_names": NAMES, "groups": {"first": NAMES[3:5], "last": [NAMES[0], NAMES[5]]}},
    ),
    "frame, groups": (pd.DataFrame(ARRAY, columns=NAMES), {"groups": BY_NAME}),
    "polars, groups": (pl.DataFrame(ARRAY, schema=NAMES), {"groups": BY_NAME}),
    "numbered frame, groups": (pd.DataFrame(ARRAY), {"groups": BY_NUMBER}),
    "numbered frame, names, groups": (pd.DataFrame(ARRAY), {"feature_names": NAMES, "groups": BY_NAME}),
}
MODELS = {
    "SVR": lambda: SVR().fit(ARRAY, Y),
    "forest": lambda: RandomForestRegressor(5, random_state=0).fit(ARRAY, Y),
    "function": lambda: lambda rows: np.asarray(rows)[:, 0] * np.asarray(rows)[:, 1] + np.asarray(rows)[:, 5],
}


def results_of(found, path):
    """Yield the name of each thing that people do with an explanation, and the call."""
    first, plot = found.feature_names[0], found.plot
    column = 0 if first in (found.groups or {}) else first
    yield "waterfall", lambda: plot.waterfall(0)
    yield "beeswarm", plot.beeswarm
    yield "bar", plot.bar
    yield "scatter", lambda: plot.scatter(first)
    yield "report", lambda: found.report(path / "page.html")
    yield "interactive", lambda: pack(found)
    yield "to_shap", found.to_shap
    yield "to_frame", found.to_frame
    yield "save", lambda: found.save(path / "file.npz")
    yield "ranking", found.ranking
    yield "by", lambda: found.by(column, bins=2, n_bootstrap=10)
    yield "compare", lambda: found.compare(found, drift=False, n_bootstrap=10).plot()
    yield "rows", lambda: found[:3].to_shap()
    yield "drift", lambda: found.compare(found[:4], n_permutations=9, n_bootstrap=10)
    yield "text", lambda: repr(found) + found._repr_html_()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("way", "name"), [(way, "SVR") for way in WAYS] + [("array, names, groups apart", "forest"), ("polars, groups", "function")]
)
def test_every_result_works_after(way, name, tmp_path):
    table, settings = WAYS[way]
    found = Explainer(MODELS[name](), table[20:40], **settings)(table[:8])
    for what, call in results_of(found, tmp_path):
        try:
            call()
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
        pyplot.close("all")
    loaded = Explanation.load(tmp_path / "file.npz")
    np.testing.assert_array_equal(loaded.to_shap().data, found.to_shap().data)
    assert loaded.feature_names == found.feature_names
