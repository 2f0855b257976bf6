"""Scalers in front of a model: their arithmetic alone has the bits of ``transform``, and whatever else there is goes the documented way."""

import pickle
import types
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVR

from exactshap import Explainer, explain
from exactshap.errors import InputError
from exactshap.frames import as_table
from exactshap.readers.wrappers import _scalers, _scaling, sklearn_pipeline
from exactshap.readers.wrappers._scalers import scaling_of
from exactshap.readers.wrappers._scaling import Scaling
from exactshap.readers.wrappers.sklearn_pipeline import PipelineReader
from exactshap.solvers.additive import _linear

RNG = np.random.default_rng(5)
D = 7
FITTED = RNG.normal(size=(200, D)) * np.logspace(-2, 3, D) + np.arange(D)
Y = FITTED @ RNG.normal(size=D)
X = RNG.normal(size=(5000, D)) * np.logspace(-2, 3, D) * 2.0 + np.arange(D)
NAMES = [f"c{j}" for j in range(D)]

SCALERS = {
    "standard": StandardScaler(),
    "uncentred": StandardScaler(with_mean=False),
    "unscaled": StandardScaler(with_std=False),
    "idle": StandardScaler(with_mean=False, with_std=False),
    "min-max": MinMaxScaler(feature_range=(-1, 2.5)),
    "min-max, clipped": MinMaxScaler(clip=True),
    "max-abs": MaxAbsScaler(),
    "max-abs, clipped": MaxAbsScaler(clip=True),
    "robust": RobustScaler(unit_variance=True),
    "robust, uncentred": RobustScaler(with_centering=False),
    "robust, unscaled": RobustScaler(with_scaling=False),
}
LAYOUTS = {
    "rows": np.array,
    "columns": np.asfortranarray,
    "strided": lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
    "every second row": lambda rows: np.repeat(rows, 2, axis=0)[::2],
    "float32": lambda rows: rows.astype(np.float32),
    "float32 by column": lambda rows: np.asfortranarray(rows, np.float32),
    "frame": lambda rows: pd.DataFrame(rows, columns=NAMES),
    "frame of columns": lambda rows: pd.DataFrame({name: rows[:, j].copy() for j, name in enumerate(NAMES)}),
    "float32 frame": lambda rows: pd.DataFrame(rows.astype(np.float32), columns=NAMES),
}
FIELDS = ("values", "baseline", "residual", "tolerance", "prediction")


def pipeline(*steps, model=None, layout="rows"):
    """Return a fitted pipeline, and a background of the same kind."""
    rows = FITTED.copy() if "frame" not in layout else pd.DataFrame(FITTED, columns=NAMES)
    return make_pipeline(*map(clone, steps), Ridge() if model is None else model).fit(rows, Y), rows[:20]


def same_bits(found, wanted):
    for name in FIELDS:
        mine, theirs = np.asarray(getattr(found, name)), np.asarray(getattr(wanted, name))
        assert (mine.dtype, mine.shape, mine.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes()), name
    assert found.certificate().passed


def refuse(*_):
    raise AssertionError("the documented way is taken")


def documented(model, background, rows, monkeypatch, **settings):
    """Return the explanation by the steps' own ``transform``."""
    with monkeypatch.context() as patch:
        patch.setattr(sklearn_pipeline, "scaling_of", lambda *_: None)
        return Explainer(model, background, **settings)(rows)


def direct(model, background, rows, monkeypatch, **settings):
    """Return the explanation without it."""
    with monkeypatch.context() as patch:
        patch.setattr(PipelineReader, "_transformed", refuse)
        return Explainer(model, background, **settings)(rows)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SCALERS)
