"""
Matrices of kernel values
=========================

All that a kernel machine sees of the samples is the matrix of their kernel values. With
the samples ordered by class, a good kernel shows blocks along the diagonal.
"""

from matplotlib import pyplot as plt

from mercer.datasets import load_digits
from mercer.plots import KernelMatrixDisplay

X, y = load_digits(scale=True)
figure, axes = plt.subplots(1, 3, figsize=(12.5, 3.8), layout="constrained")
for gamma, ax in zip([0.02, 0.2, 2], axes):
    KernelMatrixDisplay.from_kernel(
        f"rbf(gamma={gamma})", X[:400], y[:400], ax=ax, title=f"RBF, γ = {gamma}"
    )

plt.show()

# %%
# **What to learn from it.** If γ is too small, all samples look alike; if it is too
# large, every sample is like itself only, and nothing can be learnt. In between, digits
# are more similar to those of their own class, and the machine has something to work
# with. ``mercer.gram_matrix`` returns the matrix itself, and :doc:`gamma
# </auto_examples/parameters/plot_gamma>` shows what it means for the boundary.
