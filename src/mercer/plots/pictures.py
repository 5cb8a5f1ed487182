"""Galleries of images: misclassified ones, clean-up, and support vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.images.stack import as_stack
from mercer.plots.display import Display
from mercer.plots.plane import final_step
from mercer.plots.style import load_pyplot
from mercer.plots.support import dense
from mercer.runtime.public import public

__all__ = ["ImageGalleryDisplay"]

# The height of a line of text and the gap between images, in heights of an image.
LINE = 0.19
GAP = 0.1
UNIT = 0.95
# The width of a letter, for each point of the size of the font.
LETTER = 0.0082 / UNIT
FRAME: dict[str, Any] = {"fill": False, "edgecolor": "0.75", "linewidth": 0.6}
CENTRED: dict[str, Any] = {"ha": "center", "linespacing": 1.15}


@public("mercer.plots")
class ImageGalleryDisplay(Display):
    """Images in rows, with captions above them.

    Parameters
    ----------
    images : array of shape (n, h, w), (n, h, w, 3) or (n, n_pixels)
        Rows of pixels are read as square images, in grey or in colour.
    captions : sequence of str, default=None
        Texts above the images.
    n_columns : int, default=8
        Number of images in a row.
    row_names : sequence of str, default=None
        Texts to the left of the rows.
    shape : tuple of int, default=None
        (h, w) or (h, w, 3); it is needed for rows of pixels of images that are not
        square.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    images_ : list of AxesImage
    captions_ : list of Text
    row_names_ : list of Text

    See Also
    --------
    HeatMapDisplay : which classes are mixed up.

    Examples
    --------
    >>> from mercer.datasets import load_digits
    >>> from mercer.plots import ImageGalleryDisplay
    >>> X, y = load_digits()
    >>> display = ImageGalleryDisplay.from_images(X[:10], y[:10], n_columns=5)
    >>> display.captions_[3].get_text()
    '3'
    """

    def __init__(
        self,
        images: Any,
        *,
        captions: Sequence[Any] | None = None,
        n_columns: int = 8,
        row_names: Sequence[str] | None = None,
        shape: tuple[int, ...] | None = None,
    ):
        images = np.asarray(images)
        if len(images):
            self.images = as_stack(images, shape, "ImageGalleryDisplay").pixels
        else:
            self.images = np.zeros((0, 1, 1, 1))
        self.captions = None if captions is None else [str(c) for c in captions]
        self.n_columns = n_columns
        self.row_names = row_names
        if n_columns < 1:
            raise ValueError(
                f"ImageGalleryDisplay: n_columns must be at least 1, got {n_columns!r}."
            )
        if self.captions is not None and len(self.captions) != len(self.images):
            raise ValueError(
                f"ImageGalleryDisplay: {len(self.images)} images need as many "
                f"captions, got {len(self.captions)}."
            )

    @classmethod
    def from_images(
        cls,
        images: Any,
        captions: Sequence[Any] | None = None,
        *,
        n_columns: int = 8,
        shape: tuple[int, ...] | None = None,
        **kwargs: Any,
    ) -> ImageGalleryDisplay:
        """Draw images.

        Parameters
        ----------
        images, captions, n_columns, shape : as for the class
        **kwargs
            For :meth:`plot`.
        """
        display = cls(images, captions=captions, n_columns=n_columns, shape=shape)
        return display.plot(**kwargs)

    @classmethod
    def from_predictions(
        cls,
        images: Any,
        y_true: Any,
        y_pred: Any,
        *,
        max_images: int = 24,
        n_columns: int = 8,
        shape: tuple[int, ...] | None = None,
        **kwargs: Any,
    ) -> ImageGalleryDisplay:
        """Draw the misclassified images with their true and predicted classes.

        Parameters
        ----------
        images : array of images, or of rows of pixels
        y_true, y_pred : arrays of shape (n,)
        max_images : int, default=24
            The largest number of images; the first ones are drawn.
        n_columns, shape : as for the class
        **kwargs
            For :meth:`plot`.
        """
        images, y_true, y_pred = map(np.asarray, (images, y_true, y_pred))
        if not len(images) == len(y_true) == len(y_pred):
            raise ValueError(
                f"ImageGalleryDisplay: got {len(images)} images, {len(y_true)} true "
                f"and {len(y_pred)} predicted classes. Every image needs one of each."
            )
        wrong = np.flatnonzero(y_true != y_pred)[:max_images]
        captions = [f"true {y_true[k]}\npred. {y_pred[k]}" for k in wrong]
        display = cls(
            images[wrong], captions=captions, n_columns=n_columns, shape=shape
        )
        return display.plot(**kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, images: Any = None, **kwargs: Any
    ) -> ImageGalleryDisplay:
        """Draw the images that a fitted classifier gets wrong.

        Parameters
        ----------
        estimator : classifier
        X : array
            Samples; they are the images too if ``images`` is None.
        y : array of shape (n,)
            Their classes.
        images : array of images, default=None
            The images if X has features of them.
        **kwargs
            For :meth:`from_predictions`.
        """
        load_pyplot(f"{cls.__name__}.from_estimator")
        shown = X if images is None else images
        return cls.from_predictions(shown, y, estimator.predict(X), **kwargs)

    @classmethod
    def from_transformers(
        cls,
        transformers: Mapping[str, Any],
        images: Any,
        *,
        shape: tuple[int, ...] | None = None,
        **kwargs: Any,
    ) -> ImageGalleryDisplay:
        """Draw images before and after clean-up, with a row for each transformer.

        Parameters
        ----------
        transformers : mapping of str to transformer
            Each transformer is fitted to the images by itself; use pipelines for steps
            that follow one another.
        images : array of images, or of rows of pixels
        shape : as for the class
        **kwargs
            For :meth:`plot`.
        """
        load_pyplot(f"{cls.__name__}.from_transformers")
        stack = as_stack(np.asarray(images), shape, cls.__name__)
        flat = stack.pixels if len(stack.shape) == 3 else stack.pixels[..., 0]
        made = {name: t.fit_transform(flat) for name, t in transformers.items()}
        for name, result in made.items():
            if result.shape != flat.shape:
                raise ValueError(
                    f"{cls.__name__}: {name} makes an array of shape {result.shape} "
                    f"from images of shape {flat.shape}. A transformer must keep the "
                    "shape."
                )
        return cls(
            np.concatenate([flat, *made.values()]),
            n_columns=len(flat),
            row_names=["before", *made],
        ).plot(**kwargs)

    @classmethod
    def from_support_vectors(
        cls,
        estimator: Any,
        *,
        max_images: int = 24,
        n_columns: int = 8,
        shape: tuple[int, ...] | None = None,
        **kwargs: Any,
    ) -> ImageGalleryDisplay:
        """Draw the support vectors with the largest coefficients.

        Parameters
        ----------
        estimator : fitted classifier, or a pipeline whose last step is one
            Its samples must be images or rows of pixels.
        max_images : int, default=24
            The largest number of images.
        n_columns, shape : as for the class
        **kwargs
            For :meth:`plot`.
        """
        load_pyplot(f"{cls.__name__}.from_support_vectors")
        check_is_fitted(estimator)
        machine = final_step(estimator)
        sizes = np.abs(dense(machine.dual_coef_)).max(axis=0)
        first = np.argsort(-sizes, kind="stable")[:max_images]
        names = [""] * len(sizes)
        if hasattr(machine, "classes_"):
            names = [
                f"class {c}\n" for c in np.repeat(machine.classes_, machine.n_support_)
            ]
        captions = [f"{names[k]}|β| = {sizes[k]:.3g}" for k in first]
        pixels = dense(machine.support_vectors_)[first]
        display = cls(pixels, captions=captions, n_columns=n_columns, shape=shape)
        return display.plot(**kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        cmap: str = "gray_r",
        fontsize: float = 9.0,
        title: str | None = None,
    ) -> ImageGalleryDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        cmap : str, default="gray_r"
            Shades of grey images; by default 0 is white. Each image uses all shades.
        fontsize : float, default=9.0
        title : str, default=None
        """
        n_lines = max((c.count("\n") + 1 for c in self.captions or ()), default=0)
        n_columns = max(1, min(self.n_columns, len(self.images)))
        n_rows = max(1, -(-len(self.images) // n_columns))
        # Lengths are in heights of an image; in a new figure that is UNIT inches.
        width = self.images.shape[2] / self.images.shape[1]
        across, down = width + GAP, 1.0 + GAP + LINE * n_lines
        letters = max(map(len, self.row_names or ()), default=0)
        left_room = GAP + letters * fontsize * LETTER
        inches = UNIT * (n_columns * across + left_room), UNIT * n_rows * down
        size = max(3.0, inches[0]), max(1.5, inches[1]) + (0.4 if title else 0.1)
        ax = self._open(ax, size)
        from matplotlib.patches import Rectangle

        self.images_, self.captions_, self.row_names_ = [], [], []
        for k, image in enumerate(self.images):
            left, top = k % n_columns * across, k // n_columns * down + LINE * n_lines
            pixels = image[..., 0] if image.shape[-1] == 1 else image
            box = (left, left + width, top + 1.0, top)
            self.images_.append(ax.imshow(pixels, cmap=cmap, extent=box))
            ax.add_patch(Rectangle((left, top), width, 1.0, **FRAME))
            if self.captions:
                text = self.captions[k]
                self.captions_.append(
                    ax.text(left + width / 2, top - 0.03, text, va="bottom", **CENTRED)
                )
        for k, name in enumerate(self.row_names or ()):
            middle = k * down + LINE * n_lines + 0.5
            self.row_names_.append(ax.text(-GAP, middle, name, ha="right", va="center"))
        for text in (*self.captions_, *self.row_names_):
            text.set_fontsize(fontsize)
        if not self.images_:
            ax.text(across / 2, down / 2, "no images", va="center", **CENTRED)
        ax.set_aspect("equal")
        ax.set(xlim=(-left_room, n_columns * across), ylim=(n_rows * down, -GAP))
        ax.set_axis_off()
        ax.set_title(title or "")
        return self
