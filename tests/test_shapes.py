"""Windows, pictures and several inputs: players along named axes, by hand-made columns of flat rows."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from exactshap import Explainer, explain
from exactshap.errors import InputError, InputTypeError, UnknownNameError

rng = np.random.default_rng(0)
WINDOWS = rng.normal(size=(20, 4, 3))
SHAPE = {"time": 4, "variable": ["load", "wind", "price"]}
PLACE = np.arange(12).reshape(4, 3)


def network(windows):
    assert windows.shape[1:] == (4, 3)
    return windows[:, -1, 0] * windows[:, :, 1].mean(axis=1) + np.tanh(windows[:, 0, 2])


def by_hand(groups):
    flat = WINDOWS.reshape(20, 12)
    return explain(lambda rows: network(rows.reshape(-1, 4, 3)), flat[:2], flat[5:], groups=groups)


PATCHES = {
    f"time {2 * k} to time {2 * k + 1}, {name}": PLACE[2 * k : 2 * k + 2, columns].ravel()
    for k in range(2)
    for name, columns in (("load to wind", slice(0, 2)), ("price", slice(2, 3)))
}
PLAYERS = {
    "variables": ("variable", {"load": PLACE[:, 0], "wind": PLACE[:, 1], "price": PLACE[:, 2]}),
    "times": (["time"], {f"time {k}": PLACE[k] for k in range(4)}),
    "windows": ({"time": 3}, {"time 0 to time 2": PLACE[:3].ravel(), "time 3": PLACE[3]}),
    "patches": ({"time": 2, "variable": 2}, PATCHES),
    "one player": ([], {"all": PLACE.ravel()}),
    "cells": (None, {f"time {t}, {name}": PLACE[t, [k]] for t in range(4) for k, name in enumerate(SHAPE["variable"])}),
}


@pytest.mark.parametrize("kind", PLAYERS)
def test_players_along_axes(kind):
    groups, columns = PLAYERS[kind]
    explanation = explain(network, WINDOWS[:2], WINDOWS[5:], shape=SHAPE, groups=groups)
    expected = by_hand({name: list(map(int, members)) for name, members in columns.items()})
    assert explanation.feature_names == tuple(columns)
    np.testing.assert_array_equal(explanation.values, expected.values)
    assert explanation.exact
    assert explanation.certificate().passed


def test_groups_of_cells_and_flat_rows():
    groups = {"last load": ["time 3, load"], "wind": [f"time {k}, wind" for k in range(4)]}
    explainer = Explainer(network, WINDOWS[5:], shape=SHAPE, groups=groups, budget=300)
    explanation = explainer(WINDOWS[:2])
    np.testing.assert_array_equal(explainer(WINDOWS[:2].reshape(2, 12)).values, explanation.values)
    assert {"last load", "wind", "time 0, price"} <= {*explanation.feature_names}
    assert explainer.verify(WINDOWS[:2]).passed
    assert explanation.model_name == "network"


def test_several_inputs_in_lists_and_mappings():
    tables = rng.normal(size=(20, 2)).astype(np.float32)

    def function(inputs):
        return network(inputs[0]) + inputs[1][:, 0] * inputs[1][:, 1]

    settings = {
        "shape": {"window": SHAPE, "customer": {"column": ["age", "tariff"]}},
        "groups": {"window": "variable", "customer": []},
    }
    explanation = explain(function, [WINDOWS[:2], tables[:2]], [WINDOWS[5:], tables[5:]], **settings)
    assert explanation.feature_names == ("window: load", "window: wind", "window: price", "customer")
    assert explanation.certificate().passed
    rows = {"customer": tables[:2], "window": WINDOWS[:2]}
    np.testing.assert_array_equal(explain(function, rows, [WINDOWS[5:], tables[5:]], **settings).values, explanation.values)
    both = explain(function, rows, [WINDOWS[5:], tables[5:]], shape=settings["shape"], groups={"window": []}, budget=50)
    assert both.feature_names == ("window", "customer: age", "customer: tariff")


@pytest.mark.parametrize(
    ("rows", "settings", "error", "text"),
    [
        (WINDOWS[0], {}, InputError, r"`X` must have shape \(n_rows, 4, 3\).*Pass X\[None\] for one row"),
        (WINDOWS[:2, :3], {}, InputError, r"Got \(2, 3, 3\)"),
        (WINDOWS[:2], {"groups": {"time": 0}}, InputError, "length of at least 1. Got 0"),
        (WINDOWS[:2], {"groups": "tim"}, UnknownNameError, "no axis 'tim'.*'time'"),
        (WINDOWS[:2], {"shape": (4, 3)}, InputTypeError, "must map names of axes"),
        (WINDOWS[:2], {"shape": {"time": 4, "variable": ["a", "a", "b"]}}, InputError, "must differ"),
        (WINDOWS[:2], {"shape": {"time": 0, "variable": 3}}, InputTypeError, "length or labels. Got 0"),
        (WINDOWS[:2], {"shape": {"window": SHAPE, "time": 4}}, InputTypeError, "mixes axes and inputs"),
    ],
)
def test_wrong_shapes(rows, settings, error, text):
    with pytest.raises(error, match=text):
        explain(network, rows, WINDOWS[5:], **{"shape": SHAPE, **settings})
    with pytest.raises(InputTypeError, match=r"Got a Ridge. Pass its function: model.predict"):
        explain(Ridge(), WINDOWS[:2], WINDOWS[5:], shape=SHAPE)
