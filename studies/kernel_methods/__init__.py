"""PCA, k-means, one-class and online machines, with and without kernels."""

from studies.kernel_methods.claims import (
    cluster_claims,
    one_class_claims,
    pca_claims,
    projection_claim,
)
from studies.kernel_methods.clusters import clusters, gammas
from studies.kernel_methods.one_class import balls
from studies.kernel_methods.online import (
    best,
    control,
    online_claims,
    online_machines,
    passive,
    passive_claims,
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
    Step("claims on PCA", pca_claims),
    Step("claims on k-means", cluster_claims),
    Step("claims on one class", one_class_claims),
    Step("claims on passive-aggressive", passive_claims),
    Step("claims on online machines", online_claims),
    Step("claim on the projection", projection_claim),
    Step("best model", best),
)
STUDY = Study(**STATEMENT, steps=lambda run: list(STEPS))
