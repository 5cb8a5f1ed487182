"""The protocol of the study ``kernel-methods``, and what was published, as data."""

from __future__ import annotations

from typing import Any

from mercer.studies.study import Table

__all__ = ["GAMMAS", "KERNELS", "STATEMENT"]

GAMMAS = (0.5, 1, 2, 3, 5, 7, 10, 13, 16, 20, 30)
KERNELS: dict[str, dict[str, Any]] = {
    "cosine": {"kernel": "cosine"},
    "polynomial": {"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1},
    "Gaussian": {"kernel": "rbf", "gamma": 1.0},
}


STATEMENT: dict[str, Any] = {
    "name": ("kernel-methods"),
    "title": ("Kernel methods, offline and online"),
    "about": (
        "PCA, k-means and the enclosing ball with and without kernels; "
        "passive-aggressive and online support vector machines. The report prints "
        "pictures and no table of numbers."
    ),
    "protocol": (
        "PCA by covariance eigenvalues and by SVD, kernel PCA with cosine, polynomial "
        "and Gaussian kernels; time and variance against n and γ.",
        "The report's “Gaussian projection” is pointwise, exp(−γ(x − mean)²), before "
        "plain PCA or k-means. It is shown beside true kernel PCA and true kernel "
        "k-means.",
        "SVDD: min αᵀGα − Σ αᵢGᵢᵢ, Σα = 1, 0 ≤ αᵢ ≤ C; hard and soft, wider and "
        "narrower.",
        "Passive-aggressive: 200 training and 100 test samples with noise, three "
        "updates, sample by sample or in groups, linear and with a kernel.",
        "Online: LASVM and online SMO over n, started from nothing and from a whole "
        "set.",
    ),
    "errata": (
        "Passive-aggressive machines update on any positive loss, not only on a wrong "
        "sign.",
        "LASVM's reprocess removes only samples with α = 0 that cannot come back, and "
        "“finish” repeats while δ > τ.",
        "Steps are clipped by both bounds: λ = min((gᵢ−gⱼ)/(Kᵢᵢ+Kⱼⱼ−2Kᵢⱼ), Bᵢ−αᵢ, "
        "αⱼ−Aⱼ).",
        "What the report calls kernel PCA and kernel k-means is neither: its "
        "projection maps each coordinate by itself and keeps the number of dimensions.",
    ),
    "tables": (
        Table(
            "best",
            "Beyond the report",
            {"test": "test %", "setting": "chosen"},
            ("test",),
        ),
        Table(
            "pca",
            "Variance in two components",
            {"variance": "variance %"},
            ("variance",),
        ),
        Table(
            "clusters", "Clusters: labels that differ", {"error": "error %"}, ("error",)
        ),
        Table(
            "balls",
            "One class enclosed",
            {"precision": "precision %", "recall": "recall %"},
            ("precision", "recall"),
        ),
        Table(
            "passive",
            "Passive-aggressive",
            {
                "train": "training %",
                "test": "test %",
                "grouped": "in groups of 20, test %",
            },
            ("train", "test", "grouped"),
        ),
        Table(
            "online",
            "Online support vector machines",
            {
                "n": "n",
                "test": "test %",
                "held": "samples held",
                "infer": "inference, s",
            },
            ("test",),
        ),
    ),
}
