"""The server: who may talk to it, and what it says to several pages at once."""

import re
import socket
import zipfile

import pytest
from playground_client import ADDRESS, OWN, opened
from starlette.websockets import WebSocketDisconnect

import mercer
from mercer.playground import server
from mercer.playground.server import STATIC, Playground

POINTS = {"x": [-1, -1.2, 1, 1.3], "y": [0, 0.4, 0.1, -0.3], "label": [0, 0, 1, 1]}


def test_the_page_uses_nothing_but_its_own_files(client):
    page = client.get("/")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    named = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
    for name in named:
        assert client.get(f"/{name}").status_code == 200
    for path in STATIC.iterdir():
        assert client.get(f"/{path.name}").status_code == 200
        # Addresses of other computers appear only as names of XML.
        others = re.findall(r"https?://[\w./-]+", path.read_text(encoding="utf-8"))
        assert set(others) <= {"http://www.w3.org/2000/svg"}, path.name


@pytest.mark.parametrize("path", ["/../server.py", "/%2e%2e/server.py", "/nothing"])
def test_other_files_are_not_served(client, path):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example:8765"},
        {"host": ""},
        {"host": "["},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://["},
        {"origin": "http://127.0.0.1:8765.evil.example"},
        {"origin": "ftp://127.0.0.1:8765"},
    ],
)
def test_foreign_addresses_are_refused(client, headers):
    told = {**OWN, **headers}
    assert client.get("/", headers=told).status_code == 403
    with pytest.raises(WebSocketDisconnect):
        with client.websocket_connect("/talk", headers=told):
            pass


def test_a_websocket_says_where_it_comes_from(client):
    with pytest.raises(WebSocketDisconnect):
        with client.websocket_connect("/talk", headers={"host": OWN["host"]}):
            pass


def test_this_computer_has_several_names(client):
    for name in ("localhost:8765", "[::1]:8765"):
        told = {"host": name, "origin": f"http://{name}"}
        assert client.get("/", headers=told).status_code == 200


def test_a_page_is_welcomed(page):
    assert page.welcome.values["type"] == "welcome"
    assert page.welcome.values["version"] == mercer.__version__


def test_two_pages_do_not_disturb_each_other(client, playground):
    with opened(client) as first, opened(client) as second:
        assert len(playground.sessions) == 2
        first.ask(type="stream-start", id=1)
        assert "Start the stream first" in second.refused(type="stream-step", id=2)
        assert first.ask(type="stream-step", count=3).values["n_seen"] == 3
        first.send(type="plane", id=10, C=5, **POINTS)
        second.send(type="plane", id=20, machine="KernelPCA", **POINTS)
        assert first.receive().values["machine"] == "SVC"
        assert second.receive().values["machine"] == "KernelPCA"
    assert playground.sessions == set()


def test_bytes_are_refused_and_the_page_lives_on(page):
    page.socket.send_bytes(b"\x00\x01")
    assert page.receive().values["type"] == "error"
    assert page.ask(type="plane", **POINTS).values["kind"] == "two"


def test_digits_are_read(page, bars):
    found = page.ask(type="digit", pixels=bars[0][0].tolist())
    assert found.values["winner"] == bars[1][0]
    assert page.ask(type="digits-state").values["ready"]


def test_pages_are_bounded_in_number(client, playground, monkeypatch):
    monkeypatch.setattr(server, "MOST_PAGES", 1)
    with opened(client):
        with client.websocket_connect("/talk", headers=OWN) as second:
            with pytest.raises(WebSocketDisconnect) as caught:
                second.receive_bytes()
        assert caught.value.code == server.TRY_LATER
        assert len(playground.sessions) == 1


def test_preparing_compiles_and_trains(bar_reader):
    playground = Playground(bar_reader)
    assert not playground.is_warm
    playground.prepare()
    assert playground.is_warm


