"""Kernel matrices, ordered by class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mercer.engines.engine import gram_matrix
from mercer.kernels import parse
from mercer.plots.display import Display
from mercer.plots.style import SHADES, load_pyplot, tick_rotation
from mercer.runtime.public import public

__all__ = ["KernelMatrixDisplay"]


@public("mercer.plots")
class KernelMatrixDisplay(Display):
    """A kernel matrix with its samples ordered by class.

    If the kernel suits the classes, there are bright squares along the diagonal.

    Parameters
    ----------
    matrix : array of shape (n_samples, n_samples)
    y : array of shape (n_samples,), default=None
        Classes; None keeps the order of the samples.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_ : AxesImage
        Its array is the ordered matrix.
    order_ : ndarray of shape (n_samples,)
        The sample in each row.
    lines_ : list of Line2D
        Lines between classes.
    colorbar_ : Colorbar

    See Also
    --------
    mercer.gram_matrix : the matrix itself.

    Examples
    --------
    >>> from mercer.datasets import make_clouds
    >>> from mercer.kernels import RBF
    >>> from mercer.plots import KernelMatrixDisplay
    >>> X, y = make_clouds(60, n_classes=3, random_state=0)
    >>> display = KernelMatrixDisplay.from_kernel(RBF(0.5), X, y)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['0', '1', '2']
    """

    def __init__(self, matrix: Any, *, y: Any = None):
        self.matrix = np.asarray(matrix)
        self.y = None if y is None else np.asarray(y)
        shape = self.matrix.shape
        if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
            raise ValueError(
                f"KernelMatrixDisplay: the matrix must be square, got shape {shape}."
            )
        if self.y is not None and self.y.shape != shape[:1]:
            raise ValueError(
                f"KernelMatrixDisplay: y must have one class for each of the "
                f"{shape[0]} rows, got shape {self.y.shape}."
            )

    @classmethod
    def from_matrix(
        cls, matrix: Any, y: Any = None, *, ax: Any = None, **kwargs: Any
    ) -> KernelMatrixDisplay:
        """Draw a matrix.

        Parameters
        ----------
        matrix, y : as for the class
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs
            For :meth:`plot`.
        """
        return cls(matrix, y=y).plot(ax=ax, **kwargs)

    @classmethod
    def from_kernel(
        cls, kernel: Any, X: Any, y: Any = None, *, ax: Any = None, **kwargs: Any
    ) -> KernelMatrixDisplay:
        """Draw the matrix of a kernel on samples.

        Parameters
        ----------
        kernel : Kernel or str
            The kernel, or its text form.
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples.
        y : as for the class
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs
            For :meth:`plot`.
        """
        load_pyplot(f"{cls.__name__}.from_kernel")
        bound = parse(kernel) if isinstance(kernel, str) else kernel
        return cls(gram_matrix(bound, X), y=y).plot(ax=ax, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None, **kwargs: Any
    ) -> KernelMatrixDisplay:
        """Draw the matrix of the kernel of a fitted estimator, ``kernel_``.

        Parameters
        ----------
        estimator : estimator with ``kernel_``, or a pipeline that ends in one
            The earlier steps of a pipeline transform the samples first.
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples.
        y : as for the class
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs
            For :meth:`plot`.
        """
        load_pyplot(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        machine = estimator
        if isinstance(estimator, Pipeline):
            X, machine = estimator[:-1].transform(X), estimator[-1]
        if not hasattr(machine, "kernel_"):
            raise TypeError(
                f"KernelMatrixDisplay: {type(machine).__name__} has no kernel_. Use "
                "from_kernel or from_matrix."
            )
        return cls(gram_matrix(machine.kernel_, X), y=y).plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        cmap: str = SHADES,
        colorbar: bool = True,
        title: str | None = None,
    ) -> KernelMatrixDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        cmap : str, default="cividis"
        colorbar : bool, default=True
        title : str, default=None
        """
        ax = self._open(ax, (5.4, 4.5))
        n = len(self.matrix)
        self.order_ = np.arange(n)
        if self.y is not None:
            self.order_ = np.argsort(self.y, kind="stable")
        values = self.matrix[np.ix_(self.order_, self.order_)]
        self.image_ = ax.imshow(values, cmap=cmap)
        self.lines_: list[Any] = []
        if self.y is None:
            ax.set(xlabel="sample", ylabel="sample")
        else:
            self._mark_classes(ax, *np.unique(self.y, return_counts=True))
        ax.set_title(title or "")
        self.colorbar_ = None
        if colorbar:
            self.colorbar_ = self.figure_.colorbar(self.image_, ax=ax, label="k(x, z)")
        return self

    def _mark_classes(self, ax: Any, names: NDArray, counts: NDArray) -> None:
        ends = np.cumsum(counts)
        for end in ends[:-1] - 0.5:
            # A white line on a black one is visible on any colour.
            for color, width in (("black", 2.0), ("white", 0.9)):
                self.lines_.append(ax.axhline(end, color=color, lw=width))
                self.lines_.append(ax.axvline(end, color=color, lw=width))
        middles = ends - counts / 2 - 0.5
        texts = [str(name) for name in names]
        ax.set_xticks(middles, texts, rotation=tick_rotation(texts))
        ax.set_yticks(middles, texts)
        ax.tick_params(length=0)
        ax.set(xlabel="class", ylabel="class")
