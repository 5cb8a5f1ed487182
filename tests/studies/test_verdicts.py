"""Claims about two machines: what chance explains is neither a win nor a defeat."""

import math

import numpy as np
import pytest

from studies.verdicts import judge_accuracy, judge_time


def machines(b, c, n=1000):
    """Return predictions of two machines, and the truth, with b and c apart."""
    truth = np.arange(n) % 10
    first, second = truth.copy(), truth.copy()
    second[:b] += 1
    first[b : b + c] += 1
    return first, second, truth


def tails(b, c):
    """Return the two-sided p of b heads in b + c tosses, from its definition."""
    n, least = b + c, min(b, c)
    tail = sum(math.comb(n, k) for k in range(least + 1)) / 2**n
    return min(1.0, 2 * tail)


@pytest.mark.parametrize("b, c", [(1, 0), (5, 0), (12, 5), (60, 45), (20, 20), (0, 0)])
def test_noise_is_no_win_and_no_defeat(b, c):
    assert tails(b, c) >= 0.05
    first, second, truth = machines(b, c)
    found = judge_accuracy("better", first, second, truth, "so many")
    assert found.holds is None
    assert judge_accuracy("worse", second, first, truth, "").holds is None
    assert f"exactly one of the two is right: {b + c}; " in found.test
    assert found.test.endswith(f"right on {b} of them; p = {tails(b, c):.2g}.")
    assert (found.claim, found.evidence) == ("better", "so many")


@pytest.mark.parametrize("b, c", [(6, 0), (15, 4), (70, 40)])
def test_what_chance_does_not_explain_counts_both_ways(b, c):
    assert tails(b, c) < 0.05
    first, second, truth = machines(b, c)
    assert judge_accuracy("better", first, second, truth, "").holds is True
    assert judge_accuracy("worse", second, first, truth, "").holds is False


def test_only_samples_count_that_one_machine_has_right():
    # Two wrong answers that differ say nothing, nor do samples that both have right.
    truth = np.zeros(500, int)
    first, second = truth.copy(), truth.copy()
    first[:100], second[:100] = 1, 2
    second[100:106] = 1
    found = judge_accuracy("", first, second, truth, "")
    assert found.holds is True and "right on 6 of them" in found.test


def test_equal_machines_are_rarely_told_apart():
    # The exact test errs on the careful side: at most one claim in twenty.
    rng = np.random.default_rng(0)
    truth = np.ones(300, bool)
    found = [
        judge_accuracy("", *(rng.random((2, 300)) < 0.9), truth, "").holds
        for _ in range(400)
    ]
    assert sum(holds is not None for holds in found) <= 0.07 * len(found)


def test_small_p_is_not_printed_as_nought():
    assert judge_accuracy("", *machines(100, 0), "").test.endswith("p < 0.001.")


def test_a_tenth_of_the_time_is_noise():
    assert judge_time("", [1.0, 1.01], [0.95, 0.96], "").holds is None
    assert judge_time("", [0.95, 0.96], [1.0, 1.01], "").holds is None
    assert judge_time("", [1.3, 1.31], [1.0, 1.01], "").holds is True
    assert judge_time("", [1.0, 1.01], [1.3, 1.31], "").holds is False


def test_times_that_overlap_decide_nothing():
    found = judge_time("claim", [0.002, 0.004, 0.004], [0.001, 0.001, 0.003], "so")
    assert found.holds is None
    assert "timed 3 times in turn; the medians are 4 ms and 1 ms" in found.test
