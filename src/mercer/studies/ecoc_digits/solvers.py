"""Training times of several solvers over the number of samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC as PeerSVC

from mercer import SVC
from mercer.studies.measures import timed_fit
from mercer.studies.panels import curves_panel
from mercer.studies.results import Figure, Item, Row
from mercer.studies.verdicts import judge_time

__all__ = ["compare_solvers"]

# A solver is not run again at one size after this many seconds.
ENOUGH = 4.0
SOLVERS: dict[str, Any] = {
    "Platt–Keerthi 1": {"solver": "platt"},
    "WSS1, no cache": {"solver": "wss1", "cache_size": 0.001},
    "WSS1, cached": {"solver": "wss1"},
    "WSS2, cached": {"solver": "wss2"},
    "Mercer's own": {"solver": "auto"},
    "scikit-learn": None,
}


def compare_solvers(
    kernel: str,
    params: Mapping[str, Any],
    X: NDArray,
    y: NDArray,
    sizes: Sequence[int],
    repeats: int,
) -> Iterator[Item]:
    """Yield a row for each solver, its times over ``sizes``, and a figure of them."""
    times, gaps = _measure(params, X, y, sizes, repeats)
    peer = times["scikit-learn"]
    for name, own in times.items():
        slope = np.polyfit(np.log(sizes[1:]), np.log(own[1:]), 1)[0]
        values = {f"n{k}": t for k, t in enumerate(own)}
        values |= {
            "slope": round(float(slope), 2),
            "ratio": round(own[-1] / peer[-1], 3),
        }
        published = {}
        if name == "WSS1, cached" and kernel == "Gaussian":
            published = {"slope": 2.0, "ratio": 5.8}
        yield Row(f"solvers {kernel}", name, values, published, gap=gaps[name])
    series = {name: (list(sizes), own) for name, own in times.items()}
    words = ("training images", "seconds")
    yield Figure(
        f"times-{kernel}",
        f"Training time of the solvers, {kernel} kernel, for the first classifier of "
        "the code (even against odd). On the right both axes are logarithmic.",
        (
            curves_panel(series, *words, f"{kernel} kernel"),
            curves_panel(series, *words, "log-log", log_x=True, log_y=True),
        ),
    )
    if kernel == "Gaussian":
        platt = times["Platt–Keerthi 1"][-1]
        yield judge_time(
            "Platt's SMO runs much longer than all other methods.",
            platt,
            max(own[-1] for name, own in times.items() if name[:3] == "WSS"),
            f"It takes {platt:.2f} s at {sizes[-1]:,} images. The report's code keeps "
            "F on I₀ only and computes the rest again; ours keeps F for every row, "
            "with the matrix in memory, so that it can afford many cheap steps.",
        )
        first, second = times["WSS1, cached"][-1], times["WSS2, cached"][-1]
        yield judge_time(
            "WSS2 is slower than WSS1, its better choice outweighed by its cost.",
            second,
            first,
            f"At {sizes[-1]:,} images WSS1 takes {first:.2f} s and WSS2 {second:.2f} "
            "s.",
        )


def _measure(
    params: Mapping[str, Any],
    X: NDArray,
    y: NDArray,
    sizes: Sequence[int],
    repeats: int,
) -> tuple[dict[str, list[float]], dict[str, float | None]]:
    """Return the least time of each solver at each size, and its last dual gap."""
    times: dict[str, list[float]] = {name: [] for name in SOLVERS}
    gaps: dict[str, float | None] = dict.fromkeys(SOLVERS)
    for n in sizes:
        for name, how in SOLVERS.items():
            model = PeerSVC(**params) if how is None else SVC(**params, **how)
            taken: list[float] = []
            while sum(taken) < ENOUGH and len(taken) < repeats:  # the first may compile
                fitted = timed_fit(model, X[:n], y[:n])
                taken.append(fitted.seconds)
                gaps[name] = fitted.gap
            times[name].append(min(taken))
    return times, gaps
