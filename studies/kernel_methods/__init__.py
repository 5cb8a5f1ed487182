"""PCA, k-means, one-class and online machines, with and without kernels."""

from studies.kernel_methods.clusters import clusters, gammas
from studies.kernel_methods.one_class import balls
from studies.kernel_methods.online import (
    best,
    control,
    online_machines,
    passive,
    repeats,
)
from studies.kernel_methods.pca import pca_pictures, pca_scaling
from studies.kernel_methods.protocol import STATEMENT
from studies.study import Step, Study

__all__ = ["STUDY"]

STEPS = (
    Step("PCA in pictures", pca_pictures),
    Step("PCA against n and γ", pca_scaling),
    Step("k-means", clusters),
    Step("k-means against γ", gammas),
    Step("one-class machines", balls),
    Step("control", control),
    Step("passive-aggressive", passive),
    Step("online machines", online_machines),
    Step("heavy batches and repeated samples", repeats),
    Step("best model", best),
)
STUDY = Study(**STATEMENT, steps=lambda run: list(STEPS))
