"""The cases that are measured: data, settings and peers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = [
    "CASES",
    "PARTS",
    "PEERS",
    "Case",
    "Machine",
    "Setting",
    "find",
    "select",
]

SVMS = ("mercer", "scikit-learn", "scikit-learn-intelex", "libsvm")
PEERS = (*SVMS, "scikit-learn-parallel", "numpy")
# Peers that take only minutes for large n.
FAST_PEERS = ("mercer", "scikit-learn-intelex")
SKLEARN_PEERS = ("mercer", "scikit-learn", "scikit-learn-intelex")
PARALLEL_PEERS = (*SKLEARN_PEERS, "scikit-learn-parallel")

# The KKT gap of large problems is computed for an easy and two hard pairs of digits.
SOME_PAIRS = ((0, 1), (3, 5), (4, 9))
ALL_PAIRS_UP_TO = 5000


class Setting(NamedTuple):
    """The parameters of SVC, with scikit-learn's names."""

    C: float
    kernel: str = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def __str__(self) -> str:
        text = {
            "linear": "linear",
            "poly": f"poly degree={self.degree} gamma={self.gamma:g} "
            f"coef0={self.coef0:g}",
            "rbf": f"rbf gamma={self.gamma:g}",
        }[self.kernel]
        return f"{text} C={self.C:g}"


class Machine(NamedTuple):
    """The name of an estimator, as in scikit-learn, and its parameters."""

    estimator: str
    options: dict[str, Any]

    def __str__(self) -> str:
        return " ".join(
            [self.estimator, *(f"{k}={v:g}" for k, v in self.options.items())]
        )


class Case(NamedTuple):
    """One benchmark: a problem, and the peers that solve it."""

    name: str
    group: str
    kind: str  #: "fit", "gram" or "cold"
    data: str
    n: int
    n_test: int = 0
    setting: Any = None  #: a Setting or, if the scheme is "machine", a Machine
    peers: tuple[str, ...] = SVMS
    cache_mb: float | None = None  #: None is Mercer's default, and as much for others
    is_certified: bool = True
    seed: int = 0  #: seed of random data
    scheme: str = "ovo"  #: "ovo", "ovr", "ecoc", "probability" or "machine"
    has_duals: bool = True  #: whether dual coefficients are brought to a common layout

    @property
    def gap_pairs(self) -> tuple[tuple[int, int], ...] | None:
        """The pairs of classes whose KKT gap is computed; None means all pairs."""
        is_large = self.data == "mnist" and self.n > ALL_PAIRS_UP_TO
        return SOME_PAIRS if is_large else None

    @property
    def dtype(self) -> str:
        """The type of the samples."""
        return "float64" if self.data in ("california", "waves") else "float32"

    @property
    def about(self) -> str:
        """A short description of the case."""
        if self.kind == "cold":
            return "import and first fit, with empty and with filled Numba cache"
        if self.kind == "gram":
            return f"{self.data} Gram matrix of {self.n} random histograms"
        cache = f", cache {self.cache_mb:g} MB" if self.cache_mb else ""
        scheme = f", {self.scheme}" if self.group == "schemes" else ""
        return f"{self.data} n={self.n}, {self.setting}{scheme}{cache}"


RBF = Setting(C=10.0, gamma=0.02)
# About what gamma="scale" is for these data.
LETTER = Setting(C=1.0, gamma=0.0087)
CUBIC = LETTER._replace(kernel="poly")
LINEAR = Setting(C=0.1, kernel="linear")
POLY = Setting(C=10.0, kernel="poly", gamma=0.02, degree=3, coef0=1.0)


def _mnist(name: str, n: int, setting: Setting = RBF) -> Case:
    return Case(name, "mnist", "fit", "mnist", n, 10_000, setting)


MNIST_5000 = _mnist("mnist-5000", 5000)
# There are 200 training and 20 test samples of each class.
HUNDRED = Case("", "", "fit", "hundred", 20_000, 2000, Setting(C=1.0, gamma=0.01))


def _growth(n: int) -> Case:
    return Case(
        f"growth-{n}", "growth", "fit", "mnist", n, 1000, RBF, FAST_PEERS,
        is_certified=False,
    )  # fmt: skip


def _scheme(
    name: str, scheme: str, peers: tuple[str, ...], case: Case = MNIST_5000
) -> Case:
    return case._replace(
        name=name, group="schemes", scheme=scheme, peers=peers, is_certified=False,
        has_duals=False, n_test=2000,
    )  # fmt: skip


def _machine(
    name: str,
    data: str,
    n: int,
    n_test: int,
    machine: Machine,
    peers: tuple[str, ...] = SKLEARN_PEERS,
) -> Case:
    return Case(
        name,
        "machines",
        "fit",
        data,
        n,
        n_test,
        machine,
        peers,
        is_certified=False,
        scheme="machine",
        has_duals=False,
    )


