"""Build the wheel and the source distribution, and test each away from the checkout.

Each package goes into an environment of its own in a temporary folder. The tests come
from the unpacked source distribution, without its ``src``, so that they can only import
what was installed::

    python tools/check_package.py                    # both packages, the quick tests
    python tools/check_package.py wheel tests/cli    # one of them, some tests
    python tools/check_package.py --borrow sdist     # dependencies of this environment

With ``--borrow`` nothing is downloaded: the new environment sees the packages of the
present one, apart from Mercer.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import venv
from pathlib import Path

from mercer.runtime.writing import write_file

ROOT = Path(__file__).resolve().parents[1]
KINDS = {"wheel": "*.whl", "sdist": "*.tar.gz"}
IMPORTED = "import mercer, sys; sys.stdout.write(mercer.__file__)"


def call(*command: object, folder: Path, **more: str) -> str:
    """Run a command without the checkout's paths; raise if it fails."""
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=variables | more,
        text=True,
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        sys.stdout.write(done.stdout[-8000:])
        raise SystemExit(f"{' '.join(map(str, command[:6]))} failed")
    return done.stdout


def python_of(folder: Path, borrow: bool) -> Path:
    """Make an environment, and return its interpreter."""
    venv.create(folder, with_pip=not borrow)
    is_windows = os.name == "nt"
    python = folder / ("Scripts/python.exe" if is_windows else "bin/python")
    if borrow:
        where = "import sysconfig, sys; sys.stdout.write(sysconfig.get_path('purelib'))"
        site = Path(call(python, "-c", where, folder=folder))
        # Folders that such a file names are searched, but the files of this kind in
        # them, such as that of an editable Mercer, are not read.
        write_file(site / "borrowed.pth", sysconfig.get_path("purelib") + "\n")
    return python


def install(python: Path, package: Path, borrow: bool, folder: Path) -> None:
    """Install a package; with its extra for tests, unless packages are borrowed."""
    if not borrow:
        call(python, "-m", "pip", "install", "-q", f"{package}[test]", folder=folder)
        return
    command = (sys.executable, "-m", "pip", "--python", python, "install", "-q")
    more = ("--no-deps", "--no-build-isolation", "--ignore-installed", package)
    call(*command, *more, folder=folder)


def check(kind: str, packages: Path, tests: list[str], borrow: bool) -> None:
    """Install a package, import it with warnings as errors, and run tests."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mercer-package-") as name:
        folder = Path(name)
        (package,) = packages.glob(KINDS[kind])
        python = python_of(folder / "environment", borrow)
        install(python, package, borrow, folder)
        (sources,) = packages.glob(KINDS["sdist"])
        with tarfile.open(sources) as archive:
            archive.extractall(folder, filter="data")
        (tree,) = folder.glob("mercer-*")
        (tree / "src").rename(folder / "not-imported")
        found = call(python, "-W", "error", "-c", IMPORTED, folder=tree)
        if folder not in Path(found).resolve().parents:
            raise SystemExit(f"{kind}: mercer was imported from {found}")
        call(python, "-m", "mercer", "--version", folder=tree)
        options = ("-q", "-m", "not slow", "-p", "no:cacheprovider", "-r", "f")
        said = call(python, "-m", "pytest", *options, *tests, folder=tree)
        last = said.strip().splitlines()[-1].strip("= ")
        seconds = time.monotonic() - started
        sys.stdout.write(f"{kind}: {last}; {seconds:.0f} s in all\n")


def main() -> int:
    """Check what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("what", nargs="*", help="wheel, sdist, and tests (default: both, tests)")
    add("--borrow", action="store_true", help="use the packages that are installed")
    arguments = parser.parse_args()
    kinds = [k for k in KINDS if k in arguments.what] or list(KINDS)
    tests = [name for name in arguments.what if name not in KINDS] or ["tests"]
    with tempfile.TemporaryDirectory(prefix="mercer-built-") as name:
        command = (sys.executable, "-m", "hatchling", "build", "-d", name)
        call(*command, folder=ROOT)
        for kind in kinds:
            check(kind, Path(name), tests, arguments.borrow)
    return 0


if __name__ == "__main__":
    sys.exit(main())
