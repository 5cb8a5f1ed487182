"""
cache_size: the memory a fit may take
=====================================

``cache_size`` is the memory in megabytes for kernel values and for the scratch memory
of a fit. The default, "auto", is as much as is needed, but at most a quarter of the
free memory. A budget that is too small costs time, and changes nothing else.
"""

import time
import tracemalloc

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_classification

from mercer import SVC

X, y = make_classification(4000, 20, n_informative=10, flip_y=0.1, random_state=0)
X = X.astype(np.float32)
whole = len(X) ** 2 * 4 / 1e6
print(f"The whole matrix of kernel values has {whole:.0f} MB.")

budgets = [4, 8, 16, 32, 64, 128]
SVC(gamma=0.02, cache_size=4).fit(X, y)  # compile, if this is the first fit
peaks, seconds, predictions = [], [], []
for budget in budgets:
    model = SVC(C=10, gamma=0.02, cache_size=budget)
    start = time.process_time()
    model.fit(X, y)
    seconds.append(time.process_time() - start)
    predictions.append(model.predict(X))
    tracemalloc.start()
    model.fit(X, y)
    peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
    tracemalloc.stop()

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
left.loglog(budgets, peaks, "o-", label="measured peak")
left.loglog(budgets, budgets, "k--", label="cache_size")
left.set(xlabel="cache_size in MB", ylabel="MB")
left.legend()
right.semilogx(budgets, seconds, "o-")
right.set(
    xlabel="cache_size in MB", ylabel="processor seconds of a fit", ylim=(0, None)
)

# %%
# The peak follows the budget, and stops growing once everything that is needed fits.
# With a small budget, kernel values are computed again when they are needed. The models
# agree:

largest = max(np.mean(p != predictions[-1]) for p in predictions)
print(f"At most {largest:.2%} of the predictions differ between budgets.")
plt.show()

# %%
# **How to choose it.** Leave it at "auto" unless other programs need the memory, or
# several fits run at once. The budget does not include the samples, vectors with one
# number for each sample, and matrices that you have computed yourself. Data in
# ``float32`` need half as much as data in ``float64``. :doc:`The guide </guide>` has
# the details.
