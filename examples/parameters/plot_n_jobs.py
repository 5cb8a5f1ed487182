"""
n_jobs: threads
===============

``n_jobs`` is the number of threads. ``None``, the default, is as many as BLAS may use,
which follows limits such as ``OMP_NUM_THREADS``; -1 is all cores. The result does not
depend on it, to the last bit.
"""

import os
import time

import numpy as np
from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import load_mnist

X, y = load_mnist(sample=True, scale=True)
threads = [k for k in (1, 2, 4, 8) if k <= (os.cpu_count() or 1)]
SVC(gamma=0.02).fit(X, y).predict(X)  # compile, if this is the first fit
fits, predictions, values = [], [], []
for n_jobs in threads:
    model = SVC(C=10, gamma=0.02, n_jobs=n_jobs)
    start = time.perf_counter()
    model.fit(X, y)
    middle = time.perf_counter()
    values.append(model.decision_function(X))
    fits.append(middle - start)
    predictions.append(time.perf_counter() - middle)

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
places = np.arange(len(threads))
ax.bar(places - 0.2, fits, 0.4, label="fit")
ax.bar(places + 0.2, predictions, 0.4, label="predict", hatch="//")
ax.set_xticks(places, [f"n_jobs={k}" for k in threads])
ax.set(ylabel="seconds", title="5,000 images, on the computer that built this page")
ax.legend()

# %%
# The decision values are the same to the last bit:

print(all(np.array_equal(v, values[0]) for v in values))
plt.show()

# %%
# **How to choose it.** Leave it at ``None``. In a search, give ``n_jobs`` to the search
# and not to the machine. Set 1 where you run many fits side by side yourself. Small
# problems run in one thread whatever you say, because waking others would take longer.
