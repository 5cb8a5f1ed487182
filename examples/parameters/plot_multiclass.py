"""
multiclass: several classes
===========================

A support vector machine tells two classes apart, and several classes need several
machines. ``multiclass`` says which: one for each pair of classes ("ovo", the default),
one for each class against the rest ("ovr"), or one for each column of an
error-correcting code ("ecoc"). All of them share the kernel values.
"""

from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import make_clouds
from mercer.plots import DecisionRegionsDisplay

X, y = make_clouds(250, n_classes=5, separation=2.6, random_state=3)

figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained", sharey=True)
for scheme, ax in zip(["ovo", "ovr", "ecoc"], axes):
    model = SVC(C=1, gamma=0.3, multiclass=scheme).fit(X, y)
    title = f"{scheme}: {model.code_.shape[1]} machines"
    DecisionRegionsDisplay.from_estimator(
        model, X, y, ax=ax, title=title, legend=False, support=False
    )
    ax.label_outer()

# %%
# The three agree nearly everywhere, and differ where classes meet. One-vs-one has many
# small problems, one-vs-rest a few large ones, and codes a few more large ones.
#
# ``decision_function_shape`` changes what ``decision_function`` returns for one-vs-one:
# a column for each class ("ovr", the default) or for each machine ("ovo").

for shape in ("ovr", "ovo"):
    model = SVC(gamma=0.3, decision_function_shape=shape).fit(X, y)
    print(f"{shape}: {model.decision_function(X[:2]).shape}")

plt.show()

# %%
# **How to choose it.** Stay with one-vs-one if you have no reason to change. Take
# one-vs-rest if you want one decision value for each class, for ROC curves or for
# rejecting samples that belong to none. Try a code where accuracy matters more than
# time. ``decode`` says how decision values become a class: :doc:`Several classes
# </classes>` has the list.
#
# See also :doc:`error-correcting codes </auto_examples/classification/plot_ecoc>`.
