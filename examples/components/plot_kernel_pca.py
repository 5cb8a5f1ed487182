"""
Kernel PCA
==========

PCA finds directions of large variance, and on rings there are none that tell one ring
from the other. Kernel PCA does the same in the feature space of a kernel, where the
rings come apart. A picture of all digits comes from the same class.
"""

from matplotlib import pyplot as plt

from mercer import PCA, KernelPCA
from mercer.datasets import load_digits, make_rings
from mercer.plots import EmbeddingDisplay

X, y = make_rings(400, noise=0.08, random_state=0)
figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
EmbeddingDisplay.from_embedding(X, y, ax=axes[0], title="The samples")
linear = PCA(2).fit(X)
EmbeddingDisplay.from_estimator(linear, X, y, ax=axes[1], title="PCA", legend=False)
kernel = KernelPCA(2, kernel="rbf", gamma=2.0).fit(X)
EmbeddingDisplay.from_estimator(
    kernel, X, y, ax=axes[2], title="Kernel PCA, γ = 2", legend=False
)

# %%
# Axes show the share of the variance in feature space. On digits, the kernel must be
# wide enough to see more than near copies:

X, y = load_digits(scale=True)
model = KernelPCA(2, kernel="rbf", gamma=0.03).fit(X)
EmbeddingDisplay.from_estimator(model, X[:700], y[:700], title="Digits, kernel PCA")

# %%
# Components come with a certificate: for each of them there is an eigenvalue of the
# matrix within this distance.

print(model.residuals_ / model.eigenvalues_)
plt.show()

# %%
# **What to learn from it.** Kernel PCA makes features for methods that need straight
# lines, and pictures of samples. It has to see all samples at once, but never forms the
# matrix: :doc:`Components and clusters </components>` says how. See also
# :doc:`denoising <plot_denoising>`.
