"""Every bad value of every parameter and array, and the message that it gets."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from mercer import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM

CLASSIFIERS = [SVC, NuSVC]
REGRESSORS = [SVR, NuSVR]
WITH_TARGETS = CLASSIFIERS + REGRESSORS
MACHINES = [*WITH_TARGETS, OneClassSVM, SVDD]
X = np.random.default_rng(0).normal(size=(12, 3))
y = np.arange(12) % 2
K = X @ X.T
X.flags.writeable = y.flags.writeable = K.flags.writeable = False
every_machine = pytest.mark.parametrize("machine", MACHINES)


def spoilt(values, value):
    """Return a copy with one bad entry."""
    values = np.array(values, dtype=float)
    values.flat[-1] = value
    return values


def refuses(action, message, kind=ValueError):
    """Check the type and the text of an error, and that nothing was said before."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(kind) as caught:
            action()
    assert re.search(message, str(caught.value), flags=re.DOTALL), str(caught.value)


# Name: values that are refused, and how the message describes those that are not.
POSITIVE = r"a float in the range \(0\.0, inf\)"
PRICE = [0.0, -1.0, np.nan, "1"], r"a float in the range \(0\.0, inf\]"
SWITCH = ["yes", 2, None], "an instance of 'bool' or an instance of 'numpy.bool'"
SHARE = [0.0, -0.1, 1.1, np.nan, "0.5", None], r"a float in the range \(0\.0, 1\.0\]"
PARAMETERS = {
    "kernel": ([3, None], "an instance of 'str', a callable or an instance of 'mercer"),
    "degree": ([-1, 2.5, "3", None], r"an int in the range \[0, inf\)"),
    "gamma": (
        [-0.1, np.nan, np.inf, "size", None],
        r"a str among {.*'scale'.*} or a float in the range \[0\.0, inf\)",
    ),
    "coef0": ([np.nan, np.inf, "0", None], r"a float in the range \(-inf, inf\)"),
    "solver": (["libsvm", None], "a str among {.*'decompose'.*}"),
    "tol": ([0.0, -1e-3, np.nan, np.inf, "0.1", None], POSITIVE),
    "cache_size": (
        [0, -5, np.nan, np.inf, "all", None],
        "a str among {'auto'} or " + POSITIVE,
    ),
    "max_iter": ([-2, 1.5, np.nan, "9", None], r"an int in the range \[-1, inf\)"),
    "shrinking": SWITCH,
    "device": ([0, None], "an instance of 'str'"),
    "n_jobs": ([1.5, "all"], "an instance of 'int' or None"),
    "verbose": (
        ["loud", -1, None],
        r"an int in the range \[0, inf\), an instance of",
    ),
    "random_state": (
        ["seed", -1, 0.5],
        r"an int in the range \[0, 4294967295\].* None",
    ),
    "C": ([*PRICE[0], None], PRICE[1]),
    "nu": SHARE,
    "epsilon": (
        [-0.1, np.nan, np.inf, "0", None],
        r"a float in the range \[0\.0, inf\)",
    ),
    "offset": ([np.nan, np.inf, "0", None], r"a float in the range \(-inf, inf\)"),
    "multiclass": (["ava", None], "a str among {.*'ecoc'.*}"),
    "decode": (["best", None], "a str among {.*'hamming'.*}"),
    "code": ([3], "an instance of 'str', an array-like or None"),
    "probability": SWITCH,
    "class_weight": (
        ["even", 2.0],
        "a str among {'balanced'}, an instance of 'dict' or",
    ),
    "positive_weight": ([0.0, -1.0, np.nan, np.inf, "2", None], POSITIVE),
    "decision_function_shape": (["ava", None], "a str among {.*'ovr'.*}"),
    "break_ties": SWITCH,
}
OF_ONE = {(SVDD, "C"): ([0.0, -1.0, np.nan, np.inf, "1"], POSITIVE + " or None")}


