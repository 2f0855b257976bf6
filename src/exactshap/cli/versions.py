"""``exactshap show-versions``."""

from __future__ import annotations

__all__ = ["command"]


def command() -> None:
    """Print the versions of Python, the system and all packages concerned."""
    from exactshap.versions import show_versions

    show_versions()
