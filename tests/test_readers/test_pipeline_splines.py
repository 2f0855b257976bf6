"""Splines in front of a model: compiled, they have the bits of ``transform``, and whatever else there is goes the documented way."""

import itertools
import pickle
import types
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, SplineTransformer, StandardScaler
from sklearn.svm import SVR

from additive_oracle import largest, masked_games, values_of
from exactshap import Explainer
from exactshap.errors import InputError
from exactshap.frames import as_table
from exactshap.readers.additive.terms import _spline_features
from exactshap.readers.wrappers import _scalers, _scaling, sklearn_pipeline
from exactshap.readers.wrappers._scalers import scaling_of
from exactshap.readers.wrappers._scaling import SplinedRows
from exactshap.readers.wrappers.sklearn_pipeline import PipelineReader
from exactshap.solvers.additive import _linear
from exactshap.testing import check_reader
from tolerances import assert_close

RNG = np.random.default_rng(7)
D = 4
SIZES = np.array([1.0, 100.0, 1e-3, 3.0])
FITTED = RNG.normal(size=(150, D)) * SIZES
Y = np.sin(FITTED[:, 0]) + (FITTED[:, 1] / 100.0) ** 2 + FITTED[:, 3]
X = RNG.normal(size=(6000, D)) * SIZES * 1.5  # beyond the knots, too
NAMES = list("abcd")
BEYOND = ("constant", "linear", "continue", "periodic")
KNOTS = {"uniform": "uniform", "quantile": "quantile", "own": np.sort(RNG.normal(size=(6, D)) * SIZES, axis=0)}


def about_the_knots(splines):
    """Return rows on knots, their neighbours, and others inside and outside."""
    knots = np.array([basis.t for basis in splines.bsplines_]).T
    return np.concatenate([knots, np.nextafter(knots, np.inf), np.nextafter(knots, -np.inf), 3.0 * knots, X[:200], FITTED])


def as_array(rows):
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)


def refuse(*_):
    raise AssertionError("the documented way is taken")


def documented(explain, monkeypatch):
    """Return what ``explain()`` gives with the steps' own ``transform``."""
    with monkeypatch.context() as patch:
        patch.setattr(sklearn_pipeline, "scaling_of", lambda *_: None)
        return explain()


def same_bits(found, wanted):
    for name in ("values", "baseline", "residual", "tolerance", "prediction"):
        mine, theirs = np.asarray(getattr(found, name)), np.asarray(getattr(wanted, name))
        assert (mine.dtype, mine.shape, mine.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes()), name
    assert found.certificate().passed


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("beyond", BEYOND)
@pytest.mark.parametrize("degree", range(6))
def test_features_have_the_bits_of_transform(degree, beyond, dtype):
    taken = 0
    for knots, n_knots, bias, is_sparse in itertools.product(KNOTS, (2, 3, 7), (True, False), (False, True)):
        if beyond == "periodic" and n_knots <= degree:
            continue
        settings = {"knots": KNOTS[knots], "extrapolation": beyond, "include_bias": bias, "sparse_output": is_sparse}
        splines = SplineTransformer(n_knots, degree, **settings).fit(FITTED)
        rows = about_the_knots(splines).astype(dtype)
        found = scaling_of([splines], as_table(rows))
        if found is None:
            continue
        own, mine = as_array(splines.transform(rows)), found.all()
        assert (mine.dtype, mine.shape, mine.tobytes()) == (own.dtype, own.shape, own.tobytes())
        for some in (slice(0, len(rows)), slice(5, 6), slice(3, 100)):
            with found.lent(some) as piece:
                np.testing.assert_array_equal(piece, own[some].astype(float))
        taken += 1
    assert taken >= (0 if degree == 0 and beyond == "constant" else 6)  # transform itself fails beyond knots of degree 0


def test_knots_in_one_place():
    rows = np.round(FITTED, 0)
    splines = SplineTransformer(12, knots="quantile").fit(rows)
    assert any(np.any(np.diff(basis.t) == 0.0) for basis in splines.bsplines_)
    found = scaling_of([splines], as_table(X))
    assert found.all().tobytes() == splines.transform(X).tobytes()


MODELS = {
    "one output": (Ridge(), Y),
    "several outputs": (LinearRegression(), np.c_[Y, Y**2, -Y]),
    "logistic": (LogisticRegression(), np.median(Y) < Y),
    "several classes": (LogisticRegression(), np.digitize(Y, np.quantile(Y, [0.3, 0.6]))),
    "logarithm": (PoissonRegressor(), np.abs(Y)),
    "kernels": (SVR(), Y),
}


