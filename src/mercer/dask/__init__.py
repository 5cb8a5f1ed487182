"""Kernel machines beyond one machine: samples that are spread over a Dask cluster.

The fit is exact: it finds the solution that one large machine would find, and certifies
it.  Workers keep their samples; what travels is the samples of working sets.
"""

try:
    import dask  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "mercer.dask needs Dask, which is not installed: pip install dask distributed"
    ) from error

from mercer.dask.machines import DaskOneClassSVM, DaskSVC, DaskSVR
from mercer.dask.prediction import predict
from mercer.dask.search import GridSearchCV, RandomizedSearchCV

__all__ = [
    "DaskOneClassSVM",
    "DaskSVC",
    "DaskSVR",
    "GridSearchCV",
    "RandomizedSearchCV",
    "predict",
]
