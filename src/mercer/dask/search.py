"""Searches whose candidates are evaluated on a Dask cluster.

All candidates with the same kernel setting, and all folds of them, go to one worker, so
that it computes their Gram matrix once.  Samples must fit the memory of a worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any, ClassVar

import joblib
from distributed import Client, KilledWorker, as_completed, get_worker

from mercer import selection
from mercer.dask.clients import HasClient
from mercer.engines.cpu.engine import CpuEngine
from mercer.runtime.public import public
from mercer.runtime.validation import stores_parameters_of
from mercer.selection.bar import Bar
from mercer.selection.candidates import (
    LINEAR_MACHINES,
    Request,
    group_of,
    last_of,
    make_candidate,
)
from mercer.selection.evaluation import Evaluation

__all__ = ["GridSearchCV", "RandomizedSearchCV"]

# How many times candidates are sent out again if their workers are lost.
MOST_RESTARTS = 3


class _OnCluster(HasClient):
    """What both searches share."""

    def _evaluation(
        self, request: Request, engine: CpuEngine, bar: Bar | None
    ) -> Evaluation:
        client = self._find_client()
        return _Evaluation(request, engine, bar, client, self.n_jobs)  # type: ignore[attr-defined]


class _Evaluation(Evaluation):
    """Evaluates candidates on workers, one group that shares at a time on each."""

    def __init__(
        self,
        request: Request,
        engine: CpuEngine,
        bar: Bar | None,
        client: Client,
        n_jobs: int | None,
    ):
        super().__init__(request, engine, bar)
        self._client = client
        self._n_jobs = n_jobs

    def run(self, candidates: Sequence[dict[str, Any]]) -> None:
        """Evaluate all candidates; on Ctrl-C ``results`` holds what was finished."""
        self._candidates = list(candidates)
        groups = self._settings()
        for _ in range(1 + MOST_RESTARTS):
            groups = self._send_out(groups)
            if not groups:
                return
        raise RuntimeError(
            f"Workers were lost {1 + MOST_RESTARTS} times during one search. Check "
            "their logs, for example for too little memory."
        )

    def _settings(self) -> list[list[int]]:
        """Return the candidates, those that share what is computed together."""
        groups: dict[Any, list[int]] = {}
        for c, params in enumerate(self._candidates):
            estimator, reason = make_candidate(self.request, params)
            key: Any = c
            if reason is None:
                key = group_of(estimator, params), joblib.hash(_setting(estimator))
            groups.setdefault(key, []).append(c)
        return list(groups.values())

    def _send_out(self, groups: list[list[int]]) -> list[list[int]]:
        """Let workers evaluate groups; return those whose workers were lost."""
        shared = self._client.scatter(self.request, hash=False)
        tasks = {
            self._client.submit(
                _evaluate,
                shared,
                [self._candidates[c] for c in group],
                self._n_jobs,
                pure=False,
            ): group
            for group in groups
        }
        lost = []
        try:
            for future in as_completed(tasks):
                try:
                    found = future.result()
                except (CancelledError, KilledWorker):
                    lost.append(tasks[future])
                    continue
                self._take_over(tasks[future], *found)
                future.release()
        finally:
            self._client.cancel([shared, *tasks], force=True)
        return lost

    def _take_over(
        self, group: list[int], results: dict, plain: dict, n_grams: int
    ) -> None:
        self.n_grams += n_grams
        for reason, fits in plain.items():
            known = self.plain.setdefault(reason, [])
            known += [(group[c], split) for c, split in fits]
        for (c, split), result in results.items():
            self._note(group[c], split, result)


def _setting(estimator: Any) -> dict[str, Any]:
    """Return the parameters that are equal for candidates that can share.

    Kernel machines share the values of a kernel, and linear machines share passes over
    the samples if they differ in C only.
    """
    machine = last_of(estimator)
    params = machine.get_params(deep=False)
    if isinstance(machine, LINEAR_MACHINES):
        return {name: value for name, value in params.items() if name != "C"}
    return {name: params[name] for name in ("kernel", "degree", "gamma", "coef0")}


def _evaluate(
    request: Request, candidates: list[dict[str, Any]], n_jobs: int | None
) -> tuple[dict, dict, int]:
    """Evaluate candidates on a worker."""
    n_jobs = get_worker().state.nthreads if n_jobs is None else n_jobs
    with CpuEngine(n_jobs) as engine:
        evaluation = Evaluation(request, engine)
        evaluation.run(candidates)
    return evaluation.results, evaluation.plain, evaluation.n_grams


@public("mercer.dask")
class GridSearchCV(_OnCluster, selection.GridSearchCV):
    """A :class:`mercer.selection.GridSearchCV` on the workers of a Dask cluster.

    Candidates with the same kernel setting go to one worker, with all their folds, and
    share kernel values there. Samples are arrays, which every worker gets.

    Parameters
    ----------
    estimator, param_grid, scoring : as in mercer.selection.GridSearchCV
    n_jobs : int, default=None
        Number of threads of each worker; None means as many as the Dask worker has.
    refit, cv, verbose, pre_dispatch : as in mercer.selection.GridSearchCV
    error_score, return_train_score, cache_size : as in mercer.selection.GridSearchCV
    client : dask.distributed.Client, default=None
        The client of the cluster; None means the current one.

    See Also
    --------
    mercer.selection.GridSearchCV : the same on one computer.
    """

    _parameter_constraints: ClassVar[dict] = {
        **selection.GridSearchCV._parameter_constraints,
        "client": "no_validation",
    }

    @stores_parameters_of(selection.GridSearchCV)
    def __init__(self, *, client: Any = None): ...


@public("mercer.dask")
class RandomizedSearchCV(_OnCluster, selection.RandomizedSearchCV):
    """A :class:`mercer.selection.RandomizedSearchCV` on a Dask cluster.

    Parameters
    ----------
    estimator, param_distributions : as in mercer.selection.RandomizedSearchCV
    n_iter, scoring : as in mercer.selection.RandomizedSearchCV
    n_jobs : int, default=None
        Number of threads of each worker; None means as many as the Dask worker has.
    refit, cv, verbose, pre_dispatch : as in mercer.selection.RandomizedSearchCV
    random_state : as in mercer.selection.RandomizedSearchCV
    error_score, return_train_score : as in mercer.selection.RandomizedSearchCV
    cache_size : as in mercer.selection.RandomizedSearchCV
    client : dask.distributed.Client, default=None
        The client of the cluster; None means the current one.

    See Also
    --------
    mercer.selection.RandomizedSearchCV : the same on one computer.
    """

    _parameter_constraints: ClassVar[dict] = {
        **selection.RandomizedSearchCV._parameter_constraints,
        "client": "no_validation",
    }

    @stores_parameters_of(selection.RandomizedSearchCV)
    def __init__(self, *, client: Any = None): ...
