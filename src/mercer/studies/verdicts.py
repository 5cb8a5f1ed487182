"""Whether a claim holds, where two scores or two times of ours are compared."""

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

    Both have predicted the same samples, so only those count that exactly one of them
    has right: b by the machine said to be better, c by the other. If they were equally
    good, each of the b + c would fall to either by the toss of a coin, and

        p = P(|B - (b + c)/2| >= |b - c|/2),  B binomial with b + c tosses of 1/2,

    which is McNemar's test in its exact form. The claim holds if p < 0.05 and b > c, it
    does not if p < 0.05 and b < c, and otherwise chance is enough to explain b and c.

    Parameters
    ----------
    claim, evidence : str
        What is said, and what was found.
    better, worse : array-like of shape (n_samples,)
        Predictions of the machine that is said to be better, and of the other.
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
    # Without a sample on which they differ there is nothing to toss for.
    p = float(binomtest(b, b + c).pvalue) if b + c else 1.0
    told = "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
    test = (
        f"Only the one said to be better is right on {b} test samples, only the other "
        f"on {c}; {told}."
    )
    return Finding(claim, b > c if p < LEVEL else None, evidence, test)


def judge_time(claim: str, slow: float, fast: float, evidence: str) -> Finding:
    """Judge a claim that something takes longer than something else, in seconds.

    Times within a tenth of each other count as equal.

    >>> [judge_time("", slow, 1.0, "").holds for slow in (1.2, 1.05, 0.8)]
    [True, None, False]
    """
    differ = max(slow, fast) > TENTH * min(slow, fast)
    test = "Times within a tenth of each other count as equal."
    return Finding(claim, slow > fast if differ else None, evidence, test)
