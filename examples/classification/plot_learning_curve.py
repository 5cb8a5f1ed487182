"""
Learning curves
===============

How much would more data help? A learning curve shows the accuracy on other samples
against the number of training samples.
"""

from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import load_digits
from mercer.plots import BarsDisplay, CurvesDisplay, LearningCurveDisplay

X, y = load_digits(scale=True)
sizes = [20, 40, 80, 160, 320, 640]
curves = {
    kernel: (
        sizes,
        [SVC(kernel=kernel).fit(X[:n], y[:n]).score(X[900:], y[900:]) for n in sizes],
    )
    for kernel in ("linear", "poly", "rbf")
}
CurvesDisplay.from_curves(curves, xlabel="training samples", ylabel="accuracy")

# %%
# ``CurvesDisplay`` draws any curves by name. scikit-learn's display computes the curve
# with folds, and shows how much it varies:

LearningCurveDisplay.from_estimator(
    SVC(C=10), X, y, train_sizes=[0.05, 0.1, 0.2, 0.5, 1.0], cv=5, score_type="both"
)

# %%
# The number of support vectors tells the same story: each is a sample without which the
# machine would be another one.

kernels = ["linear", "poly", "rbf"]
counts = [len(SVC(kernel=k).fit(X[:500], y[:500]).support_) for k in kernels]
BarsDisplay.from_values(counts, kernels, xlabel="support vectors of 500 digits")
plt.show()

# %%
# **What to learn from it.** While the curve on other samples rises, more data help.
# Once the two curves meet, only another kernel or other features do.
