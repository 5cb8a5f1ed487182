"""Displays of models, fits, kernels and images, in the manner of scikit-learn.

A display is a class with ``from_estimator`` or other ``from_...``, and a method
``plot(ax=None)``. It keeps what it has drawn in ``ax_``, ``figure_`` and other
attributes. Colours differ for colour-blind people, and markers, lines and hatches
differ in grey print. Some displays are scikit-learn's own.

Matplotlib is optional, and is loaded when something is drawn.
"""

from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics import (
    ConfusionMatrixDisplay,
    PrecisionRecallDisplay,
    PredictionErrorDisplay,
    RocCurveDisplay,
)
from sklearn.model_selection import LearningCurveDisplay, ValidationCurveDisplay

from mercer.plots.ablation import AblationDisplay
from mercer.plots.bars import BarsDisplay
from mercer.plots.convergence import ConvergenceDisplay
from mercer.plots.curves import CurvesDisplay
from mercer.plots.dots import DotsDisplay
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
    "BarsDisplay",
    "ConfusionMatrixDisplay",
    "ConvergenceDisplay",
    "CurvesDisplay",
    "DecisionBoundaryDisplay",
    "DecisionRegionsDisplay",
    "DotsDisplay",
    "EmbeddingDisplay",
    "FitHistory",
    "HeatMapDisplay",
    "ImageGalleryDisplay",
    "KernelMatrixDisplay",
    "KernelWeightsDisplay",
    "LearningCurveDisplay",
    "OneClassDisplay",
    "PrecisionRecallDisplay",
    "PredictionErrorDisplay",
    "RocCurveDisplay",
    "RocCurvesDisplay",
    "ValidationCurveDisplay",
    "trace_fit",
]
