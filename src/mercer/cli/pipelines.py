"""Building the pipeline that options ask for: features, scaling and a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from mercer import SVC, SVDD, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from mercer.cli.data.loaded import Schema, is_number
from mercer.cli.failures import UsageFailure
from mercer.images import HOG
from mercer.kernels import parse
from mercer.kernels.expression import KERNELS, KernelSyntaxError
from mercer.runtime.devices import check_device

__all__ = ["DEFAULT_KERNEL", "MACHINES", "TASKS", "Choices", "build", "check_choices"]

MACHINES: dict[str, Any] = {
    "svc": SVC,
    "nusvc": NuSVC,
    "svr": SVR,
    "nusvr": NuSVR,
    "oneclass": OneClassSVM,
    "svdd": SVDD,
    "linear-svc": LinearSVC,
    "linear-svr": LinearSVR,
}
#: the kernel of machines that take one, if none is given
DEFAULT_KERNEL = "rbf"
TASKS = {
    "svc": "classification",
    "nusvc": "classification",
    "svr": "regression",
    "nusvr": "regression",
    "oneclass": "novelty",
    "svdd": "novelty",
    "linear-svc": "classification",
    "linear-svr": "regression",
}


@dataclass(frozen=True)
class Choices:
    """The machine that is wanted; parameters that are None keep their defaults."""

    machine: str
    kernel: str
    parameters: dict[str, Any]
    scale: str = "none"
    features: str = "pixels"
    cell_size: int | None = None
    n_jobs: int | None = None
    seed: int = 0


def check_choices(choices: Choices) -> None:
    """Refuse choices that are wrong for any data, before the data are read."""
    name = choices.kernel.strip()
    if name not in KERNELS:
        _kernel(name, None)
    if choices.n_jobs == 0:
        raise UsageFailure("--n-jobs must not be 0. Use -1 for all cores.")
    given = choices.parameters
    try:
        check_device(given.get("device") or "cpu")
    except ValueError as error:
        raise UsageFailure(f"--device: {error}") from error
    for parameter in ("gamma", "degree", "coef0"):
        if given.get(parameter) is None:
            continue
        if name not in KERNELS:
            raise UsageFailure(
                f"--{parameter} is for kernels that are given by name, not for "
                f"{name!r}. Write it into the kernel, as in 'rbf(gamma=0.1) + linear'."
            )
        if parameter not in KERNELS[name]().get_params(deep=False):
            raise UsageFailure(
                f"--{parameter} is not a parameter of the kernel {name!r}. Leave it "
                "out."
            )
    if choices.machine != "auto":
        _machine(choices, choices.machine, None)


def build(choices: Choices, machine: str, schema: Schema, is_sparse: bool) -> Pipeline:
    """Return the pipeline for data with this schema."""
    steps: list[tuple[str, Any]] = []
    if choices.features == "hog":
        if schema.image is None:
            raise UsageFailure(
                "--features hog is for images. Leave it out, or give images."
            )
        hog = HOG(shape=schema.image.shape, n_jobs=choices.n_jobs)
        if choices.cell_size is not None:
            hog.set_params(cell_size=choices.cell_size)
        steps.append(("features", hog))
    if choices.scale != "none":
        steps.append(("scale", _scaler(choices.scale, is_sparse)))
    views = {} if steps and steps[0][0] == "features" else schema.layout()
    steps.append(("machine", _machine(choices, machine, views)))
    return Pipeline(steps)


def _scaler(scale: str, is_sparse: bool) -> Any:
    """Return a scaler; one for sparse data keeps zeros."""
    if scale == "standard":
        return StandardScaler(with_mean=not is_sparse)
    return MaxAbsScaler() if is_sparse else MinMaxScaler()


def _machine(choices: Choices, name: str, views: Any) -> Any:
    kind = MACHINES[name]
    takes = kind().get_params(deep=False)
    given = {key: v for key, v in choices.parameters.items() if v is not None}
    for parameter in given:
        if parameter not in takes:
            having = [m for m, k in MACHINES.items() if parameter in k().get_params()]
            raise UsageFailure(
                f"--{parameter.replace('_', '-')} is not for --machine {name}, only "
                f"for {', '.join(having)}. Leave it out, or choose another machine."
            )
    if "gamma" in given:
        given["gamma"] = _gamma(given["gamma"])
    if "random_state" in takes:
        given["random_state"] = choices.seed
    if "kernel" in takes:
        given["kernel"] = _kernel(choices.kernel.strip(), views)
    elif choices.kernel not in (DEFAULT_KERNEL, "linear"):
        raise UsageFailure(
            f"--kernel {choices.kernel} is not for --machine {name}, which is linear. "
            "Leave it out, or choose another machine."
        )
    machine = kind(n_jobs=choices.n_jobs, **given)
    try:
        machine._validate_params()
    except ValueError as error:
        raise UsageFailure(error) from error
    return machine


def _gamma(text: str) -> float | str:
    return float(text) if is_number(text) else text


def _kernel(text: str, views: Any) -> Any:
    """Return a kernel, in which names after ``@`` are columns of the table."""
    if text in KERNELS:
        return text
    try:
        return parse(text, views)
    except KernelSyntaxError as error:
        raise UsageFailure(f"--kernel: {error.args[0].rsplit('^', 1)[0]}") from error
    except ValueError as error:
        raise UsageFailure(f"--kernel: {error}") from error
