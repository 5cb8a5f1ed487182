"""
Error-correcting codes
======================

An error-correcting code gives every class a word of ±1, and every column of the words
is a machine. As words differ in many places, some machines may err and the nearest word
is still the right one.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import SVC
from mercer.datasets import load_digits

X, y = load_digits(scale=True)
X_test, y_test = X[600:], y[600:]
models = {
    "one-vs-rest": SVC(C=5, gamma=0.05, multiclass="ovr"),
    "Hadamard": SVC(C=5, gamma=0.05, multiclass="ecoc", code="hadamard"),
    "Dietterich": SVC(C=5, gamma=0.05, multiclass="ecoc", code="dietterich15"),
    "random": SVC(C=5, gamma=0.05, multiclass="ecoc", code="random-dense"),
}

figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained", sharey=True)
for (name, model), ax in zip(models.items(), axes):
    model.set_params(decision_function_shape="ovo", random_state=0)
    model.fit(X[:600], y[:600])
    ax.imshow(model.code_, cmap="cividis", aspect="auto", interpolation="nearest")
    ax.set(title=f"{name}: {model.score(X_test, y_test):.1%}", xlabel="machine")
axes[0].set(ylabel="digit", yticks=range(10))

# %%
# Each picture is a code: a row for each digit, a column for each machine. The
# percentages are accuracies on other digits.
#
# Now let some machines err on purpose, and read the answer from the signs alone:

rng = np.random.default_rng(0)
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for (name, model), style in zip(models.items(), ["o-", "s--", "^-.", "d:"]):
    signs = np.sign(model.decision_function(X_test))
    accuracy = []
    for n_wrong in range(9):
        wrong = rng.permuted(np.arange(signs.shape[1]) < n_wrong, axis=None)
        flips = rng.permuted(np.tile(wrong, (len(signs), 1)), axis=1)
        answers = np.where(flips, -signs, signs) @ model.code_.T
        accuracy.append(100 * np.mean(answers.argmax(axis=1) == y_test))
    ax.plot(range(9), accuracy, style, label=name)
ax.set(xlabel="machines that err", ylabel="accuracy in %")
ax.legend()
plt.show()

# %%
# **What to learn from it.** The words of one-vs-rest differ in two places, so that a
# single error can be fatal. Hadamard words of ten classes differ in eight places: three
# errors are always repaired. The random code has 33 machines, and bears more. All
# machines share one matrix of kernel values, so that a code costs a few more problems
# and no more kernel values. :doc:`Several classes </classes>` lists the codes.
