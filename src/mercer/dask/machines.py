"""Machines whose samples are spread over a Dask cluster."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
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
from mercer.engines.engine import engine_of
from mercer.engines.plan import Certified, Plan, TaskSpec
from mercer.kernels.base import Definiteness, Kernel
from mercer.machines.base.classifier import ClassifierPlan, wants_probability
from mercer.machines.base.machine import Validated
from mercer.machines.one_class import OneClassSVM
from mercer.machines.svc import SVC
from mercer.machines.svr import SVR
from mercer.multiclass.calibration import fit_sigmoid
from mercer.multiclass.codes import make_code
from mercer.runtime.fitting import fit_method
from mercer.runtime.progress import FitProgress
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, StrOptions
from mercer.runtime.validation import QUIET, check_finite

__all__ = ["DaskOneClassSVM", "DaskSVC", "DaskSVR"]

# Parameters that the plain classes do not have.
OWN_PARAMETERS = ("client", "working_set", "max_restores")
# Fitted attributes that the plain classes do not have.
OWN_ATTRIBUTES = ("n_rounds_", "n_restores_", "bytes_sent_", "seconds_")


class _OnCluster(HasClient):
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

    def _lazily(self, X: Any, method: str) -> Any:
        """Apply a method of the plain machine to a Dask collection or to an array."""
        check_is_fitted(self)
        local = self.to_local()
        if is_frame(X) or hasattr(X, "__dask_graph__"):
            return predict(local, X, method)
        return getattr(local, method)(X)

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
        statement = _statement(machine, summaries)
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
            self.probA_ = np.array([s.A for s in sigmoids])
            self.probB_ = np.array([s.B for s in sigmoids])
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


def _statement(machine: Any, summaries: Sequence[Summary]) -> Any:
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


@public("mercer.dask")
class DaskSVC(_OnCluster, SVC):
    """C-support vector classification of samples on a Dask cluster.

    It finds the machine that :class:`~mercer.SVC` would find with all samples in one
    memory, and certifies it in the same way. Workers keep their samples, and a driver
    (the process that calls ``fit``) solves working sets; see :doc:`/cluster`.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of margin violations; infinity for a hard margin.
    kernel : str or Kernel, default="rbf"
        A kernel of :mod:`mercer.kernels`, an expression or a name, as in
        :class:`~mercer.SVC`. A precomputed kernel is not possible.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "rbf", "poly" and "sigmoid".
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    multiclass : {"ovo", "ovr", "ecoc"}, default="ovo"
        One machine for each pair of classes, for each class against the rest, or for
        each column of an error-correcting output code.
    decode : str, default="auto"
        How decision values become a class, as in :class:`~mercer.SVC`, but for
        "barycentre".
    code : str or array of shape (n_classes, n_tasks), default=None
        The code for ECOC.
    probability : bool, default=False
        Whether to enable ``predict_proba``. Each machine then needs five more problems.
    class_weight : dict or "balanced", default=None
        Factors of C, one for each class.
    positive_weight : float or array of shape (n_classes,), default=1.0
        Factor of C on the positive side, for one-vs-rest only.
    solver : {"auto", "decompose"}, default="auto"
        Both mean working sets.
    tol : float, default=1e-3
        Largest violation of the optimality conditions at the end.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values on each worker; "auto" is at most a quarter of the
        worker's memory.
    max_iter : int, default=-1
        Largest number of steps for each machine; -1 means ten million, or a hundred for
        each variable if that is more.
    shrinking : bool, default=True
        Has no effect here: a working set is small.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether ``decision_function`` has a column per class or per machine.
    break_ties : bool, default=False
        Whether ``predict`` breaks ties between votes by the decision values.
    n_jobs : int, default=None
        Number of threads of each worker and of the driver; None means as many as the
        Dask worker has.
    verbose : bool or int, default=False
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds of ``probability`` and of random codes.
    client : dask.distributed.Client, default=None
        The client of the cluster; None means the current one.
    working_set : int or "auto", default="auto"
        Number of variables that the driver solves for at a time. "auto" is 2048, and
        4096 for 256 features or more. Several machines share twice as many.
    max_restores : int, default=3
        How many times lost workers are replaced before ``fit`` raises an error.

    Attributes
    ----------
    n_rounds_ : int
        Number of working sets that were solved: of exchanges with the workers.
    n_restores_ : int
        How many times lost workers were replaced.
    bytes_sent_ : int
        Bytes of samples and numbers that went to workers and came back.
    seconds_ : dict
        Seconds that rounds took: "workers" is the time of the slowest worker of each
        round, "messages" what exchanges took besides.
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,)
        Rows of the support vectors in X, class by class.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV) or (n_tasks, n_SV)
    intercept_ : ndarray of shape (n_tasks,)
    objective_, dual_gap_, kkt_gap_ : ndarray of shape (n_tasks,)
        The certificate of each machine, in double precision, as in
        :class:`~mercer.SVC`.
    n_iter_ : ndarray of shape (n_tasks,)
    converged_ : bool
        Whether every machine is certified to ``tol``, rounding errors included.
    probA_, probB_ : ndarray of shape (n_tasks,)
        Parameters of the machines' sigmoids, with ``probability=True``.

    See Also
    --------
    mercer.SVC : the same on one computer, and faster there.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from mercer.dask import DaskSVC
    >>> client = Client(processes=False, dashboard_address=None)
    >>> X = da.random.default_rng(0).normal(size=(400, 2), chunks=(100, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> model = DaskSVC(C=10.0).fit(X, y)
    >>> model.converged_
    True
    >>> float((model.predict(X) == y).mean().compute()) > 0.95
    True
    >>> client.close()
    """

    _plain = SVC
    _parameter_constraints: ClassVar[dict] = {
        **SVC._parameter_constraints,
        **_OnCluster._own_constraints,
    }

    def __init__(
        self,
        C: float = 1.0,
        kernel: Any = "rbf",
        *,
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        multiclass: str = "ovo",
        decode: str = "auto",
        code: Any = None,
        probability: bool = False,
        class_weight: dict | str | None = None,
        positive_weight: Any = 1.0,
        solver: str = "auto",
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        max_iter: int = -1,
        shrinking: bool = True,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: Any = None,
        client: Any = None,
        working_set: int | str = "auto",
        max_restores: int = 3,
    ):
        super().__init__(
            C,
            kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            multiclass=multiclass,
            decode=decode,
            code=code,
            probability=probability,
            class_weight=class_weight,
            positive_weight=positive_weight,
            solver=solver,
            tol=tol,
            cache_size=cache_size,
            max_iter=max_iter,
            shrinking=shrinking,
            decision_function_shape=decision_function_shape,
            break_ties=break_ties,
            n_jobs=n_jobs,
            verbose=verbose,
            random_state=random_state,
        )
        self.client = client
        self.working_set = working_set
        self.max_restores = max_restores

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DaskSVC:
        """Fit the machine.

        Parameters
        ----------
        X : dask array or data frame of shape (n_samples, n_features)
            The samples, in chunks of rows; chunks may be dense or CSR.
        y : dask array, series or array of shape (n_samples,)
            The classes.
        sample_weight : dask array, series or array of shape (n_samples,), default=None
            Factors of C, one for each sample.

        Returns
        -------
        self
        """
        return self._fit_on_cluster(X, y, sample_weight)

    def predict(self, X: Any) -> Any:
        """Return the class of each sample.

        Parameters
        ----------
        X : dask array or data frame, array or CSR matrix

        Returns
        -------
        dask array (nothing is computed yet), or ndarray if X is not a Dask collection
        """
        return self._lazily(X, "predict")

    def decision_function(self, X: Any) -> Any:
        """Return the decision values, as :meth:`mercer.SVC.decision_function` does.

        Parameters
        ----------
        X : dask array or data frame, array or CSR matrix

        Returns
        -------
        dask array (nothing is computed yet), or ndarray if X is not a Dask collection
        """
        return self._lazily(X, "decision_function")

    @available_if(wants_probability)
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class.

        Parameters
        ----------
        X : dask array or data frame, array or CSR matrix

        Returns
        -------
        dask array (nothing is computed yet), or ndarray if X is not a Dask collection
        """
        return self._lazily(X, "predict_proba")

    @available_if(wants_probability)
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities.

        Parameters
        ----------
        X : dask array or data frame, array or CSR matrix

        Returns
        -------
        dask array (nothing is computed yet), or ndarray if X is not a Dask collection
        """
        return self._lazily(X, "predict_log_proba")


@public("mercer.dask")
class DaskSVR(_OnCluster, SVR):
    """Support vector regression of samples on a Dask cluster.

    It finds the machine that :class:`~mercer.SVR` would find with all samples in one
    memory; see :class:`DaskSVC`.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        The kernel, as in :class:`DaskSVC`.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "rbf", "poly" and "sigmoid".
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    C : float, default=1.0
        Penalty of errors beyond the tube.
    epsilon : float, default=0.1
        Half the width of the tube.
    solver : {"auto", "decompose"}, default="auto"
        Both mean working sets.
    tol : float, default=1e-3
        Largest violation of the optimality conditions at the end.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values on each worker, as in :class:`DaskSVC`.
    max_iter : int, default=-1
        Largest number of steps, as in :class:`DaskSVC`.
    shrinking : bool, default=True
        Has no effect here: a working set is small.
    n_jobs : int, default=None
        Number of threads of each worker and of the driver.
    verbose : bool or int, default=False
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        Has no effect here.
    client : dask.distributed.Client, default=None
        The client of the cluster; None means the current one.
    working_set : int or "auto", default="auto"
        Number of variables that the driver solves for at a time.
    max_restores : int, default=3
        How many times lost workers are replaced before ``fit`` raises an error.

    Attributes
    ----------
    n_rounds_, n_restores_, bytes_sent_, seconds_
        What the fit took, as in :class:`DaskSVC`.
    support_ : ndarray of shape (n_SV,)
        Rows of the support vectors in X. The other attributes are those of
        :class:`~mercer.SVR`.

    See Also
    --------
    mercer.SVR : the same on one computer, and faster there.
    """

    _plain = SVR
    _parameter_constraints: ClassVar[dict] = {
        **SVR._parameter_constraints,
        **_OnCluster._own_constraints,
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        C: float = 1.0,
        epsilon: float = 0.1,
        solver: str = "auto",
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        max_iter: int = -1,
        shrinking: bool = True,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: Any = None,
        client: Any = None,
        working_set: int | str = "auto",
        max_restores: int = 3,
    ):
        super().__init__(
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            C=C,
            epsilon=epsilon,
            solver=solver,
            tol=tol,
            cache_size=cache_size,
            max_iter=max_iter,
            shrinking=shrinking,
            n_jobs=n_jobs,
            verbose=verbose,
            random_state=random_state,
        )
        self.client = client
        self.working_set = working_set
        self.max_restores = max_restores

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DaskSVR:
        """Fit the machine.

        Parameters
        ----------
        X : dask array or data frame of shape (n_samples, n_features)
            The samples, in chunks of rows; chunks may be dense or CSR.
        y : dask array, series or array of shape (n_samples,)
            The values.
        sample_weight : dask array, series or array of shape (n_samples,), default=None
            Factors of C, one for each sample.

        Returns
        -------
        self
        """
        return self._fit_on_cluster(X, y, sample_weight)

    def predict(self, X: Any) -> Any:
        """Return the value of each sample.

        Parameters
        ----------
        X : dask array or data frame, array or CSR matrix

        Returns
        -------
        dask array (nothing is computed yet), or ndarray if X is not a Dask collection
        """
        return self._lazily(X, "predict")


@public("mercer.dask")
class DaskOneClassSVM(_OnCluster, OneClassSVM):
    """The one-class machine of samples on a Dask cluster.

    It finds the machine that :class:`~mercer.OneClassSVM` would find with all samples
    in one memory; see :class:`DaskSVC`. At least the share ``nu`` of all samples are
    support vectors, and the driver holds them: a small ``nu`` keeps the driver small.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        The kernel, as in :class:`DaskSVC`.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "rbf", "poly" and "sigmoid".
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    nu : float, default=0.5
        An upper bound of the share of outliers, and a lower bound of the share of
        support vectors.
    solver : {"auto", "decompose"}, default="auto"
        Both mean working sets.
    tol : float, default=1e-3
        Largest violation of the optimality conditions at the end.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values on each worker, as in :class:`DaskSVC`.
    max_iter : int, default=-1
        Largest number of steps, as in :class:`DaskSVC`.
    shrinking : bool, default=True
        Has no effect here: a working set is small.
    n_jobs : int, default=None
        Number of threads of each worker and of the driver.
    verbose : bool or int, default=False
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        Has no effect here.
    client : dask.distributed.Client, default=None
        The client of the cluster; None means the current one.
    working_set : int or "auto", default="auto"
        Number of variables that the driver solves for at a time.
    max_restores : int, default=3
        How many times lost workers are replaced before ``fit`` raises an error.

    Attributes
    ----------
    n_rounds_, n_restores_, bytes_sent_, seconds_
        What the fit took, as in :class:`DaskSVC`.
    support_ : ndarray of shape (n_SV,)
        Rows of the support vectors in X. The other attributes are those of
        :class:`~mercer.OneClassSVM`.

    See Also
    --------
    mercer.OneClassSVM : the same on one computer, and faster there.
    """

    _plain = OneClassSVM
    _parameter_constraints: ClassVar[dict] = {
        **OneClassSVM._parameter_constraints,
        **_OnCluster._own_constraints,
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        nu: float = 0.5,
        solver: str = "auto",
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        max_iter: int = -1,
        shrinking: bool = True,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: Any = None,
        client: Any = None,
        working_set: int | str = "auto",
        max_restores: int = 3,
    ):
        super().__init__(
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            nu=nu,
            solver=solver,
            tol=tol,
            cache_size=cache_size,
            max_iter=max_iter,
            shrinking=shrinking,
            n_jobs=n_jobs,
            verbose=verbose,
            random_state=random_state,
        )
        self.client = client
        self.working_set = working_set
        self.max_restores = max_restores

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DaskOneClassSVM:
        """Fit the machine.

        Parameters
        ----------
        X : dask array or data frame of shape (n_samples, n_features)
            The samples, in chunks of rows; chunks may be dense or CSR.
        y : ignored, default=None
        sample_weight : dask array, series or array of shape (n_samples,), default=None
            Factors of the upper bounds, one for each sample.

        Returns
        -------
        self
        """
        return self._fit_on_cluster(X, None, sample_weight)

    def predict(self, X: Any) -> Any:
        """Return 1 for samples like those of the fit, -1 for others.

        Parameters
        ----------
        X : dask array or data frame, array or CSR matrix

        Returns
        -------
        dask array (nothing is computed yet), or ndarray if X is not a Dask collection
        """
        return self._lazily(X, "predict")

    def decision_function(self, X: Any) -> Any:
        """Return the signed distance from the boundary; positive is inside.

        Parameters
        ----------
        X : dask array or data frame, array or CSR matrix

        Returns
        -------
        dask array (nothing is computed yet), or ndarray if X is not a Dask collection
        """
        return self._lazily(X, "decision_function")

    def score_samples(self, X: Any) -> Any:
        """Return the decision values without the offset.

        Parameters
        ----------
        X : dask array or data frame, array or CSR matrix

        Returns
        -------
        dask array (nothing is computed yet), or ndarray if X is not a Dask collection
        """
        return self._lazily(X, "score_samples")
