"""The numbers that the studies compare with are those that the reports print."""

import math

import numpy as np
import printed
import pytest

from mercer.multiclass.codes import (
    dietterich15,
)
from mercer.studies.ecoc_digits import protocol as ecoc_protocol
from mercer.studies.kernel_methods import online as online_methods
from mercer.studies.kernel_methods import protocol as methods_protocol
from mercer.studies.mnist_kernels import protocol as mnist_protocol
from mercer.studies.svm_from_scratch import protocol as scratch_protocol
from mercer.studies.three_vs_eight import protocol as three_vs_eight


def test_kernels_of_mnist():
    found = {
        name: [entry.beta, entry.acc1, entry.acc2]
        for name, entry in mnist_protocol.ENTRIES.items()
        if (entry.acc1, entry.acc2) != (None, None)
    }
    expected = printed.rows(printed.MNIST_KERNELS, 3)
    del expected[mnist_protocol.MKL_ROW]  # it has a step of its own
    assert found == expected


def test_precision_of_machines_from_scratch():
    tables = [
        scratch_protocol.PRECISION[k] for k in ("mnist", "cifar10", "cifar10-hog")
    ]
    found = {
        name: [table[name][part] for part in (0, 1) for table in tables]
        for name in tables[0]
    }
    assert found == printed.rows(printed.SCRATCH_PRECISION, 6)


def test_combinations_of_kernels():
    found = {name: [value] for name, value in scratch_protocol.COMBINATIONS.items()}
    assert found == printed.rows(printed.SCRATCH_COMBINATIONS, 1)


def test_codes_for_digits():
    found = {}
    for n, by_kernel in ecoc_protocol.PUBLISHED.items():
        (alone, near, code), (alone_g, near_g, code_g) = (
            by_kernel["linear"],
            by_kernel["Gaussian"],
        )
        found[str(n)] = [alone, near, alone_g, near_g, code, code_g]
    expected = printed.rows(printed.ECOC_ACCURACY, 6)
    assert found == expected
    assert [str(n) for n in ecoc_protocol.SIZES] == list(expected)
    assert ecoc_protocol.N_TEST == printed.ECOC_TEST_IMAGES
    assert ecoc_protocol.PUBLISHED_SECONDS == {
        kernel: 3600 * hours + 60 * minutes
        for kernel, (hours, minutes) in printed.ECOC_TIMES.items()
    }


def test_the_code_is_the_one_in_the_report():
    expected = printed.rows(printed.ECOC_CODE, 15)
    assert list(expected) == [f"{digit}:" for digit in range(10)]
    assert np.array_equal(dietterich15(), list(expected.values()))


def test_sizes_of_kernel_methods():
    assert set(printed.METHODS_GAMMAS) <= set(methods_protocol.GAMMAS)
    # There are values to either side, or neither bound could be seen.
    assert min(methods_protocol.GAMMAS) < printed.METHODS_GAMMAS[0]
    assert max(methods_protocol.GAMMAS) > printed.METHODS_GAMMAS[1]
    sizes = (online_methods.N_TRAIN, online_methods.N_TEST)
    assert sizes == printed.METHODS_SAMPLES


def test_three_against_eight():
    expected = printed.rows(printed.THREE_VS_EIGHT, 2)
    assert list(three_vs_eight.PUBLISHED) == list(expected)
    for name, values in expected.items():
        found = three_vs_eight.PUBLISHED[name]
        assert [found["validation"], found["test"]] == [round(v, 2) for v in values]
        # The number of images is the one for which these are whole numbers of hits.
        for value in values:
            hits = value / 100 * three_vs_eight.N_PUBLISHED
            assert hits == pytest.approx(round(hits), abs=1e-9)
    assert math.gcd(three_vs_eight.N_PUBLISHED, 666) == 666
