"""
Passive-aggressive machines and wrong labels
============================================

A passive-aggressive machine changes its weights just enough to get the present sample
right. If that sample has a wrong label, a full step does harm. The variants PA-I and
PA-II bound the step by C.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import PassiveAggressiveClassifier
from mercer.datasets import make_clouds, noisy_stream
from mercer.plots import CurvesDisplay

X_test, y_test = make_clouds(4000, separation=2.5, random_state=1)
machines = {
    "PA: full steps": PassiveAggressiveClassifier(variant="pa"),
    "PA-I, C = 1": PassiveAggressiveClassifier(C=1, variant="pa1"),
    "PA-I, C = 0.01": PassiveAggressiveClassifier(C=0.01, variant="pa1"),
    "PA-II, C = 0.01": PassiveAggressiveClassifier(C=0.01, variant="pa2"),
}
curves = {}
for name, machine in machines.items():
    seen, accuracy = [], []
    stream = noisy_stream(
        1000, chunk_size=20, separation=2.5, flip=0.15, random_state=0
    )
    for X, y in stream:
        machine.partial_fit(X, y, classes=[0, 1])
        seen.append(len(X) * (len(seen) + 1))
        accuracy.append(100 * machine.score(X_test, y_test))
    curves[name] = (seen, accuracy)
    print(f"{name:16} {np.mean(accuracy[-10:]):.1f} % at the end")
CurvesDisplay.from_curves(
    curves, xlabel="samples seen, 15 % with a wrong label", ylabel="accuracy in %"
)
plt.show()

# %%
# **What to learn from it.** The noisier the labels, the smaller C should be.
# ``average=True`` is another remedy: it predicts by the mean of all weights so far. For
# streams that need a boundary that is not a line, give the machine a ``kernel`` and a
# ``budget``; see :doc:`a stream with a moving concept <plot_stream>`.
