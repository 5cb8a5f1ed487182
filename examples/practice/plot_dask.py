"""
Samples on a cluster
====================

``mercer.dask`` fits exact machines to samples that are spread over the workers of a
Dask cluster. The cluster here has two workers in this very process, which shows how it
works and gains nothing: on one computer the plain classes are faster.
"""

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster
from matplotlib import pyplot as plt

from mercer import SVC
from mercer.dask import DaskSVC
from mercer.datasets import make_moons
from mercer.plots import DecisionRegionsDisplay

X, y = make_moons(4000, noise=0.25, random_state=0)

with (
    LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster,
    Client(cluster),
):
    samples = da.from_array(X, chunks=(1000, 2))
    classes = da.from_array(y, chunks=1000)
    model = DaskSVC(C=10, gamma=1.0).fit(samples, classes)
    print(f"converged {model.converged_}, KKT gap {model.kkt_gap_.max():.1e}")
    print(f"{model.n_rounds_} rounds, {model.bytes_sent_ / 1e6:.1f} MB sent")
    accuracy = (model.predict(samples) == classes).mean().compute()
    print(f"accuracy {accuracy:.3f}")
    local = model.to_local()

# %%
# The certificate is that of the whole problem, and the solution is the one that a
# single computer finds. ``to_local`` returns a plain ``SVC``:

plain = SVC(C=10, gamma=1.0).fit(X, y)
print(f"objectives {local.objective_[0]:.4f} and {plain.objective_[0]:.4f}")

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained", sharey=True)
some = np.random.default_rng(0).choice(len(X), 300, replace=False)
for ax, machine, title in zip(axes, (local, plain), ("from the cluster", "SVC")):
    DecisionRegionsDisplay.from_estimator(
        machine, X[some], y[some], ax=ax, title=title, legend=False, support=False
    )

plt.show()

# %%
# **What to learn from it.** Use a cluster where the samples do not fit one computer, or
# lie there already. In a script with worker *processes*, put the code under ``if
# __name__ == "__main__":``. :doc:`On a cluster </cluster>` says what it takes,
# and what the loss of a worker costs.
