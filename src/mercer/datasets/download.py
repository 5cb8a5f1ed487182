"""Downloads with checksums, which never leave an incomplete or wrong file behind."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mercer.datasets.places import cache_folder, how_to_get

__all__ = ["Remote", "fetch"]

log = logging.getLogger("mercer")

TIMEOUT = 30
CHUNK = 2**20
REASON_LENGTH = 160


class Remote(NamedTuple):
    """A file, the servers that offer it, its checksum and its size in bytes."""

    name: str
    mirrors: tuple[str, ...]
    sha256: str
    size: int


def fetch(remotes: Sequence[Remote], what: str, instead: str = "") -> list[Path]:
    """Download the files that are not in the cache yet; return the paths of all.

    A file gets its name only after its checksum was found to be right, so that neither
    a broken connection nor a wrong file leaves anything behind.  Errors suggest to
    download the files by hand, and then ``instead``.
    """
    remedy = how_to_get(" and ".join(remote.name for remote in remotes))
    remedy += f" {instead}" if instead else ""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f"{what} is not on this machine, and downloads need pooch, which is not "
            f"installed: pip install pooch. {remedy}"
        ) from error
    return [_fetch_one(pooch, remote, what, remedy) for remote in remotes]


def _fetch_one(pooch: Any, remote: Remote, what: str, remedy: str) -> Path:
    """Download one file from the first mirror that has it."""
    folder = cache_folder()
    reasons = []
    for mirror in remote.mirrors:
        url = mirror + remote.name
        log.info("%s: %.1f MB from %s", what, remote.size / 1e6, url)
        try:
            path = pooch.retrieve(
                url,
                known_hash=f"sha256:{remote.sha256}",
                fname=remote.name,
                path=folder,
                downloader=pooch.HTTPDownloader(timeout=TIMEOUT, chunk_size=CHUNK),
            )
        except (OSError, ValueError) as error:
            reasons.append(f"{url} ({_short(error)})")
        else:
            return Path(path)
    raise OSError(
        f"{what} could not be downloaded. Tried {'; '.join(reasons)}. Check that this "
        f"machine is online and that you may write to {folder}. {remedy}"
    )


def _short(error: Exception) -> str:
    """Describe an error of a download in one short line."""
    import requests  # pooch downloads with requests

    if isinstance(error, requests.ConnectionError):
        return "no connection"
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT} s"
    if isinstance(error, ValueError) and "does not match" in str(error):
        return "the file has a wrong checksum and was deleted"
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= REASON_LENGTH else text[: REASON_LENGTH - 3] + "..."
