"""Model files that claim more than they hold are refused before they are unpacked."""

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from scipy import sparse

import mercer
from mercer import SVC
from mercer.files.model_files import read_header
from mercer.kernels import Laplacian
from model_files import toy_data

pytest.importorskip("skops.io")
BIG = 200_000_000


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """Return the members of a file with dense and one with sparse samples."""
    X, y = toy_data()
    folder = tmp_path_factory.mktemp("models")
    found = []
    for name, samples in (("dense", X), ("sparse", sparse.csr_array(X))):
        mercer.save(SVC().fit(samples, y), folder / name)
        with zipfile.ZipFile(folder / name) as archive:
            found.append({n: archive.read(n) for n in archive.namelist()})
    return found


def largest(members, ending):
    return max(
        (n for n in members if n.endswith(ending)), key=lambda n: len(members[n])
    )


def npy_header(shape, dtype="<f8"):
    out = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, described)
    return out.getvalue()


def write(path, members, compressed=()):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            packed = name in compressed
            archive.writestr(
                name, content, zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
            )
    return path


def refused(path, words):
    """Check that a file is refused, and without much memory."""
    for read in (mercer.load, read_header):
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match=words):
                read(path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < BIG / 10


def test_files_as_they_are_can_be_read(members, tmp_path):
    X, y = toy_data()
    for content in members:
        assert mercer.load(write(tmp_path / "m", content)).score(X, y) > 0.5


def test_compressed_members_are_refused(members, tmp_path):
    content = dict(members[0])
    name = largest(content, ".npy")
    content[name] = npy_header((BIG // 8,)) + bytes(BIG)
    path = write(tmp_path / "m", content, compressed=[name])
    assert path.stat().st_size < BIG / 100
    del content
    refused(path, f"{name} is compressed, and mercer.save does not compress")


def test_a_compressed_schema_is_refused(members, tmp_path):
    content = {**members[0], "schema.json": b" " * BIG + members[0]["schema.json"]}
    path = write(tmp_path / "m", content, compressed=["schema.json"])
    del content
    refused(path, r"schema\.json is compressed")


def test_arrays_that_claim_more_than_they_have_are_refused(members, tmp_path):
    content = dict(members[0])
    name = largest(content, ".npy")
    for shape, dtype in (((BIG,), "<f8"), ((BIG,), "|S0"), ((3, 1), "<f8")):
        content[name] = npy_header(shape, dtype) + bytes(16)
        refused(write(tmp_path / "m", content), f"{name} .*an array of")


def test_sparse_matrices_that_claim_too_much_are_refused(members, tmp_path):
    content = dict(members[1])
    name = largest(content, ".npz")
    with zipfile.ZipFile(io.BytesIO(content[name])) as archive:
        parts = {n: archive.read(n) for n in archive.namelist()}

    def packed(**changed):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for part, inside in {**parts, **changed}.items():
                archive.writestr(part, inside)
        return {**content, name: out.getvalue()}

    assert mercer.load(write(tmp_path / "m", packed())).C == 1
    huge = npy_header((BIG // 8,)) + bytes(BIG)
    path = write(tmp_path / "m", packed(**{"data.npy": huge}))
    del huge
    refused(path, "claims 2[0-9]* bytes, packed into")
    short = npy_header((BIG,)) + bytes(8)
    refused(write(tmp_path / "m", packed(**{"data.npy": short})), "does not fit into")
    more = packed(**{"offsets.npy": parts["data.npy"]})
    refused(write(tmp_path / "m", more), "not a sparse matrix")


def bombs(content, name, compression, count, n_bytes):
    """Return members in which so many sparse matrices are packed very tightly."""
    with zipfile.ZipFile(io.BytesIO(content[name])) as archive:
        parts = {n: archive.read(n) for n in archive.namelist()}
    parts["data.npy"] = npy_header((n_bytes,), "|i1") + bytes(n_bytes)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for part, inside in parts.items():
            archive.writestr(part, inside)
    schema = json.loads(content["schema.json"])
    nodes = schema["content"]["content"]
    node = next(n for n in nodes.values() if n.get("file") == name)
    more = {name: out.getvalue()}
    for k in range(1, count):
        more[f"{k}.npz"] = out.getvalue()
        nodes[f"more{k}"] = {**node, "file": f"{k}.npz", "__id__": k}
    return {**content, **more, "schema.json": json.dumps(schema).encode()}


def test_sparse_matrices_are_limited_together(members, tmp_path):
    name = largest(members[1], ".npz")
    content = bombs(members[1], name, zipfile.ZIP_DEFLATED, 22, 12_000_000)
    path = write(tmp_path / "m", content)
    del content
    assert path.stat().st_size < 500_000
    refused(path, "the sparse matrices of this file may have [0-9]+ more")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_to_compress_are_refused(members, tmp_path, compression):
    name = largest(members[1], ".npz")
    content = bombs(members[1], name, compression, 1, 12_000_000)
    path = write(tmp_path / "m", content)
    del content
    refused(path, f"{name}, .* is compressed in a way that mercer.save does not use")


def test_large_sparse_models_can_be_read(tmp_path):
    # Ones in one column are packed as tightly as data can be.
    X = sparse.csr_array(np.ones((40_000, 1)))
    model = SVC()
    model.extra_ = X
    mercer.save(model, tmp_path / "m")
    assert mercer.load(tmp_path / "m").extra_.shape == (40_000, 1)


@pytest.mark.parametrize("step", [1, 3, -1])
def test_ranges_of_many_columns_take_no_memory(step, tmp_path):
    columns = range(0, 20_000_000, step) if step > 0 else range(20_000_000, 0, -1)
    X, y = toy_data()
    model = SVC(kernel=Laplacian().on([0, 1])).fit(X, y)
    model.kernel_ = Laplacian().on(columns)
    mercer.save(model, tmp_path / "m")
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"Columns .* the data have 4"):
            mercer.load(tmp_path / "m")
        with pytest.raises(ValueError, match=r"Columns .* the data have 4"):
            SVC(kernel=Laplacian().on(columns)).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < BIG / 10


def test_a_range_of_many_columns_that_are_there_takes_no_memory():
    X = sparse.csr_array(([1.0, 2.0], ([0, 1], [3, 4])), shape=(2, 20_000_000))
    tracemalloc.start()
    kernel = Laplacian().on(range(20_000_000)).bind(X)
    assert kernel.kernel.gamma > 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < BIG / 10


def test_members_that_the_schema_does_not_name_are_refused(members, tmp_path):
    content = {**members[0], "more.npy": npy_header((0,))}
    refused(write(tmp_path / "m", content), r"schema\.json does not name more\.npy")
    content = dict(members[0])
    name = largest(content, ".npy")
    del content[name]
    refused(write(tmp_path / "m", content), f"{name} is missing")


def test_an_array_is_there_for_one_object(members, tmp_path):
    # Each of many nodes would read the same bytes again.
    content = dict(members[0])
    name = largest(content, ".npy")
    schema = json.loads(content["schema.json"])
    nodes = schema["content"]["content"]
    node = next(n for n in nodes.values() if n.get("file") == name)
    for other in (None, 123):
        nodes["more"] = {**node, "__id__": other}
        content["schema.json"] = json.dumps(schema).encode()
        refused(write(tmp_path / "m", content), f"{name} is used for several objects")


def test_two_members_of_one_name_are_refused(members, tmp_path):
    path = write(tmp_path / "m", members[0])
    name = largest(members[0], ".npy")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match=name):
        archive.writestr(name, members[0][name])
    refused(path, "two members have the same name")


def test_arrays_of_objects_have_one_dimension(tmp_path):
    model = SVC()
    model.extra_ = np.array([[None, 1], [2, "x"]], dtype=object)
    with pytest.raises(TypeError, match=r"more than one dimension\. Use pickle"):
        mercer.save(model, tmp_path / "m")
    model.extra_ = model.extra_[0]
    mercer.save(model, tmp_path / "m")
    assert mercer.load(tmp_path / "m").extra_.tolist() == [None, 1]
