"""Messages: what is refused, and how answers are packed."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.playground import messages
from mercer.playground.messages import Answer, Refusal

ONE_POINT = {"x": [0.5], "y": [-1], "label": [3]}


def test_arrays_come_back_as_they_were(rng):
    arrays = {
        "field": rng.normal(size=(3, 5)).astype(np.float32),
        "label": rng.integers(0, 6, 7).astype(np.uint8),
        "empty": np.empty((0, 2), dtype=np.float32),
    }
    packed = messages.pack(Answer({"type": "x", "gap": np.inf, "ü": [1, 2]}, arrays))
    found = messages.unpack(packed)
    assert found.values == {"type": "x", "gap": None, "ü": [1, 2]}
    for name, array in arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert found.arrays[name].dtype == array.dtype


def test_arrays_begin_where_browsers_can_read_them():
    arrays = {"a": np.zeros(3, dtype=np.uint8), "b": np.zeros(2, dtype=np.float64)}
    packed = messages.pack(Answer({"type": "x"}, arrays))
    length = int.from_bytes(packed[:4], "little")
    places = json.loads(packed[4 : 4 + length])["arrays"]
    assert all((4 + length + place["offset"]) % 8 == 0 for place in places.values())


@pytest.mark.parametrize(
    "raw", ["", "{", "[]", "3", '"x"', '{"a": NaN}', '{"a": Infinity}', "[" * 99_999]
)
def test_what_is_not_a_json_object_is_refused(raw):
    with pytest.raises(Refusal):
        messages.parse(raw)


def test_long_messages_are_refused():
    with pytest.raises(Refusal, match="too long"):
        messages.parse(json.dumps({"kernel": "x" * messages.LONGEST_MESSAGE}))


@pytest.mark.parametrize("value", ["3", None, True, [1], 1e9, -1, float("nan"), 2.5])
def test_numbers_are_checked(value):
    with pytest.raises(Refusal, match="degree"):
        messages.whole({"degree": value}, "degree", 1, 20, 3)


@pytest.mark.parametrize(
    "change",
    [
        {"x": "no"},
        {"x": [1, 2]},
        {"x": [None]},
        {"x": [True]},
        {"x": ["1"]},
        {"x": [[1]]},
        {"x": [1e9]},
        {"x": [10**400]},
        {"x": [float("nan")]},
        {"label": [6]},
        {"label": [-1]},
        {"label": [0.5]},
    ],
)
def test_points_are_checked(change):
    with pytest.raises(Refusal) as caught:
        messages.points({**ONE_POINT, **change})
    assert caught.value.field == "points"


def test_points_are_bounded_in_number():
    n = messages.MOST_POINTS + 1
    with pytest.raises(Refusal, match=f"at most {messages.MOST_POINTS}"):
        messages.points({"x": [0] * n, "y": [0] * n, "label": [0] * n})


def test_points_are_read():
    X, label = messages.points(ONE_POINT)
    assert X.tolist() == [[0.5, -1.0]] and label.tolist() == [3]
    assert messages.points({}).X.shape == (0, 2)


@pytest.mark.parametrize(
    "pixels", [None, [], [0] * 3, [0.5] * 4, [256] * 4, [True] * 4]
)
def test_pixels_are_checked(pixels):
    with pytest.raises(Refusal):
        messages.pixels({"pixels": pixels}, 4)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=8,
)


ODD_VALUES = [float("nan"), float("inf"), -1, 6, 0.5, -6.01, 10**400, True, "1", None]


@st.composite
def messages_of_points(draw):
    """Points as the page sends them; in three of four messages one thing is damaged."""
    place = st.floats(-6, 6) | st.integers(-6, 6)
    columns = {"x": place, "y": place, "label": st.integers(0, 5)}
    n = draw(st.integers(0, 5))
    message = {
        name: draw(st.lists(values, min_size=n, max_size=n))
        for name, values in columns.items()
    }
    damage = draw(st.sampled_from(["none", "value", "value", "column"]))
    name = draw(st.sampled_from([*columns]))
    if damage == "column":
        message[name] = draw(anything)
    elif damage == "value" and n:
        message[name][draw(st.integers(0, n - 1))] = draw(st.sampled_from(ODD_VALUES))
    return message


def are_points(message):
    """Tell by plain loops whether a message has points."""
    x, y, label = (message[name] for name in ("x", "y", "label"))
    if not all(isinstance(column, list) for column in (x, y, label)):
        return False
    return (
        len(x) == len(y) == len(label)
        and all(type(v) in (int, float) for v in [*x, *y, *label])
        and all(-6 <= v <= 6 for v in [*x, *y])
        and all(v in range(6) for v in label)
    )


def test_no_points_get_past_the_checks():
    seen = Counter()

    @settings(max_examples=300)
    @given(messages_of_points())
    def read(message):
        if not are_points(message):
            seen["refused"] += 1
            with pytest.raises(Refusal):
                messages.points(message)
            return
        seen["read" if message["x"] else "empty"] += 1
        X, label = messages.points(message)
        assert X.shape == (len(message["x"]), 2)
        assert X[:, 0].tolist() == message["x"]
        assert X[:, 1].tolist() == message["y"]
        assert label.tolist() == message["label"]

    read()
    assert min(seen["read"], seen["refused"]) > 60, seen
