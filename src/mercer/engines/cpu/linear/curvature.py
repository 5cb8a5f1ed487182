"""Newton directions: exact, from products of features or of samples, or by steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg import solve as solve_general

from mercer.engines.cpu.linear.features import GRAM_ROWS, Features
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


class Products:
    """Products of features of some problems, summed over their free variables.

    They do not depend on C: with squared losses, variables are weighted by their C
    relative to the largest one.  So they serve problems again that differ in C only.
    """

    def __init__(self) -> None:
        self.sums: dict[int, NDArray] = {}  #: by problem, upper triangles
        self.inside: dict[int, NDArray] = {}  #: the variables that are in a sum
        self.weights: dict[int, NDArray] = {}  #: factors of the variables

    def weigh(self, c: int, weights: NDArray) -> None:
        """Set the factors of a problem; what was summed with others is forgotten."""
        if c in self.weights and not np.allclose(self.weights[c], weights, 1e-12, 0.0):
            self.sums.pop(c, None)
            self.inside.pop(c, None)
        self.weights[c] = weights


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
        products = products or Products()
        self._products, self._inside = products.sums, products.inside
        self._relative = products.weights
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

        work = len(steps) * min(self.size, max(self._n_free(t) for t, _ in steps)) ** 3
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
        d = self.size
        return new * d * d + d**3 / 3 < 2 * free * free * d + free**3 / 3

    def _update(self, tasks: list[Any]) -> None:
        """Bring the products of features of all tasks up to date, in shared threads."""
        changes: list[tuple] = []
        for task in tasks:
            c = task.number
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

    def _rows(self, c: int, variables: NDArray) -> NDArray:
        problems = self.problems
        return self.features.gather(
            problems.row[variables],
            self._relative[c][variables],
            problems.value,
            problems.group[variables],
            problems.n_shifts,
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
        """Add products of many features; threads share the columns."""
        panels = [
            slice(k, min(k + PANEL, self.size)) for k in range(0, self.size, PANEL)
        ]
        jobs = [
            (panel, c) for panel in panels for c in {change[0] for change in changes}
        ]

        def add(job: tuple[slice, int]) -> None:
            panel, c = job
            upper = self._products[c][panel, panel.start :]
            for number, variables, _, sign in changes:
                if number != c:
                    continue
                for k in range(0, len(variables), GRAM_ROWS):
                    Z = self._rows(c, variables[k : k + GRAM_ROWS])
                    upper += sign * (Z[:, panel].T @ Z[:, panel.start :])

        self.features.run(add, sorted(jobs, key=lambda j: (j[1], j[0].start)), np.inf)

    def _through_features(self, task: Any, gradient: NDArray) -> NDArray:
        factor = self._largest[task.number]
        if not self.problems.has_ridge:
            factor = 1.0 / task.inverse
        matrix = factor * self._products[task.number]
        matrix[np.diag_indices(self.size)] += _penalties(self.problems, task, self.size)
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
        problems = self.problems
        ridge = problems.ridge[task.number][free]
        Z = self.features.gather(
            problems.row[free],
            np.ones(len(free)),
            problems.value,
            problems.group[free],
            problems.n_shifts,
        )
        d = self.features.d
        matrix = Z[:, :d] @ Z[:, :d].T
        if problems.n_shifts:
            shift = Z[:, d:]
            matrix += (shift / penalty[d:]) @ shift.T
        matrix[np.diag_indices(len(free))] += ridge + task.inverse
        return scaled - (Z.T @ _solve_definite(matrix, Z @ scaled)) / penalty


def _penalties(problems: LinearProblems, task: Any, size: int) -> NDArray:
    """Return the penalty of each weight and shift in the matrix of a task."""
    result = np.ones(size)
    if problems.has_fixed_sums:
        ridge = problems.ridge[task.number]
        least = task.inverse or float(ridge.max())
        result[size - problems.n_shifts :] = LEAST_PENALTY / least
    return result


def _solve_definite(matrix: NDArray, right: NDArray) -> NDArray:
    """Solve with a symmetric matrix, of which the upper triangle is given."""
    try:
        return cho_solve(cho_factor(matrix, check_finite=False), right)
    except np.linalg.LinAlgError:
        # Rounding errors have made it indefinite.
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
