"""Tables as text: delimiters, headers, quotes, and where errors are."""

import gzip

import numpy as np
import pytest

from mercer.cli.data.csv_files import N_AT_ONCE, read_csv
from mercer.cli.data.loaded import ReadOptions
from mercer.cli.data.sources import Source
from mercer.cli.failures import DataFailure


def read(path, content, **how):
    path.write_text(content, encoding="utf-8")
    return read_csv(Source(path), ReadOptions(**how))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t.csv"


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_are_found(path, delimiter):
    lines = ["a b,c" if delimiter != "," else "a b", "1", "2"]
    rows = [delimiter.join([line, "0.5", "yes"]) for line in lines[1:]]
    head = delimiter.join([lines[0], "b", "t"])
    loaded = read(path, "\n".join([head, *rows]), target="t")
    np.testing.assert_array_equal(loaded.X, [[1, 0.5], [2, 0.5]])
    assert loaded.schema.features == (lines[0], "b")
    assert loaded.target.values.tolist() == ["yes", "yes"]


def test_a_single_column(path):
    assert read(path, "a\n1\n2\n").X.tolist() == [[1], [2]]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_headers_are_found(path, mark):
    assert read(path, mark + "a,b\n1,2\n").schema.features == ("a", "b")
    bare = read(path, mark + "1,2\n3,4\n")
    assert not bare.schema.named
    assert bare.schema.features == ("1", "2")
    assert len(bare.X) == 2
    named = read(path, mark + "2019,2020\n3,4\n", header="yes")
    assert named.schema.features == ("2019", "2020")
    assert read(path, "x,y\n1,2\n", header="no", one_hot=True).schema.categories == {
        "1": ["1", "x"],
        "2": ["2", "y"],
    }


def test_quotes_blank_lines_and_line_ends(path):
    text = 'a,"b, or\nc",t\r\n1,"2",x\r\n\r\n 3 ,4e1,"y ""z"""\r\n'
    path.write_bytes(text.encode())
    loaded = read_csv(Source(path), ReadOptions(target="t"))
    assert loaded.X.tolist() == [[1, 2], [3, 40]]
    assert loaded.schema.features == ("a", "b, or\nc")
    assert loaded.target.values.tolist() == ["x", 'y "z"']
    assert loaded.where(1) == f"{path}, line 5"


def test_errors_far_down_name_the_line(path):
    n = 2 * N_AT_ONCE + 10
    rows = [f"{i},0" for i in range(n)]
    rows[n - 2] = "oops,0"
    with pytest.raises(DataFailure, match=rf"line {n}, column 'a': 'oops'"):
        read(path, "a,b\n" + "\n".join(rows))
    rows[n - 2] = "7,0"
    assert read(path, "a,b\n" + "\n".join(rows)).X.shape == (n, 2)


def test_compressed_tables(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert read_csv(Source(path), ReadOptions()).X.tolist() == [[1, 2]]
    path.write_bytes(gzip.compress(b"a,b\n1,2\n" * 100)[:-12])
    with pytest.raises(DataFailure, match=r"t\.csv\.gz cannot be read"):
        read_csv(Source(path), ReadOptions())


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2"], "i"),
        (["1.0", "-2"], "i"),
        (["1.5", "2"], "f"),
        (["1", "x"], "U"),
        (["01", "2"], "U"),
        (["0", "0.5"], "f"),
    ],
)
def test_kinds_of_targets(path, cells, kind):
    rows = "\n".join(f"0,{cell}" for cell in cells)
    target = read(path, f"a,t\n{rows}", target="t").target
    assert target.values.dtype.kind == kind
    assert list(target.texts) == cells


def test_numbers_stay_numbers_beside_categories(path):
    loaded = read(path, "a,b,c\n1,x,5\n2,y,6\n3,x,7\n", one_hot=True)
    assert loaded.X.tolist() == [[1, 1, 0, 5], [2, 0, 1, 6], [3, 1, 0, 7]]
    assert loaded.schema.layout() == {"a": [0], "b": [1, 2], "c": [3]}
    again = read(path, "c,b,a\n9,y,8\n", schema=loaded.schema)
    assert again.X.tolist() == [[8, 0, 1, 9]]
    with pytest.raises(
        DataFailure,
        match=r"line 3, column 'b': the training data did not have the value 'z'",
    ):
        read(path, "c,b,a\n9,y,8\n9,z,8\n", schema=loaded.schema)


def test_names_are_no_categories(path):
    rows = "\n".join(f"person {i}" for i in range(300))
    with pytest.raises(DataFailure, match="has 300 different texts"):
        read(path, "name\n" + rows, one_hot=True)


def test_columns_without_names_have_places(path):
    loaded = read(path, "0,1,2\n1,3,4\n", target="1")
    assert loaded.schema.target_at == 0
    with_target = read(path, "0,5,6\n", schema=loaded.schema)
    without = read(path, "5,6\n", schema=loaded.schema)
    assert with_target.X.tolist() == without.X.tolist() == [[5, 6]]