def test_the_address_of_a_network_is_allowed_if_asked_for(playground):
    from starlette.testclient import TestClient

    app = server.make_app(playground, "10.0.0.7", prepare=False)
    with TestClient(app, base_url=ADDRESS) as client:
        assert client.get("/", headers={"host": "10.0.0.7:80"}).status_code == 200
        assert client.get("/", headers={"host": "10.0.0.8:80"}).status_code == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_all_addresses_of_this_computer_are_allowed_if_asked_for(playground, host):
    from starlette.testclient import TestClient

    app = server.make_app(playground, host, prepare=False)
    own = socket.gethostname()
    with TestClient(app, base_url=ADDRESS) as client:
        for name in ("10.0.0.7", "[fe80::1]", "LocalHost", own.upper(), "127.0.0.1"):
            told = {"host": f"{name}:80", "origin": f"http://{name.lower()}:80"}
            assert client.get("/", headers=told).status_code == 200, name
            with client.websocket_connect("/talk", headers=told):
                pass
        # A foreign page can give this computer a name of its own, but no address.
        for name in ("evil.example", "10.0.0.7.evil.example", "", "["):
            told = {"host": f"{name}:80", "origin": f"http://{name}:80"}
            assert client.get("/", headers=told).status_code == 403, name


@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("BOX.example", "box.example"),
        ("box.example", "Box.Example"),
        ("2001:DB8::7", "[2001:db8:0::7]"),
    ],
)
def test_one_host_is_spelt_in_several_ways(playground, host, asked):
    from starlette.testclient import TestClient

    app = server.make_app(playground, host, prepare=False)
    with TestClient(app, base_url=ADDRESS) as client:
        told = {"host": f"{asked}:80"}
        assert client.get("/", headers=told).status_code == 200
        assert client.get("/", headers={"host": "10.0.0.8:80"}).status_code == 403


@pytest.mark.parametrize(
    ("host", "shown"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]")],
)
def test_the_browser_opens_an_address_that_it_can_read(
    playground, monkeypatch, host, shown
):
    opened = []
    monkeypatch.setattr(server.webbrowser, "open", opened.append)
    monkeypatch.setattr(server.threading, "Timer", Now)
    monkeypatch.setattr(server.uvicorn.Server, "serve", nothing)
    with server.open_socket(host, 0) as listening:
        server.serve(playground, listening, host)
        port = listening.getsockname()[1]
    assert opened == [f"http://{shown}:{port}/"]


class Now:
    """A timer that does not wait."""

    def __init__(self, seconds, act, args):
        self.start = lambda: act(*args)


async def nothing(self, sockets):
    pass


def test_errors_of_the_server_are_not_swallowed(client, monkeypatch):
    async def broken(self, raw):
        raise RuntimeError("a fault of the server")

    monkeypatch.setattr(server.Session, "take", broken)
    with pytest.raises(RuntimeError, match="a fault of the server"):
        with opened(client) as page:
            page.send(type="plane")
            page.receive()


def test_an_answer_to_a_closed_page_is_no_error(client, playground, monkeypatch):
    class Late(server.Session):
        """Answers after the page was closed."""

        def __init__(self, send, reader):
            super().__init__(send, reader)
            self.websocket = send.__self__

        async def take(self, raw):
            await self.websocket.close()
            await self.websocket.send_bytes(b"an answer")

    monkeypatch.setattr(server, "Session", Late)
    with opened(client) as page:
        page.send(type="plane")
        with pytest.raises(WebSocketDisconnect):
            page.receive()
    assert playground.sessions == set()


def test_the_wheel_has_the_page(tmp_path):
    builder = pytest.importorskip("hatchling.builders.wheel")
    root = STATIC.parents[3]
    if not (root / "pyproject.toml").exists():
        pytest.skip("not in a checkout")
    built = next(builder.WheelBuilder(str(root)).build(directory=str(tmp_path)))
    names = zipfile.ZipFile(built).namelist()
    for path in STATIC.iterdir():
        assert f"mercer/playground/static/{path.name}" in names
