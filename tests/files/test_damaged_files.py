"""Model files that are damaged, foreign, too new or malicious are refused."""

import builtins
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.pipeline import make_pipeline

import mercer
from mercer import SVC
from mercer.kernels import Laplacian
from model_files import assert_same, toy_data

skops_io = pytest.importorskip("skops.io")


class Trap:
    """Says so when it is built from a file."""

    def __setstate__(self, state):
        raise AssertionError("code was run")


@pytest.fixture(scope="module")
def data():
    return toy_data()


@pytest.fixture(scope="module")
def good_file(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "good.skops"
    mercer.save(SVC().fit(*data), path)
    return path


def rewritten(path, change):
    """Return the bytes of a model file with changed members, checksums right."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        members = {name: old.read(name) for name in old.namelist()}
        change(members)
        for name, content in members.items():
            new.writestr(name, content)
    return out.getvalue()


def header(**values):
    def change(members):
        old = json.loads(members["mercer.json"])
        members["mercer.json"] = json.dumps({**old, **values})

    return change


def without_header(members):
    del members["mercer.json"]


def schema(old, new):
    def change(members):
        text = members["schema.json"].decode()
        assert old in text
        members["schema.json"] = text.replace(old, new)

    return change


@pytest.mark.parametrize(
    "change, words",
    [
        (header(format=2, mercer="9.0.0"), "has format 2, of Mercer 9.0.0; .* up to 1"),
        (header(format="1"), "no version of the format"),
        (header(format=True), "no version of the format"),
        (header(format=0), "no version of the format"),
        (lambda m: m.update({"mercer.json": "[1]"}), "no version of the format"),
        (lambda m: m.update({"mercer.json": "{"}), "damaged or was cut short"),
        (without_header, "not a model file of Mercer: it has no mercer.json"),
        (lambda m: m.pop("schema.json"), "damaged .* Restore it from a copy"),
        (schema('"SVC"', '"NoSuchSVC"'), r"not trust: mercer\.NoSuchSVC"),
        (schema('"SVC"', '"NuSVC_"'), "does not trust"),
        (
            schema('__": "mercer"', '__": "os"'),
            r"does not trust: os\.SVC",
        ),
        (schema('"protocol": 2', '"protocol": 99'), "damaged .*skops"),
    ],
)
def test_changed_files_are_refused(good_file, tmp_path, change, words):
    path = tmp_path / "changed.skops"
    path.write_bytes(rewritten(good_file, change))
    with pytest.raises(ValueError, match=words) as caught:
        mercer.load(path)
    assert str(path) in str(caught.value)


def test_foreign_files_are_refused(data, tmp_path):
    path = tmp_path / "foreign"
    model = SVC().fit(*data)
    for content in (b"", b"hello", pickle.dumps(model), b"P"):
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match=r"foreign is not a model file of Mercer\."
        ):
            mercer.load(path)
    skops_io.dump(model, path)
    with pytest.raises(ValueError, match="but not a model file of Mercer"):
        mercer.load(path)
    with pytest.raises(FileNotFoundError):
        mercer.load(tmp_path / "nowhere")


def test_no_code_of_a_file_is_run(good_file, data, tmp_path):
    path = tmp_path / "trap.skops"
    model = SVC()
    model.extra_ = Trap()
    with pytest.raises(TypeError, match="cannot be stored safely"):
        mercer.save(model, path)
    for evil in (Trap(), os.system, builtins.eval, "".join):
        model.extra_ = evil
        inner = io.BytesIO(skops_io.dumps(model))
        with zipfile.ZipFile(inner, "a") as archive, zipfile.ZipFile(good_file) as good:
            archive.writestr("mercer.json", good.read("mercer.json"))
        path.write_bytes(inner.getvalue())
        with pytest.raises(ValueError, match="does not trust"):
            mercer.load(path)


@pytest.mark.parametrize(
    "name, value",
    [
        ("support_vectors_", np.zeros((3, 4))),
        ("dual_coef_", np.zeros((2, 3))),
        ("n_support_", np.array([0, 0, 1])),
        ("n_features_in_", 400),
        ("support_", None),
    ],
)
def test_arrays_that_do_not_fit_are_refused(data, tmp_path, name, value):
    model = SVC(kernel=Laplacian()).fit(*data)
    setattr(model, name, value)
    mercer.save(model, tmp_path / "m")
    with pytest.raises(ValueError, match="damaged"):
        mercer.load(tmp_path / "m")


def test_sparse_indices_out_of_bounds_are_refused(data, tmp_path):
    model = SVC().fit(sparse.csr_matrix(data[0]), data[1])
    model.support_vectors_.indices[0] = 10**6
    mercer.save(make_pipeline(model), tmp_path / "m")
    with pytest.raises(ValueError, match="damaged"):
        mercer.load(tmp_path / "m")


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(draw=st.data())
def test_damage_is_found_or_harmless(good_file, data, tmp_path, draw):
    content = good_file.read_bytes()
    path = tmp_path / "damaged.skops"
    at = draw.draw(st.integers(0, len(content) - 1))
    if draw.draw(st.booleans()):
        path.write_bytes(content[:at])
    else:
        new = draw.draw(st.integers(0, 255))
        path.write_bytes(content[:at] + bytes([new]) + content[at + 1 :])
    try:
        again = mercer.load(path)
    except ValueError as error:
        assert str(path) in str(error)
    else:
        assert_same(mercer.load(good_file), again, data[0])


def test_a_failing_write_leaves_the_old_model(good_file, data, tmp_path, monkeypatch):
    path = tmp_path / "m"
    path.write_bytes(good_file.read_bytes())

    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("mercer.runtime.writing.os.fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        mercer.save(SVC(C=9).fit(*data), path)
    assert path.read_bytes() == good_file.read_bytes()
    assert mercer.load(path).C == 1
    assert os.listdir(tmp_path) == ["m"]
