"""Recipes of docs/examples for models by arrays: BART of stochtree, extra regressors of Prophet."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from exactshap import explain
from exactshap.errors import ExplanationWarning, ModelFormatError
from exactshap.testing import check_reader
from exactshap.trees import load
from oracles import interventional_values
from tolerances import roundings

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
rng = np.random.default_rng(0)


def test_bart(monkeypatch):
    stochtree = pytest.importorskip("stochtree")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from bart import bart_draws

    X = pd.DataFrame(rng.uniform(size=(120, 4)), columns=list("abcd"))
    y = np.asarray(10 * np.sin(np.pi * X.a * X.b) + 5 * X.c + rng.normal(size=120))
    model = stochtree.BARTModel()
    settings = {"general_params": {"random_seed": 1}, "mean_forest_params": {"num_trees": 20}}
    model.sample(X_train=X.to_numpy(), y_train=y, num_gfr=5, num_burnin=0, num_mcmc=12, **settings)
    rows, background = X[:3], X[50:56]
    explanation = explain(bart_draws(model), rows.to_numpy(), background.to_numpy())
    own = model.predict(rows.to_numpy(), type="posterior", terms="y_hat")
    np.testing.assert_allclose(explanation.prediction, own, rtol=0, atol=20 * roundings(256))
    for draw in (0, 11):
        call = lambda table, k=draw: model.predict(table.to_numpy(), type="posterior", terms="y_hat")[:, k]  # noqa: E731
        right = interventional_values(call, rows, background)
        np.testing.assert_allclose(explanation.values[:, :, draw], right, rtol=0, atol=20 * roundings(256))
    check_reader(bart_draws(model), rows.to_numpy(), background.to_numpy())


def test_regressors_of_prophet(monkeypatch):
    prophet = pytest.importorskip("prophet")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from prophet_regressors import prophet_regressors

    days = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=120)})
    days["price"], days["promotion"] = rng.normal(10.0, 2.0, 120), rng.integers(0, 2, 120)
    days["y"] = np.sin(np.arange(120) / 7) - 0.5 * days.price + 3.0 * days.promotion
    model = prophet.Prophet()
    for name in ("price", "promotion"):
        model.add_regressor(name)
    model.fit(days)
    regressors = days[["price", "promotion"]]
    explanation = explain(prophet_regressors(model), regressors[:3], regressors[50:56])
    forecast = model.predict(days)
    np.testing.assert_allclose(explanation.prediction, forecast.extra_regressors_additive[:3], rtol=0, atol=roundings(256))
    for j, name in enumerate(explanation.feature_names):  # additive: what it adds, beyond the mean over the background
        right = forecast[name][:3] - forecast[name][50:56].mean()
        np.testing.assert_allclose(explanation.values[:, j], right, rtol=0, atol=roundings(256))
    check_reader(prophet_regressors(model), regressors[:3], regressors[50:56])


PMML = """<?xml version="1.0"?><PMML xmlns="http://www.dmg.org/PMML-4_3" version="4.3"><Header/><DataDictionary numberOfFields="3">
<DataField name="y" optype="continuous" dataType="double"/><DataField name="a" optype="continuous" dataType="double"/>
<DataField name="b" optype="continuous" dataType="double"/></DataDictionary>
<TreeModel functionName="regression" splitCharacteristic="binarySplit"><MiningSchema><MiningField name="y" usageType="predicted"/>
<MiningField name="a"/><MiningField name="b"/></MiningSchema><Node id="1" score="2" recordCount="10"><True/>
<Node id="2" score="1" recordCount="4"><SimplePredicate field="a" operator="lessOrEqual" value="0.25"/></Node>
<Node id="3" score="3" recordCount="6"><SimplePredicate field="a" operator="greaterThan" value="0.25"/>
<Node id="4" score="2.5" recordCount="3"><SimplePredicate field="b" operator="lessOrEqual" value="0"/></Node>
<Node id="5" score="3.5" recordCount="3"><SimplePredicate field="b" operator="greaterThan" value="0"/></Node></Node></Node>
</TreeModel></PMML>"""


def test_files_of_other_packages_by_the_way_that_the_refusal_names(tmp_path):
    parser = pytest.importorskip("sklearn_pmml_model.auto_detect")
    path = tmp_path / "tree.pmml"
    path.write_text(PMML)
    with pytest.raises(ModelFormatError, match="auto_detect_estimator"):
        load(path)
    table = pd.DataFrame(rng.normal(size=(20, 2)), columns=["a", "b"])
    with pytest.warns(ExplanationWarning, match="black box"):
        explanation = explain(parser.auto_detect_estimator(str(path)), table[:3], table[5:12])
    tree = lambda rows: np.where(rows.a <= 0.25, 1.0, np.where(rows.b <= 0, 2.5, 3.5))  # noqa: E731
    right = interventional_values(tree, table[:3], table[5:12])
    np.testing.assert_allclose(explanation.values, right, rtol=0, atol=roundings(256))
