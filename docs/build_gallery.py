"""Draw the pictures of docs/gallery.md: ``python docs/build_gallery.py [FOLDER]``.

Every block of Python in the page is run by itself, and its figure goes into the picture
that the page shows after it, so that code and pictures cannot differ.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

PAGE = Path(__file__).parent / "gallery.md"
BLOCK = re.compile(r"```python\n(.*?)```\s*!\[[^\]]+\]\(gallery/([\w-]+\.png)\)", re.S)


def recipes(page: Path = PAGE) -> dict[str, str]:
    """Return the code of every picture of the page."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    return {name: code for code, name in blocks}


def draw(code: str, path: Path, dpi: int = 90) -> None:
    """Run code that makes one figure, and save the figure."""
    from matplotlib import pyplot
    from PIL import Image

    from mercer.runtime.writing import replacing

    pyplot.close("all")
    exec(compile(code, path.name, "exec"), {"__name__": path.stem})
    if len(pyplot.get_fignums()) != 1:
        raise RuntimeError(
            f"The code of {path.name} must make one figure, and made "
            f"{len(pyplot.get_fignums())}."
        )
    whole = io.BytesIO()
    pyplot.gcf().savefig(whole, dpi=dpi)
    pyplot.close("all")
    # A table of colours makes files smaller, with no difference to be seen.
    picture = Image.open(whole).convert("RGB").quantize(256, kmeans=2)
    with replacing(path) as file:
        picture.save(file, format="PNG", optimize=True)


def main(folder: Path) -> None:
    """Draw all pictures into the folder."""
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    for name, code in recipes().items():
        draw(code, folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE.parent / "gallery")
