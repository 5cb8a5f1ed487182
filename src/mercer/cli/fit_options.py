"""The options of ``mercer fit`` that no other command has."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mercer.cli.options import READ

__all__: list[str] = []

MODEL, SOLVE, CHECK = "The machine", "How it is solved", "How good it is"


class MachineChoice(StrEnum):
    """The machines, and auto."""

    auto = "auto"
    svc = "svc"
    nusvc = "nusvc"
    svr = "svr"
    nusvr = "nusvr"
    oneclass = "oneclass"
    svdd = "svdd"


def _option(panel: str, text: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, rich_help_panel=panel, help=text, metavar=metavar)


Out = Annotated[Path, typer.Option("--out", "-o", help="The model file to write.")]
Categories = Annotated[
    Literal["refuse", "one-hot"],
    _option(READ, "Text columns: an error, or a 0/1 column for each value."),
]
Features = Annotated[
    Literal["pixels", "hog"], _option(READ, "What images are described by.")
]
CellSize = Annotated[
    int | None, _option(READ, "Pixels along a cell of HOG; 8 unless said.")
]
Scale = Annotated[
    Literal["none", "standard", "minmax"],
    _option(READ, "How columns are scaled; the model remembers it."),
]
Machine = Annotated[
    MachineChoice, _option(MODEL, "auto: svc for classes, svr for other numbers.")
]
KernelText = Annotated[
    str, _option(MODEL, "Name or text of the kernel: 'rbf + 0.5 * linear@age'.")
]
C = Annotated[float | None, _option(MODEL, "Price of a violation.", "--C")]
Gamma = Annotated[
    str | None, _option(MODEL, "scale, auto or a number, for a kernel by name.")
]
Degree = Annotated[int | None, _option(MODEL, "Of the kernel poly.")]
Coef0 = Annotated[float | None, _option(MODEL, "Of the kernels poly and sigmoid.")]
Nu = Annotated[float | None, _option(MODEL, "Of nusvc, nusvr and oneclass.")]
Epsilon = Annotated[float | None, _option(MODEL, "Of svr.")]
Multiclass = Annotated[
    Literal["ovo", "ovr", "ecoc"] | None,
    _option(MODEL, "Several classes: pairs, one against the rest, or codes."),
]
Probability = Annotated[bool, _option(MODEL, "Probabilities, too.", "--probability")]
ClassWeight = Annotated[
    Literal["balanced"] | None, _option(MODEL, "Rare classes weigh more.")
]
Normal = Annotated[
    str | None,
    _option(MODEL, "For oneclass and svdd: fit the rows of this class only."),
]
Tol = Annotated[float | None, _option(SOLVE, "Largest KKT gap that is left.")]
MaxIter = Annotated[int | None, _option(SOLVE, "Limit on the steps.")]
CacheSize = Annotated[float | None, _option(SOLVE, "Megabytes for kernel values.")]
NJobs = Annotated[int | None, _option(SOLVE, "Threads.")]
Seed = Annotated[
    int, typer.Option("--seed", min=0, rich_help_panel=SOLVE, help="Of folds, splits.")
]
Folds = Annotated[
    int | None, _option(CHECK, "Cross-validate with N folds.", metavar="N")
]
TestSize = Annotated[
    float | None, _option(CHECK, "Hold out this share, or number, and score it.")
]
Strict = Annotated[
    bool, _option(CHECK, "Write nothing, exit 1, if not converged.", "--strict")
]
