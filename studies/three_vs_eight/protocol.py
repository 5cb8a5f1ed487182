"""The protocol of the study ``three-vs-eight``."""

from __future__ import annotations

from typing import Any

from mercer import SVC
from studies.features import CHOSEN_EARLIER
from studies.study import ResultTable
from studies.three_vs_eight.published import PUBLISHED, SOURCE

__all__ = ["KERNELS", "STATEMENT"]

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
    "about": "A binary machine for two digits that are easily confused. Training, "
    "validation and test images are kept strictly apart.",
    "source": SOURCE,
    "protocol": (
        "The digits 3 and 8 are split 60 : 20 : 20 by seed. The report does not say "
        "how many images it had: its fractions fit validation and test parts of 666, "
        "1,332, 1,998 and 2,664 images. With full MNIST our parts have 1,998 images; "
        "the intervals assume that the report had 666.",
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
            note="The published value is the best test accuracy of the report, that of "
            "its polynomial kernel.",
        ),
        ResultTable(
            "accuracy",
            "Accuracy of three kernels",
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
            note="The KKT gap is the largest violation of the optimality conditions; "
            "both solvers have the tolerance 1e-3. The simplified SMO stops after ten "
            "sweeps without a step.",
        ),
    ),
    "published": PUBLISHED,
    "telling": ("digits", "errors", "roc"),
    "late": (CHOSEN_EARLIER,),
}
