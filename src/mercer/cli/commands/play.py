"""``mercer play``: a page in the browser that shows kernel machines at work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from mercer.cli.failures import ModelFailure, UsageFailure, reporting

__all__ = ["play"]

#: The port of the page, if it is free.
PORT = 8765


@reporting
def play(
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help=f"Port of the page. Default: {PORT}, or a free one.",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Model file that reads the drawn digits, of 28 by 28 grey pixels. "
            "Default: one that the page fits itself.",
        ),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", metavar="", help="Open no browser.")
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            help="Address or name to listen on; 0.0.0.0 or :: for all of the computer. "
            "With any but the default, everybody in the network can use the page."
        ),
    ] = "127.0.0.1",
) -> None:
    """Open the playground: watch kernel machines learn, in the browser.

    The page stays on this computer. Ctrl-C ends it.

    For example:

    mercer play --port 9000 --model digits.skops
    """
    server = _server()
    from mercer.playground.digits import DigitReader, check_digit_model

    reader = DigitReader()
    if model is not None:
        from mercer.cli.models import load_model

        found = load_model(model)
        try:
            reader = DigitReader(check_digit_model(found.estimator, found.source))
        except ValueError as error:
            raise ModelFailure(error) from error
    host = host.removeprefix("[").removesuffix("]")
    listening = _listening(server, host, port)
    with listening:
        address = server.address_of(host, listening)
        typer.echo(f"The playground is at {address} (Ctrl-C ends it)")
        playground = server.Playground(reader)
        try:
            server.serve(playground, listening, host, browser=not no_browser)
        except KeyboardInterrupt:
            typer.echo("The playground has ended.")


def _server() -> Any:
    """Import the web server, which other commands do without."""
    try:
        from mercer.playground import server
    except ModuleNotFoundError as error:
        raise UsageFailure(
            f"the playground needs the package {error.name}, which is not installed. "
            "Install what it needs: pip install starlette uvicorn websockets"
        ) from error
    return server


def _listening(server: Any, host: str, port: int | None) -> Any:
    """Return a socket at the port that was asked for, or at a free one."""
    try:
        return server.open_socket(host, PORT if port is None else port)
    except OSError as error:
        if port is None:
            return server.open_socket(host, 0)
        # Python adds the address to the system's text, which this message has.
        why = os.strerror(error.errno) if error.errno else error
        raise UsageFailure(
            f"--port {port} at {host} cannot be used: {why}. Give another port, or 0 "
            "for a free one."
        ) from error
