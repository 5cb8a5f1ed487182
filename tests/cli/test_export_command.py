"""``mercer export``: files for LIBSVM and LIBLINEAR, and what is refused."""

import numpy as np
import pytest
from cli_files import FLOWERS, call, call_json, flowers, refused, write_flowers
from cli_files import write_images as write_pictures

import mercer

pytest.importorskip("skops", reason="model files need skops")


@pytest.fixture
def table(tmp_path):
    return write_flowers(tmp_path / "flowers.csv")


def fitted(table, *options):
    model = table.with_suffix(".skops")
    call("fit", table, "--target", "kind", "--out", model, "--force", *options)
    return model


def scaled(path, X):
    """Scale data as svm-scale does with a file of ranges."""
    kind, ends, *lines = path.read_text().splitlines()
    assert (kind, ends) == ("x", "0 1")
    low, high = np.array([line.split()[1:] for line in lines], dtype=float).T
    return (X - low) / (high - low)


@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
def test_libsvm_predicts_the_same(table, tmp_path, scale):
    svmutil = pytest.importorskip("libsvm.svmutil")
    model = fitted(table, "--scale", scale)
    out = tmp_path / "flowers.model"
    found = call_json("export", model, "--out", out)
    assert found["format"] == "libsvm"
    assert found["labels"] == {str(k): name for k, name in enumerate(FLOWERS)}
    X, _ = flowers(40, seed=1)
    Z = X
    if scale == "none":
        assert found["range"] is None
    else:
        Z = scaled(tmp_path / "flowers.model.range", X)
    machine = svmutil.svm_load_model(str(out))
    numbers, _, _ = svmutil.svm_predict([], Z.tolist(), machine, "-q")
    predicted = mercer.load(model).predict(X)
    np.testing.assert_array_equal(np.array(FLOWERS)[np.array(numbers, int)], predicted)


def test_liblinear_and_what_is_printed(table, tmp_path):
    model = fitted(table, "--machine", "linear-svc", "--scale", "standard")
    out = tmp_path / "flowers.model"
    result = call("export", model, "--out", out)
    head = out.read_text().splitlines()
    assert head[:3] == ["solver_type L2R_L2LOSS_SVC", "nr_class 3", "label 0 1 2"]
    assert "for LIBLINEAR" in result.stdout
    assert "for svm-scale -r" in result.stdout
    assert "0 is aster, 1 is rose, 2 is tulip" in result.stdout
    assert "in the order height, width, petals." in result.stderr
    weights = mercer.load(model)[-1].coef_
    rows = np.array([line.split() for line in head[6:9]], dtype=float)
    np.testing.assert_array_equal(rows, weights.T)


def test_whole_numbers_stay_as_they_are(tmp_path):
    rows = zip(*flowers(60), strict=True)
    data = tmp_path / "f.csv"
    lines = ["a,b,c,kind", *(f"{a},{b},{c},{7 - k}" for (a, b, c), k in rows)]
    data.write_text("\n".join(lines) + "\n")
    out = tmp_path / "f.model"
    found = call_json("export", fitted(data), "--out", out, "--quiet")
    assert found["labels"] is None
    assert "label 5 6 7" in out.read_text().splitlines()


def test_a_pickle_is_refused_with_the_reason(table, tmp_path):
    model = fitted(table)
    line = refused(2, "export", model, "--to", "sklearn", "--out", tmp_path / "m.pkl")
    assert "whoever reads one runs the code" in line
    assert f"mercer.load({str(model)!r})[-1].to_sklearn()" in line
    # What the message says works.
    theirs = mercer.load(model)[-1].to_sklearn()
    X, _ = flowers(60)
    np.testing.assert_array_equal(theirs.predict(X), mercer.load(model).predict(X))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--machine", "mkl"), "MKLClassifier has no counterpart"),
        (("--machine", "online"), "OnlineSVC has no counterpart"),
        (("--kernel", "rbf + linear"), "LIBSVM does not have the kernel"),
        (("--multiclass", "ecoc"), "ecoc"),
    ],
)
def test_machines_that_they_do_not_have(table, tmp_path, options, says):
    line = refused(4, "export", fitted(table, *options), "--out", tmp_path / "m.model")
    assert says in line
    assert not (tmp_path / "m.model").exists()


def test_a_linear_machine_for_libsvm_and_the_other_way_round(table, tmp_path):
    out = tmp_path / "m.model"
    model = fitted(table, "--machine", "linear-svc")
    assert "LinearSVC" in refused(4, "export", model, "--to", "libsvm", "--out", out)
    model = fitted(table)
    line = refused(4, "export", model, "--to", "liblinear", "--out", out)
    assert "SVC is not a linear machine" in line


def test_features_of_images_are_refused(tmp_path):
    images = write_pictures(tmp_path / "images", n=8, size=(16, 16))
    model = tmp_path / "m.skops"
    call("fit", images, "--features", "hog", "--cell-size", 4, "--out", model)
    line = refused(4, "export", model, "--out", tmp_path / "m.model")
    assert "computes features (HOG), which LIBSVM cannot do" in line


def test_files_are_not_replaced(table, tmp_path):
    model = fitted(table, "--scale", "standard")
    out = tmp_path / "m.model"
    out.write_text("precious")
    assert "exists. Overwrite it" in refused(2, "export", model, "--out", out)
    out.unlink()
    (tmp_path / "m.model.range").write_text("precious")
    assert "m.model.range exists" in refused(2, "export", model, "--out", out)
    assert not out.exists()
    call("export", model, "--out", out, "--force")
    assert (tmp_path / "m.model.range").read_text().startswith("x\n0 1\n")
    assert "--out -" in refused(2, "export", model, "--out", "-")
