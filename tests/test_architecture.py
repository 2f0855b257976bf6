"""The import table of docs/idea.md, held against the code."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import exactshap

PACKAGE = Path(exactshap.__file__).parent
FREE = {"_native", "errors", "_optional", "_files", "_progress", "_compilation"}  # everyone may raise, ask, write files whole, and say so
ALLOWED = {
    "semivalues": set(),
    "games": set(),
    "frames": set(),
    "kernels": set(),
    "trees": {"frames"},
    "solvers": {"semivalues", "games", "trees", "kernels"},
    "readers": {"semivalues", "games", "kernels", "trees", "solvers", "frames"},
    "explanation": {"frames", "plots", "report", "__version__"},
    "explainer": {"semivalues", "games", "frames", "solvers", "readers", "explanation"},
    "decompose": {"semivalues", "games", "kernels", "trees", "solvers", "readers", "frames", "plots"},
    "estimators": {"semivalues", "games", "kernels", "solvers", "frames", "decompose"},
    "plots": {"explanation", "frames", "decompose", "readers"},
    "testing": {"explanation", "semivalues", "games", "solvers", "frames", "explainer", "readers"},
    "versions": {"__version__"},
}  # report, cli and the door may use everything


def rooms():
    return sorted(
        {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")} - {"__init__", "__main__"}
    )


def imports(room):
    """Rooms that a room imports anywhere in its files."""
    files = list((PACKAGE / room).rglob("*.py")) or [PACKAGE / f"{room}.py"]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file}: relative import"
                names = [f"{node.module}.{alias.name}" if node.module == "exactshap" else node.module for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                if name and name.split(".")[0] == "exactshap":
                    yield file.name, [*name.split("."), ""][1]


@pytest.mark.parametrize("room", ALLOWED)
def test_arrows_go_one_way(room):
    allowed = ALLOWED[room] | FREE | {room}
    wrong = sorted({(file, target) for file, target in imports(room) if target not in allowed})
    assert not wrong, f"{room} imports {wrong}"


def test_every_room_is_in_the_table():
    assert set(rooms()) - {"cli", "report"} - FREE == set(ALLOWED) & set(rooms())


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sys, exactshap; "
        "heavy = {'numpy', 'numba', 'scipy', 'sklearn', 'pandas', 'polars', 'matplotlib', 'shap', 'narwhals', 'joblib'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_explaining_does_not_import_optional_libraries():
    code = (
        "import sys, numpy as np; from sklearn.svm import SVR; import exactshap; X = np.random.default_rng(0).normal(size=(9, 3)); "
        "exactshap.explain(SVR().fit(X, X[:, 0]), X, X); "
        "heavy = {'polars', 'matplotlib', 'shap', 'xgboost', 'lightgbm', 'catboost', 'interpret', 'torch', 'typer'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_stay_readable(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 430, f"{file.name} has {len(lines)} lines: give it a better room"
