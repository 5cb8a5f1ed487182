"""Files for the tests of the command line, and a way to call it."""

import json

import numpy as np
from typer.testing import CliRunner

from mercer.cli.app import app

FLOWERS = ("aster", "rose", "tulip")
COLUMNS = ("height", "width", "petals")


def call(*args, code=0):
    """Run a command, check its exit code, and return the result."""
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, (result.stdout, result.stderr)
    return result


def call_json(*args, code=0):
    return json.loads(call(*args, "--json", code=code).stdout)


def refused(code, *args):
    """Run a command that must fail, and return the one line that it says."""
    result = call(*args, code=code)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("mercer: ")
    return line


def flowers(n=60, seed=0):
    """Return samples of three classes that can be told apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 3)) + 4.0 * np.eye(3)[y]
    return X.round(3), y


def write_flowers(path, *, order=COLUMNS, target="kind", delimiter=",", **more):
    """Write them as a table, with columns in any order."""
    X, y = flowers(**more)
    names = [*order] + ([target] if target else [])
    lines = [delimiter.join(names)]
    for row, k in zip(X.tolist(), y, strict=True):
        cells = [str(row[COLUMNS.index(name)]) for name in order]
        lines.append(delimiter.join(cells + ([FLOWERS[k]] if target else [])))
    path.write_text("\n".join(lines) + "\n")
    return path


def replace_line(path, number, text):
    """Change one line of a file, counted from 1."""
    lines = path.read_text().splitlines()
    lines[number - 1] = text
    path.write_text("\n".join(lines) + "\n")
    return path


def write_images(folder, *, n=8, size=(12, 10), mode="L", flat=False, seed=0):
    """Write noisy images of bars, upright or lying, as PNG files."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    for kind in ("lying", "upright"):
        place = folder if flat else folder / kind
        place.mkdir(parents=True, exist_ok=True)
        for i in range(n):
            pixels = rng.integers(0, 60, size[::-1])
            at = rng.integers(3, 7)
            pixels[(slice(at, at + 2),) if kind == "lying" else (..., [at, at + 1])] = (
                230
            )
            image = Image.fromarray(pixels.astype(np.uint8)).convert(mode)
            image.save(place / f"{kind}{i}.png")
    return folder
