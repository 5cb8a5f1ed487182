"""
kernel: what "similar" means
============================

A kernel says how similar two samples are, and so which boundaries a machine can draw.
The default is "rbf". ``kernel`` takes a name, an expression as text, an object of
:mod:`mercer.kernels`, a function of two matrices of samples, or "precomputed".
"""

from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import make_rings
from mercer.plots import DecisionRegionsDisplay

X, y = make_rings(160, noise=0.15, random_state=0)
kernels = [
    "linear",
    "poly(degree=2, coef0=1)",
    "rbf(gamma=1)",
    "laplacian(gamma=1)",
    "linear + 0.5 * rbf(gamma=20)",
    "rbf(gamma=1)@[0]",
]

figure, axes = plt.subplots(2, 3, figsize=(11, 7.4), layout="constrained")
for kernel, ax in zip(kernels, axes.flat):
    model = SVC(C=10, kernel=kernel).fit(X, y)
    DecisionRegionsDisplay.from_estimator(
        model, X, y, ax=ax, title=kernel, legend=False
    )
    ax.label_outer()

plt.show()

# %%
# No line separates rings, but a polynomial of degree 2 does: it has the squares of the
# columns. The Gaussian kernel ("rbf") follows any smooth shape, and the Laplacian one
# has corners. Kernels can be added and multiplied, and can look at some columns only:
# the last machine, ``rbf@[0]``, sees the first column and nothing else.
#
# **How to choose it.** Start with "rbf" on scaled columns. Take "linear" for text and
# for data with more columns than samples, "chi2" or "intersection" for histograms, and
# a sum of kernels on parts of the columns where columns are of several kinds. :doc:`The
# guide </guide>` has a table.
#
# See also :doc:`kernels on columns </auto_examples/kernels/plot_columns>` and :doc:`a
# kernel of your own </auto_examples/kernels/plot_own_kernel>`.
