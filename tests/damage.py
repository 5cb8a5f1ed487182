"""Damage each array and number of a model file, and use what can still be read.

Run as a program with names of models, in an interpreter of its own: a crash ends it.
Compiled code then checks the bounds of arrays, so that reading a little too far, which
a crash does not always follow, is seen as well.
"""

import copy
import faulthandler
import io
import json
import pickle
import resource
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
from sklearn import svm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import images
from model_files import toy_data

MEMORY = 6 * 2**30
LIMIT_S = 60
#: what compiled code says, where NumPy would name the index as well
BEYOND = "index is out of bounds"

METHODS = (
    *("predict", "decision_function", "predict_proba", "score_samples", "transform"),
    *("inverse_transform", "angles", "finish", "get_feature_names_out"),
)


def pictures():
    return np.random.default_rng(0).random((8, 12, 12))


def of_two(X, y):
    return X, y > 0


MODELS = {
    "SVC": lambda X, y: mercer.SVC(probability=True, random_state=0).fit(X, y),
    "SVC of two": lambda X, y: mercer.SVC(random_state=0).fit(*of_two(X, y)),
    "SVC of rests": lambda X, y: mercer.SVC(multiclass="ovr", kernel="linear").fit(
        X, y
    ),
    "SVC of codes": lambda X, y: mercer.SVC(
        multiclass="ecoc", decode="barycentre", kernel="laplacian"
    ).fit(X, y),
    "SVC on a matrix": lambda X, y: mercer.SVC(kernel="precomputed").fit(X @ X.T, y),
    "NuSVC": lambda X, y: mercer.NuSVC(kernel="chi2 + poly").fit(X, y),
    "SVR": lambda X, y: mercer.SVR().fit(X, y),
    "NuSVR": lambda X, y: mercer.NuSVR(kernel="intersection").fit(X, y),
    "OneClassSVM": lambda X, y: mercer.OneClassSVM().fit(X),
    "SVDD": lambda X, y: mercer.SVDD().fit(X),
    "MKLClassifier": lambda X, y: mercer.MKLClassifier(
        kernels=["linear", "rbf@[0, 1]"]
    ).fit(X, y),
    "MKLRegressor": lambda X, y: mercer.MKLRegressor(kernels=["linear", "rbf"]).fit(
        X, y
    ),
    "LinearSVC": lambda X, y: mercer.LinearSVC(probability=True).fit(X, y),
    "LinearSVR": lambda X, y: mercer.LinearSVR().fit(X, y),
    "KernelPCA": lambda X, y: mercer.KernelPCA(
        kernel="rbf", n_components=2, fit_inverse_transform=True
    ).fit(X),
    "PCA": lambda X, y: mercer.PCA(n_components=2).fit(X),
    "KMeans": lambda X, y: mercer.KMeans(n_clusters=3).fit(X),
    "KernelKMeans": lambda X, y: mercer.KernelKMeans(n_clusters=3, kernel="rbf").fit(X),
    "OnlineSVC": lambda X, y: mercer.OnlineSVC().fit(X, y),
    "OnlineSVC by SMO": lambda X, y: mercer.OnlineSVC(method="smo").fit(X, y),
    "PassiveAggressiveClassifier": lambda X, y: (
        mercer.PassiveAggressiveClassifier().fit(X, y)
    ),
    "PA with a kernel": lambda X, y: mercer.PassiveAggressiveClassifier(
        kernel="rbf", budget=20
    ).fit(X, y),
    "HOG": lambda X, y: images.HOG(4).fit(pictures()),
    "ColourHistogram": lambda X, y: images.ColourHistogram().fit(pictures()),
    "PatchFeatures": lambda X, y: images.PatchFeatures(
        3, 5, n_patches=50, random_state=0
    ).fit(pictures()),
    "Deskew": lambda X, y: images.Deskew().fit(pictures()),
    "Distort": lambda X, y: images.Distort(mirror=0.5, random_state=0).fit(pictures()),
    "GaussianBlur": lambda X, y: images.GaussianBlur().fit(pictures()),
    "MedianFilter": lambda X, y: images.MedianFilter().fit(pictures()),
    "GaussianProjection": lambda X, y: images.GaussianProjection().fit(pictures()),
    "Rescale": lambda X, y: images.Rescale().fit(pictures()),
    "ToGrey": lambda X, y: images.ToGrey().fit(np.stack([pictures()] * 3, axis=-1)),
    "Trim": lambda X, y: images.Trim(8, margin=1).fit(pictures()),
    "Views": lambda X, y: images.Views(
        raw="passthrough", small=images.Trim(6), hog=images.HOG(4)
    ).fit(pictures()),
    "VirtualSVC": lambda X, y: images.VirtualSVC(n_copies=1, random_state=0).fit(
        pictures(), np.arange(8) % 2
    ),
}


