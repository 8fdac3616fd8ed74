"""How often an interval misses at some look of an audit that is repeated as queries come in.

    python tests/benchmarks/repeated_looks.py [--repetitions 1000]

The synthetic example at a threshold of 0.05, group "1", looked at every 100 queries up to 4,000.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from mpc_lab.datasets.synthetic import synthetic, synthetic_truth
from mpc_lab.inference.estimates import critical
from mpc_lab.inference.sequence import confidence_sequence
from mpc_lab.pairing.pairs import list_pairs

EPSILON, EVERY, LAST = 0.05, 100, 4_000


def looks(seed: int) -> tuple[bool, bool]:
    """Return whether the sequence, and the fixed interval, ever miss the truth."""
    ranking = synthetic(queries=LAST, seed=seed)
    pairs = list_pairs(ranking, "1", None, "matched", EPSILON)
    query = ranking.query_code[pairs["row_i"]]
    c = np.bincount(query, minlength=LAST).astype(float)
    d = np.bincount(query, pairs["d"], minlength=LAST)
    seen = np.arange(EVERY, LAST + 1, EVERY)
    sums = [np.cumsum(part)[seen - 1] for part in (c, d, c * c, c * d, d * d)]
    total, mean = sums[0], sums[1] / sums[0]
    variance = (sums[4] - 2 * mean * sums[3] + mean**2 * sums[2]) / total**2
    truth = synthetic_truth(EPSILON)
    low, high = confidence_sequence(mean, variance, seen, np.cumsum(c > 0)[seen - 1])
    half = critical(0.025, total**2 / sums[2] - 1) * np.sqrt(variance)
    missed = (low > truth) | (high < truth)
    return bool(missed.any()), bool((np.abs(mean - truth) > half).any())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1_000)
    repetitions = parser.parse_args().repetitions
    found = np.array([looks(seed) for seed in range(repetitions)])
    share = found.mean(axis=0)
    error = np.sqrt(share * (1 - share) / repetitions)
    print(f"{repetitions:,} runs of {LAST // EVERY} looks\n")
    print("| interval | ever misses | Monte-Carlo error | at most | |\n|---|---|---|---|---|")
    held = bool(share[0] <= 0.05)
    mark = "holds" if held else "**missed**"
    print(f"| confidence sequence | {share[0]:.3f} | {error[0]:.3f} | 0.05 | {mark} |")
    print(f"| 95 % interval at each look | {share[1]:.3f} | {error[1]:.3f} | | |")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
