"""What functions answer: rounding that hangs on the batch, names of outputs, frames, labels."""

import numpy as np
import pytest

from exactshap import Explainer, explain
from exactshap.errors import ExactnessError

RNG = np.random.default_rng(5)
BACKGROUND, X = RNG.normal(size=(20, 4)), RNG.normal(size=(3, 4))


def rounded_in(batch):
    """Return a function with answers that move by 3,000 eps in some batches, as BLAS' kernels for few rows make them."""

    def function(rows):
        return np.sin(rows.sum(axis=1)) * (1.0 + 7e-13 * batch(len(rows)))

    return function


@pytest.mark.parametrize("batch", [lambda n: n == 1, lambda n: n <= 3, lambda n: n < 16, lambda n: n >= 100])
@pytest.mark.parametrize("n_rows", [1, 2, 3])
@pytest.mark.parametrize("n_background", [1, 2, 20])
def test_rounding_is_measured_in_batches_of_every_size(batch, n_rows, n_background):
    function = rounded_in(batch)
    found = Explainer(function, BACKGROUND[:n_background])(X[:n_rows])
    assert found.certificate().passed
    assert found.tolerance.max() < 1e-9


def test_rounding_that_no_batch_of_the_background_shows_is_refused():
    def moved(rows):
        return rounded_in(lambda n: 1)(rows) if np.array_equal(rows[0], X[0]) else rounded_in(lambda n: 0)(rows) * (1 + 1e-11)

    with pytest.raises(ExactnessError):
        explain(moved, X[:1], BACKGROUND)
