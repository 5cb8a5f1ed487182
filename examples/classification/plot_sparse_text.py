"""
Sparse, text-like data
======================

Word counts are mostly zeros. CSR matrices stay sparse in Mercer, and for such wide data
a linear boundary is hard to beat. The documents here are drawn at random: each topic
prefers some words of a large vocabulary.
"""

import time

import numpy as np
from matplotlib import pyplot as plt
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from mercer import SVC, LinearSVC

rng = np.random.default_rng(0)
n_documents, n_words, n_topics = 3000, 20000, 5
common = 1 / np.arange(1, n_words + 1)  # Zipf's law
topics = np.array(
    [common * np.exp(0.9 * rng.standard_normal(n_words)) for _ in range(n_topics)]
)
topics /= topics.sum(axis=1, keepdims=True)
y = rng.integers(n_topics, size=n_documents)
X = sparse.vstack(
    [
        sparse.csr_array(rng.multinomial(length, topics[topic]).astype(np.float64))
        for topic, length in zip(y, rng.integers(20, 60, n_documents))
    ],
    format="csr",
)
X = TfidfTransformer(sublinear_tf=True).fit_transform(X).astype(np.float32)
print(f"{X.shape[0]} documents, {X.shape[1]} words, {X.nnz / X.shape[0]:.0f} in each")

models = {
    "LinearSVC": LinearSVC(C=0.5),
    "SVC, linear": SVC(kernel="linear"),
    "SVC, cosine": SVC(kernel="cosine"),
    "SVC, RBF": SVC(C=10, gamma=0.5),
}
accuracies, seconds = [], []
for model in models.values():
    model.fit(X[:2000], y[:2000])  # compile, if this is the first fit
    start = time.perf_counter()
    model.fit(X[:2000], y[:2000])
    seconds.append(time.perf_counter() - start)
    accuracies.append(100 * model.score(X[2000:], y[2000:]))

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.2), layout="constrained", sharey=True)
axes[0].barh(list(models), accuracies)
axes[0].set(xlabel="accuracy on other documents, in %", xlim=(0, 100))
axes[1].barh(list(models), seconds, color="C1", hatch="//")
axes[1].set(xlabel="seconds of a fit")
axes[0].invert_yaxis()
plt.show()

# %%
# **What to learn from it.** Use tf-idf and begin with ``LinearSVC``; it is as good as
# any kernel here, and has one weight for each word and topic, so that you can read what
# it has learnt. The rows of tf-idf have length 1, so that the linear and the cosine
# kernel are the same.
