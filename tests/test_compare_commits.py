"""How two commits are compared: what counts as changed."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "tools").exists():
    pytest.skip("the tools are not installed with the package", allow_module_level=True)
sys.path[:0] = [str(ROOT / "tools")]
import compare_commits  # noqa: E402
import recorded_work  # noqa: E402


def case(**changes):
    certificates = {
        "converged_": [1.0],
        "kkt_gap_": [1e-4],
        "dual_gap_": [0.01],
        "objective_": [-5.0],
    }
    own = {"ways": ["fit: small"], "bits": "aa", "values": [1.0, -2.0]}
    certificates |= changes.pop("certificates", {})
    return own | {"certificates": certificates} | changes


def changed(old, new):
    lines = compare_commits.compare_cases({"a case": old}, {"a case": new})
    return {line.kind: line.text for line in lines if line.changed}


def test_the_same_is_not_changed():
    assert changed(case(), case()) == {}


def test_other_ways_are_told():
    found = changed(case(), case(ways=["fit: whole float64"]))
    assert found == {"ways": "fit: small -> fit: whole float64"}


def test_a_case_of_one_side_is_a_change():
    (line,) = compare_commits.compare_cases({"a case": case()}, {})
    assert line.changed and line.text == "on one side only"


def test_a_last_bit_is_a_change_with_its_size():
    assert changed(case(), case(bits="bb", values=[1.0, -2.5])) == {
        "bits": "largest difference 2.0e-01"
    }


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ([1.0, float("nan")], [1.0, float("nan")], 0.0),
        ([1.0], [float("nan")], float("inf")),
        ([1.0], [1.0, 2.0], float("inf")),
        ([0.0, 4.0], [0.0, 3.0], 0.25),
    ],
)
def test_differences_are_relative(old, new, difference):
    assert compare_commits.largest_difference(old, new) == difference


@pytest.mark.parametrize(
    ("certificate", "told"),
    [
        ({"objective_": [-5.009]}, None),  # within the gap
        ({"objective_": [-5.02]}, "objective -5 -> -5.02, gaps 1.0e-02, 1.0e-02"),
        ({"objective_": [-5.02], "dual_gap_": [0.03]}, None),
        ({"objective_": [float("nan")]}, "objective -5 -> nan, gaps 1.0e-02, 1.0e-02"),
        ({"converged_": [0.0]}, "no longer converged"),
        ({"objective_": [-5.0, -5.0]}, "other certificates"),
    ],
)
def test_certificates_must_not_contradict_each_other(certificate, told):
    assert changed(case(), case(certificates=certificate)).get("certificates") == told


def test_problems_that_converge_at_last_are_welcome():
    assert changed(case(certificates={"converged_": [0.0]}), case()) == {}


@pytest.mark.parametrize(("count", "is_more"), [(9, False), (10, False), (11, True)])
def test_a_first_fit_may_not_compile_more(count, is_more):
    old, new = ({"compilations": c, "seconds": 1.0} for c in (10, count))
    assert compare_commits.compare_compilations(old, new).changed == is_more


@pytest.mark.parametrize(
    ("before", "after", "is_slower"),
    [
        ([1.0] * 5, [1.04] * 5, False),
        ([1.0] * 5, [1.06] * 5, True),
        ([1.0] * 5, [0.9, 0.95, 1.3, 1.3, 1.3], False),  # noise
        ([1.0] * 5, [1.0, 1.3, 1.3, 1.3, 1.3], False),  # the best is as good
        ([0.004] * 5, [0.0046] * 5, False),  # brief calls may take longer
        ([0.004] * 5, [0.005] * 5, True),
    ],
)
def test_slower_means_beyond_noise(before, after, is_slower):
    old, new = ([{"fit": t} for t in side] for side in (before, after))
    (line,) = compare_commits.compare_times(old, new)
    assert line.changed == is_slower


@pytest.mark.parametrize(("allowed", "fails"), [([], True), (["bits"], False)])
def test_only_what_is_allowed_may_change(allowed, fails, capsys):
    lines = [
        compare_commits.Line("ways", "a case", False, "small"),
        compare_commits.Line("bits", "a case", True, "largest difference 1.0e-16"),
    ]
    assert compare_commits.report(lines, allowed, is_full=False) == fails
    assert "CHANGED a case: largest difference" in capsys.readouterr().out


def test_ways_are_where_the_table_says(tmp_path):
    assert recorded_work.not_to_be_seen(ROOT / "src" / "mercer") == []
    assert recorded_work.not_to_be_seen(tmp_path) == list(recorded_work.PLACES)


def test_cases_have_names_of_their_own():
    names = [case.name for case in recorded_work.cases()]
    assert len(set(names)) == len(names) > 60
