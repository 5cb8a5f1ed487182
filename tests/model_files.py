"""What the tests of model files share."""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

import naive
from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.kernels import RBF, Laplacian, Linear, Polynomial, Sigmoid


def toy_data():
    """Return 60 samples of three classes, read-only, no value negative."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.random((60, 4)) + 0.3 * y[:, None]
    X.flags.writeable = False
    return X, y


def same(value, other):
    """Tell whether two attributes are the same to the last bit."""
    if sparse.issparse(value):
        return type(value) is type(other) and same(value.toarray(), other.toarray())
    if isinstance(value, np.ndarray):
        return value.dtype == other.dtype and np.array_equal(value, other)
    return repr(value) == repr(other)


def assert_same(model, again, X):
    assert type(again) is type(model)
    state = model.__getstate__()
    assert again.__getstate__().keys() == state.keys()
    for name, value in state.items():
        assert same(value, getattr(again, name)), name
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, method):
            assert np.array_equal(getattr(model, method)(X), getattr(again, method)(X))


# Every machine that scikit-learn and LIBSVM have too, and what it learns.
MACHINES = {
    "SVC, two classes": (SVC(C=3.0), "side"),
    "SVC, one-vs-one": (SVC(decision_function_shape="ovo"), "class"),
    "SVC, votes and margins": (SVC(class_weight={5: 2.0}), "class"),
    "SVC, one-vs-rest": (SVC(multiclass="ovr"), "class"),
    "SVC, two probabilities": (SVC(probability=True, random_state=0), "side"),
    "SVC, probabilities": (SVC(probability=True, random_state=0), "class"),
    "NuSVC, two classes": (NuSVC(nu=0.6), "side"),
    "NuSVC, one-vs-one": (NuSVC(nu=0.6, decision_function_shape="ovo"), "class"),
    "NuSVC, one-vs-rest": (NuSVC(nu=0.5, multiclass="ovr"), "class"),
    "SVR": (SVR(epsilon=0.2), "number"),
    "NuSVR": (NuSVR(nu=0.4), "number"),
    "OneClassSVM": (OneClassSVM(nu=0.3), "class"),
}
#: Kernels that LIBSVM has.
PLAIN_KERNELS = {
    "linear": Linear(),
    "poly": Polynomial(3, 0.2, 1.0),
    "rbf": RBF(0.3),
    "sigmoid": Sigmoid(0.05, -0.1),
    "precomputed": "precomputed",
}
KERNELS = {
    **PLAIN_KERNELS,
    "gamma by itself": "rbf",
    "composed": RBF(0.5) * Linear() + Laplacian(0.4).on([0, 2]),
}


class RealFit(NamedTuple):
    """A machine after its fit, and samples that it has not seen."""

    model: object
    new: object  #: samples, or the kernel's values of them with those of the fit
    points: np.ndarray  #: samples as they are, dense and in double precision
    seen: np.ndarray  #: the samples of the fit in the same form
    tolerance: float  #: how far decision values in another precision may be
    case: str


def real_fits(machine, kernel):
    """Fit a machine on dense and sparse samples in both precisions."""
    model, wanted = MACHINES[machine]
    seen, targets = _apart(60, seed=0)
    points, _ = _apart(25, seed=1)
    for dtype in (np.float64, np.float32):
        for kind in (np.asarray, sparse.csr_matrix, sparse.csr_array):
            X, new = seen.astype(dtype), points.astype(dtype)
            if kernel == "precomputed":
                if kind is not np.asarray:
                    continue  # scikit-learn does not take it either
                X, new = X @ X.T, new @ X.T
            fitted = clone(model).set_params(kernel=KERNELS[kernel])
            fitted.fit(kind(X), targets[wanted])
            size = np.abs(fitted.dual_coef_).sum() * np.abs(X).max() ** 2 + 1.0
            yield RealFit(
                fitted,
                kind(new),
                points.astype(dtype).astype(np.float64),
                seen.astype(dtype).astype(np.float64),
                float(10 * np.finfo(dtype).eps * size),
                f"{kind.__name__}, {np.dtype(dtype)}",
            )


def _apart(n, seed):
    """Return samples of which the origin is not one, and what there is to learn."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.arange(n) % 3)
    X = rng.normal(size=(n, 4)) * (rng.random((n, 4)) > 0.3)
    X[:, :3] += 2.0 * np.eye(3)[group] + 0.5
    targets = {
        "side": np.where(group > 0, 4, -3),
        "class": np.array([-3, 5, 40])[group],
        "number": X[:, 1] + np.sin(X[:, 0]),
    }
    return X, targets


def values_of(model, X):
    """Return decision values, or what a regressor predicts."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict(X)


def libsvm_values(path, points, seen):
    """Compute decision values from a file of LIBSVM, as its documentation has it.

    One column for each pair of classes, in LIBSVM's order and with its signs.
    """
    head, body = path.read_text().split("SV\n")
    lines = {key: rest for key, *rest in map(str.split, head.splitlines())}
    n_rows = max(int(lines["nr_class"][0]) - 1, 1)
    coefficients, K = [], []
    for line in body.splitlines():
        entries = line.split()
        coefficients.append([float(entry) for entry in entries[:n_rows]])
        vector = np.zeros(points.shape[1])
        for column, value in (entry.split(":") for entry in entries[n_rows:]):
            if column == "0":
                vector = seen[int(value) - 1]
            else:
                vector[int(column) - 1] = float(value)
        K.append([_kernel_of(lines, x, vector) for x in points])
    coefficients, K = np.array(coefficients), np.array(K)
    if "label" not in lines:
        return (coefficients.T @ K).T - float(lines["rho"][0])
    ends = np.cumsum([0, *map(int, lines["nr_sv"])])
    columns = []
    for i in range(n_rows + 1):
        for j in range(i + 1, n_rows + 1):
            a, b = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
            values = coefficients[a, j - 1] @ K[a] + coefficients[b, i] @ K[b]
            columns.append(values - float(lines["rho"][len(columns)]))
    return np.transpose(columns)


def _kernel_of(lines, x, z):
    """Return one value of the kernel that a file of LIBSVM names."""
    numbers = {k: float(lines[k][0]) for k in ("gamma", "coef0") if k in lines}
    match lines["kernel_type"][0]:
        case "linear" | "precomputed":  # the matrices here are of inner products
            return naive.linear(x, z)
        case "rbf":
            return naive.rbf(x, z, **numbers)
        case "polynomial":
            return naive.polynomial(x, z, degree=int(lines["degree"][0]), **numbers)
        case "sigmoid":
            return naive.sigmoid(x, z, **numbers)
