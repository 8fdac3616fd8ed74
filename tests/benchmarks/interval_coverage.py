"""Coverage of 95 % intervals on the synthetic example, with its Monte-Carlo error.

    python tests/benchmarks/interval_coverage.py [--repetitions 1000] [--queries 500]

Prints a Markdown table. Exits with 1 if the intervals clustered by query cover less than 93 % or
more than 97 % at some threshold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

import numpy as np
from scipy.integrate import dblquad

import mpc_lab as mpc

EPSILONS = [0.05, 0.1, 0.2]
FAMILIES = ("query", "naive")
ACCEPTED = (0.93, 0.97)

# Weight of a query type among pairs (share of type 1 × share of type 2), slopes of items 1 and 2.
DESIGN = {"u": (1 / 7 * 6 / 7, 1.5, 1.1), "v": (5 / 7 * 2 / 7, 0.9, 0.7)}


def mean_outcome(slope: float, score: float) -> float:
    """Return the chance of a success at a score."""
    return slope * score if score < 0.5 else 1 - (2 - slope) * (1 - score)


def truth(epsilon: float) -> float:
    """Integrate the gap of group "1" over the item's score and the distance to the one above."""
    total = 0.0
    for weight, own, other in DESIGN.values():
        # the integrand has corners at 1/2, so integrate over the pieces between them
        for low, high in (
            (lambda gap: 0.0, lambda gap: 0.5 - gap),
            (lambda gap: 0.5 - gap, lambda gap: 0.5),
            (lambda gap: 0.5, lambda gap: 1 - gap),
        ):
            total += (
                weight
                * dblquad(
                    lambda s, gap, a=own, b=other: mean_outcome(a, s) - mean_outcome(b, s + gap),
                    0,
                    epsilon,
                    low,
                    high,
                )[0]
            )
    weights = sum(weight for weight, _, _ in DESIGN.values())
    return total / weights / (epsilon - epsilon**2 / 2)


def covered(seeds: Iterable[int], queries: int) -> dict[str, np.ndarray]:
    """Return, by family, whether the interval holds the truth; one row a seed, one column an ε."""
    values = np.array([truth(epsilon) for epsilon in EPSILONS])
    hits: dict[str, list[np.ndarray]] = {family: [] for family in FAMILIES}
    for seed in seeds:
        ranking = mpc.datasets.synthetic(queries=queries, seed=seed)
        for family in FAMILIES:
            audit = mpc.audit(
                ranking,
                groups=["1"],
                threshold=EPSILONS[0],
                epsilon=EPSILONS,
                cluster=family,
                adjust="none",
            )
            low, high = (audit.curve[name].values.ravel() for name in ("ci_low", "ci_high"))
            hits[family].append((low <= values) & (values <= high))
    return {family: np.array(rows) for family, rows in hits.items()}


def table(hits: dict[str, np.ndarray]) -> str:
    """Return the shares of intervals that hold the truth as a Markdown table."""
    lines = ["| ε | truth | by query | naive |", "|---|---|---|---|"]
    for k, epsilon in enumerate(EPSILONS):
        cells = []
        for family in FAMILIES:
            share, n = hits[family][:, k].mean(), len(hits[family])
            cells.append(f"{share:.3f} ± {np.sqrt(share * (1 - share) / n):.3f}")
        lines.append(f"| {epsilon} | {truth(epsilon):.4f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Run the simulation, print the table, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=500)
    options = parser.parse_args()
    hits = covered(range(options.repetitions), options.queries)
    print(f"{options.repetitions} repetitions of {options.queries} queries, nominal 95 %\n")
    print(table(hits))
    shares = hits["query"].mean(axis=0)
    return 0 if ((shares >= ACCEPTED[0]) & (shares <= ACCEPTED[1])).all() else 1


if __name__ == "__main__":
    sys.exit(main())
