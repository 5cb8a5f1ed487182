"""
The path along C
================

``svm_path`` fits a machine for every value of C, each from the solution before. The
picture shows how the machine changes on the way, and what that means for other samples.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import make_moons
from mercer.plots import ValidationCurveDisplay
from mercer.selection import svm_path

X, y = make_moons(300, noise=0.3, random_state=0)
X_test, y_test = make_moons(3000, noise=0.3, random_state=1)
Cs = np.geomspace(0.01, 10000, 25)
path = svm_path(X, y, Cs, estimator=SVC(gamma=2.0))

figure, axes = plt.subplots(1, 3, figsize=(12, 3.7), layout="constrained")
axes[0].semilogx(Cs, [point.n_support for point in path], "o-", ms=3)
axes[0].set(title="support vectors", ylim=(0, 300))
coefficients = np.zeros((len(Cs), len(X)))
for row, point in zip(coefficients, path):
    row[point.support] = np.ravel(point.dual_coef) / point.C
axes[1].semilogx(Cs, coefficients[:, ::10])
axes[1].set(title="some coefficients, divided by C")
axes[2].semilogx(Cs, [100 * p.model.score(X, y) for p in path], "--", label="training")
axes[2].semilogx(
    Cs, [100 * p.model.score(X_test, y_test) for p in path], label="others"
)
axes[2].set(title="accuracy in %")
axes[2].legend()
for ax in axes:
    ax.set(xlabel="C")

# %%
# With a small C nearly all samples are at their bound, C, and the lines of the middle
# picture are at ±1. As C grows, sample after sample becomes free and then drops out.
# Each point has its certificate:

print(all(point.converged for point in path))

# %%
# scikit-learn's display of validation curves works as well; it uses folds:

ValidationCurveDisplay.from_estimator(
    SVC(gamma=2.0), X, y, param_name="C", param_range=Cs[::3], cv=5
)
plt.show()

# %%
# **What to learn from it.** Beyond the best C the training score still rises while the
# other falls: the machine learns the noise. See also :doc:`what C does
# </auto_examples/parameters/plot_C>`.
