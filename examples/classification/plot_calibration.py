"""
Platt against isotonic regression
=================================

Decision values are not probabilities. ``probability=True`` fits a sigmoid to them
(Platt); scikit-learn's ``CalibratedClassifierCV`` can fit an isotonic curve, which is
any curve that rises. The picture compares what was predicted with what happened.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.metrics import brier_score_loss

from mercer import SVC
from mercer.datasets import make_moons

X_test, y_test = make_moons(20000, noise=0.45, random_state=1)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharey=True)
for n, ax in zip([100, 2000], axes):
    X, y = make_moons(n, noise=0.45, random_state=0)
    plain = SVC(C=1, gamma=1.0)
    models = {
        "Platt": SVC(C=1, gamma=1.0, probability=True, random_state=0),
        "isotonic": CalibratedClassifierCV(plain, method="isotonic", cv=5),
    }
    f = plain.fit(X, y).decision_function(X_test)
    predicted = {"decision value, clipped": np.clip((f + 1) / 2, 0, 1)}
    for name, model in models.items():
        predicted[name] = model.fit(X, y).predict_proba(X_test)[:, 1]
    ax.plot([0, 1], [0, 1], "k:", label="perfect")
    for (name, p), style in zip(predicted.items(), ["s--", "o-", "^-."]):
        happened, said = calibration_curve(y_test, p, n_bins=10)
        loss = brier_score_loss(y_test, p)
        ax.plot(said, happened, style, ms=4, label=f"{name}: Brier {loss:.4f}")
    ax.set(xlabel="probability that was predicted", title=f"{n} training samples")
    ax.legend(loc="upper left", fontsize="small")
axes[0].set_ylabel("share that is of class 1")
plt.show()

# %%
# The Brier score is the mean squared error of the probabilities; smaller is better.
#
# **What to learn from it.** With few samples the sigmoid, which has two numbers to
# learn, is the safer choice. An isotonic curve learns any shape, needs more samples for
# it, and is worth a try from a thousand or two on. Platt's method costs less here: its
# five folds share the kernel values of the fit, while ``CalibratedClassifierCV`` fits
# five machines anew.
