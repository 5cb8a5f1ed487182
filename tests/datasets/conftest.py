"""Fixtures: a machine without data files, and servers to download from."""

import functools
import http.server
import os
import threading
from pathlib import Path

import pytest


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """Point MERCER_DATA to an empty folder, and the cache to a folder not made yet."""
    data = tmp_path / "data"
    data.mkdir()
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("MERCER_DATA", str(data))
    return data


@pytest.fixture
def given():
    """Return the folder of real data, or skip the test."""
    folder = os.environ.get("MERCER_DATA")
    if not folder:
        pytest.skip("MERCER_DATA is not set: it names the folder with the data sets")

    def need(name):
        if not Path(folder, name).is_file():
            pytest.skip(f"{name} is not in MERCER_DATA")
        return Path(folder, name)

    return need


class Handler(http.server.SimpleHTTPRequestHandler):
    """A server of a folder; for names with "broken" it sends too few bytes."""

    def do_GET(self):
        if "broken" not in self.path:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"half of it")

    def log_message(self, *args):
        """Log nothing."""


@pytest.fixture
def server(tmp_path):
    """Serve a folder over HTTP; return the folder and the address."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield folder, f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
        thread.join()
