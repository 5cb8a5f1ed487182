"""Machines whose samples are spread over a Dask cluster."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils.metaestimators import available_if

from mercer.dask.base import OnCluster
from mercer.machines.base.classifier import wants_probability
from mercer.machines.one_class import OneClassSVM
from mercer.machines.svc import SVC
from mercer.machines.svr import SVR
from mercer.runtime.public import public
from mercer.runtime.validation import fit_method

__all__ = ["DaskOneClassSVM", "DaskSVC", "DaskSVR"]


@public("mercer.dask")
class DaskSVC(OnCluster, SVC):
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
        How decision values become a class, as in :class:`~mercer.SVC`; "barycentre" is
        not possible.
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
        Number of working sets that were solved, each with one exchange with the
        workers.
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
        **OnCluster._own_constraints,
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
class DaskSVR(OnCluster, SVR):
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
        **OnCluster._own_constraints,
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
class DaskOneClassSVM(OnCluster, OneClassSVM):
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
        **OnCluster._own_constraints,
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
