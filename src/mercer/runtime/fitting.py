"""How a fit begins and ends: it is done as a whole, or it leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from mercer.runtime.scikit_learn import fit_context

__all__ = ["all_or_nothing", "fit_method"]


def all_or_nothing(method: Callable) -> Callable:
    """Decorate a method: if it fails or is interrupted, nothing has changed.

    The attributes from before the call come back, so that an estimator is what an
    earlier fit made of it, or not fitted.  Attributes may be set and deleted in the
    method; what they hold must be replaced, not changed in place.
    """

    @wraps(method)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            # One assignment: another interrupt cannot come in the middle of it.
            self.__dict__ = before
            raise

    return whole


def fit_method(fit: Callable) -> Callable:
    """Decorate ``fit``: check the parameters, set up callbacks, fit all or nothing."""
    return all_or_nothing(fit_context(prefer_skip_nested_validation=True)(fit))
