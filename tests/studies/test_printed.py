"""The numbers that the studies compare with are those that the reports print."""

import numpy as np
import printed
import pytest
from printed import PRINTED

from mercer.multiclass.codes import dietterich15
from studies import STUDIES
from studies.ecoc_digits import protocol as ecoc_protocol
from studies.ecoc_digits import solvers as ecoc_solvers
from studies.kernel_methods import online as online_methods
from studies.kernel_methods import protocol as methods_protocol
from studies.kernel_methods.clusters import GAMMA
from studies.mnist_kernels import protocol as mnist_protocol
from studies.published import printed as as_printed
from studies.published import smallest_size
from studies.svm_from_scratch import protocol as scratch_protocol


def values(study, table):
    """Return the published numbers of a table without their sizes."""
    return {
        row: {column: found.value for column, found in cells.items()}
        for row, cells in STUDIES[study].published[table].items()
    }


def sizes(study, table, column):
    """Return on how many samples a column rests, and whether the report says so."""
    cells = STUDIES[study].published[table].values()
    return {
        (row[column].n_test, row[column].is_known) for row in cells if column in row
    }


def test_kernels_of_mnist():
    expected = printed.mnist_kernels()
    assert values("mnist-kernels", "kernels") == {
        name: {
            key: value
            for key, value in (("acc1", acc1), ("acc2", acc2))
            if value is not None
        }
        for name, (_, acc1, acc2) in expected.items()
    }
    betas = {name: entry.beta for name, entry in mnist_protocol.ENTRIES.items()}
    for name, (beta, _, _) in expected.items():
        assert betas.get(name, 3) == beta
    assert {row[1] for row in PRINTED["mnist-kernels"]["rows"]} == {
        mnist_protocol.C_MINUS
    }
    best = [acc2 for _, _, acc2 in expected.values() if acc2]
    assert values("mnist-kernels", "best")["5,000"] == {"acc2": max(best)}
    assert sizes("mnist-kernels", "kernels", "acc1") == {
        (PRINTED["mnist-kernels"]["training_images"], True)
    }
    # The leader board's size is not known: the smallest one that fits.
    assert sizes("mnist-kernels", "kernels", "acc2") == {(1680, False)}
    assert smallest_size(best, 2) == 1680


def test_machines_from_scratch():
    for table, expected in printed.precision().items():
        assert values("svm-from-scratch", table) == expected
        n = 10 * PRINTED["svm-from-scratch"]["test_images_per_class"]
        assert sizes("svm-from-scratch", table, "test") == {(n, True)}
    assert values("svm-from-scratch", "combinations") == printed.combinations()
    expected = printed.precision()
    tests = {
        name: max(row["test"] for row in rows.values())
        for name, rows in expected.items()
    }
    assert values("svm-from-scratch", "best") == {
        "mnist": {"test": tests["mnist"]},
        "cifar10": {"test": max(tests["cifar10"], tests["cifar10-hog"])},
    }


def test_ranges_of_the_ablations():
    study = PRINTED["svm-from-scratch"]
    ranges = {
        (kernel, name): (values[0], values[-1])
        for kernel, parts in scratch_protocol.ABLATIONS.items()
        for name, _, values in parts
    }
    first, last = (2.0**e for e in study["exponents_of_C_and_gamma"])
    for key in [("linear", "C"), ("Gaussian", "C"), ("Gaussian", "gamma")]:
        assert ranges[key] == (first, last)
    assert ranges["linear", "tol"] == tuple(study["epsilon"])
    assert ranges["polynomial", "degree"] == tuple(study["degree"])
    assert ranges["sigmoid", "coef0"] == tuple(study["bias"])


def test_codes_for_digits():
    study = PRINTED["ecoc-digits"]
    for kernel, expected in printed.ecoc().items():
        assert values("ecoc-digits", f"accuracy {kernel}") == {
            f"n = {n:,}": cells for n, cells in expected.items()
        }
        assert list(expected) == list(ecoc_protocol.SIZES)
        table = f"accuracy {kernel}"
        assert sizes("ecoc-digits", table, "ecoc") == {(study["test_images"], True)}
    assert values("ecoc-digits", "seconds") == {
        f"{kernel}, n = 10,000": {"ecoc": 3600 * hours + 60 * minutes}
        for kernel, (hours, minutes) in study["hours_and_minutes"].items()
    }
    assert values("ecoc-digits", "solvers Gaussian") == {
        "WSS1, cached": {
            "order": study["order_in_n"],
            "ratio": study["times_scikit_learn"],
        }
    }
    best = max(max(row[1:]) for row in study["accuracy"])
    assert values("ecoc-digits", "best") == {"best": {"test": best}}
    words = [name.split()[0].split("-")[0] for name in study["ranking"]]
    ours = [name.split(",")[0].split("-")[0] for name in ecoc_solvers.RANKING]
    assert [w.replace("Platt's", "Platt") for w in words] == ours
    for fact in study["computer"]:
        assert fact.split()[0] in STUDIES["ecoc-digits"].source.computer


def test_the_code_is_the_one_in_the_report():
    assert np.array_equal(dietterich15(), PRINTED["ecoc-digits"]["code"])


def test_sizes_of_kernel_methods():
    study = PRINTED["kernel-methods"]
    gammas = (study["good_from_gamma"], study["worse_beyond_gamma"])
    assert set(gammas) <= set(methods_protocol.GAMMAS)
    # There are values to either side, or neither bound could be seen.
    assert min(methods_protocol.GAMMAS) < gammas[0] == GAMMA
    assert max(methods_protocol.GAMMAS) > gammas[1]
    sizes = (online_methods.N_TRAIN, online_methods.N_TEST)
    assert sizes == (study["training_samples"], study["test_samples"])


def test_three_against_eight():
    expected = printed.three_vs_eight()
    assert values("three-vs-eight", "accuracy") == expected
    fractions = [value for cells in expected.values() for value in cells.values()]
    # Several sizes fit; the interval takes the smallest of them.
    assert smallest_size(fractions, 10) == 666
    for n in (666, 1332, 1998):
        hits = np.array(fractions) / 100 * n
        assert hits == pytest.approx(np.round(hits), abs=1e-9)
    assert sizes("three-vs-eight", "accuracy", "test") == {(666, False)}
    best = max(cells["test"] for cells in expected.values())
    assert values("three-vs-eight", "best") == {"best": {"test": best}}


def test_sizes_that_fit_percentages():
    assert smallest_size([50.0], 1) == 2
    assert smallest_size([33.3, 66.7], 1) == 3
    assert smallest_size([99.99], 2) == 6667
    with pytest.raises(ValueError, match="No number of samples up to 10 gives"):
        smallest_size([99.99], 2, most=10)


def test_rows_leave_out_what_is_not_printed():
    found = as_printed(10, False, a=1.0, b=None)
    assert list(found) == ["a"]
    assert found["a"] == (1.0, 10, False)