@pytest.mark.parametrize("name", MODELS)
def test_explanations_have_the_bits_of_the_documented_way(name, monkeypatch):
    tail, y = MODELS[name]
    model = make_pipeline(StandardScaler(), SplineTransformer(), MinMaxScaler(), tail).fit(FITTED, y)
    monkeypatch.setattr(_linear, "PIECE", 1024 * 28)
    monkeypatch.setattr(_linear, "OF_OUTPUTS", 1024 * 28 * 3)
    for n_rows in (1, 10, 100 if name == "kernels" else 6000):
        for n_jobs in (1, 2, 3) if n_rows == 6000 else (1,):
            explain = lambda rows=X[:n_rows], n_jobs=n_jobs: Explainer(model, FITTED[:20], n_jobs=n_jobs)(rows)  # noqa: E731
            wanted = documented(explain, monkeypatch)
            with monkeypatch.context() as patch:
                patch.setattr(PipelineReader, "_transformed", refuse)
                same_bits(explain(), wanted)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("settings", [{}, {"memory_limit": 2.0**21}])
def test_threads_and_cuts_have_the_same_bits(n_jobs, settings):
    rows = np.random.default_rng(1).normal(size=(40_003, D)) * SIZES
    model = make_pipeline(RobustScaler(), SplineTransformer(include_bias=False, extrapolation="linear"), Ridge()).fit(FITTED, Y)
    whole = Explainer(model, FITTED[:20], n_jobs=1)(rows)
    same_bits(Explainer(model, FITTED[:20], n_jobs=n_jobs, **settings)(rows), whole)
    largest_term = np.abs(model[:-1].transform(rows)).max() * np.abs(model[-1].coef_).sum()
    assert_close(whole.prediction, model.predict(rows), largest_term, len(model[-1].coef_))


@pytest.mark.parametrize("beyond", BEYOND)
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("index", ["shapley", "banzhaf", "k-sii"])
def test_against_hand_masked_predictions_value_by_value(beyond, index, order):
    model = make_pipeline(StandardScaler(), SplineTransformer(extrapolation=beyond), Ridge()).fit(FITTED, Y)
    background, weights, rows = FITTED[:10], np.arange(10) + 1.0, X[:5]
    explanation = Explainer(model, background, background_weights=weights)(rows, index, order)
    games = masked_games(model.predict, rows, background, weights)
    values = explanation.values if order == 1 else explanation.set_values
    scale = largest(games) + np.abs(model[:-1].transform(X)).max() * np.abs(model[-1].coef_).sum()
    assert_close(values, values_of(games, D, index, order), 2.0 ** (order + 2) * scale, 28 * 10, D)


PIPELINES = {
    "as they are": (make_pipeline(SplineTransformer(), Ridge()), Y),
    "without bias": (
        make_pipeline(
            SplineTransformer(n_knots=4, degree=2, include_bias=False, extrapolation="linear"), StandardScaler(), Ridge()
        ),
        Y,
    ),
    "quantile knots": (
        make_pipeline(
            StandardScaler(), SplineTransformer(knots="quantile", extrapolation="continue"), StandardScaler(), Ridge()
        ),
        Y,
    ),
    "periodic": (make_pipeline(SplineTransformer(extrapolation="periodic"), LogisticRegression()), Y > 0),
    "sparse": (make_pipeline(SplineTransformer(sparse_output=True), Ridge()), Y),
    "by column": (make_pipeline(SplineTransformer(order="F"), Ridge()), Y),
}


@pytest.mark.parametrize(
    "settings", [{}, {"groups": {"g": [0, 3]}, "background_weights": np.arange(10) + 1.0}], ids=["plain", "groups"]
)
@pytest.mark.parametrize("case", PIPELINES)
def test_contract(case, settings):
    pipeline, y = PIPELINES[case]
    check_reader(pipeline.fit(FITTED, y), X[:4], FITTED[20:30], **settings)


def test_frames_in_and_out_of_the_steps():
    frame = pd.DataFrame(FITTED, columns=NAMES)
    pipeline = make_pipeline(StandardScaler(), SplineTransformer(), StandardScaler(), Ridge()).set_output(transform="pandas")
    check_reader(pipeline.fit(frame, Y), frame.iloc[:4], frame.iloc[20:30])


def test_frames_keep_their_names(monkeypatch):
    frame = pd.DataFrame(FITTED, columns=NAMES)
    model = make_pipeline(SplineTransformer(), Ridge()).fit(frame, Y)
    check_reader(model, frame[:4], frame[20:30])
    monkeypatch.setattr(PipelineReader, "_transformed", refuse)
    assert Explainer(model, frame[:20])(frame[:5]).feature_names == tuple(NAMES)


