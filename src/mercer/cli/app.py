"""The commands of the command line, gathered into one program.

A further command is a module with a function under ``@reporting``, and a line in
``COMMANDS``. The function imports what computes when it needs it, so that help and
errors in options do not wait for scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

import mercer
from mercer.cli.commands.evaluate import evaluate
from mercer.cli.commands.export import export
from mercer.cli.commands.fit import fit
from mercer.cli.commands.info import info
from mercer.cli.commands.play import play
from mercer.cli.commands.predict import predict
from mercer.cli.failures import INTERRUPTED, USAGE, tell

__all__ = ["app", "run"]

COMMANDS: tuple[Callable[..., Any], ...] = (
    fit,
    predict,
    evaluate,
    info,
    export,
    play,
)

app = typer.Typer(
    name="mercer",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in COMMANDS:
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mercer {mercer.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            callback=_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Kernel machines on tables, LIBSVM files and folders of images.

    Exit codes: 0 success; 1 the result is not good enough (--strict, --at-least);
    2 the command cannot be run as given; 3 the data cannot be used; 4 the model
    file cannot be used; 130 interrupted.
    """


def _told(error: Any) -> str:
    """Return what Typer says of a wrong option, with the value that was given.

    Recent versions of Typer let Pydantic check values, which does not name them.
    """
    message = error.format_message().replace("Value error, ", "")
    message = message.split(", unable to parse")[0]
    wrong: list[Any] = getattr(error.__cause__, "errors", list)()
    value = repr(wrong[0]["input"]) if wrong else ""
    return message if value in message else f"{message}; got {value}"


def run(args: list[str] | None = None) -> int:
    """Run a command; an error in how it was called is one line, like all errors."""
    try:
        code = app(args, prog_name="mercer", standalone_mode=False)
    except typer.Abort:  # an interrupt outside of a command
        return INTERRUPTED
    except Exception as error:
        # Typer has raised two classes of its own and one of Click here.
        if not hasattr(error, "format_message"):
            raise
        message = _told(error)
        context = getattr(error, "ctx", None)
        if message and context is not None:
            stop = "" if message[-1] in ".?!" else "."
            tell(f"{message}{stop} See {context.command_path} --help.")
        return USAGE
    return code if isinstance(code, int) else 0
