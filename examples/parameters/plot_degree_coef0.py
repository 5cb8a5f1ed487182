"""
degree and coef0: polynomials
=============================

The polynomial kernel is (γ x·z + c)ᵈ with ``degree`` d, 3 by default, and ``coef0`` c,
0 by default. It compares all products of up to d columns; c decides how much the
products of few columns count.
"""

from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import make_moons
from mercer.plots import DecisionRegionsDisplay

X, y = make_moons(160, noise=0.2, random_state=0)

figure, axes = plt.subplots(2, 3, figsize=(11, 7.4), layout="constrained")
for row, coef0 in zip(axes, [0, 1]):
    for ax, degree in zip(row, [2, 3, 8]):
        model = SVC(C=10, kernel="poly", degree=degree, gamma=1, coef0=coef0).fit(X, y)
        DecisionRegionsDisplay.from_estimator(
            model, X, y, ax=ax, title=f"degree {degree}, coef0 {coef0}", legend=False
        )
        ax.label_outer()

plt.show()

# %%
# With ``coef0=0`` only products of exactly d columns count. An even degree then cannot
# tell x from −x, which shows in the symmetric regions above. With ``coef0=1`` the lower
# powers are there as well, and the machine with degree 3 finds the moons.
#
# **How to choose them.** Set ``coef0=1`` unless products of exactly d columns are what
# you want, and try degrees 2 and 3. Values grow like the d-th power of the columns, so
# scale the columns. A negative ``coef0`` makes the kernel indefinite from degree 2 on:
# ``is_convex_`` is then False, and a fit may end at a solution that is not the best.
