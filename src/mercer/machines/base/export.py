"""Fitted models in the form of LIBSVM and scikit-learn.

In LIBSVM, and in scikit-learn, which is built on it, the first of two classes is the
positive side.  In Mercer it is the second, so the signs of machines with two classes
change.  A new machine gets one line in :data:`COUNTERPARTS`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import svm
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.validation import check_is_fitted

from mercer.engines.engine import gram_matrix
from mercer.kernels.base import Kernel
from mercer.kernels.dot import Linear, Polynomial, Sigmoid
from mercer.kernels.given import Precomputed
from mercer.kernels.radial import RBF
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import BaseLibSVM, as_in_scikit_learn
from mercer.runtime.soundness import indices, numbers, whole_number
from mercer.runtime.user_warnings import warn_user
from mercer.runtime.validation import as_dense

__all__ = [
    "COUNTERPARTS",
    "KERNEL_NAMES",
    "KernelFunction",
    "Machines",
    "check_decoding",
    "check_libsvm",
    "find_counterpart",
    "libsvm_form",
    "to_sklearn",
]


class Counterpart(NamedTuple):
    """The names of a machine in other libraries."""

    estimator: type  #: the class of scikit-learn
    svm_type: str  #: the type in model files of LIBSVM


COUNTERPARTS = {
    "SVC": Counterpart(svm.SVC, "c_svc"),
    "NuSVC": Counterpart(svm.NuSVC, "nu_svc"),
    "SVR": Counterpart(svm.SVR, "epsilon_svr"),
    "NuSVR": Counterpart(svm.NuSVR, "nu_svr"),
    "OneClassSVM": Counterpart(svm.OneClassSVM, "one_class"),
}

#: The kernels of scikit-learn and LIBSVM, with their names in each.
KERNEL_NAMES: dict[type[Kernel], tuple[str, str]] = {
    Linear: ("linear", "linear"),
    Polynomial: ("poly", "polynomial"),
    RBF: ("rbf", "rbf"),
    Sigmoid: ("sigmoid", "sigmoid"),
    Precomputed: ("precomputed", "precomputed"),
}

# The decodings that are the same in LIBSVM, and for one-vs-rest in scikit-learn.
# Calibrated models are exported with a warning.
_SAME_DECODING = {
    "ovo": ("votes", "hamming", "platt"),
    "ovr": ("margin", "platt"),
    "ecoc": (),
}


class Machines(NamedTuple):
    """Fitted machines with LIBSVM's signs: the first of two classes is positive."""

    support: NDArray[np.int32]
    vectors: Any  #: (n_SV, n_features), or empty if the kernel is precomputed
    coefficients: NDArray  #: (n_classes - 1, n_SV), or one row
    intercept: NDArray  #: added, where LIBSVM subtracts rho
    n_support: NDArray[np.int32]  #: by class
    sigmoids: tuple[NDArray, NDArray]  #: A and B, empty without probabilities
    n_iter: NDArray[np.int32]


