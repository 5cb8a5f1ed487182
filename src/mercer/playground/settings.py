"""The machine that the page describes: as an estimator, and as Python code.

Both come from one table of constructor arguments, so that the code that the page copies
makes the very model that it shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mercer
from mercer.kernels.base import Kernel
from mercer.kernels.expression import KERNELS, parse, to_text
from mercer.machines.base.machine import as_kernel
from mercer.playground import messages
from mercer.playground.messages import Refusal

__all__ = ["CLASSIFIERS", "MACHINES", "MachineSettings", "python_call"]

CLASSIFIERS = ("SVC", "NuSVC")
MACHINES = (
    *CLASSIFIERS,
    "SVR",
    "OneClassSVM",
    "SVDD",
    "KernelKMeans",
    "KernelPCA",
)
SCHEMES = ("ovo", "ovr", "ecoc")
LONGEST_KERNEL = 300
#: Number of components of which there is a picture.
N_COMPONENTS = 6
# A fit with more steps would keep the page waiting; it then says that it has not
# converged.
MOST_STEPS = 2_000_000
# The columns of the plane may be called x and y in a kernel.
COLUMNS = {"x": [0], "y": [1]}


@dataclass(frozen=True)
class MachineSettings:
    """The fields of the page that describe a machine."""

    machine: str
    kernel: str
    gamma: float
    degree: int
    coef0: float
    C: float
    nu: float
    epsilon: float
    multiclass: str
    probability: bool
    n_clusters: int

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> MachineSettings:
        """Read and check the fields of a request."""
        return cls(
            machine=messages.choice(message, "machine", MACHINES, "SVC"),
            kernel=messages.text(message, "kernel", LONGEST_KERNEL, "rbf").strip(),
            gamma=messages.number(message, "gamma", 1e-4, 1e4, 1.0),
            degree=messages.whole(message, "degree", 1, 20, 3),
            coef0=messages.number(message, "coef0", -100.0, 100.0, 1.0),
            C=messages.number(message, "C", 1e-4, 1e6, 1.0),
            nu=messages.number(message, "nu", 1e-3, 1.0, 0.5),
            epsilon=messages.number(message, "epsilon", 0.0, 10.0, 0.1),
            multiclass=messages.choice(message, "multiclass", SCHEMES, "ovo"),
            probability=messages.switch(message, "probability"),
            n_clusters=messages.whole(message, "n_clusters", 1, 6, 2),
        )

    def bound_kernel(self) -> Kernel:
        """Return the kernel; a text that is not one is refused with the reason."""
        try:
            if self.kernel in KERNELS:
                return as_kernel(
                    self.kernel,
                    degree=self.degree,
                    gamma=self.gamma,
                    coef0=self.coef0,
                )
            return parse(self.kernel, views=COLUMNS)
        except RecursionError as error:
            raise Refusal("The kernel is nested too deeply.", "kernel") from error
        except (ValueError, TypeError, OverflowError) as error:
            raise Refusal(str(error), "kernel") from error

    def kernel_arguments(self) -> dict[str, Any]:
        """Return the arguments of an estimator that describe the kernel."""
        kernel = self.bound_kernel()
        if self.kernel not in KERNELS:
            return {"kernel": to_text(kernel)}
        takes = kernel.get_params(deep=False)
        sliders = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        chosen = {name: value for name, value in sliders.items() if name in takes}
        return {"kernel": self.kernel, **chosen}

    def arguments(self, n_samples: int) -> dict[str, Any]:
        """Return the arguments of the machine's constructor."""
        kernel = self.kernel_arguments()
        if self.machine in CLASSIFIERS:
            first = {"C": self.C} if self.machine == "SVC" else {"nu": self.nu}
            found = {**first, **kernel, "multiclass": self.multiclass}
            if self.probability:
                found |= {"probability": True, "random_state": 0}
            return found
        if self.machine == "SVR":
            return {"C": self.C, "epsilon": self.epsilon, **kernel}
        if self.machine == "OneClassSVM":
            return {"nu": self.nu, **kernel}
        if self.machine == "SVDD":
            # With this C at most the share ν of the samples is outside the ball.
            most = max(1, n_samples)
            return {"C": min(1.0, 1.0 / (self.nu * most)), **kernel}
        if self.machine == "KernelKMeans":
            return {"n_clusters": self.n_clusters, **kernel, "random_state": 0}
        n_components = max(1, min(N_COMPONENTS, n_samples - 1))
        return {"n_components": n_components, **kernel}

    def estimator(self, n_samples: int) -> Any:
        """Return the machine, before its fit."""
        found = getattr(mercer, self.machine)(**self.arguments(n_samples))
        if "max_iter" in found.get_params() and self.machine not in (
            "KernelKMeans",
            "KernelPCA",
        ):
            found.set_params(max_iter=MOST_STEPS)
        return found


def python_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the call of a constructor as Python code."""
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{name}({given})"
