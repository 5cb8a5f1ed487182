"""Machines whose samples are spread over a Dask cluster."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils.metaestimators import available_if

from mercer.dask.base import OnCluster, by_chunks
from mercer.machines.base.classifier import wants_probability
from mercer.machines.one_class import OneClassSVM
from mercer.machines.svc import SVC
from mercer.machines.svr import SVR
from mercer.runtime.public import public
from mercer.runtime.validation import fit_method, stores_parameters_of

__all__ = ["DaskOneClassSVM", "DaskSVC", "DaskSVR"]


@public("mercer.dask")
class DaskSVC(OnCluster, SVC):
    """C-support vector classification of samples on a Dask cluster.

    It finds the machine that :class:`~mercer.SVC` would find with all samples in one
    memory, and certifies it in the same way. Workers keep their samples, and a driver
    (the process that calls ``fit``) solves working sets; see :doc:`/cluster`.

    Parameters
    ----------
    C : as in :class:`~mercer.SVC`
    kernel : str or Kernel, default="rbf"
        A kernel of :mod:`mercer.kernels`, an expression or a name, as in
        :class:`~mercer.SVC`. A precomputed kernel is not possible.
    degree, gamma, coef0, multiclass : as in :class:`~mercer.SVC`
    decode : str, default="auto"
        How decision values become a class, as in :class:`~mercer.SVC`; "barycentre" is
        not possible.
    code : as in :class:`~mercer.SVC`
    probability : bool, default=False
        Whether to enable ``predict_proba``. Each machine then needs five more problems.
    class_weight, positive_weight : as in :class:`~mercer.SVC`
    solver : {"auto", "decompose"}, default="auto"
        Both mean working sets.
    tol : as in :class:`~mercer.SVC`
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values on each worker; "auto" is at most a quarter of the
        worker's memory.
    max_iter : as in :class:`~mercer.SVC`
    decision_function_shape, break_ties : as in :class:`~mercer.SVC`
    n_jobs : int, default=None
        Number of threads of each worker and of the driver; None means as many as the
        Dask worker has.
    verbose : as in :class:`~mercer.SVC`
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
    support_vectors_, n_support_ : as in :class:`~mercer.SVC`
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV) or (n_tasks, n_SV)
    intercept_ : ndarray of shape (n_tasks,)
    objective_, dual_gap_, kkt_gap_ : ndarray of shape (n_tasks,)
        The certificate of each machine, in double precision, as in
        :class:`~mercer.SVC`.
    n_iter_, converged_, probA_, probB_ : as in :class:`~mercer.SVC`

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

    @stores_parameters_of(SVC, "device", "shrinking")
    def __init__(
        self,
        *,
        client: Any = None,
        working_set: int | str = "auto",
        max_restores: int = 3,
    ): ...

    predict = by_chunks("predict", "Return the class of each sample.")

    decision_function = by_chunks(
        "decision_function",
        "Return the decision values, as :meth:`mercer.SVC.decision_function` does.",
    )

    predict_proba = available_if(wants_probability)(
        by_chunks("predict_proba", "Return the probability of each class.")
    )

    predict_log_proba = available_if(wants_probability)(
        by_chunks("predict_log_proba", "Return the logarithms of the probabilities.")
    )


@public("mercer.dask", DaskSVC)
class DaskSVR(OnCluster, SVR):
    """Support vector regression of samples on a Dask cluster.

    It finds the machine that :class:`~mercer.SVR` would find with all samples in one
    memory; see :class:`DaskSVC`.

    Parameters
    ----------
    kernel, degree, gamma, coef0 : as in :class:`DaskSVC`
    C : float, default=1.0
        Penalty of errors beyond the tube.
    epsilon : float, default=0.1
        Half the width of the tube.
    solver, tol, cache_size, max_iter, n_jobs : as in :class:`DaskSVC`
    verbose : as in :class:`DaskSVC`
    random_state : int, RandomState instance or None, default=None
        Has no effect here.
    client, working_set, max_restores : as in :class:`DaskSVC`

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

    @stores_parameters_of(SVR, "device", "shrinking")
    def __init__(
        self,
        *,
        client: Any = None,
        working_set: int | str = "auto",
        max_restores: int = 3,
    ): ...

    predict = by_chunks("predict", "Return the value of each sample.")


@public("mercer.dask", DaskSVC)
class DaskOneClassSVM(OnCluster, OneClassSVM):
    """The one-class machine of samples on a Dask cluster.

    It finds the machine that :class:`~mercer.OneClassSVM` would find with all samples
    in one memory; see :class:`DaskSVC`. At least the share ``nu`` of all samples are
    support vectors, and the driver holds them: a small ``nu`` keeps the driver small.

    Parameters
    ----------
    kernel, degree, gamma, coef0 : as in :class:`DaskSVC`
    nu : float, default=0.5
        An upper bound of the share of outliers, and a lower bound of the share of
        support vectors.
    solver, tol, cache_size, max_iter, n_jobs : as in :class:`DaskSVC`
    verbose : as in :class:`DaskSVC`
    random_state : int, RandomState instance or None, default=None
        Has no effect here.
    client, working_set, max_restores : as in :class:`DaskSVC`

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

    @stores_parameters_of(OneClassSVM, "device", "shrinking")
    def __init__(
        self,
        *,
        client: Any = None,
        working_set: int | str = "auto",
        max_restores: int = 3,
    ): ...

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

    predict = by_chunks(
        "predict", "Return 1 for samples like those of the fit, -1 for others."
    )

    decision_function = by_chunks(
        "decision_function",
        "Return the signed distance from the boundary; positive is inside.",
    )

    score_samples = by_chunks(
        "score_samples", "Return the decision values without the offset."
    )
