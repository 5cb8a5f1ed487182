"""
A kernel of your own
====================

A kernel is a class with a formula. Batches, threads, precision, sums and products, and
grid search then work without further code. The kernel here is periodic, so that a
regression can go on beyond the samples.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import SVR
from mercer.kernels import RBF, Kernel, Linear
from mercer.kernels.base import Definiteness


class Periodic(Kernel):
    """k(x, z) = exp(γ (cos(2π (x − z) / period) − 1)), for one column."""

    definiteness = Definiteness.POSITIVE  # for all data, so that gaps are bounds

    def __init__(self, period=1.0, gamma=1.0):
        self.period = period
        self.gamma = gamma

    def evaluate(self, pair):
        """Return the block of two sets of rows."""
        turns = pair.manhattan() / self.period  # |x − z| in one column
        xp = pair.xp  # NumPy here, CuPy on a graphics card
        return xp.exp(self.gamma * (xp.cos(2 * np.pi * turns) - 1))

    def diagonal(self, operand):
        """Return k(x, x) of each row."""
        return np.ones(len(operand))


rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, 150))[:, None]
z = np.sin(2 * np.pi * X[:, 0]) + 0.5 * np.cos(6 * np.pi * X[:, 0]) + 0.4 * X[:, 0]
z += 0.2 * rng.standard_normal(150)
line = np.linspace(0, 10, 600)[:, None]

figure, ax = plt.subplots(figsize=(9, 4), layout="constrained")
ax.plot(X, z, ".", color="0.5")
for name, kernel, style in [
    ("RBF", RBF(gamma=20.0), "--"),
    ("periodic + linear", Periodic(1.0, gamma=3.0) + 0.1 * Linear(), "-"),
]:
    model = SVR(C=10, epsilon=0.1, kernel=kernel).fit(X, z)
    ax.plot(line, model.predict(line), style, label=name)
    print(f"{name}: converged {model.converged_}, convex {model.is_convex_}")
ax.axvline(6, color="0.7", lw=1)
ax.set(xlabel="x; samples end at 6")
ax.legend()
plt.show()

# %%
# **What to learn from it.** A kernel carries what you know about the data. The Gaussian
# kernel knows that neighbours are alike, and falls back to a constant where there are
# none. The periodic one knows that the pattern repeats, and the linear one that there
# is a trend.
#
# A plain function of two matrices works, too: ``SVR(kernel=function)``. See :doc:`how
# to add a kernel </howto>` for all that a ``pair`` offers.
