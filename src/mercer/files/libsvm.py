"""Model files in LIBSVM's text format, which ``svm-predict`` reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.kernels.base import Kernel
from mercer.kernels.given import Precomputed
from mercer.machines.base.export import (
    KERNEL_NAMES,
    Machines,
    check_decoding,
    find_counterpart,
    libsvm_form,
)
from mercer.runtime.public import public
from mercer.runtime.writing import replacing

__all__ = ["export_libsvm", "whole_labels"]

# LIBSVM's labels have the type int of C.
LARGEST_LABEL = 2**31 - 1


@public("mercer")
def export_libsvm(model: Any, path: str | os.PathLike) -> None:
    """Write a fitted model as a file for LIBSVM's ``svm-predict``.

    Numbers are written so that they are read back exactly. Columns of the data are
    numbered from 1, as in LIBSVM. With ``probability=True`` the file has probabilities,
    too: ``svm-predict -b 1`` then predicts the most probable class, as the model does,
    and without this option it predicts by votes.

    Parameters
    ----------
    model : SVC
        Fitted; two classes or one-vs-one, a linear, polynomial, RBF, sigmoid or
        precomputed kernel, and whole numbers as classes.
    path : str or path
        The file; an older one is replaced only when the new one is complete.

    Raises
    ------
    ValueError
        If LIBSVM does not have such a model.

    See Also
    --------
    export_liblinear : for linear machines.
    save : keeps every model of Mercer.

    Examples
    --------
    >>> import tempfile, pathlib, mercer
    >>> X, y = mercer.datasets.make_moons(random_state=0)
    >>> model = mercer.SVC(gamma=2.0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "moons.model")
    ...     mercer.export_libsvm(model, path)
    ...     path.read_text().splitlines()[:4]
    ['svm_type c_svc', 'kernel_type rbf', 'gamma 2.0', 'nr_class 2']
    """
    kind = find_counterpart(model)
    check_decoding(model, ("ovo",))
    machines = libsvm_form(model)
    head = [
        f"svm_type {kind.svm_type}",
        *_kernel_lines(model.kernel_),
        f"nr_class {len(machines.n_support)}",
        f"total_sv {len(machines.support)}",
        f"rho {_numbers(-machines.intercept)}",
    ]
    if hasattr(model, "classes_"):
        head += _class_lines(model.classes_, machines)
    with replacing(path) as file:
        for line in (*head, "SV"):
            file.write(f"{line}\n".encode())
        for line in _vector_lines(machines, isinstance(model.kernel_, Precomputed)):
            file.write(line.encode())


def _kernel_lines(kernel: Kernel) -> list[str]:
    if type(kernel) not in KERNEL_NAMES:
        known = ", ".join(kind.__name__ for kind in KERNEL_NAMES)
        raise ValueError(
            f"LIBSVM does not have the kernel {kernel!r}, only {known}. For others, "
            "compute the matrix with mercer.gram_matrix and fit with "
            "kernel='precomputed'."
        )
    lines = [f"kernel_type {KERNEL_NAMES[type(kernel)][1]}"]
    for name in ("degree", "gamma", "coef0"):
        if hasattr(kernel, name):
            lines.append(f"{name} {getattr(kernel, name)!r}")
    return lines


def _class_lines(classes: NDArray, machines: Machines) -> list[str]:
    A, B = machines.sigmoids
    lines = [f"label {' '.join(map(str, whole_labels(classes)))}"]
    if len(A):
        lines += [f"probA {_numbers(A)}", f"probB {_numbers(B)}"]
    return [*lines, f"nr_sv {' '.join(map(str, machines.n_support))}"]


def whole_labels(classes: NDArray) -> list[int]:
    """Return classes as the whole numbers that LIBSVM takes."""
    fits = classes.dtype.kind in "iuf" and bool(
        (np.abs(classes.astype(np.float64)) <= LARGEST_LABEL).all()
        and (classes == np.floor(classes)).all()
    )
    if not fits:
        raise ValueError(
            f"LIBSVM's classes are whole numbers up to {LARGEST_LABEL}; got "
            f"{', '.join(map(repr, classes[:3].tolist()))}"
            f"{', ...' if len(classes) > 3 else ''}. Number them, for "
            "example with LabelEncoder, and fit again."
        )
    return [int(value) for value in classes]


def _numbers(values: NDArray) -> str:
    """Write numbers with as many digits as it takes to read them back exactly."""
    return " ".join(map(repr, values.tolist()))


def _vector_lines(machines: Machines, is_given: bool) -> Iterator[str]:
    """Write a line for each support vector: its coefficients, then index:value."""
    coefficients = machines.coefficients.T
    if is_given:
        for row, number in zip(coefficients, machines.support, strict=True):
            yield f"{_numbers(row)} 0:{number + 1}\n"
        return
    vectors = sparse.csr_array(machines.vectors)
    for i, row in enumerate(coefficients):
        part = slice(vectors.indptr[i], vectors.indptr[i + 1])
        columns = (vectors.indices[part] + 1).tolist()
        values = vectors.data[part].tolist()
        features = " ".join(
            f"{column}:{value!r}"
            for column, value in zip(columns, values, strict=True)
            if value
        )
        yield f"{_numbers(row)} {features}\n"
