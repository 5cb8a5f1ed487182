"""The grid of --search: names, ranges, and numbers as people write them."""

import pytest

from mercer.cli.failures import UsageFailure
from mercer.cli.grids import at_the_edge, parse_grid, written


def test_names_have_usual_ranges():
    grid = parse_grid("C,gamma")
    assert grid == {
        "C": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0],
        "gamma": [0.0001, 0.001, 0.01, 0.1, 1.0, 10.0],
    }


def test_ranges_go_in_powers_without_rounding_errors():
    assert parse_grid("C=0.1:100") == {"C": [0.1, 1.0, 10.0, 100.0]}
    assert parse_grid("gamma=1e-3:1:10")["gamma"] == [0.001, 0.01, 0.1, 1.0]
    assert parse_grid(" C = 3:100 ") == {"C": [3.0, 30.0]}
    assert parse_grid("nu")["nu"] == [0.1, 0.3, 0.5, 0.7, 0.9]
    assert parse_grid("nu=0.1:0.5:0.1")["nu"] == [0.1, 0.2, 0.3, 0.4, 0.5]


def test_the_grid_of_libsvm():
    grid = parse_grid("C=2^-5:2^15:4,gamma=2^-15:2^3:4")
    assert grid["C"] == [2.0**k for k in range(-5, 16, 2)]
    assert grid["gamma"] == [2.0**k for k in range(-15, 4, 2)]


def test_degrees_are_whole_numbers():
    (degrees,) = parse_grid("degree=2:4").values()
    assert degrees == [2, 3, 4]
    assert all(isinstance(value, int) for value in degrees)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gama", "cannot search 'gama'. Did you mean 'gamma'? It searches C, gamma"),
        ("", "cannot search ''"),
        ("C,C", "names C twice"),
        ("C=1", "a range is LOW:HIGH or LOW:HIGH:STEP, such as C=0.1:100"),
        ("C=a:b", "a range is LOW:HIGH"),
        ("C=nan:1", "a range is LOW:HIGH"),
        ("C=1:inf", "a range is LOW:HIGH"),
        ("C=0^-1:1", "a range is LOW:HIGH"),
        ("C=10:1", "ends below its beginning"),
        ("C=0:1", "begins above 0"),
        ("C=1:10:1", "a factor above 1"),
        ("nu=0.1:0.5:0", "the step must be above 0"),
        ("degree=2:4:0.5", "degree is a whole number"),
        ("C=1:2:1.0001,gamma=1:2:1.0001", "combinations, and 10000 are the most"),
        ("nu=0:1:1e-9", "combinations, and 10000 are the most"),
    ],
)
def test_grids_that_make_no_sense(text, says):
    with pytest.raises(UsageFailure) as refusal:
        parse_grid(text)
    assert says in str(refusal.value)


def test_edges():
    grid = {"C": [1.0, 10.0, 100.0], "gamma": [0.1, 1.0, 10.0], "nu": [0.5]}
    assert at_the_edge(grid, {"C": 10.0, "gamma": 1.0, "nu": 0.5}) == []
    assert at_the_edge(grid, {"C": 1.0, "gamma": 10.0, "nu": 0.5}) == ["C", "gamma"]


def test_values_are_written_as_people_write_them():
    assert [written(v) for v in (0.1, 10.0, 10000.0, 3, 0.0001)] == [
        "0.1",
        "10",
        "10000",
        "3",
        "0.0001",
    ]
