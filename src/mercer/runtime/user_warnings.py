"""Warnings that point to the line of the user, however deep they are raised."""

from __future__ import annotations

import contextlib
import sys
import warnings
from pathlib import Path

import numpy
import sklearn

__all__ = ["warn_user"]

# The files of Mercer, and those whose functions stand between its functions: decorators
# and meta-estimators.
_INNER = (
    *(str(Path(file).parent) for file in (numpy.__file__, sklearn.__file__)),
    str(Path(__file__).parents[1]),
    contextlib.__file__,
)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and name the innermost line that is neither Mercer's nor scikit-learn's."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INNER):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
