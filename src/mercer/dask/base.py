"""The one way of fitting on a Dask cluster that its machines share.

Chunks are summarised where they are; from the summaries the driver states the problems,
and workers and driver solve them together (:mod:`mercer.engines.cluster`).
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.core.problem import DualProblem, Solution
from mercer.dask.clients import HasClient
from mercer.dask.collections import as_rows, delayed_chunks, is_frame, to_chunks
from mercer.dask.prediction import predict
from mercer.dask.statements import ClassStatement, SingleStatement
from mercer.engines.cluster.actors import ActorCarrier
from mercer.engines.cluster.chunks import ColumnSummary, Summary, summarise
from mercer.engines.cluster.driver import Driver, Found, plan_working_sets
from mercer.engines.cluster.messages import Setup
from mercer.engines.cpu.certificates import are_convex, kernel_values
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.solve import MOST_STEPS
from mercer.engines.engine import Certified, Plan, TaskSpec, engine_of
from mercer.kernels.base import Definiteness, Kernel
from mercer.machines.base.classifier import ClassifierPlan
from mercer.machines.base.machine import Validated
from mercer.machines.svr import SVR
from mercer.multiclass.calibration import fit_sigmoid
from mercer.multiclass.codes import make_code
from mercer.runtime.progress import FitProgress
from mercer.runtime.scikit_learn import Interval, StrOptions
from mercer.runtime.validation import QUIET, check_finite, fit_method

__all__ = ["OnCluster", "by_chunks", "statement_of"]

# Parameters that the plain classes do not have.
OWN_PARAMETERS = ("client", "working_set", "max_restores")
# Fitted attributes that the plain classes do not have.
OWN_ATTRIBUTES = ("n_rounds_", "n_restores_", "bytes_sent_", "seconds_")


class OnCluster(HasClient):
    """What all machines on a cluster share."""

    _own_constraints: ClassVar[dict] = {
        "client": "no_validation",
        "working_set": [
            StrOptions({"auto"}),
            Interval(Integral, 4, None, closed="left"),
        ],
        "max_restores": [Interval(Integral, 0, None, closed="left")],
    }
    #: the class of the same machine for samples in memory
    _plain: ClassVar[Any]

    working_set: int | str
    max_restores: int
    support_: Any

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the machine.

        Parameters
        ----------
        X : dask array or data frame of shape (n_samples, n_features)
            The samples, in chunks of rows; chunks may be dense or CSR.
        y : dask array, series or array of shape (n_samples,)
            The classes, or the values.
        sample_weight : dask array, series or array of shape (n_samples,), default=None
            Factors of C, one for each sample.

        Returns
        -------
        self
        """
        return self._fit_on_cluster(X, y, sample_weight)

    def to_local(self) -> Any:
        """Return the plain machine, fitted, which needs no cluster.

        Returns
        -------
        SVC, SVR or OneClassSVM
        """
        check_is_fitted(self)
        local = self._unfitted()
        local.__dict__.update(
            {
                name: value
                for name, value in vars(self).items()
                if name not in (*OWN_PARAMETERS, *OWN_ATTRIBUTES, "_skl_callbacks")
            }
        )
        return local

    def _unfitted(self) -> Any:
        """Return the plain machine with the same parameters."""
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        return self._plain(
            **{k: v for k, v in given.items() if k not in OWN_PARAMETERS}
        )

    def _check_for_cluster(self, machine: Any) -> None:
        """Refuse what a cluster cannot compute."""
        name = type(self).__name__
        if machine._is_precomputed() or machine._is_function():
            raise ValueError(
                f"{name} computes kernel values from samples, chunk by chunk: "
                f"kernel={machine.kernel!r} needs all samples at once. Use a kernel "
                "of mercer.kernels; kernels.Custom takes a function of two matrices."
            )
        if machine.solver not in ("auto", "decompose"):
            raise ValueError(
                f"{name} solves working sets: solver must be 'auto' or 'decompose', "
                f"got {machine.solver!r}."
            )
        if is_classifier(machine) and machine._decoding() == "barycentre":
            raise ValueError(
                f"{name} does not know decode='barycentre', which needs the means of "
                "all classes. Use decode='hamming'."
            )

    @QUIET
    def _fit_on_cluster(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Fit: load chunks, state problems, solve, keep."""
        client, machine = self._find_client(), self._unfitted()
        machine._check_choices()
        self._check_for_cluster(machine)
        name = f"mercer-{type(self).__name__}-{uuid4().hex[:8]}"
        data = to_chunks(X, y, sample_weight)
        dtype = _float_type(as_rows(X).dtype)
        carrier, futures = None, []
        try:
            with client.as_current():
                chunks = client.compute(delayed_chunks(machine, data, dtype, name))
                futures = list(chunks)
                futures += client.map(
                    summarise,
                    chunks,
                    has_classes=is_classifier(machine),
                    key=f"{name}-summary",
                )
                summaries = client.gather(futures[len(chunks) :])
                used = [k for k, one in enumerate(summaries) if one.n_samples]
                summaries = [summaries[k] for k in used]
                _check_chunks(summaries)
                sizes = [one.n_samples for one in summaries]
                carrier = ActorCarrier(client, [chunks[k] for k in used], sizes, name)
                return self._solve_on(carrier, machine, summaries, data.names, X, y)
        finally:
            if carrier is not None:
                carrier.close()
            # An error keeps what it has seen alive, so that futures are not enough.
            if futures and client.status == "running":
                client.cancel(futures, force=True)

    def _solve_on(
        self,
        carrier: ActorCarrier,
        machine: Any,
        summaries: Sequence[Summary],
        names: Any,
        X: Any,
        y: Any,
    ) -> Any:
        columns = ColumnSummary.of(summaries)
        learnt = {"n_features_in_": columns.shape[1], "shape_fit_": columns.shape}
        if names is not None:
            learnt["feature_names_in_"] = names
        valid = Validated(None, None, learnt, None)
        kernel = machine._make_kernel(valid).bind(columns)
        statement = statement_of(machine, summaries)
        sets = plan_working_sets(
            self.working_set,
            columns.shape[1],
            statement.n_tasks,
        )
        setup = Setup(
            kernel,
            statement,
            np.cumsum([0] + [one.n_samples for one in summaries]).tolist(),
            machine.tol,
            sets.size * sets.n_active,
            machine.cache_size,
            machine.n_jobs,
        )
        max_iter = machine.max_iter
        if max_iter < 0:
            max_iter = max(MOST_STEPS, 100 * statement.per_sample * columns.shape[0])
        with engine_of(n_jobs=machine.n_jobs) as engine:
            progress = None
            if machine.verbose or getattr(self, "_skl_callbacks", None):
                progress = FitProgress(self, X, y, machine.verbose, engine.stop)
            driver = Driver(
                carrier,
                setup,
                sets,
                engine,
                max_iter,
                self.max_restores,
                progress,
            )
            found = driver.solve()
            sigmoids = _calibrated(driver, statement, found)
        numbers = [[one.objective, one.kkt_gap] for one in found]
        check_finite("dual coefficients or intercepts", numbers)
        if progress is not None:
            progress.finish(found)
        stopped_early = progress is not None and progress.stopped_early
        self._keep_found(driver, statement, kernel, learnt, found, stopped_early)
        if sigmoids:
            self._keep_sigmoids(sigmoids)  # type: ignore[attr-defined]
        return self

    def _keep_found(
        self,
        driver: Driver,
        statement: Any,
        kernel: Kernel,
        learnt: dict[str, Any],
        found: Sequence[Found],
        stopped_early: bool,
    ) -> None:
        """Keep the machines, in terms of a plan of the support vectors alone."""
        per_sample = statement.per_sample
        machines = found[:: statement.per_machine]
        ids = np.unique(
            np.concatenate([one.variables // per_sample for one in machines])
        )
        vectors, facts = driver.known.rows(ids).X, driver.known.facts(ids)
        order, starts = np.arange(len(ids)), [0, len(ids)]
        if statement.by_class:
            order = np.argsort(facts.target, kind="stable")
            every = np.arange(len(statement.classes) + 1)
            starts = np.searchsorted(facts.target[order], every).tolist()
        specs, solutions = [], []
        for t, one in enumerate(found):
            blocks = [0]
            if statement.by_class:
                column = statement.code[:, t // statement.per_machine]
                blocks = np.flatnonzero(column).tolist()
            rows = np.concatenate([order[starts[b] : starts[b + 1]] for b in blocks])
            problem, beta = _on_rows(ids[rows], one, per_sample)
            specs.append(TaskSpec(problem, tuple(blocks)))
            solutions.append(Solution(beta, np.empty(0), *one[2:]))
        common: dict[str, Any] = dict(
            X=vectors,
            samples=vectors,
            y=None,
            kernels=(kernel,),
            specs=specs,
            order=order,
            starts=starts,
            learnt=learnt,
            per_machine=statement.per_machine,
        )
        plan: Plan
        if isinstance(statement, ClassStatement):
            plan = ClassifierPlan(
                classes=statement.classes,
                class_weight=statement.class_weight,
                targets=facts.target.astype(np.intp),
                code=statement.code,
                **common,
            )
        else:
            plan = Plan(**common)
        is_convex = _is_convex(kernel, vectors)
        if is_convex is False:
            solutions = [s._replace(dual_gap=np.inf) for s in solutions]
        self._keep(plan, Certified(solutions, is_convex, stopped_early))  # type: ignore[attr-defined]
        is_short = learnt["shape_fit_"][0] < 2**31
        self.support_ = ids[self.support_].astype(np.int32 if is_short else np.int64)
        self.n_rounds_ = driver.n_rounds
        self.n_restores_ = driver.n_restores
        self.bytes_sent_ = driver.bytes_sent
        self.seconds_ = driver.seconds


def by_chunks(method: str, summary: str) -> Any:
    """Return a method that applies one of the plain machine to chunks of samples."""

    def apply(self: OnCluster, X: Any) -> Any:
        local = self.to_local()
        if is_frame(X) or hasattr(X, "__dask_graph__"):
            return predict(local, X, method)
        return getattr(local, method)(X)

    apply.__name__ = method
    apply.__doc__ = f"""{summary}

    Parameters
    ----------
    X : dask array or data frame, array or CSR matrix

    Returns
    -------
    dask array (nothing is computed yet), or ndarray if X is not a Dask collection
    """
    return apply


def _on_rows(
    samples: NDArray, found: Found, per_sample: int
) -> tuple[DualProblem, NDArray]:
    """Return where the variables of some samples are, and their coefficients."""
    m = len(samples)
    order = np.argsort(samples)
    beta = np.zeros(m * per_sample)
    is_here = np.isin(found.variables // per_sample, samples)
    own, kind = np.divmod(found.variables[is_here], per_sample)
    at = order[np.searchsorted(samples, own, sorter=order)]
    beta[kind * m + at] = found.beta[is_here]
    nothing = np.zeros(len(beta))
    row = np.tile(np.arange(m), per_sample)
    group = np.zeros(len(beta), dtype=np.intp)
    return DualProblem(nothing, nothing, nothing, nothing, row, group), beta


def _float_type(dtype: Any) -> np.dtype:
    """Return the type in which samples are kept: single precision stays single."""
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def _check_chunks(summaries: Sequence[Summary]) -> None:
    """Refuse chunks that do not fit together."""
    if not summaries:
        raise ValueError("X has no samples: all of its chunks are empty.")
    widths = {one.n_features for one in summaries}
    if len(widths) > 1:
        raise ValueError(
            f"Chunks of X have different numbers of columns: {sorted(widths)}."
        )
    if len({one.is_sparse for one in summaries}) > 1:
        raise ValueError("Some chunks of X are sparse and others are dense.")
    if not any(one.any_weight for one in summaries):
        raise ValueError("Invalid input - all samples have zero or negative weights.")


def statement_of(machine: Any, summaries: Sequence[Summary]) -> Any:
    """State the problems of a machine."""
    if not is_classifier(machine):
        return SingleStatement(machine, 2 if isinstance(machine, SVR) else 1)
    labels = np.concatenate([one.labels for one in summaries])
    counts = np.concatenate([one.counts for one in summaries])
    classes, targets, class_weight = machine._classes(labels, counts)
    has_weight = np.concatenate([one.has_weight for one in summaries])
    if len(np.unique(targets[has_weight & (class_weight[targets] > 0)])) < 2:
        raise ValueError(
            f"{machine._one_side_left} - all samples with positive weights belong to "
            "the same class."
        )
    seed = check_random_state(machine.random_state).randint(2**31 - 1)
    code = make_code(machine.multiclass, machine.code, len(classes), seed)
    factors = machine._positive_weights(len(classes), code.shape[1])
    folds_seed = seed if machine._is_calibrated() else None
    return ClassStatement(machine, classes, class_weight, code, factors, folds_seed)


def _calibrated(driver: Driver, statement: Any, found: Sequence[Found]) -> list[Any]:
    """Fit the sigmoids of all machines, one machine at a time."""
    step = statement.per_machine
    sigmoids = []
    for t in range(0, len(found) if step > 1 else 0, step):
        biases = np.array([one.bias for one in found[t + 1 : t + step]])
        decisions, is_positive, own, given = driver.left_out(t // step, biases)
        counts = own > 0
        # As in a plain fit, only the ratio of the sides' weights matters.
        weight = own[counts] * (given[counts].sum() / own.sum())
        sigmoids.append(fit_sigmoid(decisions[counts], is_positive[counts], weight))
    return sigmoids


def _is_convex(kernel: Kernel, vectors: Any) -> bool | None:
    """Tell whether the problems are convex, as far as support vectors can show it."""
    if kernel.definiteness >= Definiteness.CONDITIONAL:
        return True
    m = vectors.shape[0]
    if m < 2:
        return None
    every = np.arange(m)
    problem = DualProblem(
        np.zeros(m), np.zeros(m), np.ones(m), np.zeros(m), every, np.zeros(m, np.intp)
    )
    values = kernel_values(kernel, Operand(vectors))
    (verdict,) = are_convex(kernel, values, [(problem, every)])
    return False if verdict is False else None
