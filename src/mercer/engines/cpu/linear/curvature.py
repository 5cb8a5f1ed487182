"""Newton directions: exact, from products of features or of samples, or by steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve as solve_general

from mercer.engines.cpu.linear.definite import solve_in_place
from mercer.engines.cpu.linear.features import GRAM_ROWS, Features
from mercer.engines.cpu.linear.pool import Pool
from mercer.engines.cpu.linear.problems import LinearProblems

__all__ = ["Curvature", "Products", "conjugate_gradients"]

# Largest matrix that is factorised.
MOST_DIRECT = 3000
# Columns of a matrix of products that one thread computes.
PANEL = 128
# Up to this many columns, threads share rows instead.
NARROW = 256
# Penalty of an unpenalised shift in the matrix of Newton's method, relative to what
# one free variable adds to it.  It makes the matrix definite where no variable of a
# group is free, and is negligible elsewhere.
LEAST_PENALTY = 1e-7
# Matrices of features are computed and factorised in single precision if rounding
# errors then change a direction by this fraction at most: directions need not be exact.
LARGEST_ERROR = 0.1
# With so many problems, each is a job of its own; threads share the columns of fewer.
MANY_PROBLEMS = 4


class Products:
    """Products of features of some problems, summed over their free variables.

    They do not depend on C: with squared losses, variables are weighted by their C
    relative to the largest one.  So they serve problems again that differ in C only.
    """

    def __init__(self) -> None:
        self.sums: dict[int, NDArray] = {}  #: by problem, upper triangles
        self.inside: dict[int, NDArray] = {}  #: the variables that are in a sum
        self.weights: dict[int, NDArray] = {}  #: factors of the variables
        self.dtypes: dict[int, Any] = {}  #: the precision of the products in a sum

    def weigh(self, c: int, weights: NDArray) -> None:
        """Set the factors of a problem; what was summed with others is forgotten."""
        if c in self.weights and not np.allclose(self.weights[c], weights, 1e-12, 0.0):
            self.forget(c)
        self.weights[c] = weights

    def forget(self, c: int) -> None:
        """Forget the sum of a problem."""
        self.sums.pop(c, None)
        self.inside.pop(c, None)


class Curvature:
    """Solves ``(penalty + Z' S Z) x = -gradient``.

    Z are the free samples with their shifts, S their weights: sigma, or 2C for squared
    losses.  Products of features are kept from round to round: few variables become
    free, or cease to be.
    """

    def __init__(
        self,
        features: Features,
        problems: LinearProblems,
        products: Products | None = None,
    ):
        self.features = features
        self.problems = problems
        self.size = features.d + problems.n_shifts
        self._pools: dict[int, Pool] = {}
        products = products or Products()
        self._kept = products
        self._products, self._inside = products.sums, products.inside
        self._relative = products.weights
        self._norms = features.squared_norms() + problems.n_shifts * problems.value**2
        # The largest factor of each problem, by which the sums are to be multiplied.
        self._largest = np.ones(len(problems.p))
        for c, ridge in enumerate(problems.ridge):
            weights = np.ones(len(ridge))
            if problems.has_ridge:
                moves = problems.lo[c] < problems.hi[c]
                least = float(ridge[moves].min(initial=np.inf))
                least = least if least < np.inf else 1.0
                weights = np.sqrt(least / ridge)
                self._largest[c] = 1.0 / least
            products.weigh(c, weights)

    def is_direct(self, task: Any) -> bool:
        """Tell whether one of the two matrices is small enough to be factorised."""
        return self.size <= MOST_DIRECT or self._n_free(task) <= MOST_DIRECT

    @staticmethod
    def _n_free(task: Any) -> int:
        return int(np.count_nonzero(task.free))

    def solve(self, steps: list[tuple[Any, NDArray]]) -> NDArray:
        """Return the directions of some problems."""
        by_features = [i for i, (task, _) in enumerate(steps) if self._is_wide(task)]
        self._update([steps[i][0] for i in by_features])
        chosen = set(by_features)
        result = np.empty((len(steps), self.size))

        def direction(i: int) -> None:
            task, gradient = steps[i]
            way = self._through_features if i in chosen else self._through_samples
            result[i] = way(task, gradient)

        most = min(self.size, max(self._n_free(task) for task, _ in steps))
        work = len(steps) * most**3 / 3
        self.features.run(direction, list(range(len(steps))), work)
        return result

    def _is_wide(self, task: Any) -> bool:
        """Tell whether products of features take less time than those of samples."""
        if self.size > MOST_DIRECT:
            return False
        free = self._n_free(task)
        new = free
        if task.number in self._inside:
            changed = self._inside[task.number] != task.free
            new = min(free, int(np.count_nonzero(changed)))
        missing = free
        if task.number in self._pools:
            rows = self.problems.row[task.free]
            missing = self._pools[task.number].n_missing(rows)
        d = self.size
        return new * d * d + d**3 / 3 < 2 * missing * free * d + free**3 / 3

    def _update(self, tasks: list[Any]) -> None:
        """Bring the products of features of all tasks up to date, in shared threads."""
        changes: list[tuple] = []
        for task in tasks:
            c = task.number
            dtype = self._precision(task)
            if self._kept.dtypes.get(c, dtype) != dtype:
                self._kept.forget(c)
            self._kept.dtypes[c] = dtype
            inside = self._inside.get(c)
            added, removed = task.free, None
            if inside is not None:
                added, removed = task.free & ~inside, inside & ~task.free
                count = np.count_nonzero
                if count(added) + count(removed) > count(task.free):
                    inside = None
            if inside is None:
                self._products[c] = np.zeros((self.size, self.size))
                added, removed = task.free, None
                same = self._same_as_before(task, tasks)
                if same is not None:
                    changes.append((c, None, same, 0.0))
                    self._inside[c] = task.free.copy()
                    continue
            self._inside[c] = task.free.copy()
            changes.append((c, np.flatnonzero(added), None, 1.0))
            if removed is not None and removed.any():
                changes.append((c, np.flatnonzero(removed), None, -1.0))
        for c, variables, _, sign in changes:
            if variables is not None and self.size <= NARROW:
                self._add_narrow(c, variables, sign)
        if self.size > NARROW:
            self._add_panels([change for change in changes if change[1] is not None])
        for c, _, same, _ in changes:
            if same is not None:
                self._products[c] = self._products[same].copy()

    def _same_as_before(self, task: Any, tasks: list[Any]) -> int | None:
        """Return an earlier problem with the same matrix, as at the beginning."""
        for other in tasks:
            if other is task:
                return None
            if np.array_equal(other.free, task.free) and np.array_equal(
                self._relative[other.number], self._relative[task.number]
            ):
                return other.number
        return None

    def _factor(self, task: Any) -> float:
        """Return what the products of features are multiplied with."""
        if self.problems.has_ridge:
            return float(self._largest[task.number])
        return float(1.0 / task.inverse)

    def _precision(self, task: Any) -> Any:
        """Return the precision in which the matrix of a task is computed.

        Its smallest eigenvalue is at least 1, and its largest at most its trace.
        """
        if self.problems.has_fixed_sums:
            return np.float64
        weights = self._relative[task.number][task.free] ** 2
        trace = weights @ self._norms[self.problems.row[task.free]]
        error = self._factor(task) * float(trace) * np.finfo(np.float32).eps
        return np.float32 if error <= LARGEST_ERROR else np.float64

    def _rows(self, c: int, variables: NDArray) -> NDArray:
        problems = self.problems
        return self.features.gather(
            problems.row[variables],
            self._relative[c][variables],
            problems.value,
            problems.group[variables],
            problems.n_shifts,
            self._kept.dtypes[c],
        )

    def _add_narrow(self, c: int, variables: NDArray, sign: float) -> None:
        """Add products of few features; threads share the samples."""
        parts = [
            variables[k : k + GRAM_ROWS] for k in range(0, len(variables), GRAM_ROWS)
        ]

        def product(part: NDArray) -> NDArray:
            Z = self._rows(c, part)
            return Z.T @ Z

        work = len(variables) * self.size**2
        for part in self.features.run(product, parts, work):
            self._products[c] += sign * part

    def _add_panels(self, changes: list[tuple]) -> None:
        """Add products of many features; threads share the problems or the columns."""
        numbers = sorted({change[0] for change in changes})
        size = self.size if len(numbers) >= MANY_PROBLEMS else PANEL
        panels = [slice(k, min(k + size, self.size)) for k in range(0, self.size, size)]

        def add(job: tuple[int, slice]) -> None:
            c, panel = job
            upper = self._products[c][panel, panel.start :]
            for number, variables, _, sign in changes:
                if number != c:
                    continue
                for k in range(0, len(variables), GRAM_ROWS):
                    Z = self._rows(c, variables[k : k + GRAM_ROWS])
                    upper += sign * (Z[:, panel].T @ Z[:, panel.start :])

        jobs = [(c, panel) for c in numbers for panel in panels]
        self.features.run(add, jobs, np.inf)

    def _through_features(self, task: Any, gradient: NDArray) -> NDArray:
        factor = self._factor(task)
        penalty = _penalties(self.problems, task, self.size)

        def matrix() -> NDArray:
            result = np.empty(
                (self.size, self.size), dtype=self._kept.dtypes[task.number]
            )
            np.multiply(
                factor, self._products[task.number], out=result, casting="same_kind"
            )
            result[np.diag_indices(self.size)] += penalty
            return result

        return _solve_definite(matrix, -gradient)

    def _through_samples(self, task: Any, gradient: NDArray) -> NDArray:
        r"""Solve with a matrix of samples, by the identity of Woodbury.

        .. math::

            (P + Z'SZ)^{-1} = P^{-1} - P^{-1} Z' (S^{-1} + Z P^{-1} Z')^{-1} Z P^{-1}
        """
        free = np.flatnonzero(task.free)
        penalty = _penalties(self.problems, task, self.size)
        scaled = -gradient / penalty
        if not len(free):
            return scaled
        problems, d = self.problems, self.features.d
        row, group = problems.row[free], problems.group[free]
        pool = self._pool_with(task.number, row)
        places = pool.places(row)
        shift = problems.value * (group[:, None] == np.arange(problems.n_shifts))
        flat = problems.ridge[task.number][free] + task.inverse

        def matrix() -> NDArray:
            result = pool.products(places, flat)
            if problems.n_shifts:
                result += (shift / penalty[d:]) @ shift.T
            return result

        right = pool.dot(places, scaled[:d]) + shift @ scaled[d:]
        found = _solve_definite(matrix, right)
        scaled[:d] -= pool.combine(places, found)
        scaled[d:] -= (found @ shift) / penalty[d:]
        return scaled

    def _pool_with(self, c: int, row: NDArray) -> Pool:
        """Return a pool that has the samples of some rows.

        Samples with very many features are not kept.
        """
        if self.features.d > MOST_DIRECT:
            pool = Pool(self.features)
        else:
            pool = self._pools.get(c) or Pool(self.features)
            self._pools[c] = pool
        pool.include(np.unique(row))
        return pool


def _penalties(problems: LinearProblems, task: Any, size: int) -> NDArray:
    """Return the penalty of each weight and shift in the matrix of a task."""
    result = np.ones(size)
    if problems.has_fixed_sums:
        ridge = problems.ridge[task.number]
        least = task.inverse or float(ridge.max())
        result[size - problems.n_shifts :] = LEAST_PENALTY / least
    return result


def _solve_definite(make: Callable[[], NDArray], right: NDArray) -> NDArray:
    """Solve with a symmetric matrix, of which ``make`` gives the upper triangle.

    The matrix is overwritten, so it is made again where rounding errors have made it
    indefinite.
    """
    matrix = make()
    found = right.astype(matrix.dtype)
    if solve_in_place(matrix, found):
        return found.astype(np.float64)
    matrix = make().astype(np.float64)
    full = np.triu(matrix) + np.triu(matrix, 1).T
    shift = 1e-12 * np.abs(matrix.diagonal()).max()
    full[np.diag_indices(len(full))] += shift
    return solve_general(full, right, check_finite=False)


def conjugate_gradients(
    features: Features, problems: LinearProblems, steps: list[tuple[Any, NDArray]]
) -> NDArray:
    """Return approximate directions of several problems, in shared passes over X."""
    d = features.d
    right = -np.array([gradient for _, gradient in steps])
    curve = np.zeros((len(steps), problems.p.shape[1]))
    for i, (task, _) in enumerate(steps):
        ridge = problems.ridge[task.number]
        curve[i] = np.where(task.free, 1.0 / (ridge + task.inverse), 0.0)
    penalty = np.array(
        [_penalties(problems, task, right.shape[1]) for task, _ in steps]
    )
    row, group, value = problems.row, problems.group, problems.value
    x = np.zeros_like(right)
    residual = right.copy()
    way = residual.copy()
    norm = np.einsum("ij,ij->i", residual, residual)
    goal = norm * 1e-4
    for _ in range(MOST_STEPS_OF_CG):
        going = np.flatnonzero(norm > goal)
        if not len(going):
            break
        part = way[going]
        along = features.scores(np.ascontiguousarray(part[:, :d]))
        product = penalty[going] * part
        by_row = np.empty_like(along)
        for i, k in enumerate(going):
            change = along[i][row]
            if problems.n_shifts:
                change = change + value * part[i, d:][group]
            change = change * curve[k]
            by_row[i] = np.bincount(row, change, features.n)
            if problems.n_shifts:
                sums = np.bincount(group, change, problems.n_shifts)
                product[i, d:] += value * sums
        product[:, :d] += features.combine(by_row)
        size = norm[going] / np.einsum("ij,ij->i", part, product)
        x[going] += size[:, None] * part
        residual[going] -= size[:, None] * product
        new = np.einsum("ij,ij->i", residual[going], residual[going])
        way[going] = residual[going] + (new / norm[going])[:, None] * part
        norm[going] = new
    return x


MOST_STEPS_OF_CG = 100