def test_features_are_never_all_made(monkeypatch):
    model = make_pipeline(StandardScaler(), SplineTransformer(), Ridge()).fit(FITTED, Y)
    explainer, rows, made = Explainer(model, FITTED[:20], n_jobs=2), np.tile(X, (30, 1)), SplinedRows.all
    monkeypatch.setattr(SplinedRows, "all", lambda some: made(some) if some.shape[0] < len(rows) else pytest.fail("all"))
    assert explainer(rows).certificate().passed
    reader = explainer.reader
    assert reader.memory(1000, 1) == reader.inner.memory(1000, 1)  # and they are not forecast beside the model's
    monkeypatch.setattr(sklearn_pipeline, "come_in_pieces", lambda _: False)
    assert reader.memory(1000, 1) > reader.inner.memory(1000, 1)


def test_a_pickled_explainer_goes_on(monkeypatch):
    model = make_pipeline(SplineTransformer(), Ridge()).fit(FITTED, Y)
    explainer = Explainer(model, FITTED[:20])
    again = pickle.loads(pickle.dumps(explainer))
    monkeypatch.setattr(PipelineReader, "_transformed", refuse)
    same_bits(again(X), explainer(X))


# -- models that change --------------------------------------------------------------------------------------------------


def refit(splines):
    splines.fit(FITTED[::-1] * 3.0 + 1.0)


def shift(splines):
    splines.bsplines_[0].t += 0.25  # in place


def swap(splines):
    splines.bsplines_[1] = splines.bsplines_[0]


def widen(splines):
    splines.bsplines_[0].c[0, 0] = 2.0  # another function


def leave_one_out(splines):
    splines.n_features_out_ -= D
    splines.include_bias = False


def go_straight(splines):
    splines.extrapolation = "linear"


def forbid(splines):
    splines.extrapolation = "error"


def own_method(splines):
    splines.transform = types.MethodType(lambda self, rows: type(self).transform(self, rows) * 2.0, splines)


def frames_out(splines):
    splines.set_output(transform="pandas")


