from mercer.engines.cluster.actors import assign


def test_chunks_stay_where_they_are():
    owners = {0: ("a",), 1: ("b",), 2: ("a",), 3: ("b",)}
    found = assign(dict.fromkeys(range(4), 10), owners, ["a", "b"], {})
    assert found == {0: "a", 1: "b", 2: "a", 3: "b"}


def test_chunks_of_one_worker_are_dealt_out():
    owners = dict.fromkeys(range(6), ("a",))
    found = assign(dict.fromkeys(range(6), 10), owners, ["a", "b", "c"], {})
    assert sorted(found.values()) == ["a", "a", "b", "b", "c", "c"]


def test_a_worker_without_work_gets_some():
    found = assign({7: 10}, {7: ("a",)}, ["a", "b"], {"a": 30})
    assert found == {7: "b"}


def test_owners_that_are_gone_do_not_matter():
    found = assign({0: 5}, {0: ("lost",)}, ["a", "b"], {"a": 5})
    assert found == {0: "b"}
