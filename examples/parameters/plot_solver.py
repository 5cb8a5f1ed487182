"""
solver: how a fit is computed
=============================

``solver="auto"``, the default, chooses between pairs of variables on the whole matrix
of kernel values ("smo") and working sets on rows of it ("decompose"). The textbook
solvers "wss2", "wss1", "platt", "simplified" and "random" are there to be studied.
``shrinking`` sets aside variables that are unlikely to change. Every solver ends at the
same solution, within ``tol``.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import load_mnist
from mercer.plots import ConvergenceDisplay, trace_fit

X, y = load_mnist(sample=True, scale=True)
chosen = (y == 4) | (y == 9)
X, y = X[chosen][::2], y[chosen][::2]

steps = np.unique(np.geomspace(1, 3000, 14).astype(int))
courses = {
    solver: trace_fit(SVC(C=10, gamma=0.02, solver=solver), X, y, steps)
    for solver in ("wss2", "wss1", "platt")
}
ConvergenceDisplay.from_histories(
    courses, quantities=["gap", "objective"], title="500 images of 4 and 9"
)

# %%
# The gap is the largest violation of the optimality conditions. Choosing the second
# variable of a pair by second-order information ("wss2") takes fewer steps than
# choosing the pair that violates most ("wss1").

for solver in ("smo", "decompose", "wss1", "platt"):
    model = SVC(C=10, gamma=0.02, solver=solver).fit(X, y)
    print(f"{solver:10}{model.n_iter_[0]:6} steps, objective {model.objective_[0]:.4f}")

plt.show()

# %%
# **How to choose it.** Leave both parameters alone. "smo" and the textbook solvers need
# the whole matrix, and raise ``MemoryError`` where it does not fit into a
# ``cache_size`` that you have given. :doc:`Theory </theory>` explains each solver, and
# the playground (``mercer play``) shows them step by step.
