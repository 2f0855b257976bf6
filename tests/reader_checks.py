"""What the tests of all readers hold against a model's own answers."""

import numpy as np

from exactshap import Explainer
from exactshap.testing import check_reader
from oracles import interventional_values


def second_class(model):
    """Return the function of rows that gives a classifier's probabilities of its second class."""
    return lambda rows: model.predict_proba(rows)[:, 1]


def check_answers(model, own, rows, background, atol, *, covers=False, contract=True, **settings):
    """Hold predictions and values against brute force over ``own``, output by output; return the explanation.

    ``atol`` is relative to the largest value where that is above 1; ``covers`` holds the path-dependent game as well, and
    without ``contract`` slow models, and those that do not pickle, are verified only.
    """
    explainer = Explainer(model, background, **settings)
    if contract:
        check_reader(model, rows, background, **settings)
    else:
        assert explainer.verify(rows).passed
    if covers:
        check_reader(model, rows, n_masks=2, indices=("shapley",), **settings)
    explanation = explainer(rows)
    assert explanation.exact
    assert explanation.certificate().passed
    answers = np.asarray(own(rows), float).reshape(explanation.prediction.shape)
    np.testing.assert_allclose(explanation.prediction, answers, rtol=atol, atol=atol)
    values = interventional_values(own, rows, background)
    limit = atol * max(1.0, np.abs(values).max())
    np.testing.assert_allclose(explanation.values, values.reshape(explanation.values.shape), rtol=0, atol=limit)
    return explanation
