"""K-means clustering, in the space of the data and in the feature space of a kernel."""

from mercer.machines.clusters.kernel_kmeans import KernelKMeans
from mercer.machines.clusters.kmeans import KMeans

__all__ = ["KMeans", "KernelKMeans"]
