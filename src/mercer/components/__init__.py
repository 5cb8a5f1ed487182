"""Principal components, in the space of the data and in that of a kernel."""

from mercer.components.kernel_pca import KernelPCA
from mercer.components.pca import PCA

__all__ = ["PCA", "KernelPCA"]
