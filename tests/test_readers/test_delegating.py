"""Readers that wrap another one: nothing of the contract is forgotten, and rows are transformed once."""

import inspect
from dataclasses import fields

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import VotingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from exactshap import Explainer
from exactshap.estimators import RKHSWeightingRegressor
from exactshap.frames import as_table
from exactshap.readers import DelegatingReader, Reader, Traits
from exactshap.readers.additive import rkhs_weighting
from exactshap.semivalues import find, owen

RNG = np.random.default_rng(4)
X = RNG.normal(size=(60, 3)) * [1.0, 10.0, 0.1]
Y = X[:, 0] + np.sin(X[:, 1]) + 5.0


class Scaler(StandardScaler):
    """Counts its calls."""

    calls = 0

    def transform(self, X, copy=None):
        type(self).calls += 1
        return super().transform(X, copy)


Scaler.__name__ = "StandardScaler"
Scaler.__module__ = "sklearn.preprocessing._data"


def test_every_member_of_a_reader_is_forwarded_or_overridden():
    members = {name for name, _ in inspect.getmembers(Reader) if not name.startswith("_")}
    forgotten = members - set(vars(DelegatingReader))
    assert not forgotten, f"add {sorted(forgotten)} to DelegatingReader"


def test_facts_of_a_reader_that_a_wrapper_does_not_change_are_its_own():
    inner = Explainer(SVR().fit(X, Y), X[:5]).reader
    outer = DelegatingReader(inner, unit="dollars").traits
    assert outer.unit == "dollars"
    for name in {field.name for field in fields(Traits)} - {"unit", "rounding"}:
        own = getattr(outer, name)
        assert own is getattr(inner.traits, name) or own == getattr(inner.traits, name), name
    assert outer.rounding.relative == inner.traits.relative_rounding
    with pytest.raises(TypeError, match="'units'"):
        DelegatingReader(inner, units="dollars")


@pytest.mark.parametrize(
    "wrap", [lambda pipeline: pipeline, lambda p: TransformedTargetRegressor(p, transformer=StandardScaler())]
)
def test_rows_are_transformed_once_to_be_solved_and_once_by_the_pipelines_own_prediction(wrap):
    model = wrap(make_pipeline(Scaler(), SVR())).fit(X, Y)
    explainer = Explainer(model, X[:5])
    explainer(X[:1])  # before the first explanation, hybrids of the background's own rows are checked
    Scaler.calls = 0
    explanation = explainer(X[:9])  # of ten rows and more, some hybrids of rows and background are transformed too
    assert Scaler.calls == 2
    np.testing.assert_array_equal(explanation.prediction, model.predict(X[:9]))
    assert explanation.certificate().passed


def test_plan_of_a_pipeline_says_what_the_inner_reader_says():
    posterior = make_pipeline(StandardScaler(), GaussianProcessRegressor()).fit(X[:20], Y[:20])
    assert "posterior covariance" in Explainer(posterior, X[:4]).plan(X).method
    settings = {"value_function": "observational", "n_landmarks": 10}
    assert not Explainer(make_pipeline(StandardScaler(), SVR()).fit(X, Y), X, **settings).plan(X[:2]).exact


def test_a_bound_on_moves_of_transformed_columns_is_not_offered():
    bare = Explainer(SVR().fit(X, Y), X[:5])(X[:2])
    assert bare.stability_bound is not None
    assert Explainer(make_pipeline(StandardScaler(), SVR()).fit(X, Y), X[:5])(X[:2]).stability_bound is None


WEIGHTING = RKHSWeightingRegressor(n_terms=50, subsets=2, random_state=0)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model,
        lambda model: make_pipeline(StandardScaler(), model),
        lambda model: TransformedTargetRegressor(model, transformer=StandardScaler()),
        lambda model: VotingRegressor([("a", model), ("b", model), ("c", Ridge())], weights=[3.0, 1.0, 2.0]),
    ],
    ids=["itself", "of scaled rows", "of a scaled target", "among others"],
)
def test_what_cancels_in_a_model_cancels_in_what_is_made_of_it(wrap, monkeypatch):
    model, rows, genuine = wrap(WEIGHTING).fit(X, Y), as_table(X), rkhs_weighting._magnitude
    once = Explainer(model, X[:5])
    monkeypatch.setattr(rkhs_weighting, "_magnitude", lambda *asked: 2.0 * genuine(*asked))
    twice = Explainer(model, X[:5])
    scales = [explainer.reader.solve(rows, find("shapley"), 1).scale for explainer in (once, twice)]
    assert (scales[1] > scales[0]).all()
    question = owen({"a": ["x0", "x1"], "b": ["x2"]})
    assert (twice(X, question).tolerance > once(X, question).tolerance).all()
