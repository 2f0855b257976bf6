"""Run the command ``exactshap``.

Its commands are functions of files that are imported when they run. Errors of exactshap become one line and exit code 2; ``--debug`` anywhere shows the traceback.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NoReturn

from exactshap import __version__
from exactshap._runtime.process_settings import without_collection
from exactshap.errors import ExactshapError, printable

__all__ = ["COMMANDS", "main"]

# command -> file in this folder and its function
COMMANDS = {
    "demo": "commands.demo",
    "explain": "commands.explain",
    "report": "commands.report",
    "check": "commands.check",
    "compare": "shares.compare",
    "reasons": "commands.reasons",
    "app": "commands.app",
    "r2": "shares.r2",
    "mmd": "shares.mmd",
    "hsic": "shares.hsic",
    "show-versions": "commands.versions",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit; ``arguments`` are those of the process by default."""
    if arguments is None:
        # Skips a last garbage collection over all objects of the libraries
        atexit.register(gc.freeze)
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        app = _app(arguments)
    except ImportError as error:
        _fail(f'The command needs typer ({error}). Install it with: pip install "exactshap[cli]"', 2)
    _quiet_warnings()
    try:
        app(args=arguments, prog_name="exactshap")
    except Exception as error:
        if debug:
            sys.excepthook = _print_traceback
            raise
        _fail(*_described(error))


@without_collection
def _app(arguments: list[str]) -> Any:
    """Return the typer application with the named command, or with all for the help."""
    import typer

    from exactshap.cli._options import EXAMPLES

    app = typer.Typer(
        help="Exact Shapley values wherever a model has structure, honest estimates with error bars where it has none.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_general_options(typer))
    command = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name in [command] if command in COMMANDS else COMMANDS:
        file, function = COMMANDS[name].split(".")
        module = importlib.import_module(f"{__name__}.{file}")
        app.command(name, epilog=EXAMPLES.get(name))(getattr(module, function))
    return app


def _general_options(typer: ModuleType) -> Callable[..., None]:
    def show_version(wanted: bool) -> None:
        if wanted:
            print(f"exactshap {__version__}")
            raise typer.Exit

    def options(
        version: bool = typer.Option(False, "--version", callback=show_version, is_eager=True, help="Print the version."),
        debug: bool = typer.Option(False, "--debug", help="Show the traceback of errors."),
    ) -> None:
        pass

    return options


def _fail(text: str, code: int) -> NoReturn:
    _print_error(f"Error: {text}")
    raise SystemExit(code)


def _print_traceback(*error: Any) -> None:
    import traceback

    _print_error("".join(traceback.format_exception(*error)))


def _print_error(text: str) -> None:
    """Print an error to standard error, with untrusted names from files escaped."""
    print(printable(text), file=sys.stderr)


def _described(error: Exception) -> tuple[str, int]:
    from exactshap.cli._io import as_options

    if isinstance(error, ExactshapError) or type(error).__name__ == "NotFittedError":
        return as_options(str(error)), 2
    if isinstance(error, OSError):
        return f"{error.strerror or error}: {error.filename}" if error.filename else str(error), 2
    hint = "Run again with --debug for the traceback, and report it with the output of: exactshap show-versions"
    return f"{type(error).__name__}: {error}. {hint}.", 1


def _quiet_warnings() -> None:
    """Print warnings as single lines on standard error, without source lines."""
    import warnings

    def show(text: Any, *_: Any, **__: Any) -> None:
        from exactshap.cli._io import as_options

        _print_error(f"Warning: {as_options(str(text))}")

    warnings.showwarning = show  # type: ignore[assignment]
