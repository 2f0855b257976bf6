"""The gallery example of STAR-SHAP's Figures 3 and 4 runs, small, on the real data where it is at hand."""

import os
import runpy
from pathlib import Path

import numpy as np
import pytest

from tolerances import conditioned

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "docs" / "examples" / "star_housing.py"
DATA = Path(os.environ.get("EXACTSHAP_DATA", ROOT / "benchmarks" / "papers" / "data"))


def run(*arguments, **settings):
    return runpy.run_path(str(EXAMPLE))["main"](*arguments, **settings)


def test_without_data_it_says_what_is_absent(tmp_path, capsys):
    assert run(tmp_path) == {}
    assert "skipped: california_housing.parquet is not in" in capsys.readouterr().out


def test_both_models_are_explained_exactly_and_drawn(tmp_path, capsys):
    if not (DATA / "california_housing.parquet").exists():
        pytest.skip(f"california_housing.parquet is not in {DATA}")
    explanations = run(DATA, n_terms=100, n_rows=40, n_train=800, max_rounds=40, out=tmp_path)
    assert list(explanations) == ["EBM", "3-STAR RWReLU"]
    for explanation in explanations.values():
        assert explanation.certificate().passed
        assert explanation.values.shape == (40, 8)
        np.testing.assert_allclose(
            explanation.baseline + explanation.values.sum(axis=1),
            explanation.prediction,
            atol=conditioned(1e5) * np.ptp(explanation.prediction),
        )
    assert {path.name for path in tmp_path.iterdir()} == {"star_housing_beeswarm.png", "star_housing_waterfall.png"}
    assert all(path.stat().st_size > 20_000 for path in tmp_path.iterdir())
    assert capsys.readouterr().out.count("passed") == 2
