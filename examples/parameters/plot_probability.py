"""
probability: from decision values to probabilities
==================================================

With ``probability=True`` a classifier has ``predict_proba``. Sigmoids turn decision
values into probabilities (Platt's method); they are fitted to samples that the machine
has not seen, by five folds on the same kernel values. ``predict`` then returns the most
probable class.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import make_moons

X, y = make_moons(300, noise=0.35, random_state=0)
model = SVC(C=1, gamma=1.0, probability=True, random_state=0).fit(X, y)

across, up = np.meshgrid(np.linspace(-2, 3, 200), np.linspace(-1.6, 2.1, 200))
grid = np.c_[across.ravel(), up.ravel()]
P = model.predict_proba(grid)[:, 1].reshape(across.shape)
f = model.decision_function(grid).reshape(across.shape)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
shades = left.contourf(across, up, P, levels=np.linspace(0, 1, 11), cmap="cividis")
left.contour(across, up, P, levels=[0.5], colors="white")
for c, marker in zip(model.classes_, "os"):
    left.scatter(*X[y == c].T, s=16, marker=marker, ec="white", lw=0.6, label=f"{c}")
left.legend(title="class")
left.set(title="probability of class 1")
figure.colorbar(shades, ax=left)
order = np.argsort(f.ravel())
right.plot(f.ravel()[order], P.ravel()[order])
right.axhline(0.5, color="0.7", zorder=0)
right.axvline(0, color="0.7", zorder=0)
right.set(xlabel="decision value", ylabel="probability of class 1", title="the sigmoid")

# %%
# The sigmoid on the right, 1 / (1 + exp(A f - B)), has two numbers, which follow from
# the folds:

print(f"A = {model.probA_[0]:.3f}, B = {model.probB_[0]:.3f}")
plt.show()

# %%
# **When to use it.** Where you need probabilities, for a threshold of your own or to
# combine models. It costs about as much again as the fit. ``predict`` and
# ``predict_proba`` never contradict each other here, unlike in scikit-learn. Set
# ``random_state``, since the folds are drawn at random.
#
# See also :doc:`Platt against isotonic regression
# </auto_examples/classification/plot_calibration>`.
