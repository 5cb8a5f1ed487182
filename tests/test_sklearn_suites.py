"""scikit-learn's own tests, on classes of Mercer in the place of its own."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest


class Suite(NamedTuple):
    """A module of tests, and how many of them must at least have passed."""

    module: str
    least: int
    #: Tests that are known to fail, and why. One that passes must leave the table.
    fails: Mapping[str, str] = {}


SUITES = {
    "svm": Suite("sklearn.svm.tests.test_svm", 122),
    "sparse": Suite("sklearn.svm.tests.test_sparse", 158),
    "bounds": Suite("sklearn.svm.tests.test_bounds", 22),
    "kernel PCA": Suite("sklearn.decomposition.tests.test_kernel_pca", 39),
    "search": Suite("sklearn.model_selection.tests.test_search", 141),
}


def run_suite(module, folder):
    """Run a module in a process of its own; return how each of its tests went."""
    found = folder / "found.xml"
    here = Path(__file__).parent
    paths = [str(here), os.environ.get("PYTHONPATH", "")]
    # Away from the settings of this project, and from its conftest.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "sklearn_stand_ins", "--pyargs", module, f"--junitxml={found}"]
    command += ["--rootdir", str(folder), "--tb=short"]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
    )
    assert found.exists(), done.stdout + done.stderr
    cases = {}
    for case in ET.parse(found).iter("testcase"):
        states = [child.tag for child in case if child.tag != "properties"]
        states = [tag for tag in states if not tag.startswith("system-")]
        cases[case.get("name")] = states[0] if states else "passed"
    return cases, done.stdout


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", SUITES)
def test_suite_of_scikit_learn(name, tmp_path):
    suite = SUITES[name]
    cases, said = run_suite(suite.module, tmp_path)
    counts = Counter(cases.values())
    bad = {case for case, state in cases.items() if state in ("failure", "error")}
    assert bad == set(suite.fails), said[-8000:]
    assert counts["passed"] >= suite.least, counts
