"""Values that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["as_plain"]


def as_plain(value: Any) -> Any:
    """Return a value as JSON can hold it; numbers that are not finite become null.

    >>> import numpy as np
    >>> as_plain({"gap": np.float64("inf"), "sizes": np.arange(2)})
    {'gap': None, 'sizes': [0, 1]}
    """
    if isinstance(value, Mapping):
        return {str(key): as_plain(part) for key, part in value.items()}
    if hasattr(value, "tolist"):  # of NumPy, which need not be imported for this
        return as_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [as_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
