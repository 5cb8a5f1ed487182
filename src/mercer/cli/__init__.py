"""The command line: ``mercer fit | predict | evaluate | info | export | ...``.

``commands`` has one module for each command, which :mod:`mercer.cli.app` gathers;
``data`` reads the files and folders that commands are given. The library imports
nothing from here, and only the command line needs typer.
"""

from __future__ import annotations

import sys

__all__ = ["main"]

MISSING = (
    "mercer: the command line needs the package {}, which is not installed. Install "
    "what it needs: pip install rich skops typer\n"
)


def main() -> int:
    """Run the command line, and return its exit code."""
    try:
        try:
            import rich  # noqa: F401
            import typer  # noqa: F401
        except ImportError as error:
            sys.stderr.write(MISSING.format(error.name))
            return 2
        from mercer.cli.app import run

        return run()
    except KeyboardInterrupt:  # while modules are imported
        return 130
