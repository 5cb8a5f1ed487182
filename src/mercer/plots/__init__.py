"""Pictures of models, fits, kernels and images, in the manner of scikit-learn.

Every picture is a class with ``from_estimator``, ``from_...`` and ``plot(ax=None)``,
which keeps what it has drawn in ``ax_``, ``figure_`` and others.  Colour-blind eyes
tell the colours apart, and grey print has markers, lines and hatches.  Those of
scikit-learn that need no change are here by the same names.

Matplotlib is loaded when something is drawn: ``pip install 'mercer[all]'``.
"""

from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics import (
    ConfusionMatrixDisplay,
    PrecisionRecallDisplay,
    RocCurveDisplay,
)
from sklearn.model_selection import LearningCurveDisplay, ValidationCurveDisplay

from mercer.plots.ablation import AblationDisplay
from mercer.plots.convergence import ConvergenceDisplay
from mercer.plots.embedding import EmbeddingDisplay
from mercer.plots.heatmap import HeatMapDisplay
from mercer.plots.history import FitHistory, trace_fit
from mercer.plots.matrices import KernelMatrixDisplay
from mercer.plots.oneclass import OneClassDisplay
from mercer.plots.pictures import ImageGalleryDisplay
from mercer.plots.regions import DecisionRegionsDisplay
from mercer.plots.roc import RocCurvesDisplay
from mercer.plots.weights import KernelWeightsDisplay

__all__ = [
    "AblationDisplay",
    "ConfusionMatrixDisplay",
    "ConvergenceDisplay",
    "DecisionBoundaryDisplay",
    "DecisionRegionsDisplay",
    "EmbeddingDisplay",
    "FitHistory",
    "HeatMapDisplay",
    "ImageGalleryDisplay",
    "KernelMatrixDisplay",
    "KernelWeightsDisplay",
    "LearningCurveDisplay",
    "OneClassDisplay",
    "PrecisionRecallDisplay",
    "RocCurveDisplay",
    "RocCurvesDisplay",
    "ValidationCurveDisplay",
    "trace_fit",
]
