"""Models of other people's packages: found by the entry points that these declare."""

import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np

from exactshap import explain
from exactshap.readers import AdditiveModel, read, register

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "log_linear_reader.py"
SCRIPT = """
import numpy as np
from strangers_model import LogLinear
from exactshap import Explainer
from exactshap.readers import registered

X = np.random.default_rng(0).normal(size=(9, 3))
name = "strangers_model.LogLinear"
assert name not in registered()
explanation = Explainer(LogLinear([0.5, -0.2, 0.1], bias=1.0), X)(X[:2])
assert explanation.certificate().passed and explanation.model_name == "LogLinear"
assert registered()[name] == "strangers_model"
"""


def test_an_installed_package_declares_its_reader(tmp_path):
    text = EXAMPLE.read_text(encoding="utf-8").replace('register(f"{__name__}.LogLinear", __name__)', "")
    (tmp_path / "strangers_model.py").write_text(text, encoding="utf-8")
    info = tmp_path / "strangers_model-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers-model\nVersion: 1.0\n", encoding="utf-8")
    entry = "[exactshap.readers]\nstrangers_model.LogLinear = strangers_model\n"
    (info / "entry_points.txt").write_text(entry, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


class Doubled:
    """Predict twice the first column."""

    def predict(self, X):
        return 2.0 * np.asarray(X)[:, 0]


def test_a_registered_module_may_name_its_function(monkeypatch):
    def read_doubled(model, request):
        return read(AdditiveModel([(0, lambda v: 2.0 * v[:, 0])], n_features=2), request)

    module = types.ModuleType("strangers_readers")
    module.read_doubled = read_doubled
    monkeypatch.setitem(sys.modules, module.__name__, module)
    register(f"{__name__}.Doubled", f"{module.__name__}:read_doubled")
    explanation = explain(Doubled(), np.array([[1.0, 5.0]]), np.zeros((1, 2)))
    assert explanation.certificate().passed
    np.testing.assert_array_equal(explanation.values, [[2.0, 0.0]])
