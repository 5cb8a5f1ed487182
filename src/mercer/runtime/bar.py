"""One progress bar: drawn on a terminal where rich is installed, else lines of text."""

from __future__ import annotations

import threading
from contextvars import ContextVar, Token
from typing import Any, Self

from mercer.runtime.progress import Lines

__all__ = ["Bar"]

# What is being drawn. A bar inside a bar, such as that of a search inside a command,
# becomes a second row of the same drawing: two drawings would overwrite each other.
_DRAWN: ContextVar[Any] = ContextVar("mercer_drawn_bar", default=None)


def console() -> Any:
    """Return rich's console of the error stream, or None without rich."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True)


class Bar:
    """Shows how far a piece of work is, on the error stream.

    Parameters
    ----------
    name : str
        What is going on.
    total : int, default=None
        The number of units of work; None if there is nothing to count.
    unit : str, default=""
        What is counted, in the plural.
    draws : bool, default=True
        Whether a bar is drawn on a terminal.
    writes : bool, default=True
        Whether lines of text are written to the log where no bar is drawn. A bar that
        replaces such lines stays on the terminal, and other bars vanish at the end.
    """

    def __init__(
        self,
        name: str = "",
        total: int | None = None,
        unit: str = "",
        *,
        draws: bool = True,
        writes: bool = True,
    ):
        self._name = name
        self._total = total
        self._unit = unit
        self._draws = draws
        self._writes = writes
        self._done = 0.0
        self._note = ""
        self._lock = threading.RLock()
        self._drawing: Any = None
        self._row: Any = None
        self._is_outermost = False
        self._token: Token | None = None

    @property
    def is_drawn(self) -> bool:
        """Whether there is a drawing on a terminal."""
        return self._drawing is not None

    @property
    def done(self) -> int:
        """The number of units that are done."""
        return int(self._done + 1e-6)  # parts of units add up with rounding errors

    def __enter__(self) -> Self:
        if self._draws:
            self._begin_drawing()
        self._lines = Lines(self._name, self._writes and not self.is_drawn)
        return self

    def _begin_drawing(self) -> None:
        self._drawing = _DRAWN.get()
        if self._drawing is None:
            self._drawing = _make_drawing(vanishes=not self._writes)
            if self._drawing is None:
                return
            self._is_outermost = True
            self._token = _DRAWN.set(self._drawing)
            self._drawing.start()
        self._add_row()

    def _add_row(self) -> None:
        count = self._count() if self._total is not None else ""
        self._row = self._drawing.add_task(
            self._name, total=self._total, count=count, note=""
        )

    def __exit__(self, *_: object) -> None:
        if self._is_outermost:
            assert self._token is not None
            _DRAWN.reset(self._token)
            self._drawing.stop()
        elif self.is_drawn:
            self._drawing.remove_task(self._row)
        elif self._total is not None:
            self._write()

    def begin(self, name: str) -> None:
        """Begin another piece of work, which has nothing to count."""
        with self._lock:
            self._name, self._total = name, None
            if self.is_drawn:
                self._drawing.remove_task(self._row)
                self._add_row()

    def show(self, part: float, note: str) -> None:
        """Show which part of work without a count is done, from 0 to 1, and a note."""
        if self.is_drawn:
            self._drawing.update(self._row, total=1.0, completed=part, note=note)

    def advance(self, amount: float, line: str = "") -> None:
        """Count work that is done; ``line`` says what it was, for lines of text."""
        with self._lock:
            self._done += amount
            if line and self.is_drawn:
                self._drawing.console.print(
                    line, highlight=False, markup=False, soft_wrap=True
                )
            elif line:
                self._lines.write("%s", line)
            self._update(is_said=bool(line))

    def note(self, text: str) -> None:
        """Show a text beside the count from now on."""
        with self._lock:
            self._note = text
            self._update(is_said=not text)

    def _update(self, is_said: bool = False) -> None:
        if self.is_drawn:
            self._drawing.update(
                self._row, completed=self._done, count=self._count(), note=self._note
            )
        elif self._lines.is_due() and not is_said:
            self._write()

    def _count(self) -> str:
        return f"{self.done} of {self._total} {self._unit}"

    def _write(self) -> None:
        note = f", {self._note}" if self._note else ""
        self._lines.write("%.1f s: %s%s", self._lines.seconds, self._count(), note)


def _make_drawing(vanishes: bool) -> Any:
    """Return a drawing of rich, or None where nothing can be drawn."""
    found = console()
    if found is None or not found.is_terminal:
        return None
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=found,
        transient=vanishes,
    )
