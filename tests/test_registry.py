"""Models of other people's packages: found by the entry points that these declare."""

import os
import subprocess
import sys
from pathlib import Path

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
