"""Model files that are read without running code from them.

A file is a zip archive as skops writes it: ``schema.json``, which names types and
values, and one file for each array. Beside them, ``mercer.json`` has the version of the
format and the notes. Before anything is built, false sizes and types that are not on a
list are refused; after that, arrays that do not fit together are refused.
"""

from __future__ import annotations

import copy
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from mercer.files.fitted import check_fitted
from mercer.files.unpacking import HEADER, SCHEMA, check_archive
from mercer.kernels.base import Kernel
from mercer.kernels.given import Custom, Pairwise
from mercer.machines.base.export import KernelFunction
from mercer.runtime.devices import check_device
from mercer.runtime.public import defined_in, public
from mercer.runtime.writing import replacing

__all__ = ["FORMAT", "load", "read_header", "save"]

#: Version of the format; a reader accepts files up to its own version.
FORMAT = 1

# A file may hold the public estimators and kernels of these modules.
MODULES = ("mercer", "mercer.images", "mercer.kernels")
# A function cannot be stored, and the base class is not a kernel.
REFUSED = (Custom, Pairwise, Kernel)
# Sparse data, columns of kernels, and the kernels of models that `to_sklearn` has made.
MORE_TYPES = (
    *(sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.csc_matrix),
    *(range, KernelFunction),
)
# What scikit-learn's imputers, encoders and selections of columns keep, and skops does
# not trust. Functions are named by the file, and not made from it.
NAMES_OF_STEPS = {
    *("builtins.object", "numpy.dtype"),
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.impute._iterative.IterativeImputer",
    "sklearn.impute._iterative._ImputerTriplet",
    *(
        f"sklearn.feature_selection.{module}.{name}"
        for module, names in {
            "_univariate_selection": ("chi2", "f_classif", "f_regression"),
            "_mutual_info": ("mutual_info_classif", "mutual_info_regression"),
        }.items()
        for name in names
    ),
}


