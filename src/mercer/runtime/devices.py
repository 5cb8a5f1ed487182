"""Names of devices: the processor, or a graphics card."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["card_number", "check_device"]

_CARD = re.compile(r"cuda(?::(\d+))?")


def check_device(device: Any) -> None:
    """Refuse what is not the name of a device."""
    if not (isinstance(device, str) and (device == "cpu" or _CARD.fullmatch(device))):
        raise ValueError(
            f"Unknown device {device!r}. Available: 'cpu', 'cuda' and 'cuda:N' for the "
            "card with the number N, from 0."
        )


def card_number(device: str) -> int:
    """Return the number of the card that "cuda" or "cuda:N" names."""
    check_device(device)
    found = _CARD.fullmatch(device)
    if found is None:
        raise ValueError(f"device={device!r} is not a graphics card.")
    return int(found[1] or 0)
