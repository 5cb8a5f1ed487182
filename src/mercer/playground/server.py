"""The web server of the playground: the page, and a websocket for each open page.

It listens on this computer only, unless told otherwise, and answers only browsers that
came to its own address: the names in ``Host`` and ``Origin`` are checked, so that a
foreign web page can neither read from it nor talk to it. It writes no files, and runs
no code that comes from the page.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import warnings
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

import mercer
from mercer.playground.digits import DigitReader
from mercer.playground.messages import LONGEST_MESSAGE, Answer, Points, pack
from mercer.playground.plane import PlaneRequest, draw_plane
from mercer.playground.session import Session, TooMany
from mercer.playground.settings import MachineSettings
from mercer.runtime.progress import StopButton

__all__ = ["LOCAL", "Playground", "make_app", "serve"]

STATIC = Path(__file__).parent / "static"
#: The address of this computer, which no other computer can reach.
LOCAL = "127.0.0.1"
LOCAL_NAMES = (LOCAL, "localhost", "::1")
# Hosts that stand for all addresses of this computer, each with one of them.
EVERYWHERE = {"0.0.0.0": LOCAL, "::": "::1"}
MOST_PAGES = 16
# The page uses nothing but its own files.
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' "
        "data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
# Codes with which a websocket is closed.
POLICY, TRY_LATER = 1008, 1013


class Playground:
    """What all open pages share: the machine that reads digits."""

    def __init__(self, reader: DigitReader | None = None):
        self.reader = reader if reader is not None else DigitReader()
        self.sessions: set[Session] = set()
        self._warm = threading.Event()

    def prepare(self) -> None:
        """Compile what the first picture needs, then train the digits."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rng = np.random.default_rng(0)
            X = rng.normal(size=(40, 2))
            points = Points(X, (X[:, 0] > 0).astype(np.intp))
            request = PlaneRequest(MachineSettings.of({}), points, 32, 0)
            draw_plane(request, StopButton())
        self._warm.set()
        self.reader.prepare()

    @property
    def is_warm(self) -> bool:
        """Whether the compiled code of the first picture is there."""
        return self._warm.is_set()

    async def talk(self, websocket: WebSocket) -> None:
        """Talk to one open page until it is closed."""
        await websocket.accept()
        if len(self.sessions) >= MOST_PAGES:
            await websocket.close(TRY_LATER, "Too many pages are open.")
            return
        session = Session(websocket.send_bytes, self.reader)
        self.sessions.add(session)
        try:
            welcome = {
                "type": "welcome",
                "version": mercer.__version__,
                "warm": self.is_warm,
            }
            await websocket.send_bytes(pack(Answer(welcome)))
            while True:
                message = await websocket.receive()
                if message["type"] == "websocket.disconnect":
                    break
                await session.take(message.get("text") or "")
        except TooMany:
            await websocket.close(POLICY, "Too many messages were refused.")
        except WebSocketDisconnect:
            pass  # the page was closed while an answer was on its way
        except RuntimeError:
            # So says the websocket, too, if it was closed in the meantime.
            states = (websocket.client_state, websocket.application_state)
            if WebSocketState.DISCONNECTED not in states:
                raise
        finally:
            self.sessions.discard(session)
            await session.close()


class OwnAddressOnly:
    """Lets through what was sent to the server's own address, by its own page.

    A server that listens at all addresses of the computer is reached at any of them and
    by the names of the computer. Other names are refused: a foreign web page may have
    given one to this computer, which it cannot do with an address.
    """

    def __init__(self, app: ASGIApp, host: str):
        self._app = app
        self._takes_addresses = host in EVERYWHERE
        names = (socket.gethostname(), socket.getfqdn()) if host in EVERYWHERE else ()
        self._names = {_plain(name) for name in (host, *LOCAL_NAMES, *names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._is_own(scope):
            await self._app(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await WebSocket(scope, receive, send).close(POLICY)
        else:
            refusal = PlainTextResponse("This is not the address of the page.", 403)
            await refusal(scope, receive, send)

    def _is_own(self, scope: Scope) -> bool:
        given = [
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in scope["headers"]
        ]
        hosts = [value for name, value in given if name == "host"]
        origins = [value for name, value in given if name == "origin"]
        if len(hosts) != 1 or len(origins) > 1:
            return False
        name = _name_of(hosts[0])
        if name not in self._names and not (self._takes_addresses and _address(name)):
            return False
        if not origins:
            # A page that opens a websocket always says where it comes from.
            return scope["type"] != "websocket"
        scheme, _, origin = origins[0].lower().partition("://")
        return scheme in ("http", "https") and origin == hosts[0].lower()


def _name_of(host: str) -> str:
    """Return the name or address in a ``Host``, without its port."""
    try:
        return _plain(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return ""


def _address(name: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a text is, if it is one and not a name."""
    try:
        return ip_address(name)
    except ValueError:
        return None


def _plain(name: str) -> str:
    """Return a name as it is compared, and an address in its usual spelling."""
    return str(_address(name) or name.lower())


def _with_headers(send: Send) -> Callable[[Message], Any]:
    """Return what sends responses, with headers that keep foreign code out."""

    async def add(message: Message) -> None:
        if message["type"] == "http.response.start":
            more = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await send(message)

    return add


def make_app(
    playground: Playground, host: str = LOCAL, *, prepare: bool = True
) -> ASGIApp:
    """Return the application; ``host`` is the name under which it is reached."""

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        if prepare:
            # The thread does not keep the program from ending.
            threading.Thread(target=playground.prepare, daemon=True).start()
        yield

    async def no_icon(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(status_code=204)(scope, receive, send)

    app = Starlette(
        lifespan=life,
        routes=[
            WebSocketRoute("/talk", playground.talk),
            Mount("/favicon.ico", app=no_icon),
            Mount("/", app=StaticFiles(directory=STATIC, html=True)),
        ],
    )
    return OwnAddressOnly(app, host)


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens; ``port`` 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()
    return socket.create_server(
        (host, port), family=family, backlog=64, dualstack_ipv6=both
    )


def address_of(host: str, listening: socket.socket) -> str:
    """Return the address at which a browser on this computer finds the page."""
    host = EVERYWHERE.get(host, host)
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}/"


def serve(
    playground: Playground,
    listening: socket.socket,
    host: str = LOCAL,
    *,
    browser: bool = True,
) -> None:
    """Serve the page until Ctrl-C."""
    # The page shows whether a machine has converged; the terminal need not repeat it.
    warnings.simplefilter("ignore")
    config = uvicorn.Config(
        make_app(playground, host),
        log_level="warning",
        ws="websockets-sansio",
        ws_max_size=4 * LONGEST_MESSAGE,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    if browser:
        address = address_of(host, listening)
        threading.Timer(0.5, webbrowser.open, [address]).start()
    asyncio.run(server.serve(sockets=[listening]))
