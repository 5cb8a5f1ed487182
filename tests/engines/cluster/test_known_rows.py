import numpy as np
import pytest
from scipy import sparse

from mercer.engines.cluster.known_rows import KnownRows
from mercer.engines.cluster.messages import Facts, Rows


def rows(ids, form=np.asarray):
    ids = np.asarray(ids)
    X = np.column_stack([ids, 2.0 * ids])
    return Rows(ids, form(X)), Facts(10.0 * ids, 1.0 * ids, ids % 3)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_samples_come_back_in_any_order(form):
    known = KnownRows()
    known.add(*rows([], form))
    for ids in ([5, 1], [9, 5, 2], [7], [1]):
        known.add(*rows(ids, form))
    assert known.ids.tolist() == [1, 2, 5, 7, 9]
    wanted = np.array([9, 1, 7, 7])
    found = known.rows(wanted).X
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_array_equal(found[:, 1], 2 * wanted)
    np.testing.assert_array_equal(known.facts(wanted).target, 10.0 * wanted)
    assert known.rows(wanted[:0]).X.shape == (0, 2)


def test_samples_are_dropped():
    known = KnownRows()
    known.add(*rows([4, 1, 3]))
    known.add(*rows([2]))
    assert known.keep_only(np.array([2, 4])).tolist() == [1, 3]
    assert len(known) == 2
    known.add(*rows([1]))
    np.testing.assert_array_equal(known.rows(np.array([1, 2, 4])).X[:, 0], [1, 2, 4])
    np.testing.assert_array_equal(known.facts(np.array([4, 1])).weight, [4, 1])
