"""The machine that options ask for, and what can be said against it alone.

This module imports no machine, so that errors in options are found at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.cli.failures import UsageFailure
from mercer.runtime.devices import check_device

__all__ = ["NOVELTY", "Choices", "check_alone", "option_of"]

#: Machines that learn what normal rows look like.
NOVELTY = ("oneclass", "svdd")


@dataclass(frozen=True)
class Choices:
    """The machine that is wanted; parameters that are None keep their defaults."""

    machine: str
    kernels: tuple[str, ...]  #: none is the machine's default
    parameters: dict[str, Any]
    scale: str = "none"
    features: str = "pixels"
    cell_size: int | None = None
    n_jobs: int | None = None
    seed: int = 0
    searched: tuple[str, ...] = ()  #: parameters that --search chooses
    missing: str = "refuse"
    scale_target: bool = False  #: whether C and epsilon are in units of the target


def option_of(parameter: str) -> str:
    """Return the option that sets a parameter of a machine."""
    return "--norm" if parameter == "p" else f"--{parameter.replace('_', '-')}"


def check_alone(choices: Choices) -> None:
    """Refuse choices that exclude each other, whatever the machine."""
    if choices.n_jobs == 0:
        raise UsageFailure("--n-jobs must not be 0. Use -1 for all cores.")
    if choices.searched and choices.machine in NOVELTY:
        raise UsageFailure(
            f"--search compares predictions with known answers, which --machine "
            f"{choices.machine} does not use. Leave --search out."
        )
    try:
        check_device(choices.parameters.get("device") or "cpu")
    except ValueError as error:
        raise UsageFailure(f"--device: {error}") from error
    for name in choices.searched:
        if choices.parameters.get(name) is not None:
            raise UsageFailure(
                f"--{name} and --search {name} exclude each other. Leave one of them "
                "out."
            )
