"""
Learning the weights of kernels
===============================

Multiple kernel learning finds the weights of a sum of kernels together with the
machine. Here each kernel looks at one measurement of the cells of a tumour, and the
weights say which measurements matter. The norm ``p`` decides how many keep a weight.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from mercer import SVC, MKLClassifier
from mercer.kernels import RBF
from mercer.plots import KernelWeightsDisplay

data = load_breast_cancer()
X, y = StandardScaler().fit_transform(data.data), data.target
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
train, test = order[:350], order[350:]

# Ten quantities, each measured as mean, standard error and worst value.
names = [str(name).removeprefix("mean ") for name in data.feature_names[:10]]
kernels = [RBF(gamma=0.3).on([k, k + 10, k + 20]) for k in range(10)]

weights, sets = [], []
for p in (1, 1.5, 4):
    model = MKLClassifier(kernels, p=p, C=0.1, tol=1e-5).fit(X[train], y[train])
    weights.append(model.weights_)
    sets.append(f"p = {p}: {model.score(X[test], y[test]):.1%}")
_, ax = plt.subplots(figsize=(7, 6), layout="constrained")
KernelWeightsDisplay.from_weights(weights, names, sets=sets, ax=ax)

# %%
# The percentages are accuracies on other tumours. With p = 1 most weights are exactly
# 0: the machine selects. With larger p the weights become more even.
#
# ``kernel_`` is the weighted sum, without kernels of weight 0, and an ``SVC`` can use
# it:

few = MKLClassifier(kernels, p=1, C=0.1, tol=1e-5).fit(X[train], y[train])
print(len(list(few.kernel_.leaves())), "kernels are left")
print(SVC(C=0.1, kernel=few.kernel_).fit(X[train], y[train]).score(X[test], y[test]))
plt.show()

# %%
# **What to learn from it.** Take p = 1 to find out which kernels are needed, and a
# larger p if accuracy is all that counts: measurements that are a little worse still
# help. :doc:`Multiple kernel learning </mkl>` compares the methods.
