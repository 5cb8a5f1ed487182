"""Kernels, their algebra and their text form."""

from mercer.kernels.base import (
    Kernel,
    Normalized,
    OnColumns,
    Power,
    Product,
    Scaled,
    Sum,
    with_views,
)
from mercer.kernels.dot import Cosine, Linear, Polynomial, Sigmoid
from mercer.kernels.expression import parse
from mercer.kernels.given import Custom, Pairwise, Precomputed
from mercer.kernels.histogram import AdditiveChi2, Chi2, Intersection
from mercer.kernels.radial import RBF, Laplacian
from mercer.kernels.views import name_columns

__all__ = [
    "RBF",
    "AdditiveChi2",
    "Chi2",
    "Cosine",
    "Custom",
    "Intersection",
    "Kernel",
    "Laplacian",
    "Linear",
    "Normalized",
    "OnColumns",
    "Pairwise",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "Scaled",
    "Sigmoid",
    "Sum",
    "name_columns",
    "parse",
    "with_views",
]