def scaled(machine):
    return lambda X, y: make_pipeline(StandardScaler(), machine).fit(X, y)


#: what pipelines may end with; their code in C and Cython does not check bounds either
MODELS |= {
    "scikit-learn's SVC": scaled(svm.SVC()),
    "scikit-learn's SVC of two": lambda X, y: scaled(svm.SVC())(*of_two(X, y)),
    "scikit-learn's NuSVC": scaled(svm.NuSVC()),
    "scikit-learn's SVR": scaled(svm.SVR()),
    "scikit-learn's OneClassSVM": scaled(svm.OneClassSVM()),
    "scikit-learn's LogisticRegression": scaled(LogisticRegression()),
    "SVC from to_sklearn": lambda X, y: (
        mercer.SVC(kernel="laplacian").fit(X, y).to_sklearn()
    ),
}


def of_other_type(value):
    return value.astype("U8") if value.dtype.kind in "fiub" else np.arange(len(value))


def first_entry(make):
    def change(value):
        value = value.copy()
        value.flat[0] = make(value.dtype)
        return value

    return change


def least(dtype):
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def most(dtype):
    return np.nan if dtype.kind == "f" else np.iinfo(dtype).max


#: ten ways to damage an array; what a way cannot damage, it raises an error for
ARRAY_DAMAGE = {
    "the first entry is the largest, or NaN": first_entry(most),
    "the first entry is the smallest, or minus infinity": first_entry(least),
    "the first entry is large": first_entry(lambda dtype: 100_000),
    "all entries are one more": lambda v: v + v.dtype.type(1),
    "all entries are negative": lambda v: -1 - abs(v),
    "a row is missing": lambda v: v[:-1],
    "a row is there twice": lambda v: np.concatenate([v, v[-1:]]),
    "it is empty": lambda v: v[:0],
    "a column is missing, or an axis is new": lambda v: (
        v[..., :-1] if v.ndim > 1 else v[:, None]
    ),
    "it has another type": of_other_type,
}
#: ten ways to damage a number
NUMBER_DAMAGE = {
    "0": lambda v: 0,
    "-1": lambda v: -1,
    "one more": lambda v: v + 1,
    "twice as much": lambda v: v * 2 + 1,
    "large": lambda v: 1_003,
    "very large": lambda v: 2**63,
    "very small": lambda v: -(2**31),
    "a fraction": lambda v: 0.5,
    "NaN": lambda v: float("nan"),
    "nothing": lambda v: None,
}


