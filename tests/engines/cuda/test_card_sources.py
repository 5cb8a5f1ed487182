"""Every compiled function does what its twin does, and NVRTC can compile it.

The functions run on the processor (see `emulated_card`), and on a card where there is
one.
"""

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emulated_card
from card_twins import TWINS
from mercer.core.problem import c_svc, certify, epsilon_svr, nu_svc
from mercer.engines.cuda.sources import (
    FUNCTIONS,
    GOES_ON,
    OF_GRADIENTS,
    OPTIONS,
    SOLVED,
    SOURCE,
    STEMS,
    grid_of,
    typed,
)
from real_card import real_card

needs_compiler = pytest.mark.skipif(
    emulated_card.MISSING is not None, reason=str(emulated_card.MISSING)
)


def test_every_function_is_named_and_has_a_twin():
    found = re.findall(
        r"^(?:extern \"C\".*? |[A-Z_]+\()(\w+_(?:float|double))\b", SOURCE, re.M
    )
    assert sorted(set(found)) == sorted(FUNCTIONS) == sorted(TWINS)


def emulated(**how):
    """Return what calls emulated functions by their name."""
    functions = emulated_card.functions(**how)
    return lambda name, grid, block, *own: functions[name](grid, block, *own)


@pytest.fixture(params=["emulated", pytest.param("card", marks=pytest.mark.gpu)])
def run(request):
    """Calls functions by their name, emulated ones or those of a card."""
    if request.param == "emulated":
        if emulated_card.MISSING:
            pytest.skip(emulated_card.MISSING)
        return emulated(threads=8, seed=1)
    card = real_card()

    def call(name, grid, block, *own):
        if name.startswith("take_pair_steps"):
            block = (64,)
        there = [card.to_card(a) if isinstance(a, np.ndarray) else a for a in own]
        card.function(name)(grid, block, tuple(there))
        for mine, other in zip(own, there, strict=True):
            if isinstance(mine, np.ndarray):
                mine[...] = card.to_host(other)

    return call


def both_ways(run, name, grid, block, arguments):
    """Return what a twin and its function make of the same arguments."""
    results = []
    for function in (lambda name, *own: TWINS[name](*own), run):
        own = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        with np.errstate(all="ignore"):
            function(name, grid, block, *own)
        results.append(own)
    return results


def packed(problems, rng, dtype, shared):
    """Return arguments of `take_pair_steps` for problems on random kernel values."""
    n = max(int(problem.row.max()) + 1 for problem in problems)
    X = rng.normal(size=(len(problems), n, 3))
    if shared:
        X[:] = X[0]
    K = np.exp(-((X[:, :, None] - X[:, None]) ** 2).sum(axis=-1)).astype(dtype)
    groups, starts, gradients = [0], [0], []
    for problem, own in zip(problems, K, strict=True):
        sizes = np.bincount(problem.group)
        starts += list(starts[-1] + np.cumsum(sizes))
        groups.append(groups[-1] + len(sizes))
        f = own.astype(float) @ np.bincount(problem.row, problem.start, n)
        gradients.append(f[problem.row] + problem.p)
    column = np.concatenate([problem.row for problem in problems])
    P, m = len(problems), len(column)
    joined = [np.concatenate([one[k] for one in problems]) for k in range(4)]
    _, lo, hi, start = joined
    diag = np.concatenate(
        [own.diagonal()[one.row] for one, own in zip(problems, K, strict=True)]
    )
    return K, [
        K, np.int64(n), np.int64(0 if shared else n * n), np.arange(P, dtype=np.int32),
        np.array(groups, np.int32), np.array(starts, np.int32), column.astype(np.int32),
        diag, lo, hi, start, np.concatenate(gradients), np.zeros(m, np.uint8),
        np.full(P, 1e-4), np.full(P, 50, np.int32), np.zeros(P, np.int64), np.zeros(P),
        np.zeros(P, np.int32),
    ]  # fmt: skip


