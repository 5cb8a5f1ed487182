"""
Saving a model, and using it elsewhere
======================================

``mercer.save`` writes a pipeline with its machine to a file that holds names, numbers
and arrays. Loading it runs no code of the file, and gives a model with the same
predictions, to the last bit.
"""

import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SVC
from mercer.datasets import make_clouds
from mercer.plots import DecisionRegionsDisplay

X, y = make_clouds(200, n_classes=3, separation=3, random_state=0)
model = make_pipeline(StandardScaler(), SVC(C=1))
model.fit(X, y)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "clouds.skops"
    mercer.save(model, path, notes={"made by": "the gallery", "samples": len(X)})
    print(f"{path.stat().st_size / 1000:.0f} kB")
    print(mercer.files.read_header(path)["notes"])
    loaded = mercer.load(path)

print(np.array_equal(loaded.decision_function(X), model.decision_function(X)))

# %%
# The same machine in scikit-learn, for tools that know its classes:

other = model[-1].to_sklearn()
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained", sharey=True)
DecisionRegionsDisplay.from_estimator(
    loaded, X, y, ax=axes[0], title="loaded", legend=False
)
scaled = model[0].transform(X)
DecisionRegionsDisplay.from_estimator(
    other, scaled, y, ax=axes[1], title=f"{type(other).__module__}", legend=False
)
plt.show()

# %%
# **What to learn from it.** Save pipelines, not machines, so that new samples are
# scaled in the same way. After a search, save ``best_estimator_``. :doc:`Model files
# </models>` says what a file may hold, and how to write one for LIBSVM.
