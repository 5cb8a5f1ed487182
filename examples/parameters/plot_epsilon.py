"""
epsilon: how wide the tube is
=============================

``SVR`` does not penalise errors below ``epsilon``, 0.1 by default. The samples within
this distance form a tube around the curve, and only samples on its wall or outside of
it become support vectors. ε has the unit of the target.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import SVR

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, 120))[:, None]
z = np.sin(X[:, 0]) + 0.15 * rng.standard_normal(120)
line = np.linspace(0, 6, 300)[:, None]

figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained", sharey=True)
for epsilon, ax in zip([0.02, 0.2, 0.7], axes):
    model = SVR(C=10, gamma=0.5, epsilon=epsilon).fit(X, z)
    curve = model.predict(line)
    ax.fill_between(line[:, 0], curve - epsilon, curve + epsilon, alpha=0.2)
    ax.plot(line, curve)
    ax.plot(X, z, ".", color="0.5")
    ax.plot(X[model.support_], z[model.support_], "o", mfc="none", color="C1")
    ax.set(title=f"ε = {epsilon}: {len(model.support_)} support vectors", xlabel="x")

plt.show()

# %%
# With a narrow tube nearly every sample is a support vector (a ring), and predictions
# take longer. With a tube wider than the noise, the curve becomes flatter than the
# data: what fits into the tube needs no explanation.
#
# **How to choose it.** Take about the accuracy that you need, or the standard deviation
# of the noise. Scale the target, or keep its unit in mind: 0.1 is wide for a target
# between 0 and 1, and next to nothing for prices in the thousands. ``NuSVR`` finds ε
# from the share of samples that may lie outside (:doc:`nu <plot_nu>`).