@every_machine
def test_bad_parameters(machine):
    taken = machine().get_params()
    assert set(machine._parameter_constraints) == set(taken)
    for name in taken:
        values, allowed = OF_ONE.get((machine, name), PARAMETERS[name])
        for value in values:
            message = (
                rf"^The '{name}' parameter of {machine.__name__} must be {allowed}.* "
                rf"Got {re.escape(repr(value))} instead\.$"
            )
            model = machine(**{name: value})
            refuses(lambda model=model: model.fit(X, y), message)


def test_every_parameter_is_in_the_table():
    assert set().union(*(m().get_params() for m in MACHINES)) == set(PARAMETERS)


# Parameters that only data show to be bad, or that contradict each other.
LATER = [
    (MACHINES, dict(kernel="rfb"), "Unknown kernel 'rfb'. Did you mean 'rbf'?"),
    (MACHINES, dict(kernel="rbf +"), "rbf"),
    (MACHINES, dict(gamma=True), "gamma must be a finite number >= 0, .* got True"),
    (
        MACHINES,
        dict(coef0=True, kernel="poly"),
        "coef0 must be a finite number, got True",
    ),
    (MACHINES, dict(device="gpu"), "Unknown device 'gpu'. Available: 'cpu', 'cuda' "),
    (MACHINES, dict(device="cuda:-1"), "Unknown device 'cuda:-1'. Available: 'cpu', "),
    (MACHINES, dict(n_jobs=0), "n_jobs must not be 0: give a number of threads, -1 f"),
    (
        MACHINES,
        dict(kernel=lambda A, B: np.ones((2, 2))),
        r"returned shape \(2, 2\) for 12 x 12 .*; it must return \(12, 12\)",
    ),
    (
        MACHINES,
        dict(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)),
        "The kernel function returned NaN or infinity",
    ),
    (MACHINES, dict(kernel="poly", degree=10**6), "too large. Scale X"),
    (CLASSIFIERS, dict(class_weight={7: 1}), r"\[0, 1\], are not in class_weight"),
    (
        CLASSIFIERS,
        dict(class_weight={0: np.nan}),
        "class_weight must be finite and >= 0, got {0: nan}",
    ),
    (CLASSIFIERS, dict(class_weight={0: np.inf}), "class_weight must be finite and"),
    (
        CLASSIFIERS,
        dict(class_weight={0: -2.0}),
        "class_weight .* got {0: -2.0}",
    ),
    (CLASSIFIERS, dict(class_weight={0: "a"}), "could not convert string to float"),
    (CLASSIFIERS, dict(class_weight={0: 0}), "weights belong to the same class"),
    (
        CLASSIFIERS,
        dict(positive_weight=2.0),
        "needs multiclass='ovr', got multiclass=",
    ),
    (
        CLASSIFIERS,
        dict(multiclass="ovr", positive_weight=[1.0, 2.0, 3.0]),
        r"one number for each of the 2 classes; got an array of shape \(3,\)",
    ),
    (
        CLASSIFIERS,
        dict(multiclass="ovr", positive_weight=[1.0, -2.0]),
        r"positive_weight must be finite and > 0, got \[1\.0, -2\.0\]",
    ),
    (CLASSIFIERS, dict(decode="votes", probability=True), "Set decode='auto', or prob"),
    (CLASSIFIERS, dict(multiclass="ecoc", code="best"), "Unknown code 'best'"),
    (CLASSIFIERS, dict(multiclass="ecoc", code=[[1, 2], [0, 1]]), "-1, 0 and 1"),
    ([SVDD], dict(C=0.01), "C=0.01 is too small: .* Use C of at least 0.08333"),
]


@pytest.mark.parametrize(
    ("machine", "parameters", "message"),
    [(m, p, text) for machines, p, text in LATER for m in machines],
)
def test_parameters_that_do_not_fit(machine, parameters, message):
    refuses(lambda: machine(**parameters).fit(X, y), message)


