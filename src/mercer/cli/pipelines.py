"""Building the pipeline that options ask for: features, scaling and a machine."""

from __future__ import annotations

from typing import Any

from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from mercer import (
    SVC,
    SVDD,
    SVR,
    LinearSVC,
    LinearSVR,
    MKLClassifier,
    MKLRegressor,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineSVC,
    PassiveAggressiveClassifier,
)
from mercer.cli.choices import Choices, option_of
from mercer.cli.data.loaded import Schema, is_number
from mercer.cli.failures import UsageFailure
from mercer.cli.models import task_of
from mercer.images import HOG
from mercer.kernels import parse
from mercer.kernels.expression import KERNELS, KernelSyntaxError

__all__ = ["MACHINES", "TASKS", "build", "check_choices"]

MACHINES: dict[str, Any] = {
    "svc": SVC,
    "nusvc": NuSVC,
    "svr": SVR,
    "nusvr": NuSVR,
    "oneclass": OneClassSVM,
    "svdd": SVDD,
    "linear-svc": LinearSVC,
    "linear-svr": LinearSVR,
    "mkl": MKLClassifier,
    "mkl-svr": MKLRegressor,
    "online": OnlineSVC,
    "passive": PassiveAggressiveClassifier,
}
# Strategies of --missing that fill values in, and scikit-learn's names of them.
FILLED = {"mean": "mean", "median": "median", "most-frequent": "most_frequent"}
TASKS = {name: task_of(kind()) for name, kind in MACHINES.items()}


def check_choices(choices: Choices) -> None:
    """Refuse choices that are wrong for any data, before the data are read."""
    for name in choices.kernels:
        _kernel(name, None)
    for name in ("gamma", "degree", "coef0"):
        if choices.parameters.get(name) is not None:
            _check_in_kernels(f"--{name}", name, choices.kernels)
        elif name in choices.searched:
            _check_in_kernels(f"--search {name}", name, choices.kernels)
    if choices.machine != "auto":
        _machine(choices, choices.machine, None)


def _check_in_kernels(option: str, parameter: str, kernels: tuple[str, ...]) -> None:
    """Refuse a parameter of kernels that no kernel takes from the machine."""
    for name in kernels or ("rbf", "poly"):
        if name in KERNELS and parameter in KERNELS[name]().get_params(deep=False):
            return
    (name, *_) = kernels
    if name in KERNELS:
        raise UsageFailure(
            f"{option} is not a parameter of the kernel {name!r}. Leave it out."
        )
    raise UsageFailure(
        f"{option} is for kernels that are given by name, not for {name!r}. Write the "
        "value into the kernel, as in 'rbf(gamma=0.1) + linear'."
    )


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
    if schema.missing in FILLED:
        steps.append(("missing", SimpleImputer(strategy=FILLED[schema.missing])))
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
        _check_taken(option_of(parameter), parameter, name)
    for parameter in choices.searched:
        _check_taken(f"--search {parameter}", parameter, name)
    if "gamma" in given:
        given["gamma"] = _gamma(given["gamma"])
    if "random_state" in takes:
        given["random_state"] = choices.seed
    given |= _kernel_parameters(choices, name, takes, views)
    machine = kind(n_jobs=choices.n_jobs, **given)
    try:
        machine._validate_params()
    except ValueError as error:
        raise UsageFailure(error) from error
    return machine


def _check_taken(option: str, parameter: str, name: str) -> None:
    """Refuse an option that a machine does not take."""
    having = [m for m, k in MACHINES.items() if parameter in k().get_params()]
    if name not in having:
        raise UsageFailure(
            f"{option} is not for --machine {name}, only for {', '.join(having)}. "
            "Leave it out, or choose another machine."
        )


def _kernel_parameters(
    choices: Choices, name: str, takes: dict[str, Any], views: Any
) -> dict[str, Any]:
    """Return what a machine takes as its kernel, or as its kernels."""
    kernels = choices.kernels
    if "kernels" in takes:
        return {"kernels": [_kernel(k, views) for k in kernels]} if kernels else {}
    if len(kernels) > 1:
        raise UsageFailure(
            f"--kernel is given {len(kernels)} times, and only --machine mkl and "
            "mkl-svr take several kernels. Give one, or a sum such as 'rbf + linear'."
        )
    if "kernel" in takes:
        if kernels:
            return {"kernel": _kernel(kernels[0], views)}
        for parameter in ("gamma", "degree", "coef0"):
            is_given = choices.parameters.get(parameter) is not None
            if takes["kernel"] is None and (is_given or parameter in choices.searched):
                raise UsageFailure(
                    f"--{parameter} is for kernels, and --machine {name} is linear "
                    "unless --kernel is given. Give a kernel, such as --kernel rbf."
                )
        return {}
    if kernels and kernels[0] != "linear":
        raise UsageFailure(
            f"--kernel {kernels[0]} is not for --machine {name}, which is linear. "
            "Leave it out, or choose another machine."
        )
    return {}


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
