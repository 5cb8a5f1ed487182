"""
nu: a share of the samples in place of C
========================================

The ν-machines replace the price ``C`` by a share: ν is at most the share of support
vectors, and at least the share of samples inside the margin. ``NuSVC``, ``NuSVR`` and
``OneClassSVM`` have it; the default is 0.5.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import NuSVC
from mercer.datasets import make_moons

X, y = make_moons(400, noise=0.3, random_state=0)
sides = np.where(y == 1, 1, -1)
nus = np.linspace(0.2, 0.9, 15)
support, inside = [], []
for nu in nus:
    model = NuSVC(nu=nu, gamma=1.0, tol=1e-5).fit(X, y)
    support.append(len(model.support_) / len(X))
    inside.append(np.mean(sides * model.decision_function(X) < 1 - 1e-3))

figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
ax.plot(nus, support, "o-", label="support vectors")
ax.plot(nus, nus, "k--", label="ν")
ax.plot(nus, inside, "s-", label="inside the margin")
ax.set(xlabel="ν", ylabel="share of the samples")
ax.legend()
plt.show()

# %%
# The dashed line lies between the two curves, as the theory says. For ``OneClassSVM``
# read "outside the boundary" for "inside the margin", and for ``NuSVR`` "outside the
# tube".
#
# **How to choose it.** If you can guess the share of errors or outliers, take that. It
# is often easier than choosing C, because ν has no unit. Not every value is possible in
# ``NuSVC``: ν can be at most twice the share of the smaller class, and an error says
# so.
#
# See also :doc:`one-class machines </auto_examples/regression/plot_one_class>`.
