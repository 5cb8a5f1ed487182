"""Embeddings, and ROC curves."""

import numpy as np
import pytest
from sklearn.decomposition import PCA, KernelPCA
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC
from mercer.datasets import make_clouds, make_sheet
from mercer.plots import EmbeddingDisplay, RocCurvesDisplay


@pytest.fixture(scope="module")
def clouds():
    return make_clouds(90, n_classes=3, n_features=4, separation=2.0, random_state=0)


def test_components_and_shares(clouds, ax):
    X, y = clouds
    pca = make_pipeline(StandardScaler(), PCA(3)).fit(X)
    display = EmbeddingDisplay.from_estimator(pca, X, y, components=(2, 0), ax=ax)
    made = pca.transform(X)
    for k, points in enumerate(display.points_):
        np.testing.assert_allclose(points.get_offsets(), made[y == k][:, [2, 0]])
    share = 100 * pca[-1].explained_variance_ratio_[2]
    assert ax.get_xlabel() == f"component 3 ({share:.1f} % of the variance)"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["0", "1", "2"]
    assert len({str(p.get_paths()[0].vertices) for p in display.points_}) == 3


def test_no_classes_and_numbers(clouds):
    X, _ = clouds
    made = KernelPCA(2, kernel="rbf").fit_transform(X)
    display = EmbeddingDisplay.from_embedding(made, title="kernel PCA")
    (points,) = display.points_
    np.testing.assert_allclose(points.get_offsets(), made)
    assert display.ax_.get_xlabel() == "component 1"
    assert display.ax_.get_title() == "kernel PCA"
    display = EmbeddingDisplay.from_embedding(made, X[:, 0])
    np.testing.assert_allclose(display.points_[0].get_array(), X[:, 0])
    assert display.colorbar_ is not None
    assert display.ax_.get_aspect() == "auto"
    equal = EmbeddingDisplay.from_embedding(made, equal=True)
    assert equal.ax_.get_aspect() == 1.0
    sheet = make_sheet(20, random_state=0)[0]
    assert len(EmbeddingDisplay.from_embedding(sheet).points_[0].get_offsets()) == 20


def test_embedding_errors():
    with pytest.raises(ValueError, match=r"components=\(0, 1\) .*shape \(5, 1\)"):
        EmbeddingDisplay.from_embedding(np.zeros((5, 1)))
    with pytest.raises(ValueError, match="5 samples and y has 4"):
        EmbeddingDisplay.from_embedding(np.zeros((5, 2)), [1, 2, 1, 2])


def test_a_curve_for_each_class(clouds, ax):
    X, y = clouds
    names = np.array(["u", "v", "w"])[y]
    model = SVC(multiclass="ovr").fit(X[:45], names[:45])
    display = RocCurvesDisplay.from_estimator(model, X, names, ax=ax, title="ROC")
    decision = model.decision_function(X)
    assert list(display.displays_) == ["class u", "class v", "class w"]
    for k, (curve, line) in enumerate(
        zip(display.displays_.values(), display.lines_, strict=True)
    ):
        assert curve.roc_auc == pytest.approx(roc_auc_score(y == k, decision[:, k]))
        np.testing.assert_array_equal(line.get_ydata(), curve.tpr)
        assert line.axes is ax
    assert len({str(line.get_linestyle()) for line in display.lines_}) == 3
    assert ax.get_xlabel() == "false positive rate"
    assert ax.get_title() == "ROC"
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert texts[-1] == "chance (AUC = 0.50)" and len(texts) == 4


def test_a_curve_for_each_model(clouds):
    X, y = clouds
    X, y = X[y < 2], np.array(["no", "yes"])[y[y < 2]]
    models = {k: SVC(kernel=k).fit(X[:30], y[:30]) for k in ("linear", "rbf")}
    for positive in ("yes", "no"):
        display = RocCurvesDisplay.from_estimators(models, X, y, pos_label=positive)
        for name, model in models.items():
            area = roc_auc_score(y == "yes", model.decision_function(X))
            assert display.displays_[name].roc_auc == pytest.approx(area)
    one = RocCurvesDisplay.from_estimator(models["rbf"], X, y, legend=False)
    assert list(one.displays_) == ["class yes"]
    assert one.ax_.get_legend() is None


def test_logarithmic_axis():
    y = np.repeat([0, 1], 50)
    scores = np.random.default_rng(0).normal(size=100) + 2 * y
    display = RocCurvesDisplay.from_scores(y, {"a": scores}, log=True)
    assert display.ax_.get_xscale() == "log"
    rates = display.displays_["a"].fpr
    assert display.ax_.get_xlim() == (0.5 * rates[rates > 0].min(), 1.0)


def test_rates_that_are_known_are_drawn_as_they_are(ax):
    rates = ([0.0, 0.25, 1.0], [0.5, 0.75, 1.0])
    display = RocCurvesDisplay.from_rates({"a": rates}, ax=ax)
    np.testing.assert_array_equal(display.lines_[0].get_xydata().T, rates)
    assert display.displays_["a"].roc_auc == pytest.approx(0.8125)


def test_roc_errors(clouds):
    X, y = clouds
    model = SVC(decision_function_shape="ovo").fit(X, y + (y == 2) * (X[:, 0] > 0))
    with pytest.raises(ValueError, match="decision_function_shape='ovo'"):
        RocCurvesDisplay.from_estimator(model, X, y)
    with pytest.raises(ValueError, match="many has more than two classes"):
        RocCurvesDisplay.from_estimators({"many": model}, X, y)
    with pytest.raises(ValueError, match="two classes, got 3"):
        RocCurvesDisplay.from_scores(y, {"a": X[:, 0]})
    with pytest.raises(ValueError, match="pos_label=7 is not a class of y_true: 0, 1"):
        RocCurvesDisplay.from_scores([0, 1], {"a": [0, 1]}, pos_label=7)
    with pytest.raises(ValueError, match="no curves"):
        RocCurvesDisplay.from_scores([0, 1], {})
