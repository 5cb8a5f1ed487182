"""The protocol of the study ``kernel-methods``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from studies.kernel_methods.published import PUBLISHED, SOURCE
from studies.manifest import read_manifest
from studies.published import Late
from studies.study import Beside, ResultTable

__all__ = ["DRAWN_GAMMAS", "GAMMAS", "KERNELS", "STATEMENT"]

GAMMAS = (0.5, 1, 2, 3, 5, 7, 10, 13, 16, 20, 30)
# The values of γ that have pictures of their own.
DRAWN_GAMMAS = (0.5, 2, 7, 13)
KERNELS: dict[str, dict[str, Any]] = {
    "cosine": {"kernel": "cosine"},
    "polynomial": {"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1},
    "Gaussian": {"kernel": "rbf", "gamma": 1.0},
}


BY_HAND = Late(
    "All parameters of this study but those that a row calls chosen or tuned: sizes, "
    "noise and scales of the data, γ of PCA, of k-means and of one-class machines "
    "(1.5, so that a sample of the other class lies within), C, groups of 20",
    "Before and while the figures were drawn, so that they look like the report’s",
    "The samples of the figures themselves",
)
STATEMENT: dict[str, Any] = {
    "name": "kernel-methods",
    "title": "Kernel methods, offline and online",
    "about": (
        "PCA, k-means and the enclosing ball with and without kernels; "
        "passive-aggressive and online support vector machines. The report has "
        "pictures but no tables of numbers."
    ),
    "source": SOURCE,
    "protocol": (
        "PCA is computed from covariance eigenvalues and by SVD, kernel PCA with "
        "cosine, polynomial and Gaussian kernels.",
        "Time and variance of PCA with ten features and two components are measured "
        "against n and γ; a verdict has 12 features.",
        "The report's “Gaussian projection” is pointwise, exp(−γ(x − mean)²), before "
        "plain PCA or k-means. The page shows it beside true kernel PCA and true "
        "kernel k-means.",
        "k-means starts from random samples as barycentres; of ten starts the best is "
        "kept.",
        "SVDD minimises αᵀGα − Σ αᵢGᵢᵢ with Σα = 1 and 0 ≤ αᵢ ≤ C; it is hard or soft, "
        "wider or narrower.",
        "Passive-aggressive machines see 200 training and 100 test samples with noise. "
        "They have no intercept, as in the report, and use three updates, sample by "
        "sample or in groups, with and without a kernel. A group of 20 makes one "
        "update: the mean of those of its samples, all at the weights before it.",
        "LASVM and online SMO learn n samples one by one, starting from nothing or "
        "from a machine fitted on half of them; a batch may weigh more than single "
        "samples, and a sample that is known already is skipped or added.",
    ),
    "beside": (
        Beside(
            "Data",
            "Drawn in pictures; sizes, scales and noise are not given",
            "Our own draws; verdicts that depend on the scale are tried on several",
        ),
        Beside(
            "Kernel PCA and kernel k-means",
            "A pointwise projection before PCA or k-means",
            "Both: the projection, by which claims are judged, and the true methods",
        ),
        Beside(
            "Starts of k-means",
            "Random",
            "Random, the best of ten; kernel k-means its own default",
        ),
        Beside(
            "Intercept of passive-aggressive machines",
            "None",
            "None. Mercer’s default has one, outside the norm as in scikit-learn, and "
            "then a classic step may overshoot",
        ),
        Beside(
            "Parameters",
            "Chosen by eye, not given",
            "By hand, listed below “Choices that the run does not make”",
        ),
    ),
    "errata": (
        "Passive-aggressive machines update on any positive loss, not only on a wrong "
        "sign.",
        "LASVM's reprocess removes only samples with α = 0 that cannot come back, and "
        "“finish” repeats while δ > τ.",
        "Steps are clipped by both bounds: λ = min((gᵢ−gⱼ)/(Kᵢᵢ+Kⱼⱼ−2Kᵢⱼ), Bᵢ−αᵢ, "
        "αⱼ−Aⱼ).",
        "Algorithm 1 calls G α the result R. The distance of x from the centre is R² = "
        "k(x, x) − 2 Σ αᵢ k(xᵢ, x) + αᵀGα, and R is that of a sample on the boundary.",
        "The methods that the report calls kernel PCA and kernel k-means are neither: "
        "its projection maps each coordinate by itself and keeps the number of "
        "dimensions.",
    ),
    "tables": (
        ResultTable(
            "best",
            "Beyond the report",
            {"test": "test %", "setting": "chosen"},
            ("test",),
        ),
        ResultTable(
            "pca",
            "Variance in two components",
            {"variance": "variance %"},
            ("variance",),
        ),
        ResultTable(
            "clusters",
            "Clusters: labels that differ",
            {"error": "error %"},
            ("error",),
            note="“Tuned” takes the γ whose clusters are cut off best, without labels "
            '(gamma="tune").',
        ),
        ResultTable(
            "balls",
            "Machines that enclose one class",
            {
                "precision": "precision, training %",
                "recall": "recall, training %",
                "new_precision": "precision, new samples %",
                "new_recall": "recall, new samples %",
                "R": "R",
            },
            ("precision", "recall", "new_precision", "new_recall"),
            note="The first two columns are on the samples that the machines were "
            "trained on, as in the report’s pictures; the others are on 2,000 new "
            "samples. Precision also counts samples of the other class, which only the "
            "two-class machine has seen.",
        ),
        ResultTable(
            "passive",
            "Passive-aggressive",
            {
                "train": "training %",
                "test": "test %",
                "grouped": "in groups of 20, test %",
            },
            ("train", "test", "grouped"),
        ),
        ResultTable(
            "online",
            "Online support vector machines",
            {
                "n": "n",
                "test": "test %",
                "held": "samples held",
                "infer": "inference, s",
            },
            ("test",),
            note="“Held” are the samples that a machine keeps: support vectors, and "
            "for online machines those that may still become some.",
        ),
        ResultTable(
            "repeats",
            "LASVM with a heavy batch, and with repeated samples",
            {"test": "test %", "held": "samples held", "apart": "largest change"},
            ("test",),
            note="The largest change is how far any decision value on test "
            "samples is from that of the first row.",
        ),
    ),
    "published": PUBLISHED,
    "telling": ("clusters-rings", "balls", "online"),
    "late": (BY_HAND,),
    "manifest": read_manifest(Path(__file__).with_name("manifest.toml")),
}
