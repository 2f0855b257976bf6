"""Steps that answer a sparse matrix: what it leaves out is missing to XGBoost and zero to others, and the pipeline itself is asked."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor, StackingRegressor, VotingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MaxAbsScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVR

from exactshap import Explainer, explain
from exactshap.errors import InputTypeError
from oracles import shapley_of
from reader_checks import check_answers
from tolerances import SINGLE_PRECISION_SUM as SINGLE

RNG = np.random.default_rng(0)
N = 300
FRAME = pd.DataFrame(
    {"a": RNG.choice(list("abcdefgh"), N), "b": RNG.choice(list("uvwxyz"), N), "count": RNG.poisson(1.0, N).astype(float)}
)
Y = (FRAME.a < "d") * 2.0 + (FRAME.b < "x") * FRAME["count"] + 0.5 * (FRAME["count"] == 2)
ROWS, BACKGROUND = FRAME[:5], FRAME[100:107]


def encoder():
    """The defaults of a ColumnTransformer, whose answer is sparse; the zeros of ``count`` are left out by it."""
    return ColumnTransformer([("c", OneHotEncoder(handle_unknown="ignore"), ["a", "b"])], remainder="passthrough")


def xgboost(**settings):
    return pytest.importorskip("xgboost").XGBRegressor(n_estimators=15, max_depth=3, random_state=0, **settings)


def lightgbm():
    return pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=10, min_child_samples=3, verbose=-1)


MODELS = {
    "xgboost": lambda: make_pipeline(encoder(), xgboost()),
    "xgboost, zero is missing": lambda: make_pipeline(encoder(), xgboost(missing=0.0)),
    "xgboost, one is missing": lambda: make_pipeline(encoder(), xgboost(missing=1.0)),
    "xgboost forest": lambda: make_pipeline(
        encoder(), pytest.importorskip("xgboost").XGBRFRegressor(n_estimators=5, max_depth=3, random_state=0)
    ),
    "xgboost, binned": lambda: make_pipeline(
        ColumnTransformer([("c", OneHotEncoder(), ["a", "b"]), ("n", KBinsDiscretizer(3, encode="onehot"), ["count"])]),
        xgboost(),
    ),
    "xgboost, scaled": lambda: make_pipeline(encoder(), MaxAbsScaler(), xgboost()),
    "lightgbm": lambda: make_pipeline(encoder(), lightgbm()),
    "forest": lambda: make_pipeline(encoder(), RandomForestRegressor(5, max_depth=4, random_state=0)),
    "bag of columns": lambda: make_pipeline(encoder(), BaggingRegressor(xgboost(), 3, max_features=0.7, random_state=0)),
    "ridge": lambda: make_pipeline(encoder(), Ridge()),
    "svr": lambda: make_pipeline(encoder(), SVR()),
    "kernel ridge": lambda: make_pipeline(encoder(), KernelRidge(kernel="rbf", gamma=0.1)),
    "kernel map": lambda: make_pipeline(encoder(), Nystroem(gamma=0.1, n_components=20, random_state=0), Ridge()),
    "search": lambda: GridSearchCV(make_pipeline(encoder(), xgboost()), {"xgbregressor__max_depth": [2, 3]}, cv=2),
    "vote of pipelines": lambda: VotingRegressor(
        [("x", make_pipeline(encoder(), xgboost())), ("l", make_pipeline(encoder(), lightgbm()))]
    ),
    "vote in a pipeline": lambda: make_pipeline(encoder(), VotingRegressor([("x", xgboost()), ("l", lightgbm())])),
    "stack": lambda: StackingRegressor([("x", make_pipeline(encoder(), xgboost()))], cv=2),
    "target": lambda: TransformedTargetRegressor(make_pipeline(encoder(), xgboost()), transformer=StandardScaler()),
    "several targets": lambda: make_pipeline(encoder(), MultiOutputRegressor(xgboost())),
}


@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_the_pipelines_own_predictions(name):
    model = MODELS[name]().fit(FRAME, np.stack([Y, -Y], axis=1) if name == "several targets" else Y)
    check_answers(model, model.predict, ROWS, BACKGROUND, SINGLE, contract=False)


@pytest.mark.parametrize(
    "name", ["xgboost", "xgboost, zero is missing", "xgboost, one is missing", "xgboost, binned", "search"]
)
def test_path_dependent_values_are_those_of_rows_with_gaps(name):
    model = MODELS[name]().fit(FRAME, Y)
    explanation = explain(model, ROWS)
    pipeline = getattr(model, "best_estimator_", model)
    csr, step = sp.csr_matrix(pipeline[:-1].transform(ROWS)), pipeline[-1]
    dense = np.full(csr.shape, step.missing)
    for i, j, value in zip(*csr.nonzero(), csr[csr.nonzero()].A1, strict=True):
        dense[i, j] = value
    inner = explain(step, dense)
    np.testing.assert_allclose(explanation.values.sum(axis=1), inner.values.sum(axis=1), atol=SINGLE)
    np.testing.assert_allclose(explanation.baseline + explanation.values.sum(axis=1), model.predict(ROWS), atol=SINGLE)


def matrix(seed, n=200):
    """Return CSR rows with a few stored zeros, which XGBoost tells from absent cells."""
    rng = np.random.default_rng(seed)
    rows = sp.csr_matrix(np.where(rng.random((n, 4)) < 0.6, 0.0, rng.normal(size=(n, 4))))
    rows.data[::7] = 0.0
    return rows


@pytest.mark.parametrize("make", [xgboost, lightgbm, Ridge, SVR, lambda: RandomForestRegressor(5, random_state=0)])
def test_rows_may_be_sparse(make):
    rows = matrix(1)
    dense = rows.toarray()
    model = make().fit(rows, dense[:, 0] + dense[:, 1] ** 2 - (dense[:, 2] == 0))
    explainer = Explainer(model, rows[50:60])
    explanation = explainer(rows[:6])

    def predict(S, i):
        """Mixed rows that keep stored zeros and absent cells apart."""
        mixed, here = rows[50:60].tocoo(), rows[i].tocoo()
        keep, take = ~np.isin(mixed.col, S), np.isin(here.col, S)
        data = np.concatenate([mixed.data[keep], np.tile(here.data[take], 10)])
        r = np.concatenate([mixed.row[keep], np.repeat(np.arange(10), take.sum())])
        c = np.concatenate([mixed.col[keep], np.tile(here.col[take], 10)])
        return model.predict(sp.csr_matrix((data, (r, c)), shape=(10, 4))).mean()

    for i in range(6):
        expected = shapley_of(lambda S, i=i: predict(list(S), i), 4)
        np.testing.assert_allclose(explanation.values[i], expected, rtol=0, atol=SINGLE)
    np.testing.assert_allclose(explanation.prediction, model.predict(rows[:6]), atol=SINGLE)
    assert explainer.verify(rows[:6]).passed
    assert explanation.data.shape == (6, 4)


@pytest.mark.parametrize(
    ("model", "rows", "words"),
    [
        (Ridge().fit(matrix(2), np.arange(200.0)), matrix(2)[:3].toarray(), "do not mix. `X` is dense, `background` is sparse"),
        (lambda block: block[:, 0], matrix(2)[:3], "Functions are called with dense rows"),
    ],
)
def test_dense_and_sparse_rows_do_not_mix(model, rows, words):
    with pytest.raises(InputTypeError, match=words):
        explain(model, rows, matrix(2)[:9])
