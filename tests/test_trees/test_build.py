"""Malformed trees are refused with their tree and node."""

from dataclasses import replace

import numpy as np
import pytest

from exactshap.errors import ModelFormatError
from exactshap.trees import build
from exactshap.trees.ensemble import _build
from trees_by_rule import chain


def made(*raw, constant=(0.0,), n_features=2):
    return build(raw, n_features=n_features, constant=constant, less_equal=True, single_precision=False)


def changed(name, node, value):
    raw = chain(3)
    array = getattr(raw, name).astype(float if isinstance(value, float) else getattr(raw, name).dtype)
    array[node] = value
    return replace(raw, **{name: array})


FAULTS = [
    (changed("right", 1, 91), r"tree 1 node 1: right child 91 out of range \[0, 7\)"),
    (changed("left", 0, -5), r"tree 1 node 0: left child -5 out of range"),
    (changed("right", 2, -1), r"tree 1 node 2: right child -1 out of range"),
    (changed("right", 2, 0), r"tree 1 node 0: reached twice.*cycle"),
    (changed("right", 2, 3), r"tree 1 node 3: reached twice"),
    (changed("feature", 1, 2), r"tree 1 node 1: feature is not valid for 2 columns. Got -?\d"),
    (changed("feature", 1, -1), r"tree 1 node 1: feature is not valid"),
    (changed("threshold", 2, np.nan), r"tree 1 node 2: threshold is not valid"),
    (changed("value", 4, np.nan), r"tree 1 node 4: leaf value is not valid"),
    (changed("value", 4, np.inf), r"tree 1 node 4: leaf value is not valid"),
    (changed("cover", 5, -1.0), r"tree 1 node 5: cover is not valid"),
    (changed("cover", 5, np.nan), r"tree 1 node \d: cover is not valid"),
    (replace(chain(3), threshold=np.zeros(2)), r"tree 1: arrays of 7 nodes differ in length. Got \{'threshold': 2\}"),
    (replace(chain(3), output=3), r"tree 1: .*output 3 out of range"),
    (replace(chain(3), root=9), r"tree 1: "),
    (replace(chain(3), value=np.zeros((7, 2))), r"tree 1: leaves for 2 outputs"),
    (replace(chain(3), missing=np.full(7, 5)), r"tree 1 node 0: missing direction is not valid"),
]


@pytest.mark.parametrize(("raw", "text"), FAULTS, ids=[text[:40] for _, text in FAULTS])
def test_faults_name_tree_and_node(raw, text):
    with pytest.raises(ModelFormatError, match=text):
        made(chain(2), raw)


def test_constants_must_be_finite_and_trees_not_empty():
    with pytest.raises(ModelFormatError, match=r"constant \(base score\) must be finite"):
        made(chain(1), constant=(np.nan,))
    with pytest.raises(ModelFormatError, match="tree 0: has no nodes"):
        made(replace(chain(1), feature=np.empty(0, int)))


def test_sums_must_be_finite():
    with pytest.raises(ModelFormatError, match="leaf values are too large"):
        made(changed("value", 4, 1.5e308), changed("value", 4, 1.5e308))


def test_depth_and_size_are_bounded(monkeypatch):
    monkeypatch.setattr(_build, "MAX_DEPTH", 50)
    with pytest.raises(ModelFormatError, match=r"tree 0 node \d+: deeper than 50 levels"):
        made(chain(60))
    monkeypatch.setattr(_build, "MAX_NODES", 20)
    with pytest.raises(ModelFormatError, match="too many nodes"):
        made(chain(20))
    monkeypatch.setattr(_build, "MAX_CELLS", 30)
    with pytest.raises(ModelFormatError, match=r"7 nodes x 5 outputs would need .* GiB"):
        made(replace(chain(3), output=1), constant=np.zeros(5))


def test_unreached_nodes_are_dropped():
    raw = chain(3)
    feature = np.where(np.arange(7) == 1, 0, raw.feature)
    left, right = raw.left.copy(), raw.right.copy()
    left[1] = right[1] = -1
    trees = made(replace(raw, feature=feature, left=left, right=right))
    assert trees.n_nodes == 3


def test_values_that_no_row_reaches_may_be_anything():
    value = np.full(7, np.nan)
    value[3:] = 1.0
    assert np.isfinite(made(replace(chain(3), value=value)).value).all()
