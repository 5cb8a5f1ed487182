"""Files for those who join the project, as far as a machine can check them."""

import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mercer

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "vendor.github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "vendor.citation-file-format": "CITATION.cff",
}


def text_files():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    return [name for name in listed if name.endswith((".py", ".md", ".toml", ".yml"))]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_follow_their_schema(schema):
    files = sorted(ROOT.glob(SCHEMAS[schema]))
    assert files
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    found = subprocess.run([*command, *files], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_words_are_spelt_right():
    files = text_files()
    if not files:
        pytest.skip("this is not a checkout")
    command = [sys.executable, "-m", "codespell_lib", *files]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_workflows_run_what_is_there():
    targets = set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.M))
    for workflow in WORKFLOWS:
        text = workflow.read_text()
        assert set(re.findall(r"make ([\w-]+)", text)) <= targets
        for tool in re.findall(r"tools/\w+\.py", text):
            assert (ROOT / tool).exists()


def jobs_of(workflow):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_refer_to_what_they_define(workflow):
    jobs = jobs_of(workflow)
    for job in jobs.values():
        assert set(job.get("needs", [])) <= set(jobs)
        matrix = job.get("strategy", {}).get("matrix", {})
        known = set(matrix).union(*matrix.get("include", []))
        assert set(re.findall(r"\bmatrix\.(\w+)", str(job))) <= known
        for entry in matrix.get("include", []):
            assert set(entry) <= known
        made = {
            step["with"]["name"]
            for other in job.get("needs", [])
            for step in jobs[other]["steps"]
            if "upload-artifact" in step.get("uses", "")
        }
        for step in job["steps"]:
            if "download-artifact" in step.get("uses", ""):
                assert step["with"]["name"] in made


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_scripts_of_workflows_can_be_read_by_a_shell(workflow):
    bash = shutil.which("bash")
    if bash is None or os.name == "nt":
        pytest.skip("there is no bash")
    for job in jobs_of(workflow).values():
        for step in job["steps"]:
            script = re.sub(r"\$\{\{.*?\}\}", "value", step.get("run", ""))
            read = subprocess.run([bash, "-n"], input=script, text=True, check=False)
            assert read.returncode == 0, script


def test_the_oldest_dependencies_are_named():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    command = [sys.executable, ROOT / "tools/oldest_dependencies.py"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = found.stdout.split()
    for requirement in project["dependencies"]:
        name, version = requirement.split(">=")
        assert f"{name}=={version}.*" in lines


def test_the_citation_names_this_version():
    assert f"version: {mercer.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_tables_are_those_of_the_committed_results():
    command = [sys.executable, ROOT / "tools/figures.py", "--check"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_what_is_new_has_every_fragment(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs/_ext"))
    page = importlib.import_module("fragments").fragments()
    paths = [path for path in (ROOT / "changes").glob("*.md") if path.stem != "README"]
    assert page.count("\n- ") == len(paths)
    titles = [line.strip("# ") for line in page.splitlines() if line.startswith("###")]
    kinds = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]
    named = [kind["name"] for kind in kinds["type"]]
    assert titles == [name for name in named if name in titles]
    assert "<!-- fragments -->" in (ROOT / "docs/whats_new.md").read_text()
