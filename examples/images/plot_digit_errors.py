"""
Which digits are misread
========================

The quickest way to a better model is to look at its errors. The gallery shows the
images that a machine gets wrong, and the matrix shows which digits are taken for which.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import load_mnist, per_class_split
from mercer.plots import HeatMapDisplay, ImageGalleryDisplay

X, y = load_mnist(sample=True, scale=True)
train, test = per_class_split(y, (100, 150), random_state=0)
test = np.random.default_rng(0).permutation(test)
model = SVC(C=10, gamma=0.02).fit(X[train], y[train])
print(f"{model.score(X[test], y[test]):.1%} of {len(test)} images are read correctly")
ImageGalleryDisplay.from_estimator(model, X[test], y[test], max_images=20, n_columns=10)

# %%
# Shades follow the logarithm of the counts, so that rare mistakes are visible beside
# the diagonal:

_, ax = plt.subplots(figsize=(5.6, 4.6), layout="constrained")
HeatMapDisplay.from_predictions(y[test], model.predict(X[test]), ax=ax)

# %%
# The support vectors with the largest coefficients are the images that the machine
# finds hardest. Here they are for a machine that tells 4 from 9:

chosen = (y == 4) | (y == 9)
pair = SVC(C=100, gamma=0.01).fit(X[chosen], y[chosen])
ImageGalleryDisplay.from_support_vectors(pair, max_images=16, n_columns=8)
plt.show()

# %%
# **What to learn from it.** 5 is taken for 3, 8 for 5 and 4 for 9 most often, and many
# of the images lean to one side. :doc:`Straightening them <plot_clean_up>` helps, and
# so do gradients in place of pixels (:doc:`Several views
# </auto_examples/kernels/plot_mkl_views>`).
