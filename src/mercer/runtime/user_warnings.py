"""Warnings that point to the user's line, however deep in the library they arise."""

from __future__ import annotations

import concurrent.futures
import contextlib
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import sklearn

__all__ = ["warn_user"]

# Files that stand between the user's line and the one that warns.
_PASSED = (
    *(
        str(Path(module.__file__).parent) + "/"
        for module in (sys.modules["mercer"], sklearn, np, concurrent.futures)
        if module.__file__
    ),
    contextlib.__file__,
    threading.__file__,
)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of the library that has led to the warning."""
    frame = sys._getframe(1)
    level = 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PASSED):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
