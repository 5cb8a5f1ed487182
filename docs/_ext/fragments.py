"""Put the fragments of the changelog into the page "What is new".

They are in ``changes/`` until a version is released, one file for each change.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "changes"
PLACE = "<!-- fragments -->"
KINDS = {
    "refit": "Models to fit again",
    "repaired": "Repaired",
    "changed": "Changed",
    "added": "Added",
}


def fragments(folder: Path = FOLDER) -> str:
    """Return the fragments as lists below the title of their kind."""
    parts = []
    for kind, title in KINDS.items():
        texts = [
            " ".join(path.read_text(encoding="utf-8").split())
            for path in sorted(folder.glob(f"*.{kind}.md"))
        ]
        if texts:
            parts += [f"### {title}", "\n".join(f"- {text}" for text in texts)]
    return "\n\n".join(parts)


def insert(app: Any, docname: str, source: list[str]) -> None:
    """Replace the place in a page by the fragments."""
    source[0] = source[0].replace(PLACE, fragments())


def setup(app: Any) -> dict[str, bool]:
    """Register the above."""
    app.connect("source-read", insert)
    return {"parallel_read_safe": True}