def some_problems(rng, kinds):
    made = []
    for kind, m in kinds:
        y = rng.choice([-1.0, 1.0], size=m)
        if kind == "c":
            made.append(c_svc(y, rng.choice([0.0, 0.3, 2.0, 1e6], size=m)))
        elif kind == "nu":
            made.append(nu_svc(y, np.ones(m), 0.4))
        else:
            made.append(epsilon_svr(rng.normal(size=m), np.full(m, 2.0), 0.1))
    return made


@needs_compiler
@settings(max_examples=25, deadline=None)
@given(
    kinds=st.lists(
        st.tuples(st.sampled_from(["c", "nu", "svr"]), st.integers(1, 25)),
        min_size=1,
        max_size=3,
    ),
    dtype=st.sampled_from([np.float32, np.float64]),
    shared=st.booleans(),
    threads=st.sampled_from([4, 8, 16]),
    order=st.integers(0, 1000),
)
def test_pair_steps_are_those_of_their_twin(kinds, dtype, shared, threads, order):
    rng = np.random.default_rng(order)
    problems = some_problems(rng, kinds)
    _, arguments = packed(problems, rng, dtype, shared)
    name = typed("take_pair_steps", dtype)
    grid = (len(problems),)
    how = emulated(threads=threads, seed=order)
    twin, found = both_ways(how, name, grid, (4,), arguments)
    for position, (mine, theirs) in enumerate(zip(found, twin, strict=True)):
        if isinstance(mine, np.ndarray) and position != 12:  # scratch memory
            np.testing.assert_array_equal(mine, theirs)


@needs_compiler
@pytest.mark.parametrize(
    "lanes, threads", [(32, 64), pytest.param(32, 1024, marks=pytest.mark.slow)]
)
def test_blocks_of_a_card_take_the_same_steps(lanes, threads):
    rng = np.random.default_rng(0)
    problems = some_problems(rng, [("c", 90), ("nu", 60)])
    _, arguments = packed(problems, rng, np.float32, False)
    arguments[14][:] = 12
    how = emulated(lanes=lanes, threads=threads, most_near=64)
    twin, found = both_ways(how, "take_pair_steps_float", (2,), (4,), arguments)
    for k in (10, 11, 15, 16, 17):
        np.testing.assert_array_equal(found[k], twin[k])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_steps_are_taken_everywhere(run, dtype):
    rng = np.random.default_rng(7)
    kinds = [("c", 200), ("nu", 90), ("svr", 60)]
    _, arguments = packed(some_problems(rng, kinds), rng, dtype, False)
    name = typed("take_pair_steps", dtype)
    twin, found = both_ways(run, name, (3,), (4,), arguments)
    for k in (10, 11, 15, 16, 17):
        np.testing.assert_array_equal(found[k], twin[k])


@needs_compiler
def test_steps_go_on_from_one_launch_to_the_next_and_solve_the_problem():
    rng = np.random.default_rng(3)
    problems = some_problems(rng, [("c", 40), ("nu", 30), ("svr", 20)])
    K, arguments = packed(problems, rng, np.float64, False)
    function = emulated_card.functions(threads=8)["take_pair_steps_double"]
    at_once = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    at_once[14][:] = 100_000
    function((3,), (8,), *at_once)
    assert (at_once[17] == SOLVED).all()
    arguments[14][:] = 7
    for _ in range(1000):
        active = np.flatnonzero(arguments[17] == GOES_ON).astype(np.int32)
        if not len(active):
            break
        arguments[3] = active
        function((len(active),), (8,), *arguments)
    for k in (10, 11, 15, 16, 17):
        np.testing.assert_array_equal(arguments[k], at_once[k])
    starts = np.append(0, np.cumsum([len(problem.p) for problem in problems]))
    for b, problem in enumerate(problems):
        beta = at_once[10][starts[b] : starts[b + 1]]
        n = problem.row.max() + 1
        f = K[b][:n, :n] @ np.bincount(problem.row, beta, n)
        assert certify(problem, beta, f).kkt_gap <= 1e-4 * (1 + 1e-6)


