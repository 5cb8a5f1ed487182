"""
Several views of digits
=======================

Pixels and gradients are two views of an image. ``Views`` puts them side by side under
their names, a kernel looks at one of them by ``@``, and ``MKLClassifier`` learns how
much each counts.
"""

from matplotlib import pyplot as plt

from mercer import SVC, MKLClassifier
from mercer.datasets import load_mnist, per_class_split
from mercer.images import HOG, Rescale, Views
from mercer.plots import DotsDisplay, KernelWeightsDisplay

images, y = load_mnist(sample=True)
train, test = per_class_split(y, (60, 200), random_state=0)
views = Views(
    pixels=Rescale(),
    gradients=HOG(cell_size=7, block_size=2, interpolation=True),
)
X = views.fit_transform(images)
kernels = [
    "linear@pixels",
    "rbf(gamma=0.02)@pixels",
    "linear@gradients",
    "rbf(gamma=1)@gradients",
]

single = {k: SVC(C=10, kernel=k).fit(X[train], y[train]) for k in kernels}
mkl = MKLClassifier(kernels, C=10, p=2).fit(X[train], y[train])
KernelWeightsDisplay.from_estimator(mkl, names=kernels)

# %%
# The weights belong to kernels that have been scaled to a mean of 1 on the diagonal, so
# that they can be compared. The accuracy of each kernel by itself, and of the sum:

models = {**single, "multiple kernel learning": mkl}
DotsDisplay.from_values(
    [100 * m.score(X[test], y[test]) for m in models.values()],
    list(models),
    xlabel="accuracy on 2,000 other digits, in %",
)
plt.show()

# %%
# **What to learn from it.** Views that see different things are better together. A
# product, ``"rbf@pixels * rbf@gradients"``, is another way to combine them, without
# weights to learn. See :doc:`Images </images>` for more features.
