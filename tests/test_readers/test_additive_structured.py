"""Objects with ``partial(columns)`` and ``get_all_unique_fs()`` are read term by term."""

import numpy as np
import pandas as pd
import pytest

from exactshap import explain
from exactshap.errors import UnsupportedModelError, UnsupportedStructureError
from tolerances import assert_close

RNG = np.random.default_rng(0)
X, BACKGROUND = RNG.normal(size=(3, 5)), RNG.normal(size=(20, 5))
TERMS = {
    (0, 2): lambda v: np.exp(v[:, 0] * v[:, 1]),
    (3,): lambda v: v[:, 0] ** 2,
    (0, 1, 3): lambda v: v[:, 0] * np.sin(v[:, 1]) + v[:, 2],
    (): lambda v: np.full(len(v), 7.0),
}
SCALE = 20.0  # the largest prediction of the rows and of mixtures with the background


class Structured:
    """The interface of the authors' models: partial models take whole rows."""

    def __init__(self, wrong=0.0):
        self.wrong = wrong

    def get_all_unique_fs(self):
        return [list(subset) for subset in TERMS]

    def partial(self, fs):
        return lambda rows: TERMS[tuple(fs)](rows[:, list(fs)])

    def __call__(self, rows):
        return sum(self.partial(fs)(rows) for fs in self.get_all_unique_fs()) + self.wrong


def test_values_are_those_of_the_function():
    found = explain(Structured(), X, BACKGROUND)
    by_enumeration = explain(lambda rows: Structured()(rows), X, BACKGROUND)
    assert by_enumeration.exact
    assert_close(found.values, by_enumeration.values, SCALE, n_terms=32 * len(BACKGROUND), n_players=5)
    assert found.exact
    assert found.certificate().passed
    assert not found.values[:, 4].any()  # in no term


def test_many_columns_are_exact():
    """Twenty columns more, in no term: as a function the values would be sampled."""
    wide = [np.hstack([rows, RNG.normal(size=(len(rows), 20))]) for rows in (X, BACKGROUND)]
    found = explain(Structured(), *wide)
    assert found.exact
    assert_close(found.values[:, :5], explain(Structured(), X, BACKGROUND).values, SCALE, n_terms=len(BACKGROUND))


def test_terms_that_do_not_add_up_to_the_model_are_refused():
    with pytest.raises(UnsupportedStructureError, match="does not predict the sum"):
        explain(Structured(wrong=0.1), X, BACKGROUND)


class AnswersEveryName:
    """Hand on any call to the models of its folds, as LightGBM's ``CVBooster`` does."""

    def __getattr__(self, name):
        return lambda *args: [name]


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_objects_that_answer_every_name_have_no_terms(kind):
    with pytest.raises(UnsupportedModelError, match="No exact reader"):
        explain(AnswersEveryName(), kind(X), kind(BACKGROUND))
