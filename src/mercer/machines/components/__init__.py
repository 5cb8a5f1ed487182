"""Principal component analysis of data, and in the feature space of a kernel."""

from mercer.machines.components.kernel_pca import KernelPCA
from mercer.machines.components.pca import PCA

__all__ = ["PCA", "KernelPCA"]
