"""
Kernels on some of the columns
==============================

Columns of a table are of different kinds. A kernel can look at some of them, by name,
and kernels can be added and multiplied: samples are similar in a product if they are
similar in both parts, and in a sum if they are similar in one or the other.
"""

import pandas as pd
from matplotlib import pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC
from mercer.plots import DotsDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
X = pd.DataFrame(StandardScaler().fit_transform(X), columns=X.columns)
taste = "[malic_acid, alcalinity_of_ash, flavanoids]"
colour = "[color_intensity, hue]"
kernels = {
    "taste": f"rbf@{taste}",
    "colour": f"rbf@{colour}",
    "taste + colour": f"rbf@{taste} + rbf@{colour}",
    "taste * colour": f"rbf@{taste} * rbf@{colour}",
    "taste + 0.1 linear": f"rbf@{taste} + 0.1 * linear",
    "all columns": "rbf",
}
scores = {
    name: 100 * cross_val_score(SVC(C=1, kernel=kernel), X, y, cv=10).mean()
    for name, kernel in kernels.items()
}
DotsDisplay.from_values(
    list(scores.values()), list(scores), xlabel="accuracy of ten folds, in %"
)

# %%
# The same kernels as objects are ``RBF().on(["color_intensity", "hue"])``, with ``+``,
# ``*`` and ``**``. A fitted model says what the text has become:

print(SVC(kernel=kernels["taste * colour"]).fit(X, y).kernel_)

# %%
# In a pipeline, ``set_output(transform="pandas")`` keeps the names of the columns for
# the machine that follows:

scaler = StandardScaler().set_output(transform="pandas")
pipeline = make_pipeline(scaler, SVC(kernel=kernels["taste + colour"]))
print(pipeline.fit(X, y).score(X, y))
plt.show()

# %%
# **What to learn from it.** Two groups of columns together are better than either of
# them. If you do not know how much each group should count, learn it: see :doc:`the
# weights of kernels <plot_mkl_weights>`.