@needs_compiler
def test_a_missing_barrier_and_a_wrong_type_are_found_out(monkeypatch):
    rng = np.random.default_rng(0)
    _, arguments = packed(some_problems(rng, [("c", 30)]), rng, np.float64, True)
    function = emulated_card.functions()["take_pair_steps_double"]
    arguments[1] = np.int32(arguments[1])
    with pytest.raises(AssertionError, match="the parameters are f8\\* i8 "):
        function((1,), (4,), *arguments)
    broken = SOURCE.replace(
        "    __syncthreads();\n    for (int k = 0; k < COUNT",
        "    for (int k = 0; k < COUNT",
    )
    assert broken != SOURCE
    monkeypatch.setattr(emulated_card, "SOURCE", broken)
    monkeypatch.setattr(emulated_card, "library", emulated_card.library.__wrapped__)
    arguments[1] = np.int64(arguments[1])
    function = emulated_card.functions(threads=16, seed=1)["take_pair_steps_double"]
    with pytest.raises(AssertionError, match="wait at different barriers"):
        function((1,), (16,), *arguments)


def standing(rng, sizes):
    """Return a problem in the midst of its solution, as `code/members.cu` wants it."""
    m = sum(sizes)
    lo, hi = -rng.choice([0.0, 1.0], size=m), rng.choice([0.0, 1.0], size=m)
    beta = np.where(rng.random(m) < 0.5, lo, hi)
    f, p = rng.integers(-3, 4, size=(2, m)).astype(float)  # many are equal
    p[rng.random(m) < 0.1] = np.nan
    p[rng.random(m) < 0.1] = -np.inf
    row = rng.permutation(m).astype(np.int32)
    starts = np.append(0, np.cumsum(sizes)).astype(np.int32)
    return [f, row, p, beta, lo, hi], starts


@pytest.mark.parametrize("sizes", [(1,), (40,), (700,), (30, 1, 900), (5, 5)])
def test_extremes_and_ranks_of_violators(run, sizes):
    rng = np.random.default_rng(sum(sizes))
    state, starts = standing(rng, sizes)
    G = state[0][state[1]] + state[2]
    _, _, _, beta, lo, hi = state
    n = len(sizes)
    grid, block = (2, n), (32,)
    found = np.zeros((n, 2, 2, 2))
    own = [*state, starts, found]
    twin, here = both_ways(run, "find_extremes_double", grid, block, own)
    np.testing.assert_array_equal(here[-1], twin[-1])
    for g in range(n):
        inside = slice(starts[g], starts[g + 1])
        up = np.where((beta < hi) & ~np.isnan(G), G, np.inf)[inside]
        down = np.where((beta > lo) & ~np.isnan(G), G, -np.inf)[inside]
        assert here[-1][g, :, 0, 0].min() == up.min()
        assert here[-1][g, :, 1, 0].max() == down.max()
    m = len(beta)
    member_in = rng.choice([3, 4], size=m).astype(np.int32)
    extremes = np.stack([here[-1][:, :, 0, 0].min(1), here[-1][:, :, 1, 0].max(1)], 1)
    own = [
        *state, starts, extremes, member_in, np.int32(4), np.zeros(2 * m), np.int32(m)
    ]  # fmt: skip
    twin, here = both_ways(run, "rank_violators_double", grid, block, own)
    np.testing.assert_array_equal(here[-2], twin[-2])
    assert np.isinf(here[-2][:m][member_in == 4]).all()


