"""K-means clustering, in the space of the data and in the feature space of a kernel."""

from mercer.clusters.kernel_kmeans import KernelKMeans
from mercer.clusters.kmeans import KMeans

__all__ = ["KMeans", "KernelKMeans"]
