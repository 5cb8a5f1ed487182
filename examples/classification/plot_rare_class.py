"""
A rare class
============

3 % of the samples belong to the class that matters. Accuracy says little then: a
machine that never finds the class has 97 %. Precision and recall show what weights
change, and what they do not.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import precision_recall_curve, precision_score, recall_score
from sklearn.model_selection import train_test_split

from mercer import SVC

X, y = make_classification(
    8000,
    10,
    n_informative=5,
    weights=[0.97],
    class_sep=1.2,
    flip_y=0.005,
    random_state=2,
)
X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)

figure, ax = plt.subplots(figsize=(6.6, 4.8), layout="constrained")
weights = {"no weights": None, "factor 5": {1: 5}, "balanced": "balanced"}
for (name, weight), marker in zip(weights.items(), "os^"):
    model = SVC(C=1, class_weight=weight).fit(X, y)
    f = model.decision_function(X_test)
    precision, recall, _ = precision_recall_curve(y_test, f)
    (line,) = ax.plot(recall, precision, label=name)
    answer = model.predict(X_test)
    ax.plot(
        recall_score(y_test, answer),
        precision_score(y_test, answer),
        marker,
        ms=10,
        color=line.get_color(),
    )
    print(f"{name:12} accuracy {np.mean(answer == y_test):.3f}")
ax.set(xlabel="recall: share of the rare class that is found")
ax.set(ylabel="precision: share of alarms that are right", ylim=(0, 1.03))
ax.legend(title="mark: what predict does")
plt.show()

# %%
# **What to learn from it.** Weights move the point at which ``predict`` works from few,
# reliable alarms to many. Choose it by what a missed sample costs beside a false alarm.
# Strong weights also make a worse machine where few alarms are wanted: its curve on the
# left is lower. A threshold on ``decision_function`` of the machine without weights
# reaches nearly every point of the other curves, and can be changed after the fit.
#
# See also :doc:`class_weight </auto_examples/parameters/plot_class_weight>`.
