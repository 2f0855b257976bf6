"""Categorical columns of every booster in every kind of frame: matched by name whatever their order, unseen names refused or missing."""

import functools

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV

from exactshap import decompose_r2, explain
from exactshap.errors import ExplanationWarning, InputError
from exactshap.testing import check_reader
from exactshap.trees import convert, load
from tolerances import FLOAT32_MARGIN, roundings
from tree_models import check_path_dependent, mixed_frame

pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
CITIES, SIZES = ["u", "v", "w", "x", "y", "z"], ["large", "medium", "small"]


def frames(n=240):
    """The same rows as pandas and polars frames; the names of the categories in several orders."""
    rng = np.random.default_rng(0)
    plain = pd.DataFrame(
        {"a": rng.normal(size=n), "city": rng.choice(CITIES, n), "b": rng.normal(size=n), "size": rng.choice(SIZES, n)}
    )
    polars = pl.DataFrame({name: plain[name].to_list() for name in plain})

    def categorical(cities, sizes):
        return plain.assign(city=pd.Categorical(plain.city, cities), size=pd.Categorical(plain["size"], sizes))

    def cast(cities, sizes):
        return polars.with_columns(pl.col("city").cast(cities), pl.col("size").cast(sizes))

    every = {
        "pandas": categorical(CITIES, SIZES),
        "pandas, other order": categorical(CITIES[::-1], SIZES[::-1]),
        "polars Categorical": cast(pl.Categorical, pl.Categorical),
        "polars Enum": cast(pl.Enum(CITIES), pl.Enum(SIZES)),
        "polars Enum, other order": cast(pl.Enum(CITIES[::-1]), pl.Enum(SIZES[::-1])),
        "pandas, more names": categorical(["idle", *CITIES], [*SIZES, "idle"]),
        "polars Enum, more names": cast(pl.Enum(["idle", *CITIES]), pl.Enum([*SIZES, "idle"])),
    }
    code = every["pandas"].city.cat.codes % 3 + every["pandas"]["size"].cat.codes * plain.b
    return every, (plain.a + code).to_numpy()


FRAMES, Y = frames()
MIXED, TARGET = mixed_frame()  # with missing categories, and categories that are whole numbers


def skip_where_xgboost_compares_codes():
    xgboost = pytest.importorskip("xgboost")
    if tuple(map(int, xgboost.__version__.split(".")[:2])) < (3, 1):
        pytest.skip("XGBoost before 3.1 compares codes, not names, and keeps no names")


def booster(library, one_hot=2):
    if library == "scikit-learn":
        return HistGradientBoostingRegressor(max_iter=6, max_depth=3, categorical_features="from_dtype")
    few = {"n_estimators": 6, "max_cat_to_onehot": one_hot, "n_jobs": 1}
    if library == "xgboost":
        return pytest.importorskip("xgboost").XGBRegressor(max_depth=3, enable_categorical=True, **few)
    free = {"min_data_per_group": 1, "cat_smooth": 1, "verbose": -1}
    return pytest.importorskip("lightgbm").LGBMRegressor(num_leaves=6, **few, **free)


@functools.cache
def fitted(library, kind):
    try:
        return booster(library).fit(FRAMES[kind], Y)
    except ValueError as error:
        if kind != "pandas":
            skip_where_xgboost_compares_codes()
        if "does not support `polars.Categorical`" not in str(error):
            raise
        pytest.skip("this release of XGBoost is not fitted to polars.Categorical")


FITS = [("scikit-learn", "pandas"), ("scikit-learn", "polars Categorical"), ("xgboost", "pandas"), ("lightgbm", "pandas")]
FITS += [("xgboost", "polars Categorical"), ("xgboost", "polars Enum")]


@pytest.mark.parametrize("rows", FRAMES)
@pytest.mark.parametrize(("library", "kind"), FITS)
def test_names_are_matched_whatever_their_order(library, kind, rows):
    """LightGBM 4.6 ends the process when it is fitted to polars' categories: there the model is one of pandas."""
    model = fitted(library, kind)
    own = np.asarray(model.predict(FRAMES[kind]))
    if library == "xgboost" and rows != kind:
        skip_where_xgboost_compares_codes()
    ensemble = convert(model)
    assert (ensemble.trees.category_start >= 0).any()
    assert np.abs(ensemble.predict(FRAMES[rows]) - own).max() <= FLOAT32_MARGIN * np.abs(own).max()
    explanation = explain(model, FRAMES[rows][:40])
    assert explanation.certificate().passed
    np.testing.assert_allclose(explanation.values, explain(model, FRAMES[kind][:40]).values, rtol=0, atol=roundings(5_000))
    shares = [decompose_r2(model, FRAMES[one][:40], Y[:40]).values for one in (rows, kind)]
    np.testing.assert_allclose(*shares, atol=roundings(5_000))


@pytest.mark.parametrize("dtype", [object, "str", "polars"])
def test_texts_for_categories_of_xgboost_are_refused_by_name(dtype, tmp_path):
    """As CSV files give them: XGBoost raises KeyError or an error about DMatrix. Its file, which we predict, takes them."""
    skip_where_xgboost_compares_codes()
    model, frame = fitted("xgboost", "pandas"), FRAMES["pandas"][:40]
    texts = frame.assign(city=frame["city"].astype("str" if dtype == "polars" else dtype))
    texts = pl.from_pandas(texts) if dtype == "polars" else texts
    for X, background in ((texts, None), (texts, frame), (frame, texts)):
        with pytest.raises(InputError, match=r"fitted with columns of categorical dtype\. Got text in 'city'\. Convert"):
            explain(model, X, background)
    model.save_model(tmp_path / "model.json")
    np.testing.assert_array_equal(explain(load(tmp_path / "model.json"), texts).values, explain(model, frame).values)


