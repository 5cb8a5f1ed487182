"""
Kernel k-means against k-means
==============================

k-means cuts the plane by straight lines. Kernel k-means does the same in feature space,
and finds rings and moons. ``gamma="tune"`` chooses the width of the kernel for the
number of clusters.
"""

from matplotlib import pyplot as plt
from sklearn.metrics import adjusted_rand_score

from mercer import KernelKMeans, KMeans
from mercer.datasets import make_moons, make_rings
from mercer.plots import EmbeddingDisplay

sets = {
    "rings": make_rings(400, noise=0.05, random_state=0),
    "moons": make_moons(400, n_moons=3, noise=0.05, random_state=0),
}
figure, axes = plt.subplots(2, 2, figsize=(9, 7.4), layout="constrained")
for (name, (X, y)), row in zip(sets.items(), axes):
    k = len(set(y))
    models = [
        KMeans(k, random_state=0),
        KernelKMeans(k, gamma="tune", random_state=0),
    ]
    for model, ax in zip(models, row):
        labels = model.fit(X).labels_
        agreement = adjusted_rand_score(y, labels)
        title = f"{type(model).__name__}, {name}: {agreement:.2f}"
        EmbeddingDisplay.from_embedding(X, labels, ax=ax, title=title, legend=False)

# %%
# The numbers are adjusted Rand indices: 1 is perfect agreement with how the samples
# were made, 0 is chance. ``gamma="tune"`` has chosen

for name, (X, y) in sets.items():
    model = KernelKMeans(len(set(y)), gamma="tune", random_state=0).fit(X)
    print(f"{name}: gamma = {model.gamma_:.3g}")

plt.show()

# %%
# **What to learn from it.** Shapes that are connected and apart from each other can be
# found without labels. Where clusters overlap, as clouds do, plain k-means or
# ``gamma="scale"`` is the better choice. :doc:`Components and clusters </components>`
# has the limits.
