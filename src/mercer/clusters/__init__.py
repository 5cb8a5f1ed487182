"""Clusters around means, in the space of the data and in that of a kernel."""

from mercer.clusters.kernel_kmeans import KernelKMeans
from mercer.clusters.kmeans import KMeans

__all__ = ["KMeans", "KernelKMeans"]
