"""What a user asked for in the ordinary way answers without a warning: of names, shapes or settings that nobody passed wrongly."""

import warnings

import pandas as pd
import pytest

import exactshap
from golden_models import MODELS, Data, unfitted

OF_OLDER_LIGHTGBM = ("__sklearn_tags__", "'force_all_finite' was renamed")
DATA = Data()
FRAME = pd.DataFrame(DATA.X, columns=["age", "sex", "income", "rooms", "floors", "year"])
NAMES = (
    *("SVR", "SVC", "OneClassSVM", "KernelRidge", "GP", "GP classifier", "LinearRegression", "LogisticRegression"),
    *("scaler, SVR", "random forest", "random forest classifier", "gradient boosting classifier", "histogram boosting"),
    *("isolation forest", "bagging", "voting", "XGBoost", "XGBoost two classes", "LightGBM", "LightGBM three classes"),
    *("CatBoost", "CatBoost three classes", "EBM", "LinearGAM"),
)


def messages(caught):
    """Return what was warned of, but for what scikit-learn says of releases of LightGBM that are older than it."""
    return [text for one in caught if not any(word in (text := str(one.message)) for word in OF_OLDER_LIGHTGBM)]


@pytest.mark.parametrize("of_frames", [True, False], ids=["frames", "arrays"])
@pytest.mark.parametrize("name", NAMES)
def test_explaining_and_decomposing_are_silent(name, of_frames):
    rows = FRAME if of_frames else DATA.X
    model = unfitted(name)
    model.fit(rows, getattr(DATA, MODELS[name].target))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explainer = exactshap.Explainer(model, rows[:20], output="all" if hasattr(model, "classes_") else "auto")
        for n in (1, 3, 12, 120):
            explanation = explainer(rows[:n])
        str(explanation), explainer.verify(rows[:2])
        if name in ("XGBoost", "LightGBM", "CatBoost"):
            exactshap.decompose_r2(model, rows, DATA.y)
            exactshap.explain(model, rows[:3])
    assert messages(caught) == []
