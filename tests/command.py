"""The command, run in this process."""

import pytest


def run(*arguments):
    """Return the exit code."""
    from exactshap.cli import main

    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code or 0
