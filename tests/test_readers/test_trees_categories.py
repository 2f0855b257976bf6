"""Categorical columns of every booster in every kind of frame: matched by name whatever their order, unseen names refused or missing."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from exactshap import decompose_r2, explain
from exactshap.errors import InputError
from exactshap.trees import convert
from tolerances import FLOAT32_MARGIN, roundings

pd = pytest.importorskip("pandas")
CITIES, SIZES = ["u", "v", "w", "x", "y", "z"], ["large", "medium", "small"]


def frames(n=240):
    """The same rows as pandas and polars frames; the names of the categories in several orders."""
    rng = np.random.default_rng(0)
    plain = pd.DataFrame(
        {"a": rng.normal(size=n), "city": rng.choice(CITIES, n), "b": rng.normal(size=n), "size": rng.choice(SIZES, n)}
    )

    def categorical(cities, sizes):
        return plain.assign(city=pd.Categorical(plain.city, cities), size=pd.Categorical(plain["size"], sizes))

    found = {"pandas": categorical(CITIES, SIZES), "pandas, other order": categorical(CITIES[::-1], SIZES[::-1])}
    pl = pytest.importorskip("polars")
    polars = pl.DataFrame({name: plain[name].to_list() for name in plain})

    def cast(cities, sizes):
        return polars.with_columns(pl.col("city").cast(cities), pl.col("size").cast(sizes))

    found["polars Categorical"] = cast(pl.Categorical, pl.Categorical)
    found["polars Enum"] = cast(pl.Enum(CITIES), pl.Enum(SIZES))
    found["polars Enum, other order"] = cast(pl.Enum(CITIES[::-1]), pl.Enum(SIZES[::-1]))
    code = found["pandas"].city.cat.codes % 3 + found["pandas"]["size"].cat.codes * plain.b
    return found, (plain.a + code).to_numpy()


FRAMES, Y = frames()


def skip_where_xgboost_compares_codes():
    xgboost = pytest.importorskip("xgboost")
    if tuple(map(int, xgboost.__version__.split(".")[:2])) < (3, 1):
        pytest.skip("XGBoost before 3.1 compares codes, not names, and keeps no names")


def fitted(library, kind):
    if library == "scikit-learn":
        return HistGradientBoostingRegressor(max_iter=6, max_depth=3, categorical_features="from_dtype").fit(FRAMES[kind], Y)
    if library == "xgboost":
        model = pytest.importorskip("xgboost").XGBRegressor(
            n_estimators=6, max_depth=3, enable_categorical=True, max_cat_to_onehot=2, n_jobs=1
        )
        try:
            return model.fit(FRAMES[kind], Y)
        except ValueError as error:
            if kind != "pandas":
                skip_where_xgboost_compares_codes()
            if "does not support `polars.Categorical`" not in str(error):
                raise
            pytest.skip("this release of XGBoost is not fitted to polars.Categorical")
    model = pytest.importorskip("lightgbm").LGBMRegressor(
        n_estimators=6, num_leaves=6, min_data_per_group=1, cat_smooth=1, max_cat_to_onehot=2, verbose=-1, n_jobs=1
    )
    return model.fit(FRAMES[kind], Y)


@pytest.mark.parametrize("rows", FRAMES)
@pytest.mark.parametrize(
    ("library", "kind"),
    [
        ("scikit-learn", "pandas"),
        ("scikit-learn", "polars Categorical"),
        ("xgboost", "pandas"),
        ("xgboost", "polars Categorical"),
        ("xgboost", "polars Enum"),
        ("lightgbm", "pandas"),
    ],
)
def test_names_are_matched_whatever_their_order(library, kind, rows):
    """LightGBM 4.6 ends the process when it is fitted to polars' categories: there the model is one of pandas."""
    model = fitted(library, kind)
    own = np.asarray(model.predict(FRAMES[kind]))
    if library == "xgboost" and rows != kind:
        skip_where_xgboost_compares_codes()
    ensemble = convert(model)
    assert (ensemble.trees.category_start >= 0).any()
    assert np.abs(ensemble.predict(FRAMES[rows]) - own).max() <= FLOAT32_MARGIN * np.abs(own).max()
    explanation = explain(model, FRAMES[rows])
    assert explanation.certificate().passed
    np.testing.assert_allclose(explanation.values, explain(model, FRAMES[kind]).values, rtol=0, atol=roundings(5_000))
    np.testing.assert_allclose(
        decompose_r2(model, FRAMES[rows], Y).values, decompose_r2(model, FRAMES[kind], Y).values, atol=roundings(5_000)
    )


def test_names_that_xgboost_has_not_seen_are_refused_with_its_reason():
    skip_where_xgboost_compares_codes()
    model = fitted("xgboost", "pandas")
    unseen = FRAMES["pandas"].assign(city=FRAMES["pandas"].city.cat.rename_categories({"u": "new"}))
    for refused in (lambda: explain(model, unseen), lambda: decompose_r2(model, unseen, Y)):
        with pytest.raises(InputError, match=r"'city' holds categories .* Got 'new'. XGBoost refuses them or, before 3.4"):
            refused()


def test_a_missing_category_of_pandas_is_missing_or_named():
    frame = pd.DataFrame({"city": pd.Series(["u", "v"] * 60, dtype="category"), "b": np.arange(120.0)})
    y = frame.b + 50.0 * (frame.city == "u")
    gaps = pd.DataFrame({"city": pd.Series(["u", pd.NA], dtype=object), "b": [3.0, 4.0]})
    model = HistGradientBoostingRegressor(max_iter=6, categorical_features="from_dtype").fit(frame, y)
    known = frame[:2].assign(city=pd.Categorical(["u", None], ["u", "v"]), b=[3.0, 4.0])
    values = explain(convert(model), known, frame[10:14].assign(city=frame.city[10:14].astype("category"))).values
    np.testing.assert_array_equal(explain(convert(model), gaps, frame[10:14].astype({"city": object})).values, values)


def test_catboost_names_a_missing_category_of_pandas():
    catboost = pytest.importorskip("catboost")
    frame = pd.DataFrame({"city": ["u", "v"] * 60, "b": np.arange(120.0)})
    model = catboost.CatBoostRegressor(iterations=3, cat_features=["city"], verbose=False, allow_writing_files=False).fit(
        frame, frame.b
    )
    gaps = pd.DataFrame({"city": pd.Series(["u", pd.NA], dtype=object), "b": [3.0, 4.0]})
    with pytest.raises(InputError, match="holds a missing value"):
        explain(convert(model), gaps, frame[:4])
