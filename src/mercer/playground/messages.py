"""What the page may ask for, and how answers are packed.

A request is a JSON object. Nothing in it is trusted: every value is checked for its
type and its range, and sizes are limited, so that a request can neither stop the server
nor keep it busy for long. An answer is one binary message: the length of a header, the
header as JSON, and arrays whose place the header names.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.runtime.plain import as_plain

__all__ = [
    "LONGEST_MESSAGE",
    "MOST_CLASSES",
    "MOST_POINTS",
    "PLANE",
    "Answer",
    "Points",
    "Refusal",
    "choice",
    "number",
    "pack",
    "parse",
    "pixels",
    "points",
    "switch",
    "text",
    "unpack",
    "whole",
]

#: Longest request, in characters: room for the points below, and nothing more.
LONGEST_MESSAGE = 200_000
MOST_POINTS = 3000
MOST_CLASSES = 6
#: The plane reaches from minus this to plus this, in both directions.
PLANE = 3.0
# The arrays of an answer begin at multiples of this many bytes.
ALIGNMENT = 8


class Refusal(ValueError):
    """A request that cannot be answered; ``field`` is where the page shows why."""

    def __init__(self, message: str, field: str | None = None):
        super().__init__(message)
        self.field = field


class Points(NamedTuple):
    """Points of the plane, each with the number of its class."""

    X: NDArray[np.float64]  #: shape (n, 2)
    label: NDArray[np.intp]  #: shape (n,)


class Answer(NamedTuple):
    """What is sent to the page: values, and arrays by name."""

    values: dict[str, Any]
    arrays: Mapping[str, NDArray] = {}


def parse(raw: str) -> dict[str, Any]:
    """Return a request that is a JSON object with a type and a number."""
    if len(raw) > LONGEST_MESSAGE:
        raise Refusal(
            f"A message of {len(raw)} characters is too long: at most "
            f"{LONGEST_MESSAGE} are read."
        )
    try:
        found = json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"The message is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise Refusal("A message must be a JSON object.")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def number(
    message: Mapping[str, Any], name: str, low: float, high: float, default: float
) -> float:
    """Return a number between two limits."""
    value = message.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refusal(f"{name} must be a number, got {_shown(value)}.", name)
    if not low <= value <= high:  # NaN is refused here
        raise Refusal(
            f"{name} must be between {low:g} and {high:g}, got {_shown(value)}.", name
        )
    return float(value)


def whole(
    message: Mapping[str, Any], name: str, low: int, high: int, default: int
) -> int:
    """Return a whole number between two limits."""
    value = number(message, name, low, high, default)
    if value != int(value):
        raise Refusal(f"{name} must be a whole number, got {value:g}.", name)
    return int(value)


def choice(
    message: Mapping[str, Any], name: str, allowed: Sequence[str], default: str
) -> str:
    """Return one of the allowed words."""
    value = message.get(name, default)
    if not isinstance(value, str) or value not in allowed:
        raise Refusal(
            f"{name} must be one of {', '.join(allowed)}; got {_shown(value)}.", name
        )
    return value


def switch(message: Mapping[str, Any], name: str) -> bool:
    """Return true or false; a value that is not given is false."""
    value = message.get(name, False)
    if not isinstance(value, bool):
        raise Refusal(f"{name} must be true or false, got {_shown(value)}.", name)
    return value


def text(message: Mapping[str, Any], name: str, longest: int, default: str) -> str:
    """Return a text of limited length."""
    value = message.get(name, default)
    if not isinstance(value, str):
        raise Refusal(f"{name} must be text, got {_shown(value)}.", name)
    if len(value) > longest:
        raise Refusal(
            f"{name} has {len(value)} characters; at most {longest} are read.", name
        )
    return value


def points(message: Mapping[str, Any], most: int = MOST_POINTS) -> Points:
    """Return the points of a request: the lists ``x``, ``y`` and ``label``."""
    columns = [message.get(name, []) for name in ("x", "y", "label")]
    if not all(isinstance(column, list) for column in columns):
        raise Refusal("x, y and label must be lists of numbers.", "points")
    n = len(columns[0])
    if {len(column) for column in columns} != {n}:
        raise Refusal("x, y and label must have the same length.", "points")
    if n > most:
        raise Refusal(
            f"There are {n} points; this part of the page takes at most {most}.",
            "points",
        )
    for value in (v for column in columns for v in column):
        if type(value) not in (int, float):
            raise Refusal(f"{_shown(value)} is not a coordinate or a class.", "points")
    try:
        X = np.array(columns[:2], dtype=np.float64).T.reshape(n, 2)
        label = np.array(columns[2], dtype=np.float64)
    except OverflowError as error:
        raise Refusal("A coordinate is too large.", "points") from error
    if not (np.abs(X) <= 2 * PLANE).all():
        raise Refusal(
            f"Coordinates must be between {-2 * PLANE:g} and {2 * PLANE:g}.", "points"
        )
    if not np.isin(label, np.arange(MOST_CLASSES)).all():
        raise Refusal(
            f"Classes must be whole numbers from 0 to {MOST_CLASSES - 1}.", "points"
        )
    return Points(np.ascontiguousarray(X), label.astype(np.intp))


def pixels(message: Mapping[str, Any], count: int) -> NDArray[np.uint8]:
    """Return the pixels of an image, whole numbers from 0 (paper) to 255 (ink)."""
    values = message.get("pixels")
    if not isinstance(values, list) or len(values) != count:
        raise Refusal(f"pixels must be a list of {count} numbers.", "pixels")
    if not all(type(v) is int and 0 <= v <= 255 for v in values):
        raise Refusal("Pixels must be whole numbers from 0 to 255.", "pixels")
    return np.array(values, dtype=np.uint8)


def _shown(value: Any) -> str:
    """Return a value as it is quoted in a message, not longer than a line."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def pack(answer: Answer) -> bytes:
    """Return an answer as one binary message."""
    places, blocks, offset = {}, [], 0
    for name, array in answer.arrays.items():
        block = np.ascontiguousarray(array)
        places[name] = {
            "dtype": block.dtype.name,
            "shape": list(block.shape),
            "offset": offset,
        }
        data = block.tobytes()
        data += bytes(-len(data) % ALIGNMENT)
        blocks.append(data)
        offset += len(data)
    header = json.dumps({**as_plain(answer.values), "arrays": places}).encode()
    header += b" " * (-(4 + len(header)) % ALIGNMENT)
    return b"".join([len(header).to_bytes(4, "little"), header, *blocks])


def unpack(data: bytes) -> Answer:
    """Return the answer that was packed, as the page reads it."""
    start = 4 + int.from_bytes(data[:4], "little")
    values = json.loads(data[4:start])
    arrays = {}
    for name, place in values.pop("arrays").items():
        dtype, first = np.dtype(place["dtype"]), start + place["offset"]
        count = math.prod(place["shape"])
        found = np.frombuffer(data, dtype, count, first)
        arrays[name] = found.reshape(place["shape"])
    return Answer(values, arrays)
