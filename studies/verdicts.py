"""Whether a claim holds that compares two of our scores or two of our times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from studies.results import Finding

__all__ = ["LEVEL", "all_of", "judge_accuracy", "judge_time"]

LEVEL = 0.05
TENTH = 1.1


def all_of(verdicts: Sequence[bool | None]) -> bool | None:
    """Return True if all verdicts are, False if one is, and None if none decides.

    >>> all_of([True, True]), all_of([True, None]), all_of([None, False])
    (True, None, False)
    """
    if all(verdicts):
        return True
    return False if False in verdicts else None


def judge_accuracy(
    claim: str,
    better: ArrayLike,
    worse: ArrayLike,
    truth: ArrayLike,
    evidence: str,
    key: str = "",
) -> Finding:
    """Judge a claim that one machine is right more often than another.

    Both machines have predicted the same samples, so only samples count that exactly
    one of them has right: b of them by the machine that is said to be better, c by the
    other. If both were equally good, each of the b + c samples would go to either
    machine like the toss of a coin. McNemar's exact test is then

        p = P(|B - (b + c)/2| >= |b - c|/2),  B binomial with b + c tosses of 1/2.

    The claim holds if p < 0.05 and b > c. It does not hold if p < 0.05 and b < c.
    Otherwise chance can explain b and c.

    Parameters
    ----------
    claim, evidence : str
        The text of the claim, and what was found.
    better, worse : array-like of shape (n_samples,)
        Predictions of the machine that is said to be better, and of the other one.
    truth : array-like of shape (n_samples,)
        The true labels.
    key : str
        The name of the verdict in the manifest.

    Returns
    -------
    Finding
        ``holds`` is True, False or None; ``test`` has b, c and p.

    Examples
    --------
    >>> truth, none = [1] * 10, [0] * 10
    >>> judge_accuracy("A beats B.", truth, none, truth, "10 : 0").holds
    True
    >>> one_more = [1] + [0] * 9
    >>> judge_accuracy("A beats B.", one_more, none, truth, "1 : 0").holds is None
    True
    """
    right, rival = (np.asarray(found) == np.asarray(truth) for found in (better, worse))
    b, c = int((right & ~rival).sum()), int((rival & ~right).sum())
    # Without a sample on which the machines differ there is nothing to test.
    p = float(binomtest(b, b + c).pvalue) if b + c else 1.0
    told = "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
    test = (
        f"Samples on which exactly one of the two is right: {b + c}; the one that "
        f"the claim favours is right on {b} of them; {told}."
    )
    return Finding(claim, b > c if p < LEVEL else None, evidence, test, key)


def judge_time(
    claim: str,
    slow: Sequence[float],
    fast: Sequence[float],
    evidence: str,
    key: str = "",
) -> Finding:
    """Judge a claim that one piece of work takes longer than another.

    Both were timed several times. The claim is decided if every time of one exceeds
    every time of the other, and the medians differ by more than a tenth.

    >>> judge_time("", [1.2, 1.3], [1.0, 1.1], "").holds
    True
    >>> judge_time("", [1.0, 1.3], [1.1, 1.2], "").holds is None  # they overlap
    True
    """
    long, short = float(np.median(slow)), float(np.median(fast))
    is_apart = min(slow) > max(fast) or min(fast) > max(slow)
    is_decided = is_apart and max(long, short) > TENTH * min(long, short)
    count = min(len(slow), len(fast))
    test = (
        f"Each was timed {count} times in turn; the medians are {_told(long)} and "
        f"{_told(short)}. A difference counts if all times of one exceed all times of "
        "the other, by more than a tenth in the median."
    )
    return Finding(claim, long > short if is_decided else None, evidence, test, key)


def _told(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
