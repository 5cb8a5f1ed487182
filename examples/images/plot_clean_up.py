"""
Clean-up and distorted copies
=============================

``mercer.images`` straightens, trims and blurs images, and makes distorted copies of
them, from which ``VirtualSVC`` learns what does not change a class.
"""

from matplotlib import pyplot as plt
from sklearn.pipeline import make_pipeline

from mercer import SVC
from mercer.datasets import load_mnist, per_class_split
from mercer.images import HOG, Deskew, Distort, GaussianBlur, Trim, VirtualSVC
from mercer.plots import DotsDisplay, ImageGalleryDisplay

X, y = load_mnist(sample=True, scale=True, as_images=True)
steps = {
    "straightened": Deskew("moments"),
    "and trimmed": make_pipeline(Deskew("moments"), Trim()),
    "blurred": GaussianBlur(1.0),
    "copy 1": Distort(elastic=1.4, random_state=1),
    "copy 2": Distort(elastic=1.4, random_state=2),
}
ImageGalleryDisplay.from_transformers(steps, X[7::500])

# %%
# What each step is worth, with 30 images of each digit for training:

train, test = per_class_split(y, (30, 200), random_state=0)
gradients = HOG(cell_size=7, block_size=2, interpolation=True)
straight = make_pipeline(Deskew("moments"), gradients, SVC(C=5))
models = {
    "pixels": make_pipeline(SVC(C=10, gamma=0.02)),
    "gradients": make_pipeline(gradients, SVC(C=5)),
    "straightened, gradients": straight,
    "and distorted copies": VirtualSVC(
        straight, Distort(elastic=1.4), n_copies=4, copied="all", random_state=0
    ),
}
scores = []
for name, model in models.items():
    images = X.reshape(len(X), -1) if name == "pixels" else X
    model.fit(images[train], y[train])
    scores.append(100 * model.score(images[test], y[test]))
DotsDisplay.from_values(scores, list(models), xlabel="accuracy in %")
plt.show()

# %%
# **What to learn from it.** With few images, knowledge about images is worth more than
# a better classifier. :doc:`Images </images>` has measurements on all of MNIST and on
# CIFAR-10.