def test_scaled_rows_have_the_bits_and_the_layout_of_transform(name, layout):
    model, _ = pipeline(SCALERS[name], layout=layout)
    for n_rows in (1, 2, 10, 999, 5000):
        rows = LAYOUTS[layout](X[:n_rows])
        before = np.array(rows)
        own = model[0].transform(rows)
        scaling = scaling_of([model[0]], as_table(rows))
        mine = scaling.all()
        assert (mine.dtype, mine.shape, mine.strides) == (own.dtype, own.shape, own.strides)
        assert mine.tobytes() == own.tobytes()
        for some in (slice(0, n_rows), slice(n_rows // 3, n_rows // 3 + 1), slice(0, 0)):
            with scaling.lent(some) as piece:
                np.testing.assert_array_equal(piece, own[some].astype(float))
        np.testing.assert_array_equal(np.array(rows), before)


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("n_columns", [1, 10, 1500])
def test_neighbouring_rows_together_have_the_same_bits(n_columns, by_column):
    rows = np.random.default_rng(0).normal(size=(_scaling.MANY // n_columns + 77, n_columns))
    rows = np.asfortranarray(rows) if by_column else rows
    for step in (StandardScaler(), MinMaxScaler(clip=True)):
        step.fit(rows[:50])
        scaling = scaling_of([step], as_table(rows))
        assert (scaling._together[0] > 1) == (n_columns < 1500)
        own = step.transform(rows)
        assert scaling.all().tobytes() == own.tobytes()
        for some in (slice(3, 9), slice(13, len(rows))):
            with scaling.lent(some) as piece:
                np.testing.assert_array_equal(piece, own[some])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SCALERS)
def test_explanations_have_the_bits_of_the_documented_way(name, layout, monkeypatch):
    model, background = pipeline(SCALERS[name], layout=layout)
    monkeypatch.setattr(_linear, "PIECE", 1024 * D)
    for n_rows in (1, 10, 5000):
        rows = LAYOUTS[layout](X[:n_rows])
        for n_jobs in (1, 2, 3) if n_rows == 5000 else (1,):
            wanted = documented(model, background, rows, monkeypatch, n_jobs=n_jobs)
            same_bits(direct(model, background, rows, monkeypatch, n_jobs=n_jobs), wanted)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_large_table_has_the_bits_of_the_documented_way(n_jobs, monkeypatch):
    rows = np.random.default_rng(1).normal(size=(200_003, D)) * np.logspace(-2, 3, D)
    for layout in (np.array, np.asfortranarray):
        model, background = pipeline(RobustScaler(), MinMaxScaler(clip=True))
        wanted = documented(model, background, layout(rows), monkeypatch)
        same_bits(direct(model, background, layout(rows), monkeypatch, n_jobs=n_jobs), wanted)


def test_scaled_rows_of_a_linear_model_are_never_all_made(monkeypatch):
    model, background = pipeline(StandardScaler())
    explainer, rows, made = Explainer(model, background, n_jobs=2), np.zeros((200_003, D)), Scaling.all
    monkeypatch.setattr(Scaling, "all", lambda scaling: made(scaling) if scaling.shape[0] < len(rows) else pytest.fail("all"))
    assert explainer(rows).certificate().passed


MODELS = {
    "several outputs": (LinearRegression(), np.c_[Y, Y**2, -Y]),
    "logistic": (LogisticRegression(), np.median(Y) < Y),
    "several classes": (LogisticRegression(), np.digitize(Y, np.quantile(Y, [0.3, 0.6]))),
    "logarithm": (PoissonRegressor(), np.abs(Y)),
    "kernels": (SVR(), Y),
    "trees": (HistGradientBoostingRegressor(max_iter=3), Y),
}


@pytest.mark.parametrize("name", MODELS)
def test_whatever_follows_several_scalers(name, monkeypatch):
    tail, y = MODELS[name]
    model = make_pipeline(MaxAbsScaler(), StandardScaler(), make_pipeline(RobustScaler()), tail).fit(FITTED, y)
    monkeypatch.setattr(_linear, "OF_OUTPUTS", 1024 * D * 3)
    rows = X[: 200 if name in ("kernels", "trees") else 5000]
    for n_jobs in (1, 2):
        wanted = documented(model, FITTED[:20], rows, monkeypatch, n_jobs=n_jobs)
        same_bits(direct(model, FITTED[:20], rows, monkeypatch, n_jobs=n_jobs), wanted)


@pytest.mark.parametrize("asked", [{"index": "banzhaf"}, {"index": "k-sii", "order": 2}])
def test_other_questions_and_groups(asked, monkeypatch):
    model, background = pipeline(StandardScaler())
    groups = {"pair": ["x0", "x3"]}
    for settings in ({}, {"groups": groups}):
        with monkeypatch.context() as patch:
            patch.setattr(sklearn_pipeline, "scaling_of", lambda *_: None)
            wanted = Explainer(model, background, **settings)(X[:3000], **asked)
        same_bits(Explainer(model, background, **settings)(X[:3000], **asked), wanted)


# -- models that change --------------------------------------------------------------------------------------------------


def refit(model):
    model.fit(FITTED[::-1] * 3.0 + 1.0, Y)


def shift(model):
    model[0].mean_ += 0.25  # in place


def stretch(model):
    model[0].scale_ = model[0].scale_ * 1.5


def leave_the_mean(model):
    model[0].with_mean = False


def one_mean(model):
    model[0].mean_ = np.array([0.5])  # for all columns


def own_method(model):
    model[0].transform = types.MethodType(lambda self, rows: type(self).transform(self, rows) * 2.0, model[0])


def frames_out(model):
    model.set_output(transform="pandas")


CHANGES = {  # and whether the direct way is still taken
    "refit": (refit, True),
    "mean, in place": (shift, True),
    "another scale": (stretch, True),
    "an option": (leave_the_mean, True),
    "a mean of another shape": (one_mean, False),
    "a method of its own": (own_method, False),
    "frames": (frames_out, False),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", CHANGES)
def test_a_model_that_changed_is_followed(name, monkeypatch):
    change, is_direct = CHANGES[name]
    model, background = pipeline(StandardScaler())
    explainer = Explainer(model, background, on_inexact="warn")
    explainer(X[:10])
    change(model)
    assert (scaling_of([model[0]], as_table(X[:10])) is not None) == is_direct
    found = explainer.reader.rows(as_table(X[:10])).numeric()
    np.testing.assert_array_equal(found, np.asarray(model[0].transform(X[:10])))


def test_a_class_that_changed_is_followed(monkeypatch):
    model, background = pipeline(StandardScaler())
    explainer = Explainer(model, background)
    explainer(X[:10])
    own = StandardScaler.transform
    monkeypatch.setattr(StandardScaler, "transform", lambda self, rows: own(self, rows) + 1.0)
    assert scaling_of([model[0]], as_table(X[:10])) is None
    np.testing.assert_array_equal(explainer.reader.rows(as_table(X[:10])).numeric(), own(model[0], X[:10]) + 1.0)


def test_the_method_of_another_class_is_not_taken(monkeypatch):
    model, _ = pipeline(MaxAbsScaler())
    monkeypatch.setattr(MaxAbsScaler, "transform", lambda self, rows: rows / self.scale_)  # nobody's but ours
    assert scaling_of([model[0]], as_table(X)) is None
    monkeypatch.setattr(MaxAbsScaler, "transform", MaxAbsScaler.inverse_transform)  # scikit-learn's, but another one
    assert scaling_of([model[0]], as_table(X)) is None


def test_arithmetic_that_rounds_in_another_way_is_not_taken(monkeypatch):
    def by_reciprocals(step, dtype):
        yield _scaling.Operation(np.subtract, (step.mean_,))
        yield _scaling.Operation(np.multiply, (1.0 / step.scale_,))

    monkeypatch.setattr(_scalers, "_tried", {})
    kinds = _scalers._OPERATIONS["StandardScaler"]
    monkeypatch.setitem(_scalers._OPERATIONS, "StandardScaler", (by_reciprocals, *kinds[1:]))
    model, background = pipeline(StandardScaler())
    assert scaling_of([model[0]], as_table(X)) is None
    np.testing.assert_array_equal(Explainer(model, background)(X[:9]).prediction, model.predict(X[:9]))


def test_subclasses_settings_and_other_steps_go_the_documented_way():
    class Mine(StandardScaler):
        pass

    standard, table = StandardScaler().fit(FITTED), as_table(X[:5])
    assert scaling_of([standard], table) is not None
    assert scaling_of([Mine().fit(FITTED)], table) is None
    assert scaling_of([standard, SVR()], table) is None
    assert scaling_of([StandardScaler()], table) is None  # not fitted
    assert scaling_of([StandardScaler().fit(FITTED[:, :3])], table) is None
    assert scaling_of([StandardScaler().fit(pd.DataFrame(FITTED, columns=NAMES))], table) is None  # it warns
    assert scaling_of([standard], as_table(pd.DataFrame(X[:5], columns=NAMES))) is None
    assert scaling_of([standard], as_table(X[:5].astype(int))) is None
    frame = pd.DataFrame(X[:5], columns=NAMES)
    named = StandardScaler().fit(pd.DataFrame(FITTED, columns=NAMES))
    assert scaling_of([named], as_table(frame)) is not None
    assert scaling_of([named], as_table(frame[NAMES[::-1]])) is None  # it refuses
    assert scaling_of([standard], as_table(X[:0], allow_empty=True)) is None
    with config_context(transform_output="pandas"):
        assert scaling_of([standard], table) is None
    assert scaling_of([MinMaxScaler((0, 1), clip=True).fit(FITTED).set_params(feature_range=("0", 1))], table) is None


# -- what is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCALERS)
def test_numbers_that_are_gone_are_missed_in_the_same_words(name, monkeypatch):
    for attribute in ("mean_", "scale_", "min_", "center_", "clip", "with_mean", "n_features_in_"):
        for is_gone in (True, False):
            model, background = pipeline(SCALERS[name])
            explainer = Explainer(model, background, on_inexact="warn")
            if attribute not in vars(model[0]):
                continue
            if is_gone:
                delattr(model[0], attribute)
            else:
                setattr(model[0], attribute, None)
            found = said(explainer)
            with monkeypatch.context() as patch:
                patch.setattr(sklearn_pipeline, "scaling_of", lambda *_: None)
                assert found == said(explainer)


def said(explainer):
    """Return the text of an error, or the predictions."""
    try:
        return explainer(X[:5]).prediction.tolist()
    except Exception as error:  # of whatever kind
        return f"{type(error).__name__}: {error}"


def answered(model, background, rows, **settings):
    """Return the text of the error and of the warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            Explainer(model, background, **settings)(rows)
            text = "fine"
        except Exception as error:  # of whatever kind
            text = f"{type(error).__name__}: {error}"
    return text, sorted({str(each.message) for each in said})


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("name", SCALERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.7e308])
def test_numbers_that_are_not_finite_are_refused_in_the_same_words(name, bad, n_jobs, monkeypatch):
    model, background = pipeline(SCALERS[name])
    monkeypatch.setattr(_linear, "PIECE", 1024 * D)
    for n_rows, row in ((1, 0), (9, 4), (5000, 4321)):
        rows = X[:n_rows].copy()
        rows[row, 2] = bad
        found = answered(model, background, rows, n_jobs=n_jobs)
        with monkeypatch.context() as patch:
            patch.setattr(sklearn_pipeline, "scaling_of", lambda *_: None)
            assert found == answered(model, background, rows, n_jobs=n_jobs)
        assert found[0] != "fine" or bad == 1.7e308
        if np.isnan(bad):
            assert f"NaN (first at row {row}, " in found[0]
        elif np.isinf(bad):
            assert f"{type(model[0]).__name__} refuses the rows" in found[0]
    assert answered(model, np.where(np.arange(D) == 3, bad, background), X[:5])[0].startswith("InputError") or bad == 1.7e308


def test_a_missing_number_goes_to_models_that_take_it(monkeypatch):
    model, background = pipeline(StandardScaler(), model=HistGradientBoostingRegressor(max_iter=3))
    rows = X[:50].copy()
    rows[7, 2] = np.nan
    same_bits(Explainer(model, background)(rows), documented(model, background, rows, monkeypatch))


@pytest.mark.parametrize("fitted", ["rows", "frame"])
def test_other_columns_are_refused_in_the_same_words(fitted, monkeypatch):
    model, background = pipeline(StandardScaler(), layout=fitted)
    frame = pd.DataFrame(X[:5], columns=NAMES)
    for rows in (
        X[:5],
        frame,
        frame[NAMES[::-1]],
        frame[NAMES[:-1]],
        X[:5, :-1],
        np.c_[X, X][:5],
        frame.rename(columns=str.upper),
    ):
        found = answered(model, background, rows)
        with monkeypatch.context() as patch:
            patch.setattr(sklearn_pipeline, "scaling_of", lambda *_: None)
            assert found == answered(model, background, rows)


@pytest.mark.parametrize("kind", [StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler])
@pytest.mark.parametrize("layout", ["rows", "frame"])
def test_steps_that_write_to_what_they_are_given_leave_the_users_rows_alone(kind, layout, monkeypatch):
    make = LAYOUTS[layout]
    model, _ = pipeline(kind(copy=False), layout=layout)
    careful, _ = pipeline(kind(), layout=layout)
    for is_direct in (True, False):
        rows, background = make(X[:2000]), make(FITTED[:20])
        with monkeypatch.context() as patch:
            if not is_direct:
                patch.setattr(sklearn_pipeline, "scaling_of", lambda *_: None)
            found = Explainer(model, background)(rows)
        np.testing.assert_array_equal(np.array(rows), X[:2000])
        np.testing.assert_array_equal(np.array(background), FITTED[:20])
        same_bits(found, Explainer(careful, background)(rows))


def in_a_column_transformer(step):
    """Return a model whose transformer gives the step a view of the rows."""
    both = ColumnTransformer([("some", step, slice(0, 3)), ("others", "passthrough", slice(3, D))])
    return make_pipeline(both, Ridge())


def below_a_scaled_target(step):
    return TransformedTargetRegressor(make_pipeline(step, Ridge()), transformer=StandardScaler())


@pytest.mark.parametrize("build", [in_a_column_transformer, below_a_scaled_target])
def test_steps_that_write_from_inside_others_leave_the_rows_alone(build):
    model = build(StandardScaler(copy=False)).fit(FITTED.copy(), Y)
    explainer, rows = Explainer(model, FITTED[:20]), X[:50].copy()
    found = explainer(rows)
    assert explainer.verify(rows).passed
    np.testing.assert_array_equal(rows, X[:50])
    np.testing.assert_array_equal(explainer.reader.background.native, FITTED[:20])
    same_bits(found, explain(build(StandardScaler()).fit(FITTED, Y), X[:50], FITTED[:20]))


def test_memory_that_another_thread_takes_meanwhile_is_not_waited_for():
    class Gone(list):
        """What was there when one looked."""

        def __len__(self):
            return 1

    model, _ = pipeline(StandardScaler())
    scaling = scaling_of([model[0]], as_table(X))
    scaling._spare = Gone()
    with scaling.lent(slice(0, 9)) as piece:
        np.testing.assert_array_equal(piece, model[0].transform(X[:9]))


def test_a_pickled_explainer_goes_on(monkeypatch):
    model, background = pipeline(StandardScaler(), MinMaxScaler())
    explainer = pickle.loads(pickle.dumps(Explainer(model, background)))
    monkeypatch.setattr(PipelineReader, "_transformed", refuse)
    same_bits(explainer(X[:3000]), explain(model, X[:3000], background))


def test_rows_are_cut_into_the_blocks_of_the_model_alone():
    model, background = pipeline(StandardScaler())
    settings = {"memory_limit": 2.0**20}
    alone = Explainer(model[-1], background, **settings).plan(X)
    assert Explainer(model, background, **settings).plan(X).block_rows == alone.block_rows < 5000
    imputed, _ = pipeline(StandardScaler(), model=SVR())
    assert Explainer(imputed, background).reader.memory(100, 1) > Explainer(imputed[-1], background).reader.memory(100, 1)


def test_rows_of_another_width_than_the_models_are_left_to_it():
    model, background = pipeline(StandardScaler())
    explainer = Explainer(model, background)
    narrow = Scaling(X[:5, :3], ())
    assert explainer.reader.inner.answer_made(narrow, None, 1) is None
    with pytest.raises(InputError, match="7 features"):
        explainer(X[:5, :3])