@public("mercer")
def save(
    model: BaseEstimator,
    path: str | os.PathLike,
    *,
    trusted: Iterable[type | str] = (),
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write a model to a file from which :func:`load` reads it without running code.

    An older file is replaced only when the new one is complete and on the disk.
    Callbacks of the model are not stored. Model files need skops.

    Parameters
    ----------
    model : estimator
        A model of Mercer, fitted or not, or a pipeline of scikit-learn that contains
        one. After a search, save its ``best_estimator_``.
    path : str or path
        The file; ".skops" is a good ending.
    trusted : iterable of types or names, default=()
        Types that the model holds besides those of Mercer and scikit-learn, such as
        kernels of your own, or their names as error messages have them
        ("package.module.Type"). :func:`load` needs them again.
    notes : dict, default=None
        Notes about the model: text, numbers, and lists and dicts of them, stored as
        JSON. :func:`mercer.files.read_header` returns them.

    Raises
    ------
    TypeError
        If the model holds something that cannot be stored safely, such as a function,
        or if the notes cannot be written as JSON.

    See Also
    --------
    load : reads the file.
    export_libsvm : writes a model for LIBSVM.

    Examples
    --------
    >>> import tempfile, pathlib, mercer
    >>> X, y = mercer.datasets.make_moons(random_state=0)
    >>> model = mercer.SVC(gamma=2.0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "moons.skops")
    ...     mercer.save(model, path)
    ...     again = mercer.load(path)
    >>> bool((again.decision_function(X) == model.decision_function(X)).all())
    True
    """
    skops = _skops()
    if not isinstance(model, BaseEstimator) or isinstance(model, type):
        raise TypeError(f"save takes an estimator; got {type(model).__name__}.")
    header = _header(notes)
    names = _allowed(trusted)
    content = io.BytesIO(_dump(skops, model))
    unknown = set(skops.get_untrusted_types(data=content.getvalue())) - names
    if unknown:
        raise TypeError(_why_not(model, sorted(unknown)))
    with ZipFile(content, "a") as archive:
        _check_keys(model, json.loads(archive.read(SCHEMA)))
        archive.writestr(HEADER, header)
    _check_readable(model, content)
    with replacing(path) as file:
        file.write(content.getbuffer())


@public("mercer")
def load(
    path: str | os.PathLike,
    *,
    trusted: Iterable[type | str] = (),
    device: str | None = None,
) -> Any:
    """Read a model that :func:`save` has written, without running code of the file.

    Only estimators and kernels of Mercer, estimators that skops trusts, and arrays are
    built. Anything else in the file is an error.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : iterable of types or names, default=()
        Further types that the file may hold, such as your own kernels, or their names
        ("package.module.Type").
    device : {"cpu", "cuda", "cuda:N"}, default=None
        Where the model computes from now on. None keeps the device that the model was
        saved with; a model saved with ``device="cuda"`` then needs a graphics card.
        ``device="cpu"`` is right for every model and every computer.

    Returns
    -------
    estimator

    Raises
    ------
    ValueError
        If the file is not a model file of Mercer, is damaged, comes from a newer
        version, or holds other types; or if ``device`` is a card, and the model has no
        part that could use it.

    See Also
    --------
    save : writes the file.

    Examples
    --------
    >>> import mercer, os, tempfile
    >>> X, y = mercer.datasets.make_moons(random_state=0)
    >>> path = os.path.join(tempfile.mkdtemp(), "moons.skops")
    >>> mercer.save(mercer.SVC().fit(X, y), path)
    >>> mercer.load(path)
    SVC()
    """
    skops = _skops()
    if device is not None:
        check_device(device)
    names = _allowed(trusted)
    data = Path(path).read_bytes()
    _check_header(_read_header(data, path), path)
    try:
        unknown = set(skops.get_untrusted_types(data=data)) - names
        model = None if unknown else skops.loads(data, trusted=sorted(names))
        for part in _parts(model, {}):
            check_fitted(part)
    except Exception as error:
        raise ValueError(_damaged(path, error)) from error
    if unknown:
        raise ValueError(
            f"{path} holds types that Mercer does not trust: "
            f"{', '.join(sorted(unknown))}. If you know them and where the file comes "
            "from, import them and pass load(path, trusted=[...])."
        )
    if not isinstance(model, BaseEstimator):
        raise ValueError(_damaged(path, f"it holds a {type(model).__name__}"))
    if device is not None:
        _move(model, device)
    return model


def _move(model: BaseEstimator, device: str) -> None:
    """Let every part of a model that can choose a device compute on this one."""
    movable = [
        part
        for part in _parts(model, {})
        if isinstance(part, BaseEstimator) and "device" in part.get_params(deep=False)
    ]
    if not movable and device != "cpu":
        raise ValueError(
            f"device={device!r}: this {type(model).__name__} computes on the processor "
            "only. Leave device out."
        )
    for part in movable:
        part.set_params(device=device)


@public("mercer.files")
def read_header(path: str | os.PathLike) -> dict[str, Any]:
    """Return the versions and notes in a model file, without reading the model.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict
        The version of the "format", the versions of "mercer" and of the packages that
        wrote the file, and the "notes", which are empty if there are none.

    Raises
    ------
    ValueError
        As for :func:`mercer.load`.
    """
    header = _read_header(Path(path).read_bytes(), path)
    _check_header(header, path)
    return {"notes": {}, **header}


def _skops() -> Any:
    """Import skops only when it is needed: it is an extra, and slow to import."""
    try:
        return import_module("skops.io")
    except ImportError as error:
        raise ImportError(
            "Model files need skops. Install it: pip install skops."
        ) from error


def _allowed(trusted: Iterable[type | str]) -> set[str]:
    """Return the names of the types that a file may hold, besides what skops trusts."""
    public = [
        getattr(module, name)
        for module in map(import_module, MODULES)
        for name in module.__all__
    ]
    own = [
        thing
        for thing in public
        if isinstance(thing, type)
        and issubclass(thing, BaseEstimator)
        and thing not in REFUSED
    ]
    own += MORE_TYPES
    if isinstance(trusted, str):
        raise TypeError(
            f"trusted takes a list of types or names; got {trusted!r}. Pass "
            f"trusted=[{trusted!r}]."
        )
    return {*map(_full_name, own), *map(_trusted_name, trusted), *NAMES_OF_STEPS}


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"


def _trusted_name(kind: type | str) -> str:
    for refused in (Custom, Pairwise):
        at_home = f"{defined_in(refused)}.{refused.__name__}"
        if kind in (refused, _full_name(refused), at_home):
            raise TypeError(
                f"{refused.__name__} cannot be trusted: its function cannot be stored."
            )
    if isinstance(kind, str):
        if not all(part.isidentifier() for part in kind.split(".")) or "." not in kind:
            raise TypeError(
                f"trusted takes types, or names such as 'package.module.Type'; got "
                f"{kind!r}."
            )
        return kind
    if not isinstance(kind, type):
        raise TypeError(
            "trusted takes types, or names such as 'package.module.Type'; got "
            f"{kind!r}."
        )
    if "." in kind.__qualname__:
        raise TypeError(
            f"{kind.__qualname__} is defined inside a class or function, where load "
            "would not find it. Define it at the top level of a module."
        )
    return _full_name(kind)


def _dump(skops: Any, model: BaseEstimator) -> bytes:
    if hasattr(model, "_skl_callbacks"):
        model = copy.copy(model)
        del model._skl_callbacks
    try:
        return skops.dumps(model)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise TypeError(
            f"This {type(model).__name__} cannot be stored: {error}. Change the "
            "parameter or attribute that holds it, or use pickle or joblib."
        ) from error


def _why_not(model: BaseEstimator, unknown: list[str]) -> str:
    name = type(model).__name__
    if {_full_name(Custom), _full_name(Pairwise)} & set(unknown):
        return (
            f"This {name} has a kernel function, which cannot be stored safely: "
            "loading it would run code. Use a kernel of mercer.kernels or a Kernel "
            "class of your own (see trusted), or pickle or joblib for files that you "
            "trust."
        )
    if any(kind.startswith("sklearn.callback.") for kind in unknown):
        hint = "Remove the callbacks with set_callbacks()."
    else:
        hint = (
            "If you know these types, pass save(model, path, trusted=[...]), and the "
            "same to load; or use pickle or joblib for files that you trust."
        )
    return (
        f"This {name} holds types that cannot be stored safely: {', '.join(unknown)}. "
        f"{hint}"
    )


def _check_readable(model: BaseEstimator, content: io.BytesIO) -> None:
    """Refuse a model now that :func:`load` would refuse later."""
    try:
        with ZipFile(content) as archive:
            check_archive(archive, len(content.getbuffer()))
    except ValueError as error:
        raise TypeError(
            f"This {type(model).__name__} cannot be stored: {error}. Use pickle or "
            "joblib for files that you trust."
        ) from error


def _check_keys(model: BaseEstimator, state: Any) -> None:
    """Refuse dicts whose keys would change, since keys are stored as text."""
    if isinstance(state, list):
        for value in state:
            _check_keys(model, value)
    if not isinstance(state, dict):
        return
    if state.get("__loader__") == "DictNode":
        kinds = [kind["__class__"] for kind in state["key_types"]["content"]]
        if len(state["content"]) != len(kinds) or {"bool", "bool_"} & set(kinds):
            raise TypeError(
                f"This {type(model).__name__} holds a dict, perhaps class_weight, with "
                f"keys that cannot be stored: {', '.join(state['content'])}. Let all "
                "keys be numbers or all text; for False and True write 0 and 1, which "
                "mean the same."
            )
    for value in state.values():
        _check_keys(model, value)


def _header(notes: Mapping[str, Any] | None) -> str:
    packages = ("mercer", "skops", "sklearn", "numpy", "scipy")
    versions = {name: import_module(name).__version__ for name in packages}
    header = {"format": FORMAT, **versions}
    if notes:
        header["notes"] = dict(notes)
    try:
        return json.dumps(header, indent=2, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"notes must be text, numbers, or lists and dicts of them: {error}."
        ) from error


def _read_header(data: bytes, path: Any) -> Any:
    if not data.startswith(b"PK"):
        raise ValueError(
            f"{path} is not a model file of Mercer. Give a file that mercer.save has "
            "written; read files of pickle and joblib with pickle and joblib."
        )
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            if HEADER not in archive.namelist():
                header, wrong = None, None
            else:
                check_archive(archive, len(data))
                wrong = archive.testzip()
                header = json.loads(archive.read(HEADER))
    except Exception as error:
        raise ValueError(_damaged(path, error)) from error
    if wrong is not None:
        raise ValueError(_damaged(path, f"wrong checksum of {wrong}"))
    if header is None:
        raise ValueError(
            f"{path} is an archive, but not a model file of Mercer: it has no "
            f"{HEADER}. Give a file that mercer.save has written; read files of "
            "skops with skops.io.load."
        )
    return header


def _check_header(header: Any, path: Any) -> None:
    number = header.get("format") if isinstance(header, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ValueError(_damaged(path, f"{HEADER} has no version of the format"))
    if number > FORMAT:
        mine = import_module("mercer").__version__
        raise ValueError(
            f"{path} has format {number}, of Mercer {header.get('mercer')}; this is "
            f"Mercer {mine}, which reads formats up to {FORMAT}. Install a newer "
            "version of Mercer."
        )
    if not isinstance(header.get("notes", {}), dict):
        raise ValueError(_damaged(path, f"the notes in {HEADER} are not a dict"))


def _damaged(path: Any, why: object) -> str:
    return (
        f"{path} is damaged or was cut short ({why}). Restore it from a copy, or fit "
        "and save the model again."
    )


def _parts(thing: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """Yield an object and everything that it consists of, each part once."""
    if id(thing) in seen or isinstance(thing, str | type):
        return
    seen[id(thing)] = thing
    yield thing
    inside: Iterable[Any] = ()
    if isinstance(thing, dict):
        inside = thing.values()
    elif isinstance(thing, list | tuple | set):
        inside = thing
    elif isinstance(thing, np.ndarray):
        inside = thing.ravel() if thing.dtype == object else ()
    elif isinstance(thing, BaseEstimator):
        inside = vars(thing).values()
    for part in inside:
        yield from _parts(part, seen)
