"""
class_weight: classes of unequal size
=====================================

``class_weight`` multiplies C by a factor for each class. ``"balanced"`` makes the
samples of every class count equally in total, a dict gives the factors, and ``None``,
the default, counts every sample alike. ``sample_weight`` of ``fit`` does the same for
single samples.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.metrics import recall_score

from mercer import SVC
from mercer.plots import DecisionRegionsDisplay

rng = np.random.default_rng(0)
X = np.r_[rng.normal(0, 1, (300, 2)), rng.normal(1.7, 0.8, (20, 2))]
y = np.repeat(["common", "rare"], [300, 20])
X_test = np.r_[rng.normal(0, 1, (3000, 2)), rng.normal(1.7, 0.8, (200, 2))]
y_test = np.repeat(["common", "rare"], [3000, 200])

figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained", sharey=True)
for weight, ax in zip([None, {"rare": 4}, "balanced"], axes):
    model = SVC(C=1, gamma=0.3, class_weight=weight).fit(X, y)
    found = recall_score(y_test, model.predict(X_test), average=None)
    title = f"{weight}\nfound: {found[0]:.0%} common, {found[1]:.0%} rare"
    DecisionRegionsDisplay.from_estimator(model, X, y, ax=ax, title=title, legend=False)
    ax.label_outer()

plt.show()

# %%
# Without weights the machine gives up the rare class where the two overlap: that way it
# makes the fewest errors. With weights an error on a rare sample costs more, the
# boundary moves, and more rare samples are found, at the expense of common ones.
#
# **How to choose it.** Write down what each kind of error costs, and use these numbers.
# "balanced" says that missing 1 % of any class is equally bad. Judge by balanced
# accuracy, precision and recall, or an ROC curve; accuracy hides the rare class. With
# ``probability=True`` the weights count in the probabilities, too.
#
# See also :doc:`a rare class </auto_examples/classification/plot_rare_class>`.
