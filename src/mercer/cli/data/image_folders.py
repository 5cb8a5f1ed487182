"""Images in folders: a subfolder for each class, or a flat folder without classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.data.loaded import ImageForm, LoadedData, ReadOptions, Schema, Target
from mercer.cli.data.sources import Source
from mercer.cli.failures import DataFailure, UsageFailure, needed

__all__ = ["read_images"]

ENDINGS = set(".bmp .gif .jpeg .jpg .pgm .png .ppm .tif .tiff .webp".split())
# Modes of Pillow without colour.
GREY = {"1", "L", "LA", "La", "I", "F", "I;16", "I;16B", "I;16L", "I;16N"}
WHITE = {"I": 65535.0, "I;16": 65535.0, "I;16B": 65535.0, "I;16L": 65535.0}


def read_images(source: Source, how: ReadOptions) -> LoadedData:
    """Read the images of a folder, as rows of pixels from 0 to 1."""
    folder = source.path
    pillow = needed("PIL.Image", "images need Pillow. Install it: pip install pillow.")
    files, labels = _find(folder)
    if labels is None and how.needs_target:
        raise DataFailure(
            f"{folder} has images, but no subfolders. Put the images of each class "
            "into a subfolder that has the name of the class."
        )
    form = how.schema.image if how.schema else None
    if how.schema is not None and form is None:
        raise DataFailure(
            f"{folder} has images, but the model was not fitted to images."
        )
    if form is None:
        form = _form(pillow, files, folder, how)
    elif how.size:
        if how.size != (form.width, form.height):
            raise UsageFailure(
                f"--size {how.size[0]}x{how.size[1]} does not agree with the "
                f"model, which is for images of {form.width}x{form.height}. Leave "
                "--size out."
            )
        form = replace(form, resize=True)
    X = np.empty((len(files), int(np.prod(form.shape))), dtype=np.float32)
    for i, file in enumerate(files):
        with _Opened(pillow, file) as image:
            _check_size(image, file, form)
            X[i] = _pixels(pillow, image, form).ravel()
    schema = how.schema or Schema(
        kind="images",
        features=(),
        n_columns=X.shape[1],
        target=None if labels is None else "class",
        image=form,
    )
    names = [file.relative_to(folder).as_posix() for file in files]
    target = None if labels is None else Target("class", np.array(labels), labels)
    return LoadedData(str(folder), X, schema, target, files=names)


def _find(folder: Path) -> tuple[list[Path], list[str] | None]:
    """Return the images in order, and the names of their folders."""
    entries = [e for e in sorted(folder.iterdir()) if not e.name.startswith(".")]
    flat = [e for e in entries if e.is_file() and e.suffix.lower() in ENDINGS]
    folders = [e for e in entries if e.is_dir()]
    inside = {
        sub: [f for f in sorted(sub.iterdir()) if f.suffix.lower() in ENDINGS]
        for sub in folders
    }
    if flat and any(inside.values()):
        raise DataFailure(
            f"{folder} has images both beside and inside subfolders. Remove the images "
            f"that do not belong to a class, such as {flat[0].name}."
        )
    if flat:
        return flat, None
    empty = [sub.name for sub, files in inside.items() if not files]
    if not folders or empty:
        where = folder / empty[0] if empty else folder
        raise DataFailure(
            f"{where} has no images (files ending in {', '.join(sorted(ENDINGS))})."
        )
    files = [file for sub in folders for file in inside[sub]]
    return files, [file.parent.name for file in files]


class _Opened:
    """An open image of Pillow; errors name the file."""

    def __init__(self, pillow: Any, path: Path):
        self._path = path
        try:
            self._image = pillow.open(path)
            self._image.load()
        except Exception as error:  # Pillow raises many kinds for damaged files
            raise DataFailure(
                f"{path} is not an image that can be read{_why(pillow, error)}. "
                "Replace it, or remove it from the folder."
            ) from error

    def __enter__(self) -> Any:
        return self._image

    def __exit__(self, *_: object) -> None:
        self._image.close()


def _why(pillow: Any, error: Exception) -> str:
    """Return what Pillow says about a damaged image, if it says anything useful."""
    if isinstance(error, pillow.UnidentifiedImageError):
        return ": its content has an unknown format"
    return f": {str(error).rstrip('.')}" if str(error) else ""


def _form(
    pillow: Any, files: Sequence[Path], folder: Path, how: ReadOptions
) -> ImageForm:
    """Decide on the form of the images of a new model."""
    colour, size = how.colour, how.size
    if colour == "auto":
        colour = "grey"
        for file in files:
            with _Opened(pillow, file) as image:
                size = size or image.size
                if not _is_grey(image):
                    colour = "rgb"
                    break
    if size is None:
        with _Opened(pillow, files[0]) as image:
            size = image.size
    width, height = size
    return ImageForm(width, height, colour, resize=how.size is not None)


def _is_grey(image: Any) -> bool:
    return image.mode in GREY


def _check_size(image: Any, file: Path, form: ImageForm) -> None:
    if form.resize or image.size == (form.width, form.height):
        return
    raise DataFailure(
        f"{file} has {image.width}x{image.height} pixels, and other images have "
        f"{form.width}x{form.height}. Bring all images to one size, for example with "
        f"--size {form.width}x{form.height}."
    )


def _pixels(pillow: Any, image: Any, form: ImageForm) -> NDArray:
    """Return the pixels of an image, from 0 to 1, in the form of the model."""
    if image.mode in WHITE or image.mode == "F":
        white = WHITE.get(image.mode, 1.0)
        values = np.asarray(image, dtype=np.float32) / np.float32(white)
        image = pillow.fromarray(values)
    else:
        if "A" in image.mode or "transparency" in image.info:
            # Transparent parts become white.
            paper = pillow.new("RGBA", image.size, "white")
            image = pillow.alpha_composite(paper, image.convert("RGBA"))
        image = image.convert("L" if form.colour == "grey" else "RGB")
        white = 255.0
    if image.size != (form.width, form.height):
        image = image.resize((form.width, form.height), pillow.Resampling.BILINEAR)
    values = np.asarray(image, dtype=np.float32)
    if image.mode != "F":
        values = values / np.float32(255)
    if values.shape != form.shape:
        values = np.repeat(values[..., None], 3, axis=2)
    return values