def packed(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def unpacked(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def damaged_arrays(content):
    """Yield an array as the bytes of a file, damaged in each way."""
    value = np.load(io.BytesIO(content), allow_pickle=False)
    for way, change in ARRAY_DAMAGE.items():
        try:
            with np.errstate(all="ignore"):
                changed = change(value)
        except (TypeError, ValueError, IndexError, OverflowError):
            continue
        out = io.BytesIO()
        np.save(out, np.asarray(changed), allow_pickle=False)
        yield way, out.getvalue()


def leaves(state, path=""):
    """Yield the places of the schema that hold a number, and of those that name files.

    Each comes with the names that lead to it.
    """
    if isinstance(state, list):
        for k, value in enumerate(state):
            yield from leaves(value, f"{path}[{k}]")
    elif isinstance(state, dict):
        if state.get("__loader__") == "JsonNode":
            value = json.loads(state["content"])
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield path, state, value
        elif isinstance(state.get("file"), str):
            yield path, state, None
        for name, value in state.items():
            more = "" if name == "content" else f".{name}"
            yield from leaves(value, path + more)


def damaged_files(content):
    """Yield what was damaged, how, and the bytes of the damaged file."""
    members = unpacked(content)
    schema = json.loads(members["schema.json"])
    for path, leaf, number in leaves(schema):
        if number is None:
            whole = members[leaf["file"]]
            inside = {"": whole}
            if leaf["file"].endswith(".npz"):
                inside = unpacked(whole)
            elif not leaf["file"].endswith(".npy"):
                continue
            for name, part in inside.items():
                for way, changed in damaged_arrays(part):
                    new = packed({**inside, name: changed}) if name else changed
                    yield f"{path} {name}", way, packed({**members, leaf["file"]: new})
            continue
        kept = dict(leaf)
        for way, change in NUMBER_DAMAGE.items():
            # Equal numbers share a number of the object, and would share the damage.
            leaf.update(content=json.dumps(change(number)), __id__=id(way))
            yield path, way, packed({**members, "schema.json": json.dumps(schema)})
        leaf.update(kept)


def options(model, name):
    """Return the names that a parameter of a model may have."""
    allowed = getattr(model, "_parameter_constraints", {}).get(name, [])
    found = [o for some in allowed for o in getattr(some, "options", ())]
    return sorted(o for o in found if isinstance(o, str))


def changed_models(model):
    """Yield what was changed after the fit, how, and the changed model.

    What scikit-learn's own machines do with such changes is not Mercer's business.
    """
    if not type(model).__module__.startswith("mercer"):
        return
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray):
            ways = ARRAY_DAMAGE
        elif isinstance(value, bool | str | None):
            others = [*options(model, name), not value]
            ways = {repr(other): lambda _, other=other: other for other in others}
        elif isinstance(value, int | float | np.number):
            ways = NUMBER_DAMAGE
        else:
            continue
        for way, change in ways.items():
            changed = copy.copy(model)
            try:
                with np.errstate(all="ignore"):
                    setattr(changed, name, change(value))
            except (TypeError, ValueError, IndexError, OverflowError):
                continue
            yield f".{name} after fit", way, changed


def uses(model, X, y):
    """Yield the errors of all that can be done with a model."""
    ways = [lambda m, name=name: getattr(m, name)(X) for name in METHODS]
    ways += [
        lambda m: m.inverse_transform(m.transform(X)),
        lambda m: m.partial_fit(X, y),
        lambda m: m.finish(),
        lambda m: m.forget(0),
        lambda m: m.to_sklearn().predict(X),
        lambda m: m.coef_,
        lambda m: m.dual_gap_,
        lambda m: m.objective_,
        repr,
        pickle.dumps,
    ]
    for way in ways:
        try:
            way(copy.copy(model))
        except Exception as error:
            yield error


def errors_of(path, X, y):
    """Yield the errors of reading a file and of using the model in it."""
    try:
        model = mercer.load(path)
    except ValueError as error:
        yield error
    else:
        yield from uses(model, X, y)


def cases(model, X, y, path):
    """Yield what is damaged, how, and the errors that follow."""
    mercer.save(model, path)
    for what, way, content in damaged_files(path.read_bytes()):
        path.write_bytes(content)
        yield what, way, errors_of(path, X, y)
    for what, way, changed in changed_models(model):
        yield what, way, uses(changed, X, y)


def main(names, path):
    """Print the cases in which compiled code would read beyond an array."""
    X, y = toy_data()
    for name in names:
        model = MODELS[name](X, y)
        new = X
        if hasattr(model, "image_shape_") or name in ("Views", "VirtualSVC"):
            new = pictures()
        elif "matrix" in name:
            new = X @ X.T
        count = 0
        for what, way, errors in cases(model, new, y, path):
            case = f"{name}: {what}: {way}"
            # If there is a crash, this tells where.
            path.with_name("case").write_text(case)
            faulthandler.dump_traceback_later(LIMIT_S, exit=True)
            for error in errors:
                if BEYOND in str(error):
                    print(case, flush=True)
            count += 1
        faulthandler.cancel_dump_traceback_later()
        print(f"{name}: {count} cases", file=sys.stderr, flush=True)


if __name__ == "__main__":
    faulthandler.enable()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    main(sys.argv[2:] or list(MODELS), Path(sys.argv[1]))
