"""Streams: what is counted is what the machines do."""

import numpy as np
import pytest

from mercer import OnlineSVC
from mercer.playground.messages import Refusal
from mercer.playground.stream import CONCEPTS, LEARNERS, Stream
from mercer.runtime.progress import StopButton


def run(stream, n_steps, count=5):
    answers = [stream.step({"count": count}, StopButton()) for _ in range(n_steps)]
    X = np.column_stack([np.concatenate([a.arrays[k] for a in answers]) for k in "xy"])
    label = np.concatenate([a.arrays["label"] for a in answers])
    return answers, X.astype(np.float64), label


@pytest.mark.parametrize("concept", CONCEPTS)
def test_machines_learn(concept):
    stream = Stream({"concept": concept, "flip": 0.0, "gamma": 0.5, "C": 2.0})
    answers, _, label = run(stream, 10)
    last = answers[-1].values
    assert last["n_seen"] == 50 and set(label) == {0, 1}
    assert [row["key"] for row in last["learners"]] == list(LEARNERS)
    for row in last["learners"]:
        assert row["tested"] == 49
        assert row["mistakes"] < 0.4 * row["tested"]
        assert 0 < row["held"] <= 50
    assert answers[-1].arrays["fields"].shape == (4, 56, 56)
    assert "ghost" in answers[-1].arrays


def test_counts_are_those_of_the_machine():
    stream = Stream({"concept": "clouds", "flip": 0.1, "seed": 3, "budget": 20})
    answers, sent, label = run(stream, 14)
    # What is sent is rounded to single precision, and the machine takes it as it was.
    X = stream._X
    np.testing.assert_array_equal(sent, X.astype(np.float32))
    model = OnlineSVC(method="lasvm", C=1.0, kernel="rbf", gamma=1.0, budget=20)
    mistakes = removed = 0
    held = set()
    for k in range(len(X)):
        if k:
            mistakes += int(model.predict(X[k : k + 1])[0] != label[k])
        model.partial_fit(X[k : k + 1], label[k : k + 1], classes=[0, 1])
        now = {tuple(row) for row in model.samples_.tolist()}
        removed += len(held - now)
        held = now
    row = answers[-1].values["learners"][0]
    assert (row["tested"], row["mistakes"]) == (69, mistakes)
    assert (row["held"], row["removed"]) == (len(held), removed)
    assert mistakes > 0
    assert removed > 0
    total = sum(int(a.arrays["wrong"][0].sum()) for a in answers)
    assert total == row["mistakes"]


def test_a_budget_is_kept():
    answers, _, _ = run(Stream({"budget": 10, "flip": 0.3}), 10)
    for row in answers[-1].values["learners"]:
        assert row["held"] <= 10
    assert answers[-1].values["learners"][1]["removed"] > 20


def test_a_concept_moves():
    first, last = (
        CONCEPTS["turning"](np.full(400, t), np.random.default_rng(0))
        for t in (0, 250)  # half a turn
    )
    gap = [
        X[y == 1].mean(axis=0)[0] - X[y == 0].mean(axis=0)[0] for X, y in (first, last)
    ]
    assert gap[0] > 1.5 and gap[1] < -1.5


def test_refusals():
    with pytest.raises(Refusal, match="concept must be one of"):
        Stream({"concept": "nothing"})
    with pytest.raises(Refusal, match="Unknown kernel"):
        Stream({"kernel": "nothing(1)"})
    with pytest.raises(Refusal, match="count must be between"):
        Stream({}).step({"count": 10**6}, StopButton())
