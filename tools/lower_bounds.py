"""Print the lower bounds of ``pyproject.toml`` as pip constraints, or which releases are installed (``--installed``)."""

import platform
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?(?:>=([0-9.]+))?$")


def requirements() -> dict[str, str | None]:
    """Return every package that the library and its tests name, with its lower bound."""
    extras = PROJECT["optional-dependencies"]
    named = [*PROJECT["dependencies"], *(one for extra in extras if extra not in ("bench", "docs") for one in extras[extra])]
    found = [REQUIREMENT.match(requirement) for requirement in named]
    assert all(found), f"a requirement that is no lower bound: {named[found.index(None)]}"
    return {match[1]: match[2] for match in found if match and match[1] != PROJECT["name"]}


def installed(name: str) -> str:
    """Return the release of a package in this environment."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


if __name__ == "__main__":
    if "--installed" in sys.argv:
        print(
            f"python {platform.python_version()}", *(f"{name} {installed(name)}" for name in sorted(requirements())), sep=", "
        )
    else:
        print(*(f"{name}=={bound}" for name, bound in requirements().items() if bound), sep="\n")
