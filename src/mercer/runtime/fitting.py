"""How a fit begins and ends: it succeeds as a whole, or it changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from mercer.runtime.arrays import takes_card_arrays
from mercer.runtime.scikit_learn import fit_context

__all__ = ["all_or_nothing", "fit_method"]


def all_or_nothing(method: Callable) -> Callable:
    """Decorate a method so that it changes nothing if it fails or is interrupted.

    The attributes from before the call are restored, so that the estimator is again
    what an earlier fit made of it, or not fitted.  The method may set and delete
    attributes; it must replace their values rather than change them in place.
    """

    @wraps(method)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            # A single assignment, so that a second interrupt cannot come in between.
            self.__dict__ = before
            raise

    return whole


def fit_method(fit: Callable) -> Callable:
    """Decorate ``fit``: check parameters, set up callbacks, fit all or nothing."""
    checked = fit_context(prefer_skip_nested_validation=True)(fit)
    return all_or_nothing(takes_card_arrays(checked))