@pytest.mark.parametrize("kind", ["spread", "equal", "few", "none", "infinite"])
@pytest.mark.parametrize("m, count, most", [(1, 1, 2), (50, 4, 8), (900, 30, 60)])
def test_the_strongest_violators_are_selected(run, kind, m, count, most):
    rng = np.random.default_rng(m)
    violation = np.exp(rng.normal(scale=4.0, size=(2, m)))
    if kind == "equal":
        violation[:] = rng.choice([0.5, 2.0], size=(2, m))
    elif kind == "few":
        violation[rng.random((2, m)) < 0.99] *= -1
    elif kind == "none":
        violation[:] = -np.inf
    elif kind == "infinite":
        violation[:, ::3] = np.inf
    tolerance, largest = 1e-3, max(float(violation.max()), 0.0)
    ranked, found = -violation, np.full((2, 1 + 2 * most), np.nan)
    arguments = [
        ranked.ravel(), np.int32(m), np.float64(tolerance), np.float64(largest),
        np.int32(count), np.int32(most), found,
    ]  # fmt: skip
    grid, _ = grid_of("select_strongest", m)
    twin, here = both_ways(run, "select_strongest_double", grid, (32,), arguments)
    for mine, wanted, own in zip(here[-1], twin[-1], violation, strict=True):
        n, n_wanted = int(mine[0]), int(wanted[0])
        assert n_wanted <= n <= most
        pairs = mine[1 : 1 + 2 * n].reshape(-1, 2)
        at = pairs[:, 0].astype(int)
        assert len(set(at)) == n
        np.testing.assert_array_equal(pairs[:, 1], own[at])
        order = np.lexsort((at, -pairs[:, 1]))[:n_wanted]
        expected = wanted[1 : 1 + 2 * n_wanted].reshape(-1, 2)
        np.testing.assert_array_equal(pairs[order], expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_members_are_copied_and_get_their_coefficients(run, dtype):
    rng = np.random.default_rng(0)
    state, _ = standing(rng, (600,))
    members = rng.permutation(600)[:300].astype(np.int32)
    diagonal, member_in = rng.random(600).astype(dtype), np.full(600, -1, np.int32)
    copies = [np.zeros(300) for _ in range(4)]
    arguments = [
        members, np.int32(300), *state, diagonal, member_in, np.int32(5), *copies,
        np.zeros(300, dtype),
    ]  # fmt: skip
    name = typed("load_members", dtype)
    twin, found = both_ways(run, name, (2,), (256,), arguments)
    for mine, theirs in zip(found, twin, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert (np.flatnonzero(found[9] == 5) == np.sort(members)).all()
    np.testing.assert_array_equal(found[13], state[3][members])
    arguments = [members, np.int32(300), rng.normal(size=300), state[3]]
    twin, found = both_ways(run, "store_members_double", (2,), (256,), arguments)
    np.testing.assert_array_equal(found[3], twin[3])
    np.testing.assert_array_equal(found[3][members], arguments[2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count, length", [(0, 5), (1, 1), (9, 33), (40, 70)])
def test_rows_are_added_as_the_twin_adds_them(run, dtype, count, length):
    rng = np.random.default_rng(count)
    pool = rng.normal(size=(50, 80)).astype(dtype)
    slot = rng.permutation(50)[:count].astype(np.int32)
    column = rng.permutation(80)[:length].astype(np.int32)
    weight, f = rng.normal(size=count), rng.normal(size=length)
    arguments = [
        pool, np.int64(80), slot, weight, np.int32(count), column, f, np.int32(length)
    ]  # fmt: skip
    grid, block = grid_of("add_rows", length)
    twin, found = both_ways(run, typed("add_rows", dtype), grid, block, arguments)
    np.testing.assert_array_equal(found[6], twin[6])
    exact = f + weight @ pool[np.ix_(slot, column)].astype(float)
    np.testing.assert_allclose(found[6], exact, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_of_a_matrix_are_copied(run, dtype):
    rng = np.random.default_rng(0)
    source, out = rng.normal(size=(30, 40)).astype(dtype), np.zeros((12, 290), dtype)
    rows = rng.permutation(30)[:11].astype(np.int32)
    columns = rng.integers(0, 40, 280).astype(np.int32)
    grid, block = grid_of("gather", 11, 280)
    assert grid == (2, 11)
    arguments = [
        source, np.int64(40), rows, columns, out, np.int64(290), np.int32(11),
        np.int32(280),
    ]  # fmt: skip
    name = typed("gather", dtype)
    twin, found = both_ways(run, name, (grid[0], 2), block, arguments)
    np.testing.assert_array_equal(found[4], twin[4])
    expected = np.zeros_like(out)
    expected[:11, :280] = source[np.ix_(rows, columns)]
    np.testing.assert_array_equal(found[4], expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_stored_with_their_diagonal(run, dtype):
    rng = np.random.default_rng(0)
    block, pool = rng.normal(size=(9, 290)).astype(dtype), np.zeros((20, 290), dtype)
    slot = rng.permutation(20)[:9].astype(np.int32)
    own = rng.permutation(290)[:9].astype(np.int32)
    diagonal = rng.random(290).astype(dtype)
    arguments = [
        block, slot, own, diagonal, pool, np.int64(290), np.int32(9), np.int32(290)
    ]  # fmt: skip
    grid, threads = grid_of("store_rows", 9, 290)
    name = typed("store_rows", dtype)
    twin, found = both_ways(run, name, (grid[0], 2), threads, arguments)
    np.testing.assert_array_equal(found[4], twin[4])
    np.testing.assert_array_equal(found[4][slot, own], diagonal[own])
    assert (found[4] != 0).sum() == 9 * 290


TERMS = {
    "manhattan": lambda x, z: np.abs(x - z),
    "minima": np.minimum,
    "squared_differences": lambda x, z: (x - z) ** 2,
    "chi2": lambda x, z: (x - z) ** 2 / np.where(x + z > 0, x + z, 1),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stem", TERMS)
@pytest.mark.parametrize("m, n, d", [(1, 1, 1), (17, 35, 21), (40, 16, 33)])
def test_sums_over_columns(run, stem, dtype, m, n, d):
    rng = np.random.default_rng(d)
    X, Z = (rng.poisson(1.0, size=(k, d)).astype(dtype) for k in (m, n))
    out = np.full((m, n), np.nan, dtype=dtype)
    arguments = [X, Z, out, np.int32(m), np.int32(n), np.int32(d)]
    grid, block = grid_of(stem, m, n)
    name = typed(stem, dtype)
    twin, found = both_ways(run, name, (grid[0], 1), block, arguments)
    np.testing.assert_array_equal(found[2], twin[2])
    exact = TERMS[stem](X[:, None].astype(float), Z[None].astype(float)).sum(axis=-1)
    np.testing.assert_allclose(found[2], exact, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaussian_values_from_products(run, dtype):
    rng = np.random.default_rng(0)
    X, Z = (rng.normal(size=(k, 4)).astype(dtype) for k in (7, 300))
    X[0] = Z[0]
    norms = [(A * A).sum(axis=1) for A in (X, Z)]
    arguments = [X @ Z.T, *norms, np.float64(0.3), np.int32(7), np.int32(300)]
    _, block = grid_of("gaussian_in_place", 7, 300)
    name = typed("gaussian_in_place", dtype)
    twin, found = both_ways(run, name, (2, 3), block, arguments)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(found[0], twin[0], rtol=4 * eps)
    exact = np.exp(-0.3 * ((X[:, None].astype(float) - Z) ** 2).sum(axis=-1))
    np.testing.assert_allclose(found[0], exact, rtol=100 * eps, atol=10 * eps)
    assert found[0].max() <= 1.0


def nvrtc():
    """Return the library that compiles CUDA C++, of whatever package there is."""
    try:
        import nvidia

        folders = list(nvidia.__path__)
    except ImportError:
        folders = []
    for folder in folders:
        for found in sorted(Path(folder).rglob("libnvrtc.so.*")):
            return ctypes.CDLL(str(found))
    return None


@pytest.mark.parametrize("architecture", ["sm_75", "sm_120"])
def test_nvrtc_compiles_the_text(architecture):
    library = nvrtc()
    if library is None:
        pytest.skip("the package nvidia-cuda-nvrtc is not installed")
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(
        ctypes.byref(program), SOURCE.encode(), b"mercer.cu", 0, None, None
    )
    options = [f"--gpu-architecture={architecture}", *OPTIONS]
    given_options = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    status = library.nvrtcCompileProgram(program, len(options), given_options)
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, text)
    assert status == 0, text.value.decode()
    assert "warning" not in text.value.decode()
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    library.nvrtcGetCUBIN(program, cubin)
    for name in FUNCTIONS:
        assert name.encode() in cubin.raw
    library.nvrtcDestroyProgram(ctypes.byref(program))


def test_stems_and_types():
    assert typed("chi2", np.float32) == "chi2_float"
    assert len(FUNCTIONS) == 2 * len(STEMS) + len(OF_GRADIENTS)
