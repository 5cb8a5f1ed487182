"""
A linear machine on Nyström features
====================================

An exact kernel machine takes time that grows with samples times support vectors. For
very many samples, make features whose products are close to the kernel (scikit-learn's
``Nystroem``), and let ``LinearSVC`` do the rest: its time grows with the samples only.
"""

import time

import numpy as np
from matplotlib import pyplot as plt
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from mercer import SVC, LinearSVC
from mercer.datasets import load_mnist

X, y = load_mnist(sample=True, scale=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
train, test = order[:4000], order[4000:]


def fit_and_score(model):
    """Return the seconds of a fit and the error on other images, in %."""
    start = time.perf_counter()
    model.fit(X[train], y[train])
    return time.perf_counter() - start, 100 - 100 * model.score(X[test], y[test])


fit_and_score(LinearSVC(C=0.1))  # compile, if this is the first fit
exact = fit_and_score(SVC(C=10, gamma=0.02))
linear = fit_and_score(LinearSVC(C=0.1))
sizes = [30, 100, 300, 900]
features = [
    fit_and_score(
        make_pipeline(
            Nystroem(gamma=0.02, n_components=k, random_state=0), LinearSVC(C=10)
        )
    )
    for k in sizes
]

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
for ax, part, name in zip(axes, (1, 0), ("error in %", "seconds of a fit")):
    ax.semilogx(sizes, [f[part] for f in features], "o-", label="Nyström, LinearSVC")
    ax.axhline(exact[part], color="C1", ls="--", label="SVC, exact")
    ax.axhline(linear[part], color="C2", ls=":", label="LinearSVC on pixels")
    ax.set(xlabel="features", ylabel=name, ylim=(0, None))
axes[0].legend()
plt.show()

# %%
# **What to learn from it.** With 4,000 images the exact machine is better, and fast
# enough. Take the features where it is not: their error falls with their number, and a
# million rows take as long as 250 times 4,000. :doc:`Linear machines </linear>`
# has measurements, and :doc:`When to take something else </limits>` says where other
# methods are better.
