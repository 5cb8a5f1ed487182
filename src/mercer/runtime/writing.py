"""Writing files as a whole: after a crash there is the old file or the new one."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["replacing", "write_file"]


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Open a new file that replaces ``path`` once it is complete and on the disk.

    The new file is written beside ``path`` under another name and renamed at the end,
    which file systems do completely or not at all. After an error the new file is
    deleted, and the old one is unchanged. A pipe or a device, such as ``/dev/null``, is
    written to directly.
    """
    given = Path(path)
    if given.exists() and not given.is_file() and not given.is_dir():
        with open(given, "wb") as stream:
            yield stream
        return
    # A link stays a link: the file that it points to is replaced.
    target = given.resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{path} cannot be written: the folder {target.parent} does not exist. "
            "Create it first."
        )
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Give the name of a file.")
    new = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(new, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, new)
        os.replace(new, target)
    except BaseException as error:
        new.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = str(path)  # a full disk does not name the file
        raise
    _sync_folder(target.parent)


def write_file(
    path: str | os.PathLike, content: bytes | str, *, makes_folder: bool = False
) -> None:
    """Write a file as a whole, text as UTF-8, and its folder if that is wanted.

    After an error no folder is left that had to be made.
    """
    folder = Path(path).parent
    made = [f for f in (folder, *folder.parents) if makes_folder and not f.exists()]
    try:
        if made:
            folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(content.encode() if isinstance(content, str) else content)
    except BaseException:
        for new in made:
            with suppress(OSError):  # another file may have come into it
                new.rmdir()
        raise


def _sync_folder(folder: Path) -> None:
    """Force a renaming to the disk, where folders can be opened (not on Windows)."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
