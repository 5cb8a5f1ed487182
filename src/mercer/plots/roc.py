"""ROC curves of classes, kernels or models on one pair of axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.metrics import RocCurveDisplay, auc, roc_curve
from sklearn.utils.validation import check_is_fitted

from mercer.plots.display import Display
from mercer.plots.style import line_styles, load_pyplot
from mercer.runtime.public import public

__all__ = ["RocCurvesDisplay"]


@public("mercer.plots")
class RocCurvesDisplay(Display):
    """Several ROC curves, each by scikit-learn's ``RocCurveDisplay``.

    Parameters
    ----------
    curves : mapping of str to pair of arrays
        The false and the true positive rates of each curve, as scikit-learn's
        ``roc_curve`` returns them.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    displays_ : dict of str to RocCurveDisplay
        Each with ``fpr``, ``tpr``, ``roc_auc`` and ``line_``.
    lines_ : list of Line2D
    chance_ : Line2D
        The diagonal.

    See Also
    --------
    mercer.selection.cross_val_decision : decision values of samples not seen.

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
        self.curves = {
            name: (np.asarray(fpr), np.asarray(tpr))
            for name, (fpr, tpr) in curves.items()
        }

    @classmethod
    def from_rates(
        cls, curves: Mapping[str, tuple[Any, Any]], **kwargs: Any
    ) -> RocCurvesDisplay:
        """Draw false and true positive rates.

        Parameters
        ----------
        curves : as for the class
        **kwargs
            For :meth:`plot`.
        """
        return cls(curves).plot(**kwargs)

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
            The scores of each curve, larger for the positive class.
        pos_label : label, default=None
            The positive class; None means the larger one.
        **kwargs
            For :meth:`plot`.
        """
        y_true = np.asarray(y_true)
        classes = np.unique(y_true)
        if len(classes) != 2:
            raise ValueError(
                f"RocCurvesDisplay: y_true must have two classes, got {len(classes)}. "
                "Use from_estimator or from_decision for more classes."
            )
        positive = classes[1] if pos_label is None else pos_label
        if positive not in classes:
            raise ValueError(
                f"RocCurvesDisplay: pos_label={pos_label!r} is not a class of y_true: "
                f"{', '.join(map(str, classes))}."
            )
        sides = y_true == positive
        curves = {str(k): roc_curve(sides, v)[:2] for k, v in scores.items()}
        return cls(curves).plot(**kwargs)

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
            The classifiers by the names of their curves.
        X, y : samples and their classes
        pos_label : label, default=None
            The positive class; None means the second one.
        **kwargs
            For :meth:`plot`.
        """
        load_pyplot(f"{cls.__name__}.from_estimators")
        scores = {}
        for name, estimator in estimators.items():
            values = np.asarray(estimator.decision_function(X))
            if values.ndim > 1:
                raise ValueError(
                    f"RocCurvesDisplay: {name} has more than two classes. Use "
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
            Its ``decision_function`` must have a column for each class.
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
            For two classes the shape may be (n_samples,), with larger values for the
            second class.
        classes : array of shape (n_classes,), default=None
            The class of each column; None sorts the classes of y_true.
        **kwargs
            For :meth:`plot`.
        """
        y_true, decision = np.asarray(y_true), np.asarray(decision)
        classes = np.unique(y_true) if classes is None else np.asarray(classes)
        if decision.ndim == 1:
            decision = np.stack([-decision, decision], axis=1)
        if decision.shape != (len(y_true), len(classes)):
            raise ValueError(
                f"RocCurvesDisplay: decision values must have shape ({len(y_true)}, "
                f"{len(classes)}), for the samples and classes, got {decision.shape}. "
                "A model with decision_function_shape='ovo' needs 'ovr'."
            )
        sides = [y_true == name for name in classes]
        # A class without positive or without negative samples has no curve.
        present = [k for k, side in enumerate(sides) if side.any() and not side.all()]
        if len(classes) == 2:
            present = present[-1:]  # both classes have the same curve
        return cls(
            {
                f"class {classes[k]}": roc_curve(sides[k], decision[:, k])[:2]
                for k in present
            }
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
            Whether the axis of false positives is logarithmic, which spreads the curves
            of good models.
        legend : bool, default=True
        title : str, default=None
        """
        ax = self._open(ax, (6.0, 5.0))
        styles = line_styles(len(self.curves), markers=False)
        self.displays_ = {
            name: RocCurveDisplay(
                fpr=fpr, tpr=tpr, roc_auc=auc(fpr, tpr), name=name
            ).plot(ax=ax, curve_kwargs={"linewidth": 1.8, **style})
            for (name, (fpr, tpr)), style in zip(
                self.curves.items(), styles, strict=True
            )
        }
        self.lines_ = [display.line_ for display in self.displays_.values()]
        grid = np.geomspace(1e-6, 1.0, 100) if log else np.array([0.0, 1.0])
        (self.chance_,) = ax.plot(
            grid, grid, ":", color="0.4", label="chance (AUC = 0.50)"
        )
        ax.set(xlabel="false positive rate", ylabel="true positive rate", title=title)
        if log:
            # Rates of 0 have no place on this axis; it begins below the smallest other.
            rates = np.concatenate([np.ravel(fpr) for fpr, _ in self.curves.values()])
            ax.set_aspect("auto")
            ax.set_xscale("log")
            ax.set_xlim(0.5 * rates[rates > 0].min(initial=1.0), 1.0)
        if legend:
            # On a logarithmic axis the chance line passes the lower right corner.
            ax.legend(loc="best" if log else "lower right", fontsize="small")
        elif ax.get_legend() is not None:
            ax.get_legend().remove()
        return self
