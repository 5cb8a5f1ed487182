"""The branches for full MNIST and CIFAR-10, on a slice of the data."""

import numpy as np
import pytest

from studies import STUDIES, reproduce
from studies.data import Data, Images
from studies.report import running
from studies.report.page import section_of
from studies.results import Row

pytestmark = pytest.mark.slow
# Every thirtieth image: 2,000 for training and 334 for testing.
STRIDE = 30


class Slice(Data):
    """A slice of full MNIST that passes for all of it, and of CIFAR-10."""

    def __init__(self, sample=False, seed=0):
        super().__init__(sample=False, seed=seed)
        whole = Data(seed=seed)
        if not whole.is_full:
            pytest.skip("needs MNIST")
        self.__dict__["is_full"] = True
        self.__dict__["mnist"] = Images(*(array[::STRIDE] for array in whole.mnist))
        photos = whole.cifar10
        rows = [np.arange(0, len(y), 8) for y in (photos.y, photos.y_test)]
        self.__dict__["cifar10"] = Images(
            photos.X[rows[0]], photos.y[rows[0]], photos.X_test[rows[1]],
            photos.y_test[rows[1]],
        )  # fmt: skip


@pytest.fixture(scope="module")
def full_run(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "Data", Slice)
        folder = tmp_path_factory.mktemp("report")
        return reproduce(out=folder, progress=False)


def test_nothing_fails(full_run):
    assert full_run.failed == []
    told = {o.message for r in full_run.studies for o in r.outcomes if o.message}
    assert all("training images, not" in message for message in told)


@pytest.mark.parametrize("name", STUDIES)
def test_rows_and_figures_are_there(full_run, name):
    (report,) = [r for r in full_run.studies if r.study.name == name]
    items = [item for outcome in report.outcomes for item in outcome.items]
    tables = {item.table for item in items if isinstance(item, Row)}
    assert {table.name for table in report.study.tables} == tables
    # The steps that need more images than there are say so: "linear, n = 2,000".
    missing = [o.step for o in report.outcomes if o.status == "unavailable"]
    sizes = {step.partition(", ")[2] for step in missing} - {""}
    published = {
        (table, row)
        for table, rows in report.study.published.items()
        for row in rows
        if not any(row.endswith(size) for size in sizes)
        if "10,000" not in row and "5,000" not in row and row != "60,000"
    }
    found = {(i.table, i.published_as) for i in items if isinstance(i, Row)}
    assert published <= found


def test_labels_say_how_many_images_there_were(full_run):
    (report,) = [r for r in full_run.studies if r.study.name == "mnist-kernels"]
    labels = [
        item.label
        for outcome in report.outcomes
        for item in outcome.items
        if isinstance(item, Row) and item.table == "best"
    ]
    assert any("2,000 images" in label for label in labels)
    assert not any("60,000" in label or "5,000 images" in label for label in labels)


@pytest.mark.parametrize("name", STUDIES)
def test_items_that_need_photographs_are_there(full_run, name):
    (report,) = [r for r in full_run.studies if r.study.name == name]
    lost = [
        told.entry.text
        for told in section_of(report).items
        if told.status == "absent" and told.entry.needs == "CIFAR-10"
    ]
    assert lost == []
