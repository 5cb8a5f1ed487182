"""What commands say where a package that they need is not installed."""

import sys

import pytest
from cli_files import refused, write_flowers, write_images

import mercer.playground


@pytest.fixture
def without(monkeypatch):
    """Make packages impossible to import."""

    def block(*names):
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return block


@pytest.mark.parametrize(
    ("blocked", "arguments", "says"),
    [
        (
            ("PIL", "PIL.Image"),
            ("images",),
            "need Pillow. Install it: pip install pill",
        ),
        (("pyarrow",), ("t.parquet", "--target", "a"), "pip install pyarrow"),
        (("skops", "skops.io"), ("f.csv", "--target", "kind"), "pip install skops"),
    ],
)
def test_a_fit_without_a_package(without, tmp_path, blocked, arguments, says):
    write_images(tmp_path / "images", n=2)
    write_flowers(tmp_path / "f.csv")
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    without(*blocked)
    name, *options = arguments
    out = tmp_path / "m.skops"
    line = refused(2, "fit", tmp_path / name, *options, "--out", out)
    assert says in line


def test_the_playground_without_its_server(without, monkeypatch):
    without("starlette", "uvicorn")
    # Another test may have imported the server; it must be imported again.
    monkeypatch.delitem(sys.modules, "mercer.playground.server", raising=False)
    monkeypatch.delattr(mercer.playground, "server", raising=False)
    line = refused(2, "play", "--no-browser")
    assert "pip install starlette uvicorn websockets" in line