CHANGES = {  # and whether the direct way is still taken
    "refit": (refit, True),
    "knots, in place": (shift, True),
    "a basis": (swap, True),
    "coefficients": (widen, False),
    "fewer features": (leave_one_out, True),
    "an option": (go_straight, True),
    "an option that refuses": (forbid, False),
    "a method of its own": (own_method, False),
    "frames": (frames_out, False),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", CHANGES)
def test_splines_that_changed_are_followed(name):
    change, is_direct = CHANGES[name]
    model = make_pipeline(SplineTransformer(), Ridge()).fit(FITTED, Y)
    explainer, rows = Explainer(model, FITTED[:20], on_inexact="warn"), FITTED[:10] * 0.9
    explainer(rows)
    change(model[0])
    assert (scaling_of([model[0]], as_table(rows)) is not None) == is_direct
    np.testing.assert_array_equal(explainer.reader.rows(as_table(rows)).numeric(), as_array(model[0].transform(rows)))


def test_classes_that_changed_are_followed(monkeypatch):
    from scipy.interpolate import BSpline

    splines, rows = SplineTransformer().fit(FITTED), as_table(X[:10])
    assert scaling_of([splines], rows) is not None
    for kind, name in ((SplineTransformer, "transform"), (BSpline, "__call__")):
        own = getattr(kind, name)
        with monkeypatch.context() as patch:
            patch.setattr(kind, name, lambda self, *given, own=own, **more: own(self, *given, **more) + 1.0)
            assert scaling_of([splines], rows) is None
    assert scaling_of([splines], rows) is not None


@pytest.mark.parametrize("off", [1e-16, 1.0])
def test_features_that_round_in_another_way_are_not_taken(off, monkeypatch):
    fill = _spline_features.fill_splines

    def another(rows, splines, kept, out):
        fill(rows, splines, kept, out)
        out *= 1.0 + 2.0 * off

    monkeypatch.setattr(_scalers, "_known_splines", {})
    monkeypatch.setattr(_spline_features, "fill_splines", another)
    model = make_pipeline(SplineTransformer(), Ridge()).fit(FITTED, Y)
    assert scaling_of([model[0]], as_table(X)) is None
    found = Explainer(model, FITTED[:20])(X[:9])
    np.testing.assert_array_equal(found.prediction, model.predict(X[:9]))


def test_subclasses_settings_and_other_steps_go_the_documented_way():
    class Mine(SplineTransformer):
        pass

    splines, table = SplineTransformer().fit(FITTED), as_table(X[:5])
    assert scaling_of([splines], table) is not None
    assert scaling_of([MaxAbsScaler().fit(FITTED), splines], table) is not None
    assert scaling_of([Mine().fit(FITTED)], table) is None
    assert scaling_of([splines, splines], table) is None
    assert scaling_of([splines, SVR()], table) is None
    assert scaling_of([SplineTransformer()], table) is None  # not fitted
    assert scaling_of([SplineTransformer().fit(FITTED[:, :3])], table) is None
    assert scaling_of([SplineTransformer(degree=6).fit(FITTED)], table) is None
    assert scaling_of([SplineTransformer(extrapolation="error").fit(FITTED)], table) is None
    assert scaling_of([SplineTransformer(extrapolation="periodic").fit(np.ones((9, D)))], table) is None  # of no length
    assert scaling_of([splines], as_table(pd.DataFrame(X[:5], columns=NAMES))) is None  # it warns
    sparse, after = SplineTransformer(sparse_output=True).fit(FITTED), StandardScaler()
    assert scaling_of([sparse, after.fit(splines.transform(FITTED))], table) is None  # it refuses
    for gone in ("bsplines_", "degree", "include_bias", "n_features_in_"):
        less = SplineTransformer().fit(FITTED)
        delattr(less, gone)
        assert scaling_of([less], table) is None


def test_few_fitted_splines_are_remembered(monkeypatch):
    monkeypatch.setattr(_scalers, "KEPT_SPLINES", 2)
    monkeypatch.setattr(_scalers, "_known_splines", {})
    for n_knots in range(3, 8):
        assert scaling_of([SplineTransformer(n_knots).fit(FITTED)], as_table(X)) is not None
        assert 1 <= len(_scalers._known_splines) <= 2


# -- what is not finite --------------------------------------------------------------------------------------------------


def said(explainer, rows):
    """Return the text of an error, or the values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return explainer(rows).values.tolist()
        except Exception as error:  # of whatever kind
            return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.7e308, -1e300])
@pytest.mark.parametrize("scalers", [(), (MinMaxScaler(clip=True),), (StandardScaler(),)], ids=str)
@pytest.mark.parametrize("missing", ["error", "zeros"])
@pytest.mark.parametrize("beyond", BEYOND)
def test_numbers_that_are_not_finite_are_answered_in_the_same_words(bad, n_jobs, scalers, missing, beyond, monkeypatch):
    if missing == "zeros" and "handle_missing" not in SplineTransformer().get_params():
        pytest.skip("an older scikit-learn")
    settings = {"extrapolation": beyond, **({"handle_missing": missing} if missing == "zeros" else {})}
    model = make_pipeline(*scalers, SplineTransformer(**settings), Ridge()).fit(FITTED, Y)
    monkeypatch.setattr(_linear, "PIECE", 1024 * 28)
    rows = X.copy()
    rows[5001, 2] = bad
    for some in (rows, rows[5000:5003]):
        explainer = Explainer(model, FITTED[:20], n_jobs=n_jobs)
        found, wanted = said(explainer, some), documented(lambda: said(explainer, some), monkeypatch)  # noqa: B023
        assert found == wanted


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("degree", range(1, 6))
def test_splines_that_overflow_are_left_to_transform(degree, bias):
    splines = SplineTransformer(degree=degree, extrapolation="continue", include_bias=bias).fit(FITTED)
    for size in 10.0 ** np.arange(30.0, 308.0, 0.5):
        rows = np.full((1, D), size) * [1.0, -1.0, 1.0, -1.0]
        own, mine = splines.transform(rows), scaling_of([splines], as_table(rows)).all()
        assert np.isfinite(own).all() if mine is not None else not np.isfinite(np.add.reduce(own, axis=None))
        assert mine is None or mine.tobytes() == own.tobytes()


def test_gaps_go_the_documented_way():
    if "handle_missing" not in SplineTransformer().get_params():
        pytest.skip("an older scikit-learn")
    rows = FITTED.copy()
    rows[::9, 1] = np.nan
    model = make_pipeline(SplineTransformer(handle_missing="zeros"), Ridge()).fit(rows, Y)
    check_reader(model, rows[8:12], rows[:20])
    found = Explainer(model, FITTED[:20])(rows)
    assert_close(found.prediction, model.predict(rows), np.abs(model[-1].coef_).sum(), len(model[-1].coef_))
    with pytest.raises(InputError, match="Input X contains NaN"):
        Explainer(make_pipeline(SplineTransformer(), Ridge()).fit(FITTED, Y), FITTED[:20])(rows)


def test_memory_that_another_thread_takes_meanwhile_is_not_waited_for():
    splines = SplineTransformer().fit(FITTED)
    found = scaling_of([splines], as_table(X))
    with found.lent(slice(0, 9)) as one, found.lent(slice(9, 20)) as other:
        assert not np.shares_memory(one, other)
    memory = found._spare[-1]
    with found.lent(slice(30, 35)) as piece:
        assert np.shares_memory(piece, memory)
    assert _scaling._used_before([]) is None
