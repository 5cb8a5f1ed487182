"""How commands fail: an exit code, and one line on what is wrong and what to do."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

import typer

__all__ = [
    "DATA",
    "FINE",
    "INTERRUPTED",
    "MODEL",
    "POOR",
    "USAGE",
    "DataFailure",
    "Failure",
    "Interrupted",
    "ModelFailure",
    "PoorAnswer",
    "UsageFailure",
    "first_line",
    "needed",
    "reporting",
    "tell",
]

FINE, POOR, USAGE, DATA, MODEL, INTERRUPTED = 0, 1, 2, 3, 4, 130


class Failure(Exception):
    """An error that a user can do something about."""

    code = USAGE


class Interrupted(Failure):
    """Work that the user has ended, and of which there is something to say."""

    code = INTERRUPTED


class PoorAnswer(Failure):
    """A result that is not as good as asked for."""

    code = POOR


class UsageFailure(Failure):
    """Arguments that make no sense, or a file that is in the way."""


class DataFailure(Failure):
    """Data that cannot be read or used."""

    code = DATA


class ModelFailure(Failure):
    """A model file that cannot be read, or that cannot do what is asked."""

    code = MODEL


def needed(package: str, otherwise: str) -> Any:
    """Return a package; if it is not installed, fail and say ``otherwise``."""
    try:
        return import_module(package)
    except ImportError as error:
        raise UsageFailure(otherwise) from error


def first_line(error: Exception) -> str:
    """Return the first line of an error, without advice on further lines."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def tell(message: object) -> None:
    """Write a message to the error stream, in one line."""
    typer.echo(f"mercer: {' '.join(str(message).split())}", err=True)


def reporting(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what a command raises into one line and an exit code."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        with warnings.catch_warnings():
            # Commands check for results that are not finite; the other warnings are for
            # programmers.
            for kind in (DeprecationWarning, FutureWarning, RuntimeWarning):
                warnings.simplefilter("ignore", kind)
            warnings.showwarning = _tell_warning
            try:
                command(*args, **kwargs)
                return
            except Failure as failure:
                message, code = str(failure), failure.code
            except KeyboardInterrupt:
                message = "interrupted. No file was left half-written."
                code = INTERRUPTED
            except BrokenPipeError:  # whoever reads our output has closed the pipe
                raise
            except (ImportError, OSError) as error:
                message, code = _reason(error), USAGE
            except MemoryError as error:
                message, code = f"there is not enough memory ({error}).", USAGE
        tell(message)
        raise typer.Exit(code)

    return run


def _reason(error: ImportError | OSError) -> str:
    """Return what went wrong, without the error number of the system."""
    told = getattr(error, "strerror", None)
    if told is None:
        return str(error)
    name = getattr(error, "filename", None)
    if name is None and getattr(error, "errno", None) == errno.ENOSPC:
        name = "standard output"  # writing to files names them
    return f"{told}." if name is None else f"{name}: {told}."


def _tell_warning(message: Any, *_: Any, **__: Any) -> None:
    tell(f"warning: {message}")
