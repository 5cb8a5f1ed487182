"""Where data and models come from: files, folders, pipes and standard input.

The readers open what they read more than once: to find the format, to read, and to find
the line of an error. A pipe gives its bytes only once, so it is copied to a temporary
file, and everything else reads that copy.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from mercer.cli.failures import UsageFailure

__all__ = ["Source", "check_apart", "name_of", "opened"]

STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
# The first bytes of compressed files, and the ending by which readers know them.
COMPRESSED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2"}
# Bytes to copy at once: more than the buffer of a stream holds, so that none are left
# in it, where a wait for the stream would not see them.
AT_ONCE = 2**20
# Seconds to wait for bytes before Python looks for an interrupt.
WAIT = 0.2


@dataclass(frozen=True)
class Source:
    """A file or folder that can be opened any number of times, and its name."""

    path: Path
    name: str = ""  #: what messages call it, if not by its path

    def __str__(self) -> str:
        return self.name or str(self.path)

    def told(self, error: object) -> str:
        """Return the text of an error, with the name that the user knows."""
        return str(error).replace(str(self.path), str(self))

    def open_text(self, encoding: str = "utf-8") -> TextIO:
        """Open a text file, which may be compressed."""
        open_bytes: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(
            self.path.suffix, open
        )
        file = open_bytes(self.path, "rb")
        # A mark at the beginning of files from Windows is not part of the text.
        encoding = "utf-8-sig" if encoding == "utf-8" else encoding
        return io.TextIOWrapper(file, encoding=encoding, newline="")

    def not_text(self, encoding: str, error: UnicodeError) -> str:
        """Say that a file is not in an encoding, and in which one it may be."""
        with open(self.path, "rb") as file:
            start = file.read(2)
        other = "utf-16" if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else ""
        other = other or ("cp1252" if encoding == "utf-8" else "utf-8")
        return (
            f"{self} is not text in {encoding.upper()} ({error}). If it is text in "
            f"another encoding, name it, as in --encoding {other}; if it is not text, "
            "name its format with --format."
        )


def _is_standard_input(path: Path) -> bool:
    return str(path) in STANDARD_INPUT


def _is_stream(path: Path) -> bool:
    """Tell whether a path names something that can be read only once."""
    if _is_standard_input(path):
        return True
    if not path.exists():
        return False
    mode = path.stat().st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def name_of(path: Path) -> str:
    """Return what messages call a file that was given on the command line."""
    return "standard input" if _is_standard_input(path) else str(path)


def check_apart(model: Path, data: Path) -> None:
    """Refuse a model and data from one stream: nothing would separate them."""
    both_standard = _is_standard_input(model) and _is_standard_input(data)
    if both_standard or (model == data and _is_stream(data)):
        raise UsageFailure(
            f"the model and the data cannot both come from {name_of(data)}. Give one "
            "of them as a file."
        )


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Open what a path names in a form that can be read several times."""
    if not _is_stream(path):
        yield Source(path)
        return
    with TemporaryDirectory(prefix="mercer-") as folder:
        copy = Path(folder, path.name)
        standard: Any = nullcontext(getattr(sys.stdin, "buffer", None))
        with standard if _is_standard_input(path) else open(path, "rb") as stream:
            if stream is None:
                raise UsageFailure("there is no standard input. Give a file.")
            with open(copy, "wb") as file:
                while content := _next_bytes(stream):
                    file.write(content)
        yield Source(_with_ending(copy), name_of(path))


def _next_bytes(stream: Any) -> bytes:
    """Return the bytes that come next, or none at the end of a stream.

    The wait for them is cut into short ones. An interrupt that comes just before a
    long wait would not be noticed until the wait is over.
    """
    with suppress(OSError, TypeError, ValueError):  # not every stream can be waited for
        while not select.select([stream], [], [], WAIT)[0]:
            pass
    return stream.read1(AT_ONCE)


def _with_ending(copy: Path) -> Path:
    """Rename a copy that is compressed, so that its name says so."""
    with open(copy, "rb") as file:
        start = file.read(4)
    for magic, ending in COMPRESSED.items():
        if start.startswith(magic) and copy.suffix != ending:
            return copy.rename(copy.with_name(copy.name + ending))
    return copy
