"""
The tube of a regression
========================

``SVR`` fits a tube of given width ε around a curve, ``NuSVR`` finds the width for a
given share of samples outside. Both ignore errors within the tube, and outliers pull at
the curve only with the force C, however far away they are.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.kernel_ridge import KernelRidge

from mercer import SVR, NuSVR

rng = np.random.default_rng(3)
X = np.sort(rng.uniform(0, 10, 150))[:, None]
z = np.sinc(X[:, 0] - 5) + 0.08 * rng.standard_normal(150)
outliers = rng.choice(150, 10, replace=False)
z[outliers] += rng.uniform(1, 3, 10)
line = np.linspace(0, 10, 400)[:, None]

tube = SVR(C=1, gamma=1.0, epsilon=0.15).fit(X, z)
share = NuSVR(C=1, gamma=1.0, nu=0.2).fit(X, z)
squares = KernelRidge(alpha=0.5, kernel="rbf", gamma=1.0).fit(X, z)

figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
curve = tube.predict(line)
ax.fill_between(line[:, 0], curve - 0.15, curve + 0.15, alpha=0.2)
ax.plot(line, curve, label="SVR, ε = 0.15")
ax.plot(line, share.predict(line), "--", label="NuSVR, ν = 0.2")
ax.plot(line, squares.predict(line), ":", label="squared errors (kernel ridge)")
ax.plot(line, np.sinc(line - 5), color="0.6", lw=1, label="the truth")
ax.plot(X, z, ".", color="0.4")
ax.plot(
    X[tube.support_], z[tube.support_], "o", mfc="none", color="C0", label="support"
)
ax.set(xlabel="x")
figure.legend(loc="outside upper center", ncols=3)

# %%
# How far each curve is from the truth, on average:

for model in (tube, share, squares):
    error = np.mean(abs(model.predict(line) - np.sinc(line[:, 0] - 5)))
    print(f"{type(model).__name__:12} {error:.3f}")

plt.show()

# %%
# **What to learn from it.** Squared errors make the curve follow the ten outliers. The
# tube hardly notices them. Choose :doc:`epsilon
# </auto_examples/parameters/plot_epsilon>` where you know how exact the curve must be,
# and :doc:`nu </auto_examples/parameters/plot_nu>` where you know how many outliers to
# expect.