CASES = (
    MNIST_5000,
    _mnist("mnist-20000", 20_000),
    _mnist("mnist-60000", 60_000),
    _mnist("mnist-5000-linear", 5000, LINEAR),
    _mnist("mnist-5000-poly", 5000, POLY),
    Case("a9a", "binary", "fit", "a9a", 32_561, 16_281, Setting(C=1.0, gamma=0.05)),
    Case(
        "ijcnn1", "binary", "fit", "ijcnn1", 49_990, 91_701, Setting(C=10.0, gamma=1.0)
    ),
    Case("letter", "tables", "fit", "letter", 15_000, 5000, LETTER, is_certified=False),
    Case("letter-cubic", "tables", "fit", "letter", 15_000, 5000, CUBIC,
         is_certified=False),
    *(_growth(n) for n in (1000, 2000, 5000, 10_000, 20_000)),
    Case(
        "memory", "memory", "fit", "mnist", 60_000, 10_000, RBF, FAST_PEERS, 1000,
        is_certified=False,
    ),
    _scheme("mnist-5000-ovr", "ovr", PARALLEL_PEERS),
    _scheme("mnist-5000-ecoc", "ecoc", SKLEARN_PEERS),
    _scheme("mnist-5000-probability", "probability", PARALLEL_PEERS),
    _scheme("hundred-classes", "ovo",
            SKLEARN_PEERS, HUNDRED),
    _machine("one-class", "mnist", 20_000, 10_000,
             Machine("OneClassSVM", {"nu": 0.1, "gamma": 0.02}),
             ("mercer", "scikit-learn")),
    _machine("svr", "california", 10_000, 10_640, Machine("SVR", {"C": 1.0})),
    _machine("nu-svr", "california", 10_000, 10_640, Machine("NuSVR", {"C": 1.0})),
    _machine("sparse", "a9a-sparse", 32_561, 16_281,
             Machine("SVC", {"C": 1.0, "gamma": 0.05})),
    Case("cold-start", "cold-start", "cold", "none", 60,
         peers=("mercer", "scikit-learn")),
    Case("gram-chi2", "kernels", "gram", "chi2", 5000,
         peers=("mercer", "scikit-learn")),
    Case("gram-intersection", "kernels", "gram", "intersection", 5000,
         peers=("mercer", "numpy")),
)  # fmt: skip

#: The cases and peers behind the published tables, in parts of a few minutes each on
#: two cores. Two peers that would take longer are left out: scikit-learn beyond 5,000
#: images, and LIBSVM, whose solver is that of scikit-learn.
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "mnist": (("mnist-5000",), SKLEARN_PEERS),
    "mnist-large": (("mnist-20000", "mnist-60000"), FAST_PEERS),
    "linear-poly": (("mnist-5000-linear", "mnist-5000-poly"), SKLEARN_PEERS),
    "a9a": (("a9a",), SKLEARN_PEERS),
    "ijcnn1": (("ijcnn1",), SKLEARN_PEERS),
    "letter": (("letter", "letter-cubic"), SKLEARN_PEERS),
    "regression": (("svr", "nu-svr"), SKLEARN_PEERS),
    "one-class": (("one-class",), SKLEARN_PEERS),
    "sparse": (("sparse",), SKLEARN_PEERS),
    "ovr": (("mnist-5000-ovr",), PARALLEL_PEERS),
    "probability": (("mnist-5000-probability",), PARALLEL_PEERS),
    "ecoc": (("mnist-5000-ecoc",), SKLEARN_PEERS),
    "hundred": (("hundred-classes",), SKLEARN_PEERS),
    "small": (("cold-start", "gram-chi2", "gram-intersection"), PEERS),
}

# Sizes of a smoke run. The cases that are not listed run the same code as others.
FAST_SIZES = {
    "mnist-5000": 300,
    "mnist-5000-linear": 300,
    "mnist-5000-poly": 300,
    "a9a": 300,
    "letter": 800,
    "letter-cubic": 800,
    "growth-1000": 100,
    "growth-2000": 200,
    "memory": 400,
    "mnist-5000-ovr": 300,
    "mnist-5000-ecoc": 300,
    "mnist-5000-probability": 300,
    "hundred-classes": 600,
    "one-class": 300,
    "svr": 300,
    "nu-svr": 300,
    "sparse": 300,
    "cold-start": 60,
    "gram-chi2": 100,
    "gram-intersection": 100,
}
FAST_DATA = {
    "mnist": "digits",
    "a9a": "blobs",
    "ijcnn1": "blobs",
    "a9a-sparse": "blobs-sparse",
    "california": "waves",
}
FAST_TEST_SIZE = 200


def _fast(case: Case) -> Case:
    return case._replace(
        n=FAST_SIZES[case.name],
        data=FAST_DATA.get(case.data, case.data),
        n_test=min(case.n_test, FAST_TEST_SIZE),
    )


def _all(is_fast: bool) -> list[Case]:
    if is_fast:
        return [_fast(case) for case in CASES if case.name in FAST_SIZES]
    return list(CASES)


def find(name: str, is_fast: bool) -> Case:
    """Return the case of that name."""
    return next(case for case in _all(is_fast) if case.name == name)


def select(names: Sequence[str], peers: Sequence[str], is_fast: bool) -> list[Case]:
    """Return the cases with these names or groups, and these peers only.

    No names mean all cases.
    """
    cases = _all(is_fast)
    known = sorted({case.name for case in cases} | {case.group for case in cases})
    for name in names:
        if name not in known:
            raise ValueError(f"Unknown case {name!r}. Known: {', '.join(known)}.")
    for peer in peers:
        if peer not in PEERS:
            raise ValueError(f"Unknown peer {peer!r}. Known: {', '.join(PEERS)}.")
    chosen = [c for c in cases if not names or c.name in names or c.group in names]
    return [
        case._replace(peers=tuple(p for p in case.peers if p in peers))
        for case in chosen
        if set(case.peers) & set(peers)
    ]