@pytest.mark.parametrize("kind", ["pandas, more names", "polars Enum, more names"])
def test_names_that_only_a_dtype_has_are_refused_in_wrappers(kind):
    """XGBoost 3.4 refuses them in a model's own answers; before, the values are those of the fewer names."""
    skip_where_xgboost_compares_codes()
    search = GridSearchCV(booster("xgboost"), {}, cv=2).fit(FRAMES["pandas"], Y)
    few, more = [(frame[:3], frame[20:30]) for frame in (FRAMES["pandas"], FRAMES[kind])]
    if tuple(map(int, pytest.importorskip("xgboost").__version__.split(".")[:2])) < (3, 4):
        np.testing.assert_allclose(explain(search, *more).values, explain(search, *few).values, rtol=0, atol=roundings(5_000))
        return
    with pytest.raises(InputError, match=r"Got it for the .*column: `idle`. Leave it out of the column's dtype"):
        explain(search, *more)


@pytest.mark.parametrize(
    ("library", "one_hot"), [("scikit-learn", 2), ("xgboost", 1), ("xgboost", 10), ("lightgbm", 1), ("lightgbm", 10)]
)
def test_gaps_numbers_and_unseen_names(library, one_hot):
    if library == "xgboost":
        skip_where_xgboost_compares_codes()
    sizes = pd.Categorical(np.resize(list("lmh"), len(MIXED)), categories=list("lmh"), ordered=True)
    frame = MIXED.assign(size=sizes)
    model = booster(library, one_hot).fit(frame, TARGET + sizes.codes)
    assert (convert(model).trees.category_start >= 0).any()
    own = np.asarray(model.predict(frame))
    shuffled = frame.assign(
        city=frame.city.cat.reorder_categories(list("zyxwvu")), kind=frame.kind.cat.reorder_categories([11, 5, 7])
    )
    for rows in (frame, shuffled):
        for one in (model, model.booster_) if library == "lightgbm" else (model,):
            np.testing.assert_allclose(convert(one).predict(rows), own, rtol=0, atol=FLOAT32_MARGIN * np.abs(own).max())
    check_reader(model, frame[:5], frame[50:60])
    explanation = explain(model, frame[:9])
    np.testing.assert_array_equal(explain(model, shuffled[:9]).values, explanation.values)
    assert np.abs(explanation.values[:, 1]).min() > 0.0
    unseen = frame.assign(city=frame.city.cat.rename_categories({"u": "new"}))
    words = r"column 'city' holds categories that the model has not seen. Got 'new'"
    if library == "xgboost":  # it guesses
        for call in (explain, lambda *tables: decompose_r2(*tables, TARGET)):
            with pytest.raises(InputError, match=rf"{words}. XGBoost refuses them or, before 3.4"):
                call(model, unseen)
        with pytest.raises(InputError, match=f"In background, {words}"):
            explain(model, frame[:3], unseen)
        return
    with pytest.warns(ExplanationWarning, match=words):
        np.testing.assert_allclose(convert(model).predict(unseen), model.predict(unseen), rtol=roundings(50))
    if library == "lightgbm":
        with pytest.raises(InputError, match=r"fitted with 3 columns of categorical dtype. Got 2"):
            explain(model, frame.assign(kind=frame.kind.cat.codes))


@pytest.mark.parametrize("kind", ["pandas", "pandas, other order", "polars Enum", "polars Enum, other order"])
def test_a_missing_number_is_compared_with_the_frames_own_codes(kind):
    if kind != "pandas":
        skip_where_xgboost_compares_codes()
    model = booster("xgboost").set_params(missing=1).fit(FRAMES["pandas"], Y)
    own = np.asarray(model.predict(FRAMES[kind]))
    np.testing.assert_allclose(convert(model).predict(FRAMES[kind]), own, rtol=0, atol=FLOAT32_MARGIN * np.abs(own).max())


def test_path_dependent_values_of_categories_by_brute_force():
    model = booster("xgboost", 1).fit(MIXED, TARGET)
    coded = np.c_[MIXED.a, MIXED.city.cat.codes.replace(-1, np.nan), MIXED.b, MIXED.kind.cat.codes]
    check_path_dependent(model, MIXED[:8], coded[:8])


def test_a_missing_category_of_pandas_is_missing_or_named():
    frame = pd.DataFrame({"city": ["u", "v"] * 60, "b": np.arange(120.0)})
    gaps = pd.DataFrame({"city": pd.Series(["u", pd.NA], dtype=object), "b": [3.0, 4.0]})
    known = pd.DataFrame({"city": pd.Categorical(["u", None], ["u", "v"]), "b": [3.0, 4.0]})
    model = booster("scikit-learn").fit(frame.astype({"city": "category"}), frame.b + 50.0 * (frame.city == "u"))
    values = explain(convert(model), known, frame[10:14].astype({"city": "category"})).values
    np.testing.assert_array_equal(explain(convert(model), gaps, frame[10:14]).values, values)
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(iterations=3, cat_features=["city"], verbose=False, allow_writing_files=False)
    with pytest.raises(InputError, match="holds a missing value"):
        explain(convert(model.fit(frame, frame.b)), gaps, frame[:4])
