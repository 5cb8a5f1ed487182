"""
gamma: how far a sample reaches
===============================

The Gaussian kernel is exp(−γ‖x − z‖²): two samples at a distance of 1/√γ have a kernel
value of 0.37. The default, ``gamma="scale"``, is 1 / (number of columns × variance of
all values), and ``"auto"`` is 1 / number of columns. Polynomial, sigmoid, Laplacian and
χ² kernels have a ``gamma``, too.
"""

from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import make_moons
from mercer.plots import DecisionRegionsDisplay

X, y = make_moons(160, noise=0.3, random_state=0)
X_test, y_test = make_moons(2000, noise=0.3, random_state=1)

figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained", sharey=True)
for gamma, ax in zip([0.03, 1, 100], axes):
    model = SVC(C=10, gamma=gamma).fit(X, y)
    accuracy = model.score(X_test, y_test)
    title = f"γ = {gamma}: {len(model.support_)} support vectors, {accuracy:.1%}"
    DecisionRegionsDisplay.from_estimator(model, X, y, ax=ax, title=title, legend=False)
    ax.label_outer()
marks = axes[0].get_legend_handles_labels()
figure.legend(*marks, loc="outside lower center", ncols=6)

# %%
# With a small γ every sample reaches across the whole set, and the boundary is almost a
# straight line. With a large γ a sample reaches only its neighbours: the machine has
# learnt the training samples by heart, nearly all of them are support vectors, and it
# knows nothing about the space between them.
#
# **How to choose it.** Scale the columns first. Then search by factors of 3 around the
# value of "scale", which a fitted model has in ``model.kernel_.gamma``:

print(f"scale means {SVC().fit(X, y).kernel_.gamma:.3f} for these samples")
plt.show()

# %%
# **Signs of a wrong value.** γ is too large if the training score is perfect and nearly
# all samples are support vectors. It is too small if the machine does no better than a
# linear one.
#
# See also :doc:`C <plot_C>`, and :doc:`what γ does to the matrix of kernel values
# </auto_examples/kernels/plot_kernel_matrices>`.
