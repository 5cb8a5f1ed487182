"""Downloads from a local server: right, broken, wrong and missing files."""

import hashlib
import sys

import pytest

from mercer.datasets import download
from mercer.datasets.download import Remote, fetch
from mercer.datasets.places import cache_folder

CONTENT = b"some data" * 1000
DEAD = "http://127.0.0.1:9/"


def remote(*mirrors, name="set.gz", content=CONTENT):
    digest = hashlib.sha256(content).hexdigest()
    return Remote(name, mirrors, digest, len(content))


def in_cache():
    folder = cache_folder()
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_file_is_downloaded_once(bare, server):
    folder, address = server
    (folder / "set.gz").write_bytes(CONTENT)
    (path,) = fetch([remote(address)], "The set")
    assert path == cache_folder() / "set.gz"
    assert path.read_bytes() == CONTENT
    (folder / "set.gz").unlink()
    assert fetch([remote(address)], "The set") == [path]
    assert in_cache() == ["set.gz"]


def test_the_next_mirror_is_tried(bare, server):
    folder, address = server
    (folder / "set.gz").write_bytes(CONTENT)
    (path,) = fetch([remote(DEAD, address + "wrong/", address)], "The set")
    assert path.read_bytes() == CONTENT


def test_a_wrong_file_leaves_nothing(bare, server):
    folder, address = server
    (folder / "set.gz").write_bytes(CONTENT[:-1])
    with pytest.raises(OSError, match=r"wrong checksum and was deleted"):
        fetch([remote(address)], "The set")
    assert in_cache() == []


def test_a_broken_connection_leaves_nothing(bare, server):
    _, address = server
    with pytest.raises(OSError, match=r"The set could not be downloaded\. Tried http"):
        fetch([remote(address, name="broken.gz")], "The set")
    assert in_cache() == []


def test_an_interrupt_leaves_nothing(bare, server, monkeypatch):
    import pooch

    def interrupted(self, url, output_file, caller):
        del self, url, caller
        with open(output_file, "wb") as file:
            file.write(CONTENT[:100])
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch([remote(server[1])], "The set")
    assert in_cache() == []


def test_a_spoilt_file_in_the_cache_is_replaced(bare, server):
    folder, address = server
    (folder / "set.gz").write_bytes(CONTENT)
    cache_folder().mkdir(parents=True)
    (cache_folder() / "set.gz").write_bytes(b"spoilt")
    (path,) = fetch([remote(address)], "The set")
    assert path.read_bytes() == CONTENT


def test_errors_name_each_mirror_its_reason_and_the_remedy(bare, server):
    _, address = server
    with pytest.raises(OSError) as caught:
        fetch([remote(DEAD, address)], "The set", instead="Or do without.")
    text = str(caught.value)
    assert f"{DEAD}set.gz (no connection)" in text
    assert f"{address}set.gz (HTTPError: 404" in text
    assert "online" in text
    assert f"put set.gz into {cache_folder()}" in text
    assert "MERCER_DATA" in text
    assert text.endswith("Or do without.")


def test_a_server_that_does_not_answer(bare, monkeypatch):
    import pooch
    import requests

    def slow(*args, **kwargs):
        raise requests.ReadTimeout

    monkeypatch.setattr(pooch, "retrieve", slow)
    with pytest.raises(OSError, match="no answer within 30 s"):
        fetch([remote(DEAD)], "The set")


def test_long_reasons_are_cut(bare, monkeypatch):
    import pooch

    def fail(*args, **kwargs):
        raise PermissionError("no " * 500)

    monkeypatch.setattr(pooch, "retrieve", fail)
    with pytest.raises(OSError, match=r"PermissionError: no no .*\.\.\.\)") as caught:
        fetch([remote(DEAD)], "The set")
    assert len(str(caught.value)) < 1000


def test_without_pooch_the_message_says_what_to_install(bare, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match="pip install pooch") as caught:
        fetch([remote(DEAD)], "The set")
    assert "The set is not on this machine" in str(caught.value)
    assert "put set.gz into" in str(caught.value)


def test_downloads_are_logged(bare, server, caplog):
    folder, address = server
    (folder / "set.gz").write_bytes(CONTENT)
    with caplog.at_level("INFO", logger=download.log.name):
        fetch([remote(address)], "The set")
    assert f"from {address}set.gz" in caplog.text
