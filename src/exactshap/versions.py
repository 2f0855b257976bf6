"""List installed versions, which a bug report needs first."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from typing import TextIO

_CORE = ("exactshap", "numpy", "scipy", "scikit-learn", "joblib", "narwhals", "threadpoolctl", "platformdirs")
_OPTIONAL = (
    "pandas",
    "polars",
    "pyarrow",
    "matplotlib",
    "shap",
    "shapiq",
    "jinja2",
    "typer",
    "skops",
    "xgboost",
    "xgboost-cpu",
    "lightgbm",
    "catboost",
    "interpret-core",
    "pygam",
    "torch",
    "gpytorch",
)


def versions() -> dict[str, str | None]:
    """Return the version of each package that exactshap uses or reads. None where it is not installed.

    >>> list(versions())[:2]
    ['exactshap', 'numpy']
    """
    return {name: _version(name) for name in (*_CORE, *_OPTIONAL)}


def _version(name: str) -> str | None:
    if name == "exactshap":
        from exactshap import __version__

        return __version__
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def system() -> dict[str, str]:
    """Return the Python version and the platform."""
    return {"python": sys.version.replace("\n", " "), "machine": platform.platform()}


def show_versions(file: TextIO | None = None) -> None:
    """Print versions of Python, system and packages, without importing any.

    Parameters
    ----------
    file : text stream, default=None
        Where to print; None is standard output.

    Examples
    --------
    >>> show_versions()
    System:
    ...
    """
    file = sys.stdout if file is None else file
    print("System:", file=file)
    for name, text in system().items():
        print(f"{name:>15}: {text}", file=file)
    print("\nPackages:", file=file)
    for name, version in versions().items():
        if version is not None or name in _CORE:
            print(f"{name:>15}: {version or 'not installed'}", file=file)