@public("mercer")
class KernelFunction:
    """A kernel of Mercer as a function of two matrices, for scikit-learn."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    def __call__(self, X: Any, Z: Any) -> NDArray:
        """Return the matrix of ``k(x_i, z_j)``; X becomes sparse if Z is, or dense.

        Of two samples without a second dimension, return the one value.
        """
        if np.ndim(X) == np.ndim(Z) == 1:
            return self(np.asarray(X)[None], np.asarray(Z)[None])[0, 0]
        if sparse.issparse(Z):
            X = sparse.csr_array(X)
        else:
            X = X.toarray() if sparse.issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != Z.shape[1]:
            raise ValueError(
                f"X has shape {X.shape}; the model was fitted with {Z.shape[1]} "
                "features."
            )
        return gram_matrix(self.kernel, X, Z)

    def __repr__(self) -> str:
        return f"KernelFunction({self.kernel!r})"


def find_counterpart(model: Any) -> Counterpart:
    """Return the counterpart of a machine; raise an error if there is none."""
    name, module = type(model).__name__, type(model).__module__.split(".")[0]
    if module == "sklearn" and name in COUNTERPARTS:
        raise ValueError(
            f"This {name} is an estimator of scikit-learn; only those of Mercer can be "
            f"exported. Fit a mercer.{name}, which takes the same parameters."
        )
    for kind in type(model).__mro__:
        if kind.__name__ in COUNTERPARTS:
            return COUNTERPARTS[kind.__name__]
    raise ValueError(
        f"{type(model).__name__} has no counterpart in scikit-learn and LIBSVM. "
        f"Machines with a counterpart: {', '.join(COUNTERPARTS)}."
    )


def check_libsvm(model: BaseLibSVM) -> None:
    """Refuse a fitted estimator of scikit-learn whose arrays do not fit together.

    LIBSVM reads as far as the numbers of support vectors say, whatever the sizes of the
    arrays are.
    """
    is_given = callable(model.kernel) or model.kernel == "precomputed"
    n_classes = len(model.classes_) if hasattr(model, "classes_") else 2
    n, n_pairs = len(model.support_), n_classes * (n_classes - 1) // 2
    indices(model, "support_", model.shape_fit_[0], n)
    width = whole_number(model, "n_features_in_")
    vectors = numbers(model, "support_vectors_", None, None)
    if vectors.shape != (n, width) and not (is_given and vectors.shape[0] == 0):
        raise ValueError(
            f"support_vectors_ has shape {vectors.shape}, not ({n}, {width})"
        )
    counts = indices(model, "_n_support", n + 1, n_classes)
    # For regression, both entries are the number of all support vectors.
    if hasattr(model, "classes_") and counts.sum() != n:
        raise ValueError(f"_n_support counts {counts.sum()} samples, but there are {n}")
    coefficients = numbers(model, "_dual_coef_", n_classes - 1, n)
    are_sparse = {sparse.issparse(part) for part in (coefficients, vectors)}
    if are_sparse != {bool(model._sparse)}:
        raise ValueError("arrays are sparse where others are dense")
    if model._sparse and coefficients.nnz != (n_classes - 1) * n:
        raise ValueError("_dual_coef_ does not store its zeros")
    numbers(model, "_intercept_", n_pairs)
    for name in ("_probA", "_probB"):
        if len(getattr(model, name)):
            numbers(model, name, n_pairs)


def libsvm_form(model: Any) -> Machines:
    """Return the machines of a fitted model, which must not be one-vs-rest or ECOC.

    A model of two classes has one machine in every scheme, and is allowed.
    """
    counts = np.asarray(
        model.n_support_ if _is_classifier(model) else [len(model.support_)] * 2
    )
    sigmoids = (np.empty(0), np.empty(0))
    sign = 1.0
    if _is_classifier(model):
        sign = float(model.code_[0, 0])  # of the first class
        if _is_calibrated(model):
            offsets = sign * model._libsvm_sign * model.probB_
            sigmoids = (np.array(model.probA_), offsets)
    return Machines(
        support=np.array(model.support_, dtype=np.int32),
        vectors=_in_double(model.support_vectors_),
        coefficients=np.array(
            sign * as_dense(model.dual_coef_), dtype=np.float64, order="C"
        ),
        intercept=sign * np.asarray(model.intercept_, dtype=np.float64).ravel(),
        n_support=counts.astype(np.int32),
        sigmoids=sigmoids,
        n_iter=np.atleast_1d(model.n_iter_).astype(np.int32),
    )


def _against_rest(model: Any, task: int) -> Machines:
    """Return one machine of one-vs-rest; the first class is the rest."""
    labels = np.repeat(np.arange(len(model.classes_)), model.n_support_)
    rows = as_dense(model.dual_coef_)
    used = np.flatnonzero(rows[task])
    used = used[np.argsort(labels[used] == task, kind="stable")]
    n_positive = np.count_nonzero(labels[used] == task)
    sigmoids = (np.empty(0), np.empty(0))
    if _is_calibrated(model):
        sigmoids = (model.probA_[[task]], -model.probB_[[task]])
    is_given = isinstance(model.kernel_, Precomputed)
    vectors = model.support_vectors_
    return Machines(
        support=model.support_[used].astype(np.int32),
        vectors=_in_double(vectors if is_given else vectors[used]),
        coefficients=-rows[[task]][:, used],
        intercept=-model.intercept_[[task]],
        n_support=np.array([len(used) - n_positive, n_positive], dtype=np.int32),
        sigmoids=sigmoids,
        n_iter=model.n_iter_[[task]].astype(np.int32),
    )


def _is_classifier(model: Any) -> bool:
    return hasattr(model, "classes_")


def _is_calibrated(model: Any) -> bool:
    return _is_classifier(model) and model._is_calibrated()


def _in_double(vectors: Any) -> Any:
    """Return a copy for LIBSVM: in double precision, with 32-bit sparse indices."""
    if not sparse.issparse(vectors):
        return np.array(vectors, dtype=np.float64, order="C")
    vectors = vectors.astype(np.float64, copy=True)
    vectors.sort_indices()
    vectors.indices = vectors.indices.astype(np.int32)
    vectors.indptr = vectors.indptr.astype(np.int32)
    return vectors


def check_decoding(model: Any, schemes: tuple[str, ...]) -> None:
    """Refuse multi-class schemes and decodings that other libraries do not have."""
    check_is_fitted(model)
    if not _is_classifier(model) or model.code_.shape[1] == 1:
        return
    if model.multiclass not in schemes:
        raise ValueError(
            f"multiclass={model.multiclass!r} has no counterpart. Fit with "
            f"multiclass={' or '.join(map(repr, schemes))}."
        )
    known = _SAME_DECODING[model.multiclass]
    if model._decoding() not in known:
        raise ValueError(
            f"decode={model.decode!r} with multiclass={model.multiclass!r} has no "
            f"counterpart, so predictions would differ; decode={known[0]!r} has one. "
            "Set decode='auto' and fit again."
        )


def to_sklearn(model: Any) -> Any:
    """Return a fitted estimator of scikit-learn with the same decision values.

    See :meth:`mercer.SVC.to_sklearn`.
    """
    kind = find_counterpart(model)
    check_decoding(model, ("ovo", "ovr"))
    model._check_internals()
    if _is_calibrated(model):
        warn_user(
            "In the scikit-learn model predict follows the decision values; with "
            f"probability=True predict of {type(model).__name__} returns the most "
            "probable class. The two can differ near the boundaries."
        )
    parameters = _parameters(kind.estimator, model)
    if not _is_classifier(model):
        result = _fill(kind.estimator(**parameters), model, libsvm_form(model))
    elif model.code_.shape[1] == 1 or model.multiclass == "ovo":
        result = _fill(kind.estimator(**parameters), model, libsvm_form(model))
        result.classes_ = model.classes_.copy()
        result.class_weight_ = np.array(model.class_weight_, dtype=np.float64)
    else:
        result = _one_vs_rest(kind.estimator, parameters, model)
    for machine in getattr(result, "estimators_", [result]):
        check_libsvm(machine)
    if hasattr(model, "feature_names_in_"):
        result.feature_names_in_ = model.feature_names_in_.copy()
    return result


def _one_vs_rest(kind: type, parameters: dict, model: Any) -> OneVsRestClassifier:
    # The class weights name classes that the machines of two classes do not have.
    parameters = {**parameters, "class_weight": None}
    result = OneVsRestClassifier(kind(**parameters))
    result.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(model.classes_)
    result.classes_ = result.label_binarizer_.classes_
    result.n_features_in_ = model.n_features_in_
    result.estimators_ = []
    for task in range(len(model.classes_)):
        machine = _fill(kind(**parameters), model, _against_rest(model, task))
        machine.classes_ = np.array([0, 1])
        machine.class_weight_ = np.ones(2)
        result.estimators_.append(machine)
    return result


def _parameters(kind: Any, model: Any) -> dict[str, Any]:
    """Return the parameters that the estimator of scikit-learn takes over."""
    own = model.get_params(deep=False)
    taken = {name: own[name] for name in kind().get_params() if name in own}
    kernel = model.kernel_
    # If the kernel was given by its name, gamma="scale" is kept for later fits.
    is_plain = isinstance(model.kernel, str) and model.kernel.strip().isidentifier()
    if type(kernel) in KERNEL_NAMES:
        taken["kernel"] = KERNEL_NAMES[type(kernel)][0]
        if not is_plain:
            numbers = kernel.get_params().items()
            taken.update({name: v for name, v in numbers if name in taken})
    else:
        taken["kernel"] = KernelFunction(kernel)
    if taken.get("cache_size") == "auto":
        del taken["cache_size"]
    taken["verbose"] = False
    # scikit-learn has deprecated this parameter, so it is only set if it is needed.
    taken.pop("probability", None)
    if _is_calibrated(model):
        taken["probability"] = True
    return taken


def _fill(result: Any, model: Any, machines: Machines) -> Any:
    """Set the attributes that ``fit`` would have set."""
    is_function = callable(result.kernel)
    result._sparse = sparse.issparse(machines.vectors) and not is_function
    result._gamma = 0.0 if is_function else float(getattr(model.kernel_, "gamma", 0.0))
    result._effective_probability = bool(len(machines.sigmoids[0]))
    result._probA, result._probB = machines.sigmoids
    result._n_support = machines.n_support
    result._num_iter = machines.n_iter
    result.fit_status_ = model.fit_status_
    result.n_features_in_ = model.n_features_in_
    result.support_ = machines.support
    result.support_vectors_ = machines.vectors
    result.shape_fit_ = tuple(model.shape_fit_)
    if is_function:
        # scikit-learn evaluates the function on all training samples and picks the
        # columns of the support vectors. Here the support vectors are all samples.
        result._BaseLibSVM__Xfit = machines.vectors
        result.support_ = np.arange(len(machines.support), dtype=np.int32)
        result.support_vectors_ = np.empty((0, 0))
        result.shape_fit_ = (len(machines.support), model.n_features_in_)
    result._intercept_ = machines.intercept
    result._dual_coef_ = machines.coefficients
    if result._sparse:
        result._dual_coef_ = _with_zeros(machines.coefficients)
    if result._impl in ("c_svc", "nu_svc"):
        result.n_iter_ = machines.n_iter
        sign = -1.0 if len(machines.n_support) == 2 else 1.0
    else:
        result.n_iter_ = int(machines.n_iter[0])
        sign = 1.0
    result.intercept_ = sign * result._intercept_
    result.dual_coef_ = result._dual_coef_ * sign
    if result._impl == "one_class":
        result.offset_ = -result._intercept_
    return result


def _with_zeros(rows: NDArray) -> Any:
    """Return a sparse matrix that stores zeros too, which LIBSVM relies on."""
    m, n = rows.shape
    columns = np.tile(np.arange(n, dtype=np.int32), m)
    starts = n * np.arange(m + 1, dtype=np.int32)
    found = sparse.csr_array((rows.ravel(), columns, starts), shape=(m, n))
    return as_in_scikit_learn(found)
