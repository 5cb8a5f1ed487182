"""
A grid search on shared kernel values
=====================================

A search over C and γ fits the same samples again and again.
``mercer.selection.GridSearchCV`` is scikit-learn's search with the same results; kernel
values are computed once for all folds and all values of C.
"""

import time

import sklearn.model_selection
from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import load_digits
from mercer.plots import AblationDisplay, HeatMapDisplay
from mercer.selection import GridSearchCV

X, y = load_digits(scale=True)
X, y = X[:1000], y[:1000]
grid = {"C": [0.1, 1.0, 10.0, 100.0, 1000.0], "gamma": [0.01, 0.03, 0.1, 0.3, 1.0]}
GridSearchCV(SVC(), {"C": [1.0]}, cv=2).fit(X, y)  # compile, if this is the first

start = time.perf_counter()
search = GridSearchCV(SVC(), grid, cv=5).fit(X, y)
shared = time.perf_counter() - start
HeatMapDisplay.from_cv_results(search, x="gamma", y="C", title="1,000 digits, 5 folds")

# %%
# C and γ depend on each other: the best values lie along a ridge. ``sharing_`` says how
# many fits shared their kernel values, and how many matrices were computed for them:

print(search.best_params_)
print(search.sharing_)

# %%
# scikit-learn's search takes the same machine, and gets the same answer:

start = time.perf_counter()
plain = sklearn.model_selection.GridSearchCV(SVC(), grid, cv=5).fit(X, y)
print(f"shared {shared:.2f} s, fit by fit {time.perf_counter() - start:.2f} s")
print(plain.best_params_ == search.best_params_)

# %%
# Scores of any search can be drawn as lines, with their deviation over the folds:

grid = {"C": [0.01, 0.03, 0.1, 0.3, 1, 3], "kernel": ["linear", "poly", "rbf"]}
kernels = GridSearchCV(SVC(), grid, cv=5).fit(X, y)
AblationDisplay.from_cv_results(kernels, "C", line="kernel", title="By kernel")
plt.show()

# %%
# **What to learn from it.** Powers of 10 are fine enough. If the best value is at the
# edge of the grid, extend the grid. :doc:`Model selection </selection>` says what is
# shared, and what cannot be.
