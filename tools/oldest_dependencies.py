"""Print the oldest versions of all dependencies that ``pyproject.toml`` allows.

The lines are constraints for pip: ``pip install -e ".[test]" -c oldest.txt``.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"^(?P<name>[\w.-]+)(\[[\w,-]+\])?>=(?P<version>[\d.]+)$")


def oldest(requirements: Iterable[str]) -> dict[str, str]:
    """Return the constraint of each requirement that has a lower bound."""
    found = {}
    for requirement in requirements:
        match = REQUIREMENT.match(requirement)
        if match:
            found[match["name"]] = f"{match['name']}=={match['version']}.*"
    return found


def main() -> int:
    """Print a constraint for each dependency, the optional ones too."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    for line in sorted(oldest(r for group in groups for r in group).values()):
        sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
