"""The model of the time of an epoch, and its fit by non-negative least squares (pure functions).

In weak and strong scaling, the time of an epoch on ``n`` ranks is

    weak    P/n + K + W * 2(n-1)/n**2
    strong  P/n + K + L * 2(n-1)

``P``, ``K``, ``W`` and ``L`` are times in seconds. ``P`` is the work that ranks divide among themselves, and
``K`` is the serial part in Amdahl's law. ``W`` is the cost of the limited bandwidth, and ``L`` is the cost of
latency. A ring allreduce on ``n`` ranks makes 2(n-1) exchanges, each of one n-th of the gradient. The
allreduce of a training step therefore takes 2(n-1) latencies, and 2(n-1)/n times the gradient's size divided
by the bandwidth (Patarasu and Yuan 2009, doi:10.1016/j.jpdc.2008.09.002).

In weak scaling, an epoch on ``n`` ranks has 1/n as many steps as on one rank, so latency adds a term
2(n-1)/n. In strong scaling, the limited bandwidth adds a term 2(n-1)/n. This term equals 2 - 2/n, so a fit
cannot separate it from the serial part ``K`` and the divided work ``P/n``. The fitted ``K`` can include this
cost of latency or bandwidth, so ``K`` is an upper limit of the serial part.
"""

from collections.abc import Callable, Sequence
from itertools import combinations

from toolkit.model.study import Scaling

Vector = tuple[float, ...]
Term = Callable[[float], float]

TERMS: dict[Scaling, tuple[Term, ...]] = {
    "weak": (lambda n: 1 / n, lambda _: 1.0, lambda n: 2 * (n - 1) / n**2),
    "strong": (lambda n: 1 / n, lambda _: 1.0, lambda n: 2 * (n - 1)),
}

_SINGULAR = 1e-12


def seconds(scaling: Scaling, weights: Vector, ranks: float) -> float:
    """Return the time in seconds of an epoch on ``ranks`` ranks."""
    return sum(w * term(ranks) for w, term in zip(weights, TERMS[scaling], strict=True))


def solutions(
    scaling: Scaling, ranks: Sequence[int], times: Sequence[float], errors: Sequence[float]
) -> list[tuple[float, Vector]]:
    """Fit each choice of one, two or three terms of the model. Return (chi squared, weights) for each fit
    without a negative weight, the best fit first.

    ``times`` are the measured times in seconds, and ``errors`` are their errors in seconds. The first result
    is the non-negative least squares solution. If two choices of terms have nearly the same chi squared, the
    measurements cannot decide between them.
    """
    rows = [[term(n) for term in TERMS[scaling]] for n in ranks]
    count = len(rows[0])
    fits = []
    # Trying all seven choices of one, two or three terms is exact, and needs less code than a solver.
    for size in range(1, min(count, len(ranks)) + 1):
        for chosen in combinations(range(count), size):
            part = _least_squares([[row[i] for i in chosen] for row in rows], times, errors)
            if part is None or min(part) < 0:
                continue
            weights = [0.0] * count
            for i, value in zip(chosen, part, strict=True):
                weights[i] = value
            fits.append((_chi_squared(rows, weights, times, errors), tuple(weights)))
    return sorted(fits)


def _chi_squared(
    rows: Sequence[Sequence[float]], weights: Sequence[float], times: Sequence[float], errors: Sequence[float]
) -> float:
    total = 0.0
    for row, time, error in zip(rows, times, errors, strict=True):
        total += ((sum(w * x for w, x in zip(weights, row, strict=True)) - time) / error) ** 2
    return total


def _least_squares(
    rows: Sequence[Sequence[float]], times: Sequence[float], errors: Sequence[float]
) -> list[float] | None:
    """Solve the normal equations of a least squares fit. Return ``None`` if the columns are linearly
    dependent.
    """
    scaled = [[x / e for x in row] for row, e in zip(rows, errors, strict=True)]
    right = [t / e for t, e in zip(times, errors, strict=True)]
    count = len(rows[0])
    table = [
        [sum(row[i] * row[j] for row in scaled) for j in range(count)]
        + [sum(row[i] * y for row, y in zip(scaled, right, strict=True))]
        for i in range(count)
    ]
    for i in range(count):
        pivot = max(range(i, count), key=lambda r: abs(table[r][i]))
        table[i], table[pivot] = table[pivot], table[i]
        if abs(table[i][i]) < _SINGULAR * max(1.0, *(abs(x) for x in table[i])):
            return None
        for r in range(count):
            if r != i:
                factor = table[r][i] / table[i][i]
                table[r] = [a - factor * b for a, b in zip(table[r], table[i], strict=True)]
                # Set this element to exactly zero, because a rounding error here would hide a zero pivot.
                # Such rounding errors occur if times differ by many orders of magnitude.
                table[r][i] = 0.0
    return [table[i][count] / table[i][i] for i in range(count)]
