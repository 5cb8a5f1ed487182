"""Run the steps of studies, store their outcomes, and write the page."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from mercer.runtime.writing import write_file
from studies.data import Data, data_folder
from studies.report.computer import describe_computer
from studies.report.costs import expected_seconds
from studies.report.fingerprint import facts_of
from studies.report.outcomes import Outcome, Report, StudyReport
from studies.report.page import render
from studies.report.stored_results import StoredResults, step_key
from studies.report.watch import Watcher, make_watcher
from studies.results import Item, Unavailable
from studies.study import Run, Step, Study

__all__ = ["run_step", "run_studies"]


def run_studies(
    studies: Sequence[Study],
    *,
    data: str | Path | None,
    out: Path,
    quick: bool,
    seed: int,
    progress: Any,
    sample: bool,
    fresh: bool,
) -> Report:
    """Run studies and write the page; see :func:`studies.reproduce`."""
    watcher = make_watcher(progress)
    started = time.perf_counter()
    with data_folder(data):
        run = Run(Data(sample=sample, seed=seed), seed, quick)
        steps = [study.steps(run) for study in studies]
        n_steps = sum(map(len, steps))
        reports: list[StudyReport] = []

        def write() -> Report:
            report = Report(
                reports,
                run.data.describe(),
                run.data.is_full,
                quick,
                seed,
                time.perf_counter() - started,
                describe_computer(),
                out / "index.html",
                n_steps - sum(len(r.outcomes) for r in reports),
            )
            write_file(report.page, render(report), makes_folder=True)
            return report

        costs = {
            (study.name, step.name): expected_seconds(study.name, step.name, run.kind)
            for study, own in zip(studies, steps, strict=True)
            for step in own
        }
        with watcher.watch(costs):
            for study, own in zip(studies, steps, strict=True):
                outcomes: list[Outcome] = []
                reports.append(StudyReport(study, outcomes))
                try:
                    _run_study(study, own, run, out, watcher, fresh, outcomes)
                except BaseException:
                    # The page shows what an interrupted run has computed so far.
                    write()
                    raise
                run.made.clear()
        return write()


def _run_study(
    study: Study,
    steps: Sequence[Step],
    run: Run,
    out: Path,
    watcher: Watcher,
    fresh: bool,
    outcomes: list[Outcome],
) -> None:
    """Run the steps that are not stored, and append all outcomes to the list."""
    stored = StoredResults(out / "results", study.name)
    for step in steps:
        key = step_key(study.name, step.name, step.settings, facts_of(step, run))
        known = None if fresh else stored.get(key)
        if known is not None and known.status == "done":
            watcher.skip(study.name, step.name)
            outcomes.append(known._replace(is_reused=True))
            continue
        watcher.begin(study.name, step.name)
        outcome = run_step(step, run)
        stored.put(key, outcome)
        outcomes.append(outcome)
        watcher.end(study.name, outcome)


def run_step(step: Step, run: Run) -> Outcome:
    """Run a step; a failure is an outcome, too."""
    started, worked = time.perf_counter(), time.process_time()
    items: list[Item] = []
    status, message = "done", ""
    try:
        with warnings.catch_warnings():
            # Some studies stop solvers early on purpose; the page shows the gap.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "Kernel values could not be shared")
            items.extend(step.work(run, **step.settings))
    except Unavailable as reason:
        status, message = "unavailable", str(reason)
    except Exception as error:  # any failure is reported, and the other steps go on
        status, message = "failed", f"{type(error).__name__}: {error}"
    return Outcome(
        step.name,
        status,
        time.perf_counter() - started,
        items,
        message,
        processor_seconds=time.process_time() - worked,
    )
