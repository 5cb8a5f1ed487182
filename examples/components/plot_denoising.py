"""
Denoising by pre-images
=======================

Project a noisy image onto the first components in feature space, and look for the image
whose place in feature space is nearest: its pre-image. Noise has no place among the
first components, and is lost on the way.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import PCA, KernelPCA
from mercer.datasets import load_mnist, per_class_split
from mercer.plots import CurvesDisplay, ImageGalleryDisplay

X, y = load_mnist(sample=True, scale=True)
train, test = per_class_split(y, (100, 5), random_state=0)
rng = np.random.default_rng(0)
clean = X[test]
noisy = np.clip(clean + 0.3 * rng.standard_normal(clean.shape), 0, 1).astype(np.float32)

sizes = [20, 60, 150, 300]
by_pca, by_kernel = [], []
linear = PCA(max(sizes), solver="eigh").fit(X[train])
for k in sizes:
    scores = linear.transform(noisy)
    scores[:, k:] = 0  # as if there were k components only
    by_pca.append(np.clip(linear.inverse_transform(scores), 0, 1))
    model = KernelPCA(
        k, kernel="rbf", gamma=0.005, preimage="fixed-point", eigen_solver="dense"
    )
    by_kernel.append(model.fit(X[train]).denoise(noisy))
shown = {
    "clean": clean,
    "noisy": noisy,
    "PCA, 150": by_pca[2],
    "PCA, 300": by_pca[-1],
    "kernel, 300": by_kernel[-1],
}
ImageGalleryDisplay(
    np.concatenate([images[::5] for images in shown.values()]),
    n_columns=10,
    row_names=list(shown),
).plot()

# %%
# The error against the number of components:


def error(images):
    """Return the mean squared difference from the clean images."""
    return np.mean((images - clean) ** 2)


CurvesDisplay.from_curves(
    {
        "PCA": (sizes, [error(images) for images in by_pca]),
        "kernel PCA, pre-images": (sizes, [error(images) for images in by_kernel]),
        "noisy": ([20, 300], [error(noisy)] * 2),
    },
    xlabel="components",
    ylabel="mean squared error",
)
plt.show()

# %%
# **What to learn from it.** PCA brings the noise back when it has many components. A
# pre-image is a weighted mean of training images, so that noise stays out, and more
# components bring more detail. ``fit_inverse_transform=True`` learns a regression from
# components to images instead, as scikit-learn does, and works with every kernel.
