"""What a study consists of: a protocol, tables, and steps that compute their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mercer.studies.data import Data
from mercer.studies.published import Late, Published, Source
from mercer.studies.results import Item

__all__ = ["ResultTable", "Run", "Step", "Study"]


@dataclass
class Run:
    """The images and settings that all steps of a run share.

    Attributes
    ----------
    data : Data
        The images.
    seed : int
        Seed of every split and of every random draw.
    quick : bool
        Whether to use very few images. Such a run shows that everything works; its
        numbers mean nothing.
    """

    data: Data
    seed: int = 0
    quick: bool = False
    _shared: dict[str, Any] = field(default_factory=dict, repr=False)

    def share(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a value that steps share; the first step that needs it makes it."""
        if name not in self._shared:
            self._shared[name] = make()
        return self._shared[name]

    def forget(self) -> None:
        """Drop all values that steps shared."""
        self._shared.clear()

    def pick(self, full: Any, sample: Any, quick: Any) -> Any:
        """Return the setting for full MNIST, for the sample, or for a quick run."""
        if self.quick:
            return quick
        return full if self.data.is_full else sample

    @property
    def kind(self) -> str:
        """Which of the three settings :meth:`pick` returns: its name."""
        return self.pick("full", "sample", "quick")


class Step(NamedTuple):
    """A part of a study that is run and stored by itself, and may fail by itself.

    ``work`` takes the :class:`Run` and the settings, and yields results.
    """

    name: str
    work: Callable[..., Iterable[Item]]
    settings: Mapping[str, Any] = {}


class ResultTable(NamedTuple):
    """A table of the page: its columns in order, and which of them are percentages.

    Percentages are compared with the published ones, except for those in
    ``shown_only``.
    """

    name: str
    title: str
    columns: Mapping[str, str]
    percentages: Sequence[str] = ()
    shown_only: Sequence[str] = ()
    note: str = ""


class Study(NamedTuple):
    """One published report, and the steps that compute its results again.

    ``published`` has the report's numbers by table, row and column; ``telling`` names
    the three figures that the page shows first.
    """

    name: str
    title: str
    about: str
    source: Source
    protocol: Sequence[str]
    errata: Sequence[str]
    tables: Sequence[ResultTable]
    published: Mapping[str, Mapping[str, Mapping[str, Published]]]
    telling: Sequence[str]
    late: Sequence[Late]
    steps: Callable[[Run], list[Step]]
