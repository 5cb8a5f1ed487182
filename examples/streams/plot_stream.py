"""
A stream with a moving concept
==============================

``OnlineSVC`` learns from samples as they come, and removes those that do not matter.
The stream here turns slowly. Each sample is predicted before it is learnt, so that the
share of mistakes is an honest estimate at every moment.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import OnlineSVC, PassiveAggressiveClassifier

rng = np.random.default_rng(0)
n, chunk = 3000, 20
angle = np.linspace(0, 1.5 * np.pi, n)
X = rng.uniform(-1, 1, (n, 2))
y = (X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle) > 0).astype(int)
chunks = [(X[k : k + chunk], y[k : k + chunk]) for k in range(0, n, chunk)]

machines = {
    "all that matters": OnlineSVC(C=10, gamma=1.0),
    "budget of 100": OnlineSVC(C=10, gamma=1.0, budget=100),
    "passive-aggressive": PassiveAggressiveClassifier(
        kernel="rbf", gamma=1.0, budget=100
    ),
}

figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(8, 6), layout="constrained", sharex=True
)
for (name, machine), style in zip(machines.items(), ["-", "--", "-."]):
    held = []
    machine.learn_stream(
        chunks,
        classes=[0, 1],
        progress=lambda _, m=machine, held=held: held.append(len(m.support_vectors_)),
    )
    mistakes = np.diff(machine.history_["n_mistakes"])
    tested = np.diff(machine.history_["n_tested"])
    share = np.convolve(mistakes / tested, np.ones(10) / 10, "valid")
    seen = np.array(machine.history_["n_seen"])
    top.plot(seen[10:], 100 * share, style, label=name)
    bottom.plot(chunk * np.arange(1, len(held) + 1), held, style)
top.set(ylabel="mistakes in the last 200, in %")
bottom.set(xlabel="samples seen", ylabel="support vectors")
top.legend()
plt.show()

# %%
# **What to learn from it.** Where the concept moves, remembering everything hurts: old
# samples contradict new ones. A ``budget`` removes samples, and lets the machine
# follow. On a stream that stands still, hold all that matters, and ``finish`` brings
# the machine to the optimum at any time.
#
# :doc:`Learning sample by sample </online>` explains which samples are removed.
