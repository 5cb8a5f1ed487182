"""The plane: each machine's picture is that of the machine itself."""

import numpy as np
import pytest
from playground_client import as_fields

from mercer import SVC, KernelKMeans, KernelPCA, OneClassSVM
from mercer.datasets import make_clouds, make_moons
from mercer.playground.messages import Refusal
from mercer.playground.plane import PlaneRequest, draw_plane, grid
from mercer.playground.settings import MACHINES
from mercer.runtime.progress import StopButton


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(60, noise=0.2, random_state=0)
    return as_fields(X - [0.6, 0.2], y)


@pytest.fixture(scope="module")
def clouds():
    return as_fields(*make_clouds(60, n_classes=4, separation=2.0, random_state=0))


def drawn(fields, **settings):
    request = PlaneRequest.of({"resolution": 24, **fields, **settings})
    return draw_plane(request, StopButton())


def arrays_of(fields):
    return np.column_stack([fields["x"], fields["y"]]), np.array(fields["label"])


@pytest.mark.parametrize("machine", MACHINES)
def test_every_machine_gives_a_picture(machine, moons):
    values, arrays = drawn(moons, machine=machine, nu=0.2)
    assert values["machine"] == machine and values["converged"]
    assert values["n_points"] == 60
    for array in arrays.values():
        assert np.isfinite(array).all()
    if "kkt_gap" in values:
        assert values["kkt_gap"] <= 1e-3
        assert values["n_support"] == (arrays["alpha"] > 0).sum()
    assert arrays["matrix"].shape == (60, 60)
    assert arrays["matrix"].diagonal().min() == 255


def test_two_classes_show_decision_values(moons):
    values, arrays = drawn(moons, C=5.0, gamma=2.0)
    model = SVC(C=5.0, gamma=2.0).fit(*arrays_of(moons))
    expected = model.decision_function(grid(24)).reshape(24, 24)
    np.testing.assert_allclose(arrays["field"], expected, rtol=1e-4, atol=1e-4)
    assert values["n_support"] == len(model.support_)
    assert values["objective"] == pytest.approx(model.objective_.sum())
    # The first row of the grid is at the top.
    assert grid(24)[0].tolist() == [-3.0, 3.0]


def test_probabilities_of_two_classes(moons):
    values, arrays = drawn(moons, probability=True)
    assert values["levels"] == [0.5] and values["shows"] == "probability"
    assert 0 <= arrays["field"].min() < 0.1 and 0.9 < arrays["field"].max() <= 1


@pytest.mark.parametrize("probability", [False, True])
@pytest.mark.parametrize("scheme", ["ovo", "ovr", "ecoc"])
def test_several_classes_show_the_winner(scheme, probability, clouds):
    values, arrays = drawn(clouds, multiclass=scheme, probability=probability)
    model = SVC(
        gamma=1.0, multiclass=scheme, probability=probability, random_state=0
    ).fit(*arrays_of(clouds))
    found = arrays["label"].ravel()
    assert values["kind"] == "many"
    assert (found == model.predict(grid(24))).mean() > 0.99
    assert arrays["field"].min() >= 0


def test_a_boundary_of_votes_can_be_drawn_between_nodes(clouds):
    # Where the winner changes from one node to the next, both lead by little.
    _, arrays = drawn(clouds, multiclass="ovo", resolution=120)
    label, lead = arrays["label"], arrays["field"]
    changes = label[:, 1:] != label[:, :-1]
    beside = np.minimum(lead[:, 1:], lead[:, :-1])[changes]
    assert np.median(beside) < 0.1 * np.median(lead)


def test_novelty_clusters_and_components(moons):
    X, _ = arrays_of(moons)
    values, arrays = drawn(moons, machine="OneClassSVM", nu=0.3)
    model = OneClassSVM(nu=0.3, gamma=1.0).fit(X)
    expected = model.decision_function(grid(24)).reshape(24, 24)
    np.testing.assert_allclose(arrays["field"], expected, rtol=1e-4, atol=1e-4)
    values, arrays = drawn(moons, machine="KernelKMeans", n_clusters=3)
    clusters = KernelKMeans(3, gamma=1.0, random_state=0).fit(X)
    np.testing.assert_array_equal(arrays["cluster"], clusters.labels_)
    assert values["sizes"] == np.bincount(clusters.labels_).tolist()
    values, arrays = drawn(moons, machine="KernelPCA", component=1)
    components = KernelPCA(6, kernel="rbf", gamma=1.0).fit(X)
    expected = components.transform(grid(24))[:, 1].reshape(24, 24)
    np.testing.assert_allclose(arrays["field"], expected, rtol=1e-4, atol=1e-4)
    assert len(arrays["thumbnails"]) == 6
    assert values["eigenvalues"] == pytest.approx(components.eigenvalues_.tolist())


def test_support_vectors_have_the_size_of_their_coefficients(moons):
    _, arrays = drawn(moons, C=0.5)
    model = SVC(C=0.5, gamma=1.0).fit(*arrays_of(moons))
    expected = np.zeros(60)
    expected[model.support_] = np.abs(model.dual_coef_[0]) / 0.5
    np.testing.assert_allclose(arrays["alpha"], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "field", "message"),
    [
        ({"kernel": "rbf(gamma=2"}, "kernel", "never closed"),
        ({"kernel": "linaer + rbf"}, "kernel", "Did you mean 'linear'"),
        ({"kernel": ""}, "kernel", "Expected a kernel"),
        ({"kernel": "precomputed"}, "kernel", "Unknown kernel"),
        ({"kernel": "(" * 290}, "kernel", "nested too deeply"),
        ({"kernel": "rbf@z"}, "kernel", "Known: x, y"),
        ({"kernel": "chi2"}, "kernel", "must be >= 0"),
        ({"kernel": "poly(degree=999, gamma=9999)"}, "kernel", "finite"),
        ({"kernel": "x" * 301}, "kernel", "at most 300"),
        ({"machine": "NuSVC", "nu": 1.0, "label": [0] * 50 + [1] * 10}, "nu", "infeas"),
        ({"label": [0] * 60}, "points", "two classes"),
        ({"machine": "eval"}, "machine", "must be one of"),
        ({"C": 0}, "C", "between"),
        ({"gamma": "2"}, "gamma", "must be a number"),
        ({"resolution": 10_000}, "resolution", "between"),
    ],
)
def test_what_cannot_be_drawn_is_refused(settings, field, message, moons):
    with pytest.raises(Refusal, match=message) as caught:
        drawn({**moons, **settings})
    assert caught.value.field == field


def test_columns_have_names_in_kernels(moons):
    _, named = drawn(moons, kernel="rbf(gamma=2)@x + linear@y")
    _, numbered = drawn(moons, kernel="rbf(gamma=2)@[0] + linear@[1]")
    np.testing.assert_array_equal(named["field"], numbered["field"])


def test_a_large_matrix_is_shown_in_part():
    X, y = make_moons(900, random_state=0)
    values, arrays = drawn(as_fields(X, y))
    assert arrays["matrix"].shape == (160, 160)
    assert values["matrix_counts"] == [80, 80]
