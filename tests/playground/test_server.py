"""The server: who may talk to it, and what it says to several pages at once."""

import re
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


def test_the_wheel_has_the_page(tmp_path):
    builder = pytest.importorskip("hatchling.builders.wheel")
    root = STATIC.parents[3]
    if not (root / "pyproject.toml").exists():
        pytest.skip("not in a checkout")
    built = next(builder.WheelBuilder(str(root)).build(directory=str(tmp_path)))
    names = zipfile.ZipFile(built).namelist()
    for path in STATIC.iterdir():
        assert f"mercer/playground/static/{path.name}" in names