def test_shares_that_no_machine_can_have():
    unequal = np.r_[0, np.ones(11)]
    message = "nu=0.9, but the weights of two classes allow at most 0.1667. Lower"
    refuses(lambda: NuSVC(nu=0.9).fit(X, unequal), message)


def test_a_matrix_that_needs_more_memory_than_allowed():
    message = "cache_size=1e-09 leaves 0 MB for it. .*use solver='decompose'"
    for machine in MACHINES:
        model = machine(solver="smo", cache_size=1e-9)
        refuses(lambda m=model: m.fit(X, y), message, MemoryError)


SAMPLES = {
    "NaN": (spoilt(X, np.nan), "Input X contains NaN"),
    "infinity": (spoilt(X, -np.inf), "Input X contains infinity or a value too large"),
    "no samples": (
        X[:0],
        r"Found array with 0 sample\(s\) .* minimum of 1 is required",
    ),
    "no features": (X[:, :0], r"0 feature\(s\)"),
    "1-D": (X[:, 0], "Expected 2D array, got 1D array instead:.*Reshape your data"),
    "3-D": (X[None], "Found array with dim 3, while dim <= 2 is required"),
    "scalar": (3.0, "Expected 2D array, got scalar array instead"),
    "None": (None, "Expected 2D array, got scalar array instead"),
    "words": ([["a", "b", "c"]] * 12, "could not convert string to float: 'a'"),
    "complex": (1j * X, "Complex data not supported"),
    "ragged": ([[1.0], [1.0, 2.0]], "inhomogeneous shape"),
    "too large": (1e307 * X, "not finite"),
    "sparse NaN": (sparse.csr_array(spoilt(X, np.nan)), "Input X contains NaN"),
}


@every_machine
@pytest.mark.parametrize("case", SAMPLES)
def test_bad_samples(machine, case):
    bad, message = SAMPLES[case]
    refuses(lambda: machine(kernel="linear").fit(bad, y), message)
    form = sparse.csr_array if sparse.issparse(bad) else np.asarray
    model = machine(kernel="linear").fit(form(X), y)
    if case == "no features":
        message += "|X has 0 features"
    if case != "too large":
        refuses(lambda: model.predict(bad), message)


@every_machine
def test_samples_of_another_kind_than_those_of_the_fit(machine):
    name = machine.__name__
    model = machine().fit(X, y)
    for n, bad in ((2, X[:, :2]), (6, np.hstack([X, X]))):
        message = f"X has {n} features, but {name} is expecting 3 features as input"
        refuses(lambda bad=bad: model.predict(bad), message)
    message = f"cannot use sparse input in '{name}' trained on dense data"
    refuses(lambda: model.predict(sparse.csr_array(X)), message)
    message = f"This {name} instance is not fitted yet. Call 'fit'"
    refuses(lambda: machine().predict(X), message, NotFittedError)


@every_machine
def test_bad_matrices(machine):
    model = machine(kernel="precomputed")
    message = "Precomputed matrix must be a square matrix. Input is a 12x3 matrix"
    refuses(lambda: model.fit(X, y), message)
    message = "Sparse precomputed kernels are not supported"
    refuses(lambda: model.fit(sparse.csr_array(K), y), message, TypeError)
    refuses(lambda: model.fit(spoilt(K, np.nan), y), "Input X contains NaN")
    model.fit(K, y)
    message = f"X has 3 features, but {machine.__name__} is expecting 12 features"
    refuses(lambda: model.predict(X), message)


