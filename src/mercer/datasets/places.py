"""The folders in which data files are searched, and what errors say about files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = ["REPLACE", "VARIABLE", "cache_folder", "find_file", "folders", "how_to_get"]

VARIABLE = "MERCER_DATA"
#: The advice at the end of every error about a damaged file.
REPLACE = "Replace the file by a fresh copy, or remove it."


def cache_folder() -> Path:
    """Return the folder for downloads, inside the system's folder for caches."""
    home = Path.home()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or home / ".cache"
    return Path(base) / "mercer"


def folders() -> list[Path]:
    """Return the folders to search: that of ``MERCER_DATA`` first, then the cache.

    An error is raised if ``MERCER_DATA`` names something that is not a folder.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        return [cache_folder()]
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise NotADirectoryError(
            f"{VARIABLE}={named} is not a folder. Set it to the folder that holds the "
            "data files, or unset it."
        )
    return [folder, cache_folder()]


def find_file(names: Iterable[str], places: Iterable[Path]) -> Path | None:
    """Return the first file that has one of the names, place by place, or None."""
    names = list(names)
    for place in places:
        for name in names:
            if (place / name).is_file():
                return place / name
    return None


def how_to_get(files: str) -> str:
    """Return the sentence that says where to put files downloaded by hand."""
    return (
        f"To download it by hand, put {files} into {cache_folder()}, or into a folder "
        f"of your own that the environment variable {VARIABLE} names."
    )
