"""ROC curves on one pair of axes: by class, by kernel, by model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.metrics import RocCurveDisplay
from sklearn.utils.validation import check_is_fitted

from mercer.plots.display import Display
from mercer.plots.style import COLORS, LINES, distinct, load_pyplot

__all__ = ["RocCurvesDisplay"]


class RocCurvesDisplay(Display):
    """Several ROC curves, each by scikit-learn's ``RocCurveDisplay``.

    Parameters
    ----------
    curves : mapping of str to pair of arrays
        For each curve which samples are positive, and their scores.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    displays_ : dict of str to RocCurveDisplay
        Each with ``fpr``, ``tpr``, ``roc_auc`` and ``line_``.
    lines_ : list of Line2D
    chance_ : Line2D
        The diagonal.

    Examples
    --------
    >>> from mercer.plots import RocCurvesDisplay
    >>> display = RocCurvesDisplay.from_scores(
    ...     [0, 0, 1, 1], {"good": [1, 2, 3, 4], "fair": [1, 3, 2, 4]}
    ... )
    >>> {name: float(d.roc_auc) for name, d in display.displays_.items()}
    {'good': 1.0, 'fair': 0.75}
    """

    def __init__(self, curves: Mapping[str, tuple[Any, Any]]):
        if not curves:
            raise ValueError("RocCurvesDisplay: there are no curves.")
        self.curves = curves

    @classmethod
    def from_scores(
        cls,
        y_true: Any,
        scores: Mapping[str, Any],
        *,
        pos_label: Any = None,
        **kwargs: Any,
    ) -> RocCurvesDisplay:
        """Draw a curve for each array of scores of the same samples.

        Parameters
        ----------
        y_true : array of shape (n_samples,)
            Two classes.
        scores : mapping of str to array of shape (n_samples,)
            For each name the scores, larger for the positive class.
        pos_label : label, default=None
            The positive class; None is the larger one.
        **kwargs
            For :meth:`plot`.
        """
        y_true = np.asarray(y_true)
        classes = np.unique(y_true)
        if len(classes) != 2:
            raise ValueError(
                f"RocCurvesDisplay: y_true must have two classes, got {len(classes)}. "
                "For more use from_estimator or from_decision."
            )
        positive = classes[1] if pos_label is None else pos_label
        if positive not in classes:
            raise ValueError(
                f"RocCurvesDisplay: pos_label={pos_label!r} is not a class of y_true: "
                f"{', '.join(map(str, classes))}."
            )
        sides = y_true == positive
        return cls({str(k): (sides, v) for k, v in scores.items()}).plot(**kwargs)

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Any],
        X: Any,
        y: Any,
        *,
        pos_label: Any = None,
        **kwargs: Any,
    ) -> RocCurvesDisplay:
        """Draw a curve for each of several fitted classifiers of two classes.

        Parameters
        ----------
        estimators : mapping of str to classifier
            Each by the name of its curve, such as its kernel.
        X, y : samples and their classes
        pos_label : label, default=None
            The positive class; None is the second one.
        **kwargs
            For :meth:`plot`.
        """
        load_pyplot(f"{cls.__name__}.from_estimators")
        scores = {}
        for name, estimator in estimators.items():
            values = np.asarray(estimator.decision_function(X))
            if values.ndim > 1:
                raise ValueError(
                    f"RocCurvesDisplay: {name} tells more than two classes apart. Use "
                    "from_estimator for a curve of each class."
                )
            is_first = pos_label is not None and pos_label == estimator.classes_[0]
            scores[name] = -values if is_first else values
        return cls.from_scores(y, scores, pos_label=pos_label, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, **kwargs: Any
    ) -> RocCurvesDisplay:
        """Draw a curve for each class against the rest, of one fitted classifier.

        Parameters
        ----------
        estimator : classifier
            With a ``decision_function`` that has a column for each class.
        X, y : samples and their classes
        **kwargs
            For :meth:`plot`.
        """
        load_pyplot(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        decision = estimator.decision_function(X)
        return cls.from_decision(y, decision, estimator.classes_, **kwargs)

    @classmethod
    def from_decision(
        cls, y_true: Any, decision: Any, classes: Any = None, **kwargs: Any
    ) -> RocCurvesDisplay:
        """Draw a curve for each class from decision values or probabilities.

        Parameters
        ----------
        y_true : array of shape (n_samples,)
        decision : array of shape (n_samples, n_classes)
            For two classes also (n_samples,), larger for the second.
        classes : array of shape (n_classes,), default=None
            The class of each column; None is those of y_true, sorted.
        **kwargs
            For :meth:`plot`.
        """
        y_true, decision = np.asarray(y_true), np.asarray(decision)
        classes = np.unique(y_true) if classes is None else np.asarray(classes)
        if decision.ndim == 1:
            decision = np.stack([-decision, decision], axis=1)
        if decision.shape != (len(y_true), len(classes)):
            raise ValueError(
                f"RocCurvesDisplay: decision values of shape {decision.shape} have no "
                f"column for each of {len(classes)} classes and row for each of "
                f"{len(y_true)} samples. A model with decision_function_shape='ovo' "
                "needs 'ovr'."
            )
        sides = [y_true == name for name in classes]
        # A class that is nowhere, or everywhere, has no curve.
        present = [k for k, side in enumerate(sides) if side.any() and not side.all()]
        if len(classes) == 2:
            present = present[-1:]  # the other is the same curve
        return cls(
            {f"class {classes[k]}": (sides[k], decision[:, k]) for k in present}
        ).plot(**kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        log: bool = False,
        legend: bool = True,
        title: str | None = None,
    ) -> RocCurvesDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        log : bool, default=False
            Whether false positives are on a logarithmic scale, which spreads curves of
            good models that the corner hides.
        legend : bool, default=True
        title : str, default=None
        """
        ax = self._open(ax, (6.0, 5.0))
        n = len(self.curves)
        styles = zip(
            self.curves.items(), distinct(COLORS, n), distinct(LINES, n), strict=True
        )
        self.displays_ = {
            name: RocCurveDisplay.from_predictions(
                sides,
                scores,
                name=name,
                ax=ax,
                curve_kwargs={"color": color, "linestyle": line, "linewidth": 1.8},
            )
            for (name, (sides, scores)), color, line in styles
        }
        self.lines_ = [display.line_ for display in self.displays_.values()]
        grid = np.geomspace(1e-6, 1.0, 100) if log else np.array([0.0, 1.0])
        (self.chance_,) = ax.plot(
            grid, grid, ":", color="0.4", label="chance (AUC = 0.50)"
        )
        ax.set(xlabel="false positive rate", ylabel="true positive rate", title=title)
        if log:
            fewest = min(np.size(s) - np.sum(s) for s, _ in self.curves.values())
            ax.set_aspect("auto")
            ax.set_xscale("log")
            ax.set_xlim(0.5 / max(fewest, 1), 1.0)
        if legend:
            ax.legend(loc="lower right", fontsize="small")
        elif ax.get_legend() is not None:
            ax.get_legend().remove()
        return self