NO_VALUE = [None, 1.0] * 6
TARGETS = [
    (WITH_TARGETS, np.r_[y, 1], r"inconsistent numbers of samples: \[12, 13\]"),
    (WITH_TARGETS, y[:5], r"inconsistent numbers of samples: \[12, 5\]"),
    (WITH_TARGETS, spoilt(y, np.nan), "Input y contains NaN"),
    (WITH_TARGETS, spoilt(y, np.inf), "Input y contains infinity"),
    (
        WITH_TARGETS,
        np.c_[y, y],
        r"y should be a 1d array, got an array of shape \(12, ",
    ),
    (WITH_TARGETS, 1, r"y should be a 1d array, got an array of shape \(\)"),
    (WITH_TARGETS, None, "requires y to be passed, but the target y is None"),
    (WITH_TARGETS, 1j * y, "Complex data not supported"),
    (
        CLASSIFIERS,
        0 * y,
        "classes has to be greater than one; got 1 class: 0.* OneClassSVM",
    ),
    (CLASSIFIERS, y + 0.5 * X[:, 0], "Unknown label type: continuous"),
    (
        CLASSIFIERS,
        np.array([1, "a"] * 6, dtype=object),
        "y mixes text and other labels",
    ),
    (REGRESSORS, np.array(["a", "b"])[y], "y is '[ab]' at position 0 .*needs numbers"),
    (REGRESSORS, np.array(NO_VALUE, dtype=object), "y is missing at position 0"),
]
WEIGHTS = [
    (spoilt(y, np.nan), "Input sample_weight contains NaN"),
    (spoilt(y, np.inf), "Input sample_weight contains infinity"),
    (np.ones(5), r"sample_weight.shape == \(5,\), expected \(12,\)"),
    (
        np.ones((12, 2)),
        "Sample weights must be 1D array or scalar, got 2D array. Expect",
    ),
    (np.zeros(12), "Invalid input - all samples have zero or negative weights"),
    (-np.ones(12), "Invalid input - all samples have zero or negative weights"),
    (["a"] * 12, "could not convert string to float: 'a'"),
    (1j * np.ones(12), "Complex data not supported"),
]


@pytest.mark.parametrize(
    ("machine", "bad", "message"),
    [(m, bad, text) for machines, bad, text in TARGETS for m in machines],
)
def test_bad_targets(machine, bad, message):
    refuses(lambda: machine().fit(X, bad), message)


@every_machine
@pytest.mark.parametrize(("bad", "message"), WEIGHTS)
def test_bad_weights(machine, bad, message):
    refuses(lambda: machine().fit(X, y, sample_weight=bad), message)


@pytest.mark.parametrize("machine", CLASSIFIERS)
def test_weights_that_leave_one_class(machine):
    message = "all samples with positive weights belong to the same class"
    refuses(lambda: machine().fit(X, y, sample_weight=y.astype(float)), message)


@every_machine
def test_single_precision_that_overflows(machine):
    # In double precision these values are not too large.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        for kernel, scale in (("rbf", 1e37), ("linear", 1e30)):
            data = (scale * X).astype(np.float32)
            model = machine(kernel=kernel, max_iter=1000).fit(data, y)
            assert np.isfinite(model.dual_coef_).all()
            if kernel == "rbf":
                assert model.converged_
                double = machine().fit(data.astype(float), y)
                method = "predict" if machine in REGRESSORS else "decision_function"
                found, expected = (getattr(m, method)(data) for m in (model, double))
                np.testing.assert_allclose(found, expected, atol=1e-2)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_fit_is_endless():
    with pytest.warns(ConvergenceWarning, match="stops after 10000000 steps"):
        SVC(kernel="linear").fit(1e6 * X, y)  # 1e12 steps would be enough


def test_rounding_errors_are_named():
    lopsided = np.triu(np.ones((12, 12)))  # no kernel: what is solved is not its dual
    message = r"KKT gap \S+ and rounding errors of \d\S* are more than tol=0.001 after"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        SVDD(kernel="precomputed").fit(lopsided, y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("machine", [OneClassSVM, SVDD])
def test_samples_that_are_no_numbers(machine):
    def alike(A, B):
        return np.array([[1.0 / (1 + abs(len(a) - len(b))) for b in B] for a in A])

    words = ["a", "bb", "ccc", "dd", "e"]
    model = machine(kernel=alike).fit(words)
    assert model.converged_
    assert np.isfinite(model.decision_function(words)).all()
