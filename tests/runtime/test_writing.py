"""A file is whole or not there, whatever happens while it is written."""

import ast
import errno
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from mercer.runtime.writing import replacing, write_file


def write(path, content):
    with replacing(path) as file:
        file.write(content)


def test_new_and_old_files(tmp_path):
    path = tmp_path / "model"
    write(path, b"first")
    assert path.read_bytes() == b"first"
    write(str(path), b"second")
    assert path.read_bytes() == b"second"
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_an_error_leaves_the_old_file(tmp_path, monkeypatch, failing):
    path = tmp_path / "model"
    write(path, b"good")

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(f"mercer.runtime.writing.os.{failing}", fail)
    with pytest.raises(OSError, match="No space left"):
        write(path, b"bad")
    assert path.read_bytes() == b"good"
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_in_between_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "model"
    write(path, b"good")
    with pytest.raises(error), replacing(path) as file:
        file.write(b"ba")
        raise error
    assert path.read_bytes() == b"good"
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.skipif(os.name != "posix", reason="limits on file sizes are POSIX")
def test_a_full_disk_leaves_the_old_file(tmp_path):
    import resource

    path = tmp_path / "model"
    write(path, b"good")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError):
            write(path, bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"good"
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX")
def test_a_killed_process_leaves_the_old_file(tmp_path):
    path = tmp_path / "model"
    write(path, b"good")
    program = f"""
        import os, signal
        from mercer.runtime.writing import replacing, write_file
        with replacing({str(path)!r}) as file:
            file.write(b"bad")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)])
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"good"


@pytest.mark.skipif(os.name != "posix", reason="modes and links are POSIX")
def test_modes_and_links_stay(tmp_path):
    path, link = tmp_path / "model", tmp_path / "link"
    umask = os.umask(0o027)
    try:
        write(path, b"first")
    finally:
        os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    link.symlink_to(path)
    write(link, b"second")
    assert link.is_symlink()
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == 0o604


def test_places_that_cannot_be(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere does not exist"):
        write(tmp_path / "nowhere" / "model", b"")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write(tmp_path, b"")


def test_a_full_disk_is_named_and_leaves_no_folder(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    path = tmp_path / "a" / "b" / "text"
    with pytest.raises(OSError, match="No space left") as caught:
        write_file(path, "x", makes_folder=True)
    assert caught.value.filename == str(path)
    assert os.listdir(tmp_path) == []
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="No space left"):
        write_file(path, "x", makes_folder=True)
    assert [p.name for p in tmp_path.rglob("*")] == ["a"]


def test_text_bytes_and_folders(tmp_path):
    path = tmp_path / "a" / "b" / "text"
    with pytest.raises(FileNotFoundError, match="Create it first"):
        write_file(path, "å")
    write_file(path, "å", makes_folder=True)
    assert path.read_text(encoding="utf-8") == "å"
    write_file(path, b"\x00")
    assert path.read_bytes() == b"\x00"


ROOT = Path(__file__).parents[2]
#: What need not be whole: this module itself, the copy of a pipe in a temporary folder,
#: and a switch of the operating system.
EXEMPT = {
    "src/mercer/runtime/writing.py",
    "src/mercer/cli/data/sources.py",
    "benchmarks/memory.py",
}


def writes(node):
    """Tell whether a call writes a file by itself."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    modes = [
        value.value
        for value in [*node.args[1:], *(k.value for k in node.keywords)]
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    ]
    opens = name == "open" and any(set(mode) & set("wxa") for mode in modes)
    return opens or name in ("write_text", "write_bytes", "dump")


@pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="needs the repository")
def test_every_file_is_written_as_a_whole():
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("src", "benchmarks", "docs", "tools")
        for path in (ROOT / folder).rglob("*.py")
        if path.relative_to(ROOT).as_posix() not in EXEMPT
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if writes(node)
    ]
    assert found == [], "use mercer.runtime.writing here"
