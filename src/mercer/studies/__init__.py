"""The five studies, made again: :func:`reproduce` runs them and writes one page.

Each study is a module that states its protocol, the numbers that were published, and
the steps that make them again.
"""

from mercer.studies import (
    ecoc_digits,
    kernel_methods,
    mnist_kernels,
    svm_from_scratch,
    three_vs_eight,
)
from mercer.studies.reproduce import Report, reproduce
from mercer.studies.study import Study

__all__ = ["STUDIES", "Report", "reproduce"]

STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY
    for module in (
        mnist_kernels,
        svm_from_scratch,
        ecoc_digits,
        kernel_methods,
        three_vs_eight,
    )
}
