"""Folds of a cross-validation as one explanation."""

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.model_selection import KFold
from sklearn.svm import SVR

from exactshap import Explanation, explain
from exactshap.errors import InputError, InputTypeError

RNG = np.random.default_rng(4)
ARRAY = RNG.normal(size=(60, 4))
Y = ARRAY[:, 0] * ARRAY[:, 1] + ARRAY[:, 2]
TABLES = {
    "array": lambda: ARRAY,
    "pandas": lambda: pd.DataFrame(ARRAY, columns=list("abcd"), index=np.arange(60) + 100),
    "numbered": lambda: pd.DataFrame(ARRAY),
    "polars": lambda: polars.DataFrame(ARRAY, schema=list("abcd")),
}


def folds(table=ARRAY, targets=Y, **question):
    def rows(chosen):
        return table.iloc[chosen] if hasattr(table, "iloc") else table[chosen]

    return [explain(SVR().fit(ARRAY[a], targets[a]), rows(b), rows(a[:10]), **question) for a, b in KFold(3).split(ARRAY)]


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("array", {}),
        ("pandas", {"index": "k-sii", "order": 2}),
        ("numbered", {"groups": {"pair": [0, 1]}}),
        ("pandas", {}),
        ("polars", {}),
    ],
)
def test_rows_keep_what_they_had(name, question, tmp_path):
    parts = folds(TABLES[name](), **question)
    whole = Explanation.concat(parts, names=["one", "two", "three"])
    for field in ("values", "baseline", "prediction", "residual", "tolerance", "set_values"):
        if getattr(whole, field) is not None:
            np.testing.assert_array_equal(getattr(whole, field), np.concatenate([getattr(part, field) for part in parts]))
    assert whole.certificate().passed
    assert whole.certificate().max_residual == max(part.certificate().max_residual for part in parts)
    assert whole.data.shape == (60, 4)
    if name == "pandas":
        assert whole.to_shap().shape[:2] == (60, len(whole.feature_names))
        assert len(whole.to_frame()) == 60
        whole.plot.bar()
        whole.report(tmp_path / "whole.html")
        pd.testing.assert_frame_equal(whole.data, TABLES[name]())
    assert "two: SVR, rows 20 to 39, baseline" in whole.model_name
    whole.save(tmp_path / "whole.npz")
    assert Explanation.load(tmp_path / "whole.npz").model_name == whole.model_name
    np.testing.assert_array_equal(whole[25].values, parts[1][5].values)


def test_the_certificate_of_the_whole_is_that_of_its_worst_part():
    parts = folds()
    wrong = Explanation(**{**vars(parts[1]), "residual": parts[1].residual + 1.0})
    certificate = Explanation.concat([parts[0], wrong, parts[2]]).certificate()
    assert not certificate.passed
    assert 20 <= certificate.row < 40
    off = Explanation(**{**vars(parts[2]), "mask_difference": 1.0, "mask_tolerance": 1e-9, "n_masks": 1})
    whole = Explanation.concat([*parts[:2], off])
    assert not whole.certificate().masks_passed
    assert not whole.certificate().passed


def test_sampled_parts_keep_their_errors():
    wide = np.tile(ARRAY, (1, 4))
    parts = [explain(lambda rows: np.tanh(rows.sum(axis=1)), wide[i : i + 2], wide[5:9], budget=100) for i in (0, 2)]
    whole = Explanation.concat(parts)
    assert not whole.exact
    np.testing.assert_array_equal(whole.std_error, np.concatenate([part.std_error for part in parts]))
    exact = explain(SVR().fit(wide, Y).predict, wide[:2], wide[5:9], feature_names=parts[0].feature_names)
    exact = Explanation(**{**vars(exact), "unit": parts[0].unit})
    with pytest.raises(InputError, match="Some of the parts are exact and others are not"):
        Explanation.concat([exact, parts[0]])


def test_other_questions_are_refused():
    parts = folds()
    with pytest.raises(InputError, match=r"answer one question.*index of part 0 is 'shapley', of part 1 'banzhaf'"):
        Explanation.concat([parts[0], folds(index="banzhaf")[1]])
    with pytest.raises(InputError, match="feature_names of part 0"):
        Explanation.concat([parts[0], folds(feature_names=list("abcd"))[1]])
    with pytest.raises(InputError, match="one name for each part"):
        Explanation.concat(parts, names=["a"])
    with pytest.raises(InputTypeError, match="must be explanations"):
        Explanation.concat([])
    with pytest.raises(InputTypeError, match="must be explanations"):
        Explanation.concat([parts[0], parts[1].values])
