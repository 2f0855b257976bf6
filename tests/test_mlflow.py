"""Explanations logged to a local MLflow store: what lies there is what was logged, and no pickle is among it."""

import importlib.metadata
import json
import pickletools
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.svm import SVR

import exactshap
from exactshap import Explanation, explain
from exactshap.errors import InputError, MissingDependencyError
from exactshap.integrations.mlflow import log_explanation
from explanation_factory import bilinear, linear
from tolerances import roundings


@pytest.fixture
def store(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    mlflow.create_experiment("cases", artifact_location=(tmp_path / "artifacts").as_uri())
    mlflow.set_experiment("cases")
    yield mlflow
    while mlflow.active_run():
        mlflow.end_run()


def logged(mlflow, run_id, name):
    return mlflow.MlflowClient().download_artifacts(run_id, name)


@pytest.mark.filterwarnings("ignore")
def test_report_values_and_certificate_are_logged_without_pickle(store, tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 3))
    explanation = linear(
        pandas.DataFrame(X), data=pandas.DataFrame(X, columns=["age", "b<=3", "c"]), names=["age", "b<=3", "c"]
    )
    with store.start_run() as run:
        metrics = log_explanation(explanation, "why", title="A title")
    found = store.MlflowClient().get_run(run.info.run_id).data
    assert found.metrics == pytest.approx(metrics)
    assert found.metrics["why.certificate_passed"] == 1.0
    assert found.metrics["why.importance/b_=3" if "why.importance/b_=3" in metrics else "why.importance/b__3"] == pytest.approx(
        np.abs(explanation.values[:, 1]).mean()
    )
    assert found.tags["why.value_function"] == "baseline"
    again = Explanation.load(logged(store, run.info.run_id, "why/explanation.npz"))
    np.testing.assert_array_equal(again.values, explanation.values)
    table = pandas.read_parquet(logged(store, run.info.run_id, "why/values.parquet"))
    np.testing.assert_array_equal(table["phi_age"], explanation.values[:, 0])
    assert {"baseline", "prediction", "residual", "exact"} <= set(table)
    with open(logged(store, run.info.run_id, "why/certificate.json"), encoding="utf-8") as file:
        assert json.load(file)["passed"] is True
    with open(logged(store, run.info.run_id, "why/report.html"), encoding="utf-8") as file:
        assert "A title" in file.read()
    for path in (tmp_path / "artifacts").rglob("*"):
        if path.is_file():
            assert path.suffix in (".npz", ".parquet", ".json", ".html")
            with pytest.raises(Exception, match=""):
                list(pickletools.genops(path.read_bytes()))


@pytest.mark.filterwarnings("ignore")
def test_every_feature_has_a_metric_of_its_own_whatever_its_name(store):
    names = ["a<b", "a>b", "a_b", "A_b", "", ".", "..", "/abs", "abs/", "é" * 300, "é" * 299 + "e", "a/../b", "x\x1b"]
    names += ["a/b/", "a/b", " "]
    explanation = linear(np.random.default_rng(0).normal(size=(4, len(names))), names=names)
    with store.start_run() as run:
        metrics = log_explanation(explanation, report=False)
    kept = {name: value for name, value in metrics.items() if ".importance/" in name}
    assert sorted(kept.values()) == sorted(np.abs(explanation.values).mean(axis=0))
    found = store.MlflowClient().get_run(run.info.run_id).data.metrics
    assert found == pytest.approx(metrics)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["", ".", "..", "/abs", "a//b", "a/", "a/../b", "why?", "x" * 400, " ", None, "why\x1b"], ids=repr
)
def test_a_name_that_mlflow_refuses_is_refused_before_anything_is_logged(store, name):
    with pytest.raises(InputError, match="The 'name' parameter"):
        log_explanation(bilinear(), name)
    assert store.active_run() is None
    assert not store.search_runs().size


@pytest.mark.filterwarnings("ignore")
def test_pairs_and_a_given_run(store):
    run = store.start_run()
    store.end_run()
    metrics = log_explanation(bilinear(), run_id=run.info.run_id, report=False)
    assert store.active_run() is None
    names = {file.path for file in store.MlflowClient().list_artifacts(run.info.run_id, "exactshap")}
    assert names == {"exactshap/explanation.npz", "exactshap/certificate.json"}
    assert metrics["exactshap.n_rows"] == 4.0


@pytest.mark.filterwarnings("ignore")
def test_the_evaluator_explains_the_model_inside_mlflows_wrapper(store):
    from exactshap.integrations.mlflow import ExplanationEvaluator

    X = np.random.default_rng(0).normal(size=(30, 3))
    model = SVR().fit(X, X[:, 0])

    class Wrapped:
        def get_raw_model(self):
            return model

    class Rows:
        features_data = X

    with store.start_run() as run:
        settings = {"background": X[:5], "max_rows": 10, "name": "why", "report": False}
        evaluator = ExplanationEvaluator()
        assert evaluator.can_evaluate(model_type="regressor", evaluator_config=settings)
        result = evaluator.evaluate(
            model_type="regressor", dataset=Rows, run_id=run.info.run_id, evaluator_config=settings, model=Wrapped()
        )
    expected = explain(model, X[:10], X[:5])
    assert result.metrics["why.importance/x0"] == pytest.approx(np.abs(expected.values[:, 0]).mean())
    again = Explanation.load(logged(store, run.info.run_id, "why/explanation.npz"))
    np.testing.assert_array_equal(again.values, expected.values)
    assert again.exact


def listed():
    """Return the evaluators that this version's metadata list, or skip where it is not installed as a package."""
    try:
        installed = importlib.metadata.version("exactshap")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("exactshap is not installed: MLflow finds its evaluator by the metadata of the package")
    if installed != exactshap.__version__:
        pytest.skip(f"exactshap {installed} is installed, and this is {exactshap.__version__}")
    return importlib.metadata.entry_points(group="mlflow.model_evaluator", name="exactshap")


def test_the_evaluator_is_an_entry_point():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = project["entry-points"]["mlflow.model_evaluator"]["exactshap"]
    assert declared == "exactshap.integrations.mlflow:ExplanationEvaluator"
    assert [found.value for found in listed()] == [declared]


@pytest.mark.filterwarnings("ignore")
def test_mlflow_itself_finds_the_evaluator_and_runs_it(store):

    if not listed():
        pytest.fail("MLflow finds its evaluators by the metadata of the package")
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    model = SVR().fit(X, X["a"] * X["b"])
    with store.start_run() as run:
        result = store.models.evaluate(
            model.predict,
            X.assign(y=X["a"]),
            targets="y",
            model_type="regressor",
            evaluators=["exactshap"],
            evaluator_config={"exactshap": {"background": X[:10], "max_rows": 15}},
        )
    expected = explain(model, X[:15], X[:10])
    assert result.metrics["exactshap.importance/a"] == pytest.approx(np.abs(expected.values[:, 0]).mean())
    again = Explanation.load(logged(store, run.info.run_id, "exactshap/explanation.npz"))
    assert again.exact  # MLflow hands on a function of its own: all coalitions of three columns
    np.testing.assert_allclose(again.values, expected.values, atol=roundings(5_000))


def test_what_cannot_be_logged_is_said(monkeypatch):
    with pytest.raises(InputError, match="without rows"):
        log_explanation(linear(np.ones((2, 2)))[:0])
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingDependencyError, match="mlflow"):
        log_explanation(linear(np.ones((2, 2))))
