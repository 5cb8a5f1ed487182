"""Model files in LIBLINEAR's text format, which its ``predict`` reads."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.files.libsvm import whole_labels
from mercer.machines.linear import LinearSVC, LinearSVR
from mercer.runtime.public import public
from mercer.runtime.user_warnings import warn_user
from mercer.runtime.validation import as_dense
from mercer.runtime.writing import replacing

__all__ = ["export_liblinear"]

_SOLVERS = {
    ("l2", "squared_hinge"): "L2R_L2LOSS_SVC",
    ("l2", "hinge"): "L2R_L1LOSS_SVC_DUAL",
    ("l1", "squared_hinge"): "L1R_L2LOSS_SVC",
    ("l2", "squared_epsilon_insensitive"): "L2R_L2LOSS_SVR",
    ("l2", "epsilon_insensitive"): "L2R_L1LOSS_SVR_DUAL",
}


@public("mercer")
def export_liblinear(model: Any, path: str | os.PathLike) -> None:
    """Write a fitted linear machine as a file for LIBLINEAR's ``predict``.

    Numbers are written so that they are read back exactly. Columns of the data are
    numbered from 1, as in LIBLINEAR. Probabilities are not part of the format.

    Parameters
    ----------
    model : LinearSVC or LinearSVR
        Fitted; with whole numbers as classes.
    path : str or path
        The file; an older one is replaced only when the new one is complete.

    Raises
    ------
    ValueError
        If LIBLINEAR does not have such a model.

    See Also
    --------
    export_libsvm : for machines with a kernel.
    save : keeps every model of Mercer.

    Examples
    --------
    >>> import tempfile, pathlib, mercer
    >>> X, y = mercer.datasets.make_moons(random_state=0)
    >>> model = mercer.LinearSVC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "moons.model")
    ...     mercer.export_liblinear(model, path)
    ...     path.read_text().splitlines()[:3]
    ['solver_type L2R_L2LOSS_SVC', 'nr_class 2', 'label 1 0']
    """
    if not isinstance(model, LinearSVC | LinearSVR):
        raise ValueError(
            f"{type(model).__name__} is not a linear machine of Mercer. LIBLINEAR has "
            "LinearSVC and LinearSVR; export_libsvm writes machines with a kernel."
        )
    check_is_fitted(model)
    weights = np.atleast_2d(as_dense(model.coef_))
    intercept = np.broadcast_to(model.intercept_, len(weights))
    is_joint = getattr(model, "multi_class", "ovr") == "crammer_singer"
    if is_joint and len(weights) == 1:
        # LIBLINEAR keeps the weights of both classes here.
        weights = np.vstack([0.5 * weights, -0.5 * weights])
        intercept = np.array([0.5, -0.5]) * intercept
    solver = _SOLVERS[getattr(model, "penalty", "l2"), model.loss]
    head = [f"solver_type {'MCSVM_CS' if is_joint else solver}"]
    if isinstance(model, LinearSVC):
        labels = whole_labels(model.classes_)
        if len(labels) == 2:
            labels = labels[::-1]  # its first class is the positive side
        head += [f"nr_class {len(labels)}", f"label {' '.join(map(str, labels))}"]
        if model.probability:
            warn_user(
                "LIBLINEAR predicts by the decision values; with probability=True "
                "LinearSVC predicts the most probable class. The two can differ."
            )
    else:
        head.append("nr_class 2")
    head.append(f"nr_feature {weights.shape[1]}")
    rows = weights.T
    if model.fit_intercept:
        bias = float(model.intercept_scaling) if model.penalize_intercept else 1.0
        rows = np.vstack([rows, intercept / bias])
        head.append(f"bias {bias!r}")
    else:
        head.append("bias -1")
    with replacing(path) as file:
        for line in (*head, "w"):
            file.write(f"{line}\n".encode())
        for row in rows.tolist():
            file.write((" ".join(map(repr, row)) + " \n").encode())
