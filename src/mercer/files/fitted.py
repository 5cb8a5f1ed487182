"""Whether the arrays of a fitted model fit together.

Compiled code does not check the bounds of arrays, and a NaN among coefficients gives
answers that look like any others. So a model that comes from a file is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import TransformerMixin

from mercer.kernels.base import Kernel
from mercer.kernels.given import Precomputed
from mercer.machines.base.classifier import KernelClassifier
from mercer.machines.base.export import check_libsvm
from mercer.machines.base.machine import KernelMachine
from mercer.machines.base.streams import StreamClassifier
from mercer.machines.clusters import KernelKMeans, KMeans
from mercer.machines.components import PCA, KernelPCA
from mercer.machines.linear.base import LinearMachine
from mercer.machines.mkl import MKLClassifier, MKLRegressor
from mercer.machines.one_class import OneClassSVM
from mercer.machines.online import OnlineSVC
from mercer.machines.passive.learnt_weights import FeaturePart
from mercer.machines.svdd import SVDD
from mercer.runtime.scikit_learn import BaseLibSVM
from mercer.runtime.soundness import indices, number, numbers, whole_number

__all__ = ["check_fitted"]


def check_fitted(part: Any) -> None:
    """Raise ValueError if a fitted model, or a sparse matrix, is not sound."""
    if sparse.issparse(part) and part.format in ("csr", "csc", "bsr"):
        part.check_format(full_check=True)
    for kind, (mark, check) in CHECKS.items():
        if isinstance(part, kind) and mark in vars(part):
            try:
                check(part)
            except (AttributeError, TypeError, IndexError, ValueError) as error:
                raise ValueError(
                    f"the arrays of {type(part).__name__} do not fit together: {error}"
                ) from error


def _width(model: Any) -> int:
    """Return how many features there are."""
    return whole_number(model, "n_features_in_")


def _check_kernels(kernels: Any, X: Any) -> None:
    """Let kernels check their parameters and columns, on one sample of the fit."""
    for kernel in kernels if isinstance(kernels, list | tuple) else [kernels]:
        if not isinstance(kernel, Kernel):
            raise ValueError(f"kernel_ is a {type(kernel).__name__}, not a kernel")
        if X.shape[0]:
            kernel.bind(X[:1])


def _check_machine(model: Any) -> None:
    n, d = len(model.support_), _width(model)
    given = isinstance(model.kernel_, Precomputed)
    # For several matrices, the shape begins with their number.
    n_seen = model.shape_fit_[-2]
    indices(model, "support_", min(n_seen, d) if given else n_seen, n)
    vectors = numbers(model, "support_vectors_", *((0, 0) if given else (n, d)))
    _check_kernels(model.kernel_, vectors)
    counts = indices(model, "n_support_", n + 1, None)
    if counts.sum() != n:
        raise ValueError(f"n_support_ counts {counts.sum()} samples, but there are {n}")
    n_tasks = 1
    rows = {1}
    if isinstance(model, KernelClassifier):
        n_classes = _check_classes(model)
        code = numbers(model, "code_", n_classes, None)
        if not np.isin(code, (-1, 0, 1)).all():
            raise ValueError("code_ has values other than -1, 0 and 1")
        n_tasks = code.shape[1]
        # The coefficients of pairs are kept as LIBSVM keeps them.
        rows = {n_tasks, n_classes - 1} if model.multiclass == "ovo" else {n_tasks}
        if hasattr(model, "probA_"):
            numbers(model, "probA_", n_tasks)
            numbers(model, "probB_", n_tasks)
        if hasattr(model, "_means"):
            numbers(model, "_means", n_classes, d)
        if len(counts) != n_classes:
            raise ValueError(f"n_support_ is not for {n_classes} classes")
    if numbers(model, "dual_coef_", None, n).shape[0] not in rows:
        raise ValueError(f"dual_coef_ is not for {n_tasks} machines")
    numbers(model, "intercept_", n_tasks)


def _check_classes(model: Any) -> int:
    """Return how many classes there are."""
    classes = model.classes_
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ValueError("classes_ is not an array of two or more classes")
    if len(set(classes.tolist())) < len(classes):
        raise ValueError("classes_ has the same class twice")
    numbers(model, "class_weight_", len(classes))
    return len(classes)


def _check_several_kernels(model: Any) -> None:
    weights = numbers(model, "weights_", *(None,) * np.ndim(model.weights_))
    given = isinstance(model.kernel_, Precomputed)
    n_kernels = model.shape_fit_[0] if given else len(model._kernels)
    if (weights < 0).any() or weights.shape[-1] != n_kernels:
        raise ValueError(f"weights_ is not for {n_kernels} kernels")
    numbers(model, "_factors", *np.shape(model._factors))
    _check_kernels(list(model._kernels), model.support_vectors_)


def _check_sphere(model: Any) -> None:
    number(model, "radius_")
    number(model, "_center_norm")
    for name in ("boundary_", "outliers_"):
        indices(model, name, model.shape_fit_[0], None)


def _check_offset(model: Any) -> None:
    numbers(model, "offset_", 1)


def _check_feature_space(model: Any, n: int) -> None:
    """Check the samples and the kernel of a model in the space of the kernel."""
    d = _width(model)
    X = model.X_fit_
    if isinstance(model.kernel_, Precomputed):
        if n != d:
            raise ValueError(f"there are {n} samples, but the matrix has {d} columns")
        numbers(model, "X_fit_", *((n, d) if X.shape[0] else (0, 0)))
    else:
        numbers(model, "X_fit_", n, d)
        if model.kernel_ is not None:  # None stands for a function of the user
            _check_kernels(model.kernel_, X)


def _check_kernel_pca(model: Any) -> None:
    n, k = numbers(model, "eigenvectors_", None, None).shape
    _check_feature_space(model, n)
    numbers(model, "_weights", n, k)
    for name in ("eigenvalues_", "explained_variance_", "_offset"):
        numbers(model, name, k)
    if hasattr(model, "dual_coef_"):
        numbers(model, "dual_coef_", n, _width(model))
        numbers(model, "X_transformed_fit_", n, k)


def _check_kernel_kmeans(model: Any) -> None:
    n, k = numbers(model, "_mean_weights", None, None).shape
    _check_feature_space(model, n)
    indices(model, "labels_", k, n)
    numbers(model, "_mean_norms", k)
    numbers(model, "_degree_weights", n)


def _check_kmeans(model: Any) -> None:
    k = len(numbers(model, "cluster_centers_", None, _width(model)))
    indices(model, "labels_", k, None)


def _check_pca(model: Any) -> None:
    d = _width(model)
    k = len(numbers(model, "components_", None, d))
    numbers(model, "mean_", d)
    for name in ("explained_variance_", "explained_variance_ratio_"):
        numbers(model, name, k)
    numbers(model, "singular_values_", k)
    number(model, "noise_variance_")


def _check_stream(model: Any) -> None:
    d, n_classes = _width(model), _check_classes(model)
    held = model._held
    if isinstance(held, FeaturePart):
        names, n_columns, n_tasks = ("w", "u"), d, len(held.b)
    else:
        online = isinstance(model, OnlineSVC)
        rows = held.gram.rows if online else held.rows
        names, n_columns = (("beta", "f") if online else ("beta", "u")), len(rows)
        _check_kernels(model.kernel_, numbers(rows, "X", n_columns, d))
        n_tasks = len(held.beta)
    for name in names:
        numbers(held, name, n_tasks, n_columns)
    if isinstance(model, OnlineSVC):
        numbers(model, "code_", n_classes, n_tasks)
        numbers(model, "intercept_", n_tasks)
        numbers(held, "cost", n_columns)
        numbers(held.gram, "diag", n_columns)
        # The matrix has room for more rows, whose values are not set.
        matrix = held.gram.matrix[:n_columns, :n_columns]
        if matrix.shape != (n_columns, n_columns) or not np.isfinite(matrix).all():
            raise ValueError("kernel values are missing or not finite")
    elif n_tasks != (1 if n_classes == 2 else n_classes):
        raise ValueError(f"there are {n_tasks} tasks for {n_classes} classes")
    else:
        numbers(held, "b", n_tasks)
        numbers(held, "v", n_tasks)


def _check_linear(model: Any) -> None:
    d, n_machines = _width(model), 1
    if hasattr(model, "classes_"):
        n_classes = _check_classes(model)
        n_machines = 1 if n_classes == 2 else n_classes
        numbers(model, "coef_", n_machines, d)
        if hasattr(model, "probA_"):
            numbers(model, "probA_", n_machines)
            numbers(model, "probB_", n_machines)
    else:
        numbers(model, "coef_", *(1,) * (np.ndim(model.coef_) - 1), d)
    if hasattr(model, "_beta"):
        numbers(model, "_beta", None, None)
    if model.fit_intercept:
        numbers(model, "intercept_", n_machines)
    else:
        number(model, "intercept_")


#: For each class, an attribute that only fitted models have, and their check.
CHECKS: dict[type, tuple[str, Callable[[Any], None]]] = {
    KernelMachine: ("support_", _check_machine),
    MKLClassifier: ("weights_", _check_several_kernels),
    MKLRegressor: ("weights_", _check_several_kernels),
    SVDD: ("radius_", _check_sphere),
    OneClassSVM: ("offset_", _check_offset),
    LinearMachine: ("coef_", _check_linear),
    KernelPCA: ("eigenvectors_", _check_kernel_pca),
    KernelKMeans: ("_mean_weights", _check_kernel_kmeans),
    KMeans: ("cluster_centers_", _check_kmeans),
    PCA: ("components_", _check_pca),
    StreamClassifier: ("_held", _check_stream),
    BaseLibSVM: ("support_", check_libsvm),
    # Transformers of images check themselves before every use, too.
    TransformerMixin: ("image_shape_", methodcaller("_check_learnt")),
}
