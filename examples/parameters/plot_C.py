"""
C: what a violation of the margin costs
=======================================

``C`` weighs samples inside the margin, or on its wrong side, against a wide margin. The
default is 1. ``SVC``, ``SVR``, ``NuSVR``, ``SVDD``, the linear machines, multiple
kernel learning and the online machines have it; for the hard margin set
``C=float("inf")``.
"""

from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import make_moons
from mercer.plots import DecisionRegionsDisplay

X, y = make_moons(160, noise=0.3, random_state=0)
X_test, y_test = make_moons(2000, noise=0.3, random_state=1)

figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained", sharey=True)
for C, ax in zip([0.1, 1, 1000], axes):
    model = SVC(C=C, gamma=1.0).fit(X, y)
    accuracy = model.score(X_test, y_test)
    title = f"C = {C}: {len(model.support_)} support vectors, {accuracy:.1%}"
    DecisionRegionsDisplay.from_estimator(model, X, y, ax=ax, title=title, legend=False)
    ax.label_outer()
marks = axes[0].get_legend_handles_labels()
figure.legend(*marks, loc="outside lower center", ncols=6)
plt.show()

# %%
# With a small C the margin is wide, most samples become support vectors, and the
# boundary is smooth. With a large C the machine bends the boundary to save single
# samples, and has fewer support vectors. The percentage is the accuracy on 2,000 other
# samples of the same moons.
#
# **How to choose it.** Search in powers of 10 from 0.1 to 1,000; accuracy changes
# slowly, so that a finer grid gains little. C and :doc:`gamma <plot_gamma>` depend on
# each other: search both together. If the best C is at the edge of the grid, extend the
# grid.
#
# **Signs of a wrong value.** C is too small if nearly all samples are support vectors
# and the training score is low. It is too large if the training score is perfect, the
# test score is not, and fits take long.
#
# See also :doc:`the path along C </auto_examples/selection/plot_path>`.
