r"""Kernels as text.

.. code-block:: text

    sum      =  product { "+" product }
    product  =  power { "*" power }
    power    =  postfix [ "**" whole number ]
    postfix  =  atom { "@" view | ".normalized()" }
    atom     =  number | "(" sum ")" | name [ "(" { name "=" value "," } ")" ]
    view     =  name | "[" column { "," column } "]" | "[" start ":" stop ":" step "]"
    column   =  name | whole number

Operators mean what they mean between kernels in Python; a number may only multiply.
A name after ``@`` is a column of a data frame or a view. A name that is not a word
stands between quotation marks, ``rbf@['hours per week', age]``, and a mark inside it is
written twice.

>>> from mercer import kernels
>>> views = {"raw": slice(0, 784), "hog": slice(784, 900)}
>>> text = "rbf(sigma=7)@raw * (rbf(sigma=4)@hog + linear@hog)"
>>> kernels.parse(text, views=views).right.left
OnColumns(columns=slice(784, 900, None), kernel=RBF(sigma=4))
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from numbers import Integral
from typing import Any

import numpy as np

from mercer.kernels import base, dot, histogram, radial
from mercer.kernels.base import Kernel
from mercer.kernels.tokens import KernelSyntaxError, Token, Tokens, quoted
from mercer.kernels.views import is_named, unknown_name
from mercer.runtime.public import public

__all__ = [
    "KERNELS",
    "KernelSyntaxError",
    "parse",
    "to_text",
    "unknown_kernel",
]

KERNELS: dict[str, type[Kernel]] = {
    "linear": dot.Linear,
    "polynomial": dot.Polynomial,
    "poly": dot.Polynomial,
    "rbf": radial.RBF,
    "laplacian": radial.Laplacian,
    "sigmoid": dot.Sigmoid,
    "cosine": dot.Cosine,
    "additive_chi2": histogram.AdditiveChi2,
    "chi2": histogram.Chi2,
    "intersection": histogram.Intersection,
}
# If a class has two names, the last one is used, which is that of scikit-learn.
NAMES = {kind: name for name, kind in KERNELS.items()}
# What other libraries and textbooks call them, for a hint.
OTHER_NAMES = {
    "gaussian": "rbf",
    "gauss": "rbf",
    "radial": "rbf",
    "tanh": "sigmoid",
    "dot": "linear",
    "chisquare": "chi2",
    "chi_squared": "chi2",
}
OPERATORS = "'+', '*', '**', '@' or '.normalized()'"

# How tightly text forms bind.
SUM, PRODUCT, POWER, POSTFIX = range(4)


@public("mercer.kernels")
def parse(text: str, views: Mapping[str, Any] | None = None) -> Kernel:
    """Read a kernel, such as ``"0.5 * rbf(gamma=2)@hog + poly(degree=2)@[0:784]"``.

    Parameters
    ----------
    text : str
        Names of kernels with parameters, joined by ``+``, ``*``, ``**`` and ``@``.
    views : mapping of str to columns, default=None
        The columns that ``@name`` stands for. With None they stay names, for the names
        in the data or :func:`mercer.kernels.with_views`.

    Returns
    -------
    Kernel

    Raises
    ------
    ValueError
        If the text is not a kernel; the message marks the place.

    See Also
    --------
    Kernel : kernels as objects.

    Examples
    --------
    >>> from mercer.kernels import parse
    >>> parse("0.5 * rbf(gamma=2) + linear@[0:3]").children()[1]
    OnColumns(columns=slice(0, 3, None), kernel=Linear())
    """
    kernel = _Parser(text, views).whole()
    return kernel if views is None else base.with_views(kernel, views)


class _Parser(Tokens):
    """Recursive descent: a method for each line of the grammar."""

    def __init__(self, text: str, views: Mapping[str, Any] | None):
        super().__init__(text)
        self._views = views

    def _kernel(self, value: Kernel | float, first: Token) -> Kernel:
        if not isinstance(value, Kernel):
            self.fail(first, f"The number {value} can only multiply a kernel.")
        return value

    def whole(self) -> Kernel:
        first = self.token
        if first.kind == "end":
            self.fail(first, f"Expected a kernel. Known: {', '.join(KERNELS)}.")
        kernel = self._kernel(self._sum(), first)
        if self.token.text == ")":
            self.fail(self.token, "This ')' was never opened.")
        if self.token.kind != "end":
            self.fail(self.token, f"Expected {OPERATORS}, found {self.token}.")
        return kernel

    def _sum(self) -> Kernel | float:
        first, value = self.token, self._product()
        while sign := self.accept("+", "-"):
            if sign.text == "-":
                self.fail(sign, "Kernels can be added, not subtracted.")
            value, second = self._kernel(value, first), self.token
            value = value + self._kernel(self._product(), second)
        return value

    def _product(self) -> Kernel | float:
        value = self._power()
        while self.accept("*"):
            value = value * self._power()
        return value

    def _power(self) -> Kernel | float:
        first, value = self.token, self._postfix()
        if self.accept("**"):
            token = self.take()
            if not (token.text.isdecimal() and int(token.text) >= 1):
                self.fail(token, f"Expected a whole exponent >= 1, found {token}.")
            value = self._kernel(value, first) ** int(token.text)
            if again := self.accept("**"):
                self.fail(again, "A power of a power needs parentheses.")
        return value

    def _postfix(self) -> Kernel | float:
        first, value = self.token, self._atom()
        while sign := self.accept("@", "."):
            value = self._kernel(value, first)
            if sign.text == "@":
                value = value.on(self._view())
            elif (token := self.take()).text != "normalized":
                self.fail(token, f"Expected 'normalized()', found {token}.")
            else:
                self.expect("(")
                self.expect(")")
                value = value.normalized()
        return value

    def _atom(self) -> Kernel | float:
        token = self.take()
        if token.text == "(":
            value = self._sum()
            self.expect(")", f", {OPERATORS}", opened=token)
            return value
        if token.text == "-":
            self.fail(token, "A factor must be >= 0: other multiples are not kernels.")
        if token.kind == "name":
            return self._call(token)
        return self._number(token, "a kernel or a number")

    def _number(self, token: Token, expected: str = "a number") -> float:
        if token.kind != "number":
            self.fail(token, f"Expected {expected}, found {token}.")
        value = int(token.text) if token.text.isdecimal() else float(token.text)
        if not np.isfinite(value):
            self.fail(token, f"The number {token.text} is too large.")
        return value

    def _call(self, name: Token) -> Kernel:
        if name.text not in KERNELS:
            self.fail(name, f"{unknown_kernel(name.text)}.")
        values: dict[str, float | str] = {}
        if opened := self.accept("("):
            while self.token.kind != "end" and self.token.text != ")":
                parameter = self._parameter(name.text, values)
                self.expect("=")
                values[parameter] = self._value(parameter)
                if not self.accept(","):
                    break
            self.expect(")", " or ','", opened=opened)
        kernel = KERNELS[name.text](**values)
        try:
            kernel.bind(np.ones((1, 1)))
        except ValueError as error:
            self.fail(name, str(error))
        return kernel

    def _parameter(self, name: str, values: Mapping) -> str:
        token, allowed = self.take(), _defaults(KERNELS[name])
        if token.text not in allowed:
            takes = ", ".join(allowed) or "no parameters"
            self.fail(token, f"Unknown parameter {token}. {name} takes {takes}.")
        if token.text in values:
            self.fail(token, f"The parameter {token} is given twice.")
        return token.text

    def _value(self, parameter: str) -> float | str:
        if parameter == "gamma" and self.token.kind in ("name", "quoted"):
            return self.take().name
        minus = self.accept("-")
        value = self._number(self.take())
        return -value if minus else value

    def _view(self) -> Any:
        token = self.take()
        if token.text == "[":
            return self._columns()
        if token.kind not in ("name", "quoted"):
            expected = "a column's or view's name or '['"
            self.fail(token, f"Expected {expected}, found {token}.")
        return self._name(token)

    def _name(self, token: Token) -> str:
        """Return the name of a column or view, which has to be known."""
        if self._views is not None and token.name not in self._views:
            self.fail(token, unknown_name(token.name, self._views))
        return token.name

    def _columns(self) -> slice | list[int | str]:
        first = self.token
        columns: list[Any] = [None if first.text == ":" else self._column()]
        if self.token.text == ":" and isinstance(columns[0], str):
            self.fail(first, "A range goes from number to number, not from a name.")
        if self.accept(":"):
            columns.append(None if self.token.text in (":", "]") else self._number_of())
            columns.append(self._number_of() if self.accept(":") else None)
            self.expect("]")
            return slice(*columns)
        while self.accept(","):
            columns.append(self._column())
        self.expect("]", ", ',' or ':'")
        return columns

    def _column(self) -> int | str:
        if self.token.kind in ("name", "quoted"):
            return self._name(self.take())
        return self._number_of()

    def _number_of(self) -> int:
        first, value = self.token, self._value("column")
        if not isinstance(value, int):
            self.fail(first, f"A column is a whole number, not {value}.")
        return value


def _defaults(kind: type[Kernel]) -> dict[str, Any]:
    return kind().get_params(deep=False)


def unknown_kernel(name: str) -> str:
    """Say that no kernel has this name, and which names there are."""
    close = get_close_matches(name.lower(), KERNELS, n=1)
    close = [OTHER_NAMES[name.lower()]] if name.lower() in OTHER_NAMES else close
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"Unknown kernel {name!r}.{hint} Known: {', '.join(KERNELS)}"


def to_text(kernel: Kernel) -> str:
    """Return the text that :func:`parse` reads as this kernel."""
    text = _text(kernel, SUM)
    parse(text)
    return text


def _text(kernel: Kernel, least: int) -> str:
    level, text = _form(kernel)
    return f"({text})" if level < least else text


def _form(kernel: Kernel) -> tuple[int, str]:
    match kernel:
        case base.Sum(left=left, right=right):
            return SUM, f"{_text(left, SUM)} + {_text(right, PRODUCT)}"
        case base.Product(left=left, right=right):
            return PRODUCT, f"{_text(left, PRODUCT)} * {_text(right, POWER)}"
        case base.Scaled(kernel=part, factor=factor):
            return PRODUCT, f"{_literal(factor)} * {_text(part, POWER)}"
        case base.Power(kernel=part, exponent=exponent):
            return POWER, f"{_text(part, POSTFIX)} ** {_literal(exponent)}"
        case base.Normalized(kernel=part):
            return POSTFIX, f"{_text(part, POSTFIX)}.normalized()"
        case base.OnColumns(kernel=part, columns=columns):
            return POSTFIX, f"{_text(part, POSTFIX)}@{_view_text(columns)}"
    kind = type(kernel)
    if kind not in NAMES:
        raise ValueError(
            f"{kind.__name__} has no text form, because its parameters are not only "
            "numbers. Use the kernel as an object."
        )
    default = _defaults(kind)
    values = kernel.get_params(deep=False).items()
    changed = [f"{name}={_literal(v)}" for name, v in values if v != default[name]]
    return POSTFIX, NAMES[kind] + (f"({', '.join(changed)})" if changed else "")


def _literal(value: Any) -> str:
    if not base.is_number(value):
        return str(value)
    return str(int(value)) if isinstance(value, Integral) else repr(float(value))


def _view_text(columns: Any) -> str:
    if isinstance(columns, str):
        return quoted(columns)
    if isinstance(columns, slice):
        ends = (columns.start, columns.stop, columns.step)
        text = ":".join("" if end is None else str(end) for end in ends)
        return f"[{text.removesuffix(':')}]"
    if is_named(columns):
        named = (quoted(c) if isinstance(c, str) else str(int(c)) for c in columns)
        return f"[{', '.join(named)}]"
    index = np.asarray(columns)
    index = np.flatnonzero(index) if index.dtype == bool else index
    return f"[{', '.join(map(str, index.tolist()))}]"
