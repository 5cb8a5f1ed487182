"""The one door to scikit-learn's private names.

Names of scikit-learn that Mercer needs, but that scikit-learn does not promise to keep,
are imported here and nowhere else. When a release moves one of them, this module is the
place to change. Its test says which name has moved, and which modules of Mercer need
it.
"""

# Every estimator declares the values that its parameters may have, and ``fit`` checks
# them and sets up callbacks, as in scikit-learn.
from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

# isort: split
# Estimators check weights, classes of streams, and names of columns with scikit-learn's
# rules and messages, which its conformance suite expects. They keep sparse matrices in
# the containers that it keeps.
from sklearn.utils._sparse import _align_api_if_sparse as as_in_scikit_learn
from sklearn.utils.multiclass import (
    _check_partial_fit_first_call as check_partial_fit_first_call,
)
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _get_feature_names as get_feature_names

# isort: split
# Kernel PCA sets eigenvalues to zero by the same rule as scikit-learn's.
from sklearn.utils.validation import _check_psd_eigenvalues as check_psd_eigenvalues

# isort: split
# Searches are scikit-learn's with another evaluation of the candidates. They take the
# frame from its base class, and cut, score and report folds with its functions.
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._validation import _fit_and_score as fit_and_score
from sklearn.model_selection._validation import (
    _insert_error_scores as insert_error_scores,
)
from sklearn.model_selection._validation import _score as score
from sklearn.model_selection._validation import (
    _warn_or_raise_about_fit_failures as warn_or_raise_about_fit_failures,
)
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import _num_samples as num_samples

# isort: split
# Searches look at the class of a scorer to see which values it needs, and at the class
# of an estimator to recognise scikit-learn's own machines, which cannot share values.
from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.metrics._scorer import _MultimetricScorer as MultimetricScorer
from sklearn.metrics._scorer import _PassthroughScorer as PassthroughScorer
from sklearn.svm._base import BaseLibSVM

__all__ = [
    "BaseLibSVM",
    "BaseScorer",
    "BaseSearchCV",
    "Interval",
    "MultimetricScorer",
    "PassthroughScorer",
    "RealNotInt",
    "StrOptions",
    "as_in_scikit_learn",
    "check_feature_names_in",
    "check_method_params",
    "check_partial_fit_first_call",
    "check_psd_eigenvalues",
    "check_sample_weight",
    "fit_and_score",
    "fit_context",
    "get_feature_names",
    "insert_error_scores",
    "num_samples",
    "safe_indexing",
    "safe_split",
    "score",
    "warn_or_raise_about_fit_failures",
]
