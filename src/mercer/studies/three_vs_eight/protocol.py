"""The protocol of the study ``three-vs-eight``, and the published numbers."""

from __future__ import annotations

from typing import Any

from mercer import SVC
from mercer.studies.study import ResultTable

__all__ = ["KERNELS", "N_PUBLISHED", "PUBLISHED", "STATEMENT"]

# Validation and test accuracy; the fractions imply 1,998 images in each part.
PUBLISHED = {
    "RBF": {"validation": 98.35, "test": 97.90},
    "linear": {"validation": 95.20, "test": 94.14},
    "polynomial": {"validation": 97.45, "test": 98.20},
}
N_PUBLISHED = 1998
KERNELS: dict[str, tuple[SVC, dict[str, list]]] = {
    "RBF": (SVC(kernel="rbf"), {"gamma": [0.01, 0.02, 0.04], "C": [1, 5, 25]}),
    "linear": (SVC(kernel="linear"), {"C": [0.005, 0.02, 0.1, 1]}),
    "polynomial": (
        SVC(kernel="poly", coef0=1.0),
        {"degree": [2, 3, 4], "gamma": [0.005, 0.02], "C": [0.5, 5]},
    ),
}
STATEMENT: dict[str, Any] = {
    "name": "three-vs-eight",
    "title": "Three against eight",
    "about": "A binary machine for two digits that are easily confused, with strict "
    "separation of training, validation and test images.",
    "protocol": (
        "The digits 3 and 8 are split 60 : 20 : 20 by seed. With full MNIST the "
        "validation and the test part have 1,998 images each, as the report's "
        "fractions imply.",
        "Every parameter is chosen on the validation part; the test part is scored "
        "once.",
        "The report trains with the simplified SMO; this page shows both the "
        "simplified SMO and the exact solver.",
    ),
    "errata": (
        "There are none in the formulas. But the simplified SMO may stop before the "
        "optimum, as the report says itself; the table of solvers shows the gap that "
        "is left.",
    ),
    "tables": (
        ResultTable(
            "best",
            "Beyond the report",
            {"validation": "validation %", "test": "test %", "setting": "chosen"},
            ("validation", "test"),
        ),
        ResultTable(
            "accuracy",
            "Accuracy",
            {
                "validation": "validation %",
                "test": "test %",
                "auc": "area under ROC",
                "setting": "chosen",
            },
            ("validation", "test"),
        ),
        ResultTable(
            "solvers",
            "The gap that the simplified SMO leaves",
            {"test": "test %", "steps": "steps", "kkt": "KKT gap"},
            ("test",),
        ),
    ),
}
