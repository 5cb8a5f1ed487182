"""
One-class machines against balls
================================

Both learn where samples of one kind lie. ``OneClassSVM`` separates them from the origin
of feature space, ``SVDD`` puts the smallest ball around them. With a Gaussian kernel
they are the same machine; with other kernels they differ.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import SVDD, OneClassSVM
from mercer.datasets import make_moons
from mercer.plots import OneClassDisplay

X, _ = make_moons(150, noise=0.12, random_state=0)
nu = 0.08
settings = {"rbf": dict(kernel="rbf", gamma=2.0), "linear": dict(kernel="linear")}

figure, axes = plt.subplots(2, 2, figsize=(10, 7.6), layout="constrained")
for row, (name, kernel) in zip(axes, settings.items()):
    for ax, model in zip(
        row, [OneClassSVM(nu=nu, **kernel), SVDD(C=1 / (nu * len(X)), **kernel)]
    ):
        title = f"{type(model).__name__}, {name}"
        OneClassDisplay.from_estimator(
            model.fit(X), X, ax=ax, title=title, legend=False
        )
        ax.label_outer()
marks = axes[0, 0].get_legend_handles_labels()
figure.legend(*marks, loc="outside lower center", ncols=4)

# %%
# Samples on the boundary have free coefficients; outliers are at their bound. Thin
# lines have equal decision values. With C = 1/(nν) at most the share ν of the samples
# lies outside, which is the meaning of ν in ``OneClassSVM`` as well. With the Gaussian
# kernel the two agree everywhere:

ball = SVDD(C=1 / (nu * len(X)), gamma=2.0).fit(X)
half_space = OneClassSVM(nu=nu, gamma=2.0).fit(X)
others = np.random.default_rng(0).uniform([-2, -1.5], [3, 2], (10000, 2))
print(f"agreement: {np.mean(ball.predict(others) == half_space.predict(others)):.2%}")
print(f"outside: {len(ball.outliers_)} of {len(X)} samples")
plt.show()

# %%
# **What to learn from it.** With the Gaussian kernel take either of them. With a linear
# kernel the ball is a ball around the samples, while the half-space looks from the
# origin and is of little use here. ``SVDD`` also has the radius (``radius_``), and an
# ``offset`` that widens the boundary after the fit.
