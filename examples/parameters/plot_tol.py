"""
tol: when a fit may stop
========================

A fit has converged when no pair of samples violates the optimality conditions by more
than ``tol``, rounding errors included. The default is 1e-3, as in LIBSVM. The linear
machines and multiple kernel learning measure ``tol`` relative to the objective.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import load_digits

X, y = load_digits(scale=True)
train, test = slice(None, 1200), slice(1200, None)
tols = np.geomspace(1, 1e-6, 13)
steps, gaps, wrong = [], [], []
exact = SVC(C=10, gamma=0.05, tol=1e-8).fit(X[train], y[train]).predict(X[test])
for tol in tols:
    model = SVC(C=10, gamma=0.05, tol=tol).fit(X[train], y[train])
    steps.append(model.n_iter_.sum())
    gaps.append(model.dual_gap_.sum() / abs(model.objective_.sum()))
    wrong.append(np.mean(model.predict(X[test]) != exact))

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
axes[0].semilogx(tols, steps, "o-")
axes[0].set(title="steps of all machines")
axes[1].loglog(tols, gaps, "o-")
axes[1].set(title="dual gap / objective")
axes[2].semilogx(tols, 100 * np.array(wrong), "o-")
axes[2].set(title="other predictions than at 1e-8, in %")
for ax in axes:
    ax.set(xlabel="tol")
    ax.invert_xaxis()

plt.show()

# %%
# Each power of ten costs some more steps, and brings the objective closer to the
# optimum. Predictions stop changing much earlier.
#
# **How to choose it.** Leave it alone for predictions; 1e-2 is enough for most of them,
# and saves time in a search. Lower it where coefficients or the objective matter, for
# example to compare two solvers. Below about 1e-5, single precision is not enough:
# Mercer then continues in double precision, and says so if that is not enough either.
#
# See also :doc:`what the certificate says </auto_examples/practice/plot_certificate>`.
