"""Whether a claim holds that compares two of our scores or two of our times."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from mercer.studies.results import Finding

__all__ = ["judge_accuracy", "judge_time"]

LEVEL = 0.05
TENTH = 1.1


def judge_accuracy(
    claim: str, better: ArrayLike, worse: ArrayLike, truth: ArrayLike, evidence: str
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
        f"Only the machine said to be better is right on {b} test samples, only the "
        f"other one on {c}; {told}."
    )
    return Finding(claim, b > c if p < LEVEL else None, evidence, test)


def judge_time(claim: str, slow: float, fast: float, evidence: str) -> Finding:
    """Judge a claim that one time is longer than another.

    Times within a tenth of each other count as equal.

    >>> [judge_time("", slow, 1.0, "").holds for slow in (1.2, 1.05, 0.8)]
    [True, None, False]
    """
    differ = max(slow, fast) > TENTH * min(slow, fast)
    test = "Times within a tenth of each other count as equal."
    return Finding(claim, slow > fast if differ else None, evidence, test)
