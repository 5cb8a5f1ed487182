"""
Decision regions, margins and support vectors
=============================================

A picture of a machine in the plane: which class it predicts where, how wide its margin
is, and which samples carry it.
"""

from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import make_clouds, make_moons
from mercer.plots import DecisionRegionsDisplay

X, y = make_moons(160, noise=0.2, random_state=0)
model = SVC(C=2, gamma=1.0).fit(X, y)
DecisionRegionsDisplay.from_estimator(model, X, y, title="RBF, C = 2, γ = 1")

# %%
# The solid line is the boundary, and the dashed lines are the margins, where the
# decision value is ±1. Rings mark support vectors: thin ones are free and lie on the
# margin, thick ones are at their bound C, inside the margin or on the wrong side. All
# other samples could be left out, and the machine would be the same:

held = model.support_
again = SVC(C=2, gamma=1.0).fit(X[held], y[held])
print(f"{len(held)} of {len(X)} samples are support vectors")
difference = abs(again.decision_function(X) - model.decision_function(X)).max()
print(f"without the others, decision values differ by at most {difference:.0e}")

# %%
# With more than two classes there are regions and support vectors, but no margins:
# every pair of classes has its own.

X, y = make_clouds(150, n_classes=4, separation=3.5, random_state=1)
model = SVC(C=1, gamma=0.2).fit(X, y)
DecisionRegionsDisplay.from_estimator(model, X, y, title="Four classes, one-vs-one")
plt.show()

# %%
# **What to learn from it.** A machine is its support vectors. Many thick rings mean
# that classes overlap or that C is small; see :doc:`C
# </auto_examples/parameters/plot_C>`.
