"""
On a graphics card
==================

``device="cuda"`` computes kernel values, solutions and predictions on a graphics card
of NVIDIA. This page was **not run** when the documentation was built, because building
needs no card: there is no output and no picture. It needs the extra ``cuda12`` or
``cuda13``.
"""

import time

import numpy as np

from mercer import SVC
from mercer.datasets import make_moons

X, y = make_moons(20000, noise=0.3, random_state=0)
X = X.astype(np.float32)

models = {}
for device in ("cpu", "cuda"):
    model = SVC(C=10, gamma=1.0, device=device)
    model.fit(X[:100], y[:100])  # compile, if this is the first fit
    start = time.perf_counter()
    models[device] = model.fit(X, y)
    print(f"{device}: {time.perf_counter() - start:.2f} s, {model.converged_}")

# %%
# The certificate is measured in double precision on both, so that the two solutions are
# equally good:

for device, model in models.items():
    print(f"{device}: objective {model.objective_[0]:.4f}, gap {model.kkt_gap_[0]:.1e}")

# %%
# A model that was fitted on a card is an ordinary model, and predicts on a computer
# without a card as well. ``mercer.load(path, device="cpu")`` does this for a saved one:

labels = models["cuda"].set_params(device="cpu").predict(X)
print(np.mean(labels == models["cpu"].predict(X)))

# %%
# **What to learn from it.** One parameter moves the work; everything else stays. Where
# CuPy or the card is missing, an error says what to install, and the processor never
# takes over in silence. :doc:`On a graphics card (GPU) </device>` says what runs where,
# and on which card it was tested.
