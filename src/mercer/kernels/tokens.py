"""The words and signs of a kernel's text form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

__all__ = ["KernelSyntaxError", "Token", "Tokens", "quoted"]

TOKEN = re.compile(
    r"(?P<number>(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<quoted>\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*')"
    r"|(?P<sign>\*\*|[-+*@().,:=\[\]])"
    r"|(?P<wrong>\S)"
)


class KernelSyntaxError(ValueError):
    """The text is not a kernel; the message shows where."""


class Token(NamedTuple):
    """One word or sign."""

    kind: str  #: "number", "name", "quoted", "sign" or "end"
    text: str
    at: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)

    @property
    def name(self) -> str:
        """The text without quotation marks; a mark inside is written twice."""
        if self.kind != "quoted":
            return self.text
        mark = self.text[0]
        return self.text[1:-1].replace(2 * mark, mark)


def quoted(name: str) -> str:
    """Return a name as it is written in a text: between marks unless it is a word."""
    if name.isidentifier():
        return name
    mark = '"' if "'" in name and '"' not in name else "'"
    return mark + name.replace(mark, 2 * mark) + mark


class Tokens:
    """The tokens of a text, to be taken one by one."""

    def __init__(self, text: str):
        self._text = text
        self._tokens = list(self._scan())
        self._next = 0

    def _scan(self) -> Iterator[Token]:
        for found in TOKEN.finditer(self._text):
            token = Token(str(found.lastgroup), found.group(), found.start())
            if token.text in ("'", '"'):
                self.fail(token, "This quotation mark is never closed.")
            if token.kind == "wrong":
                self.fail(token, f"Unexpected character {token}.")
            yield token
        yield Token("end", "", len(self._text.rstrip()))

    def fail(self, token: Token, what: str) -> NoReturn:
        """Raise an error that shows the text and points at a token."""
        caret = " " * token.at + "^"
        # In one line, so that the caret can stand below it.
        shown = re.sub(r"\s", " ", self._text)
        where = f"At column {token.at + 1} of the kernel:\n  {shown}\n  {caret}"
        raise KernelSyntaxError(f"{what} {where}")

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._next]

    def take(self) -> Token:
        """Return the next token, and go on."""
        token = self.token
        self._next += token.kind != "end"
        return token

    def accept(self, *signs: str) -> Token | None:
        """Take the next token if it is one of some signs."""
        return self.take() if self.token.text in signs else None

    def expect(self, sign: str, more: str = "", opened: Token | None = None) -> None:
        """Take a sign, which may close what another one opened; anything else fails."""
        if not self.accept(sign):
            if opened and self.token.kind == "end":
                self.fail(opened, f"This {opened} is never closed.")
            self.fail(self.token, f"Expected {sign!r}{more}, found {self.token}.")
