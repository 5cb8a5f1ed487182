"""What a study consists of: a protocol, tables, and steps that compute their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, NamedTuple, TypeVar

from studies.data import Data
from studies.manifest import Entry
from studies.published import Late, Published, Source
from studies.results import Item

__all__ = ["Beside", "ResultTable", "Run", "Step", "Study", "shared"]

Made = TypeVar("Made")


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
    #: what steps share, by the function that makes it and its arguments
    made: dict[Any, Any] = field(default_factory=dict, repr=False)

    def pick(self, full: Any, sample: Any, quick: Any) -> Any:
        """Return the setting for full MNIST, for the sample, or for a quick run."""
        if self.quick:
            return quick
        return full if self.data.is_full else sample

    @property
    def kind(self) -> str:
        """Which of the three settings :meth:`pick` returns: its name."""
        return self.pick("full", "sample", "quick")


def shared(make: Callable[..., Made]) -> Callable[..., Made]:
    """Decorate a function of a run, so that steps share what it makes."""

    @wraps(make)
    def look_up(run: Run, *args: Any) -> Made:
        key = make, args
        if key not in run.made:
            run.made[key] = make(run, *args)
        return run.made[key]

    return look_up


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


class Beside(NamedTuple):
    """A part of the protocol as the report did it, and as it is done here."""

    what: str
    theirs: str
    ours: str


class Study(NamedTuple):
    """One published report, and the steps that compute its results again.

    ``published`` has the report's numbers by table, row and column; ``telling`` names
    the three figures that the page shows first. ``manifest`` has every item that the
    report prints, and ``beside`` what is done in another way than there.
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
    manifest: Sequence[Entry] = ()
    beside: Sequence[Beside] = ()
