"""Build hook: compile the native library, and put it into the wheel (or into the working tree of an editable installation)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "src" / "native"))
import build as native


class NativeHook(BuildHookInterface):
    """One wheel per platform for every Python: the library has a plain C interface and knows nothing of Python's."""

    def dependencies(self) -> list[str]:
        """Ask pip for a compiler only where the system has none."""
        return native.requirements()

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tag the wheel with the platform."""
        editable = version == "editable"
        if not editable and os.environ.get("EXACTSHAP_LEVELS"):
            raise SystemExit("A wheel holds all levels: other CPUs will load it. Unset EXACTSHAP_LEVELS.")
        library = native.build(native.IN_PLACE if editable else native.ROOT / "build" / "wheel")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{native.platform_tag()}"
        if not editable:
            build_data["force_include"][str(library)] = f"exactshap/_native/{library.name}"
