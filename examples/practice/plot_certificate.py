"""
What the certificate says
=========================

Every fit measures how far it can be from the optimum. ``kkt_gap_`` is the largest
violation of the optimality conditions, ``dual_gap_`` bounds the distance of the
objective from its optimum, and ``converged_`` is true only if the first is within
``tol``, rounding errors included.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC
from mercer.datasets import load_mnist
from mercer.plots import ConvergenceDisplay, FitHistory

X, y = load_mnist(sample=True, scale=True)
y = y % 2  # odd against even digits
record = FitHistory()
model = SVC(C=10, gamma=0.02, solver="decompose", cache_size=30).set_callbacks(record)
model.fit(X, y)
ConvergenceDisplay.from_history(record.history, quantities=["gap"], clock="seconds")

# %%
# The callback has recorded the gap while the fit was running. It ends below ``tol``:

print(f"converged {model.converged_}, KKT gap {model.kkt_gap_[0]:.1e}")
print(f"objective {model.objective_[0]:.4f}, dual gap {model.dual_gap_[0]:.1e}")

# %%
# The dual gap is a bound that can be checked. Below, fits stop after fewer and fewer
# steps, warn, and say ``converged_ = False``; the true distance from the optimum is
# never larger than the dual gap.

few, labels = X[::5], y[::5]
best = SVC(C=10, gamma=0.02, tol=1e-7).fit(few, labels).objective_[0]
limits = np.unique(np.geomspace(10, 3000, 12).astype(int))
bounds, distances, accuracy = [], [], []
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    for max_iter in limits:
        early = SVC(C=10, gamma=0.02, solver="smo", max_iter=int(max_iter))
        early.fit(few, labels)
        bounds.append(early.dual_gap_[0])
        distances.append(max(early.objective_[0] - best, 1e-9))
        accuracy.append(100 * early.score(X[1::5], y[1::5]))

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.loglog(limits, bounds, "o-", label="dual gap, as reported")
left.loglog(limits, distances, "s--", label="true distance")
left.set(xlabel="steps", ylabel="objective")
left.legend()
right.semilogx(limits, accuracy, "o-")
right.set(xlabel="steps", ylabel="accuracy in % on other images")
plt.show()

# %%
# **What to learn from it.** A fit that has not converged can predict well, and the dual
# gap says what is missing. A converged fit is optimal if the problem is convex, which
# ``is_convex_`` tells; with a kernel such as "sigmoid" it is one of many stationary
# points. :doc:`Theory </theory>` has the formulas, and :doc:`Messages explained
# </messages>` says what to do about the warning.
