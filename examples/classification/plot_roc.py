"""
ROC curves by class and by kernel
=================================

An ROC curve shows the share of a class that is found against the share of others that
are taken for it, for every threshold of the decision value.
"""

from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import load_mnist, make_moons, per_class_split
from mercer.plots import RocCurvesDisplay

X, y = load_mnist(sample=True, scale=True)
train, test = per_class_split(y, (20, 100), random_state=0)
model = SVC(C=10, gamma=0.02, multiclass="ovr").fit(X[train], y[train])
RocCurvesDisplay.from_estimator(model, X[test], y[test], log=True)

# %%
# One-vs-rest has one decision value for each class, and so a curve for each class
# against the rest. ``log=True`` spreads the curves where they are steep. The machine
# has seen 20 images of each digit.
#
# The next picture compares machines:

X, y = make_moons(600, noise=0.35, random_state=0)
kernels = ["linear", "poly(degree=3)", "rbf(gamma=1)", "rbf(gamma=100)"]
models = {name: SVC(kernel=name).fit(X[:200], y[:200]) for name in kernels}
RocCurvesDisplay.from_estimators(models, X[200:], y[200:], title="Moons, by kernel")
plt.show()

# %%
# **What to learn from it.** Digits differ in how well they can be found: compare the
# curves at the share of false alarms that you can bear, not only by the area. A kernel
# that is too narrow (γ = 100) has the smallest area.
#
# scikit-learn's ``RocCurveDisplay``, ``PrecisionRecallDisplay`` and
# ``ConfusionMatrixDisplay`` can be imported from :mod:`mercer.plots`, too.
