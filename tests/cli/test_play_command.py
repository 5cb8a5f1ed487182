"""``mercer play``: what it refuses before it serves anything."""

import socket

import pytest
from cli_files import call, refused

import mercer

pytest.importorskip("starlette", reason="the playground needs mercer[play]")
pytest.importorskip("skops", reason="model files need skops")


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(2, "play", "--no-browser", "--port", port)
    assert f"--port {port} at 127.0.0.1 cannot be used" in line
    assert "Give another port, or 0 for a free one." in line


def test_a_model_that_cannot_read_digits_is_refused(tmp_path, rng):
    path = tmp_path / "small.skops"
    mercer.save(mercer.SVC().fit(rng.normal(size=(20, 3)), [0, 1] * 10), path)
    line = refused(4, "play", "--no-browser", "--port", 0, "--model", path)
    assert "takes 3 values" in line and "28 by 28" in line


def test_the_page_is_announced_and_served(monkeypatch):
    from mercer.playground import server

    served = []
    monkeypatch.setattr(server, "serve", lambda *args, **kwargs: served.append(kwargs))
    result = call("play", "--no-browser", "--port", 0)
    assert "The playground is at http://127.0.0.1:" in result.stdout
    assert served == [{"browser": False}]
