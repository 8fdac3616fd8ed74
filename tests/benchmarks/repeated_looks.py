"""How often does an interval miss at some look of an audit that is repeated as queries come in?

    python tests/benchmarks/repeated_looks.py [--repetitions 1000] [--jobs 2]

Looked at after every query from the 100th to the 3,000th (with intervals of one look, at every
tenth). A query has a Poisson number of pairs, at most the cap; they share the item of the group.
Half of the queries have three times as many pairs as the others, and three times the gap, so that
the gap is a mean over pairs and of no single query.
The last row is the paper's example, from rows to the interval. Prints a Markdown table; exits with
1 if bets on bounded outcomes miss in more than 5 %, or the asymptotic sequence of normal outcomes.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from scipy import stats

from mpc_lab.datasets.synthetic import synthetic, synthetic_truth
from mpc_lab.inference.estimates import critical
from mpc_lab.inference.sequence import (
    MOST_LOST,
    betting_sequence,
    confidence_sequence,
    log_capital_of_sums,
    predictable_bets,
    sequence_from_sums,
)
from mpc_lab.pairing.log import sort_rows
from mpc_lab.pairing.pairs import capped_by_unit
from mpc_lab.vocabulary import MODES
from repeating import Bound, bounded, options, repeat, show

FIRST, LAST, LEVEL = 100, 3_000, 0.95
EPSILON, TOP = 0.05, 20.0
KINDS = np.array([0.5, 1.5])  # of queries: times the mean pairs, and times the mean gap
RATES = (2.0, 0.2, 0.05)
CAP, LOW_CAP = 10, 2
MEASURED = 100  # runs whose widths are averaged
AT_MOST = Bound(0.0, 0.05)
HEADER = ["outcome", "pairs a query", "at most", "bets", "bets from sums", "asymptotic"]
HEADER += ["95 % at one look", "width of bets", "from sums", "asymptotic"]


class Draw(NamedTuple):
    """c and D of the queries, the true gap, how far apart the bounds are, and the cap."""

    pairs: np.ndarray
    sums: np.ndarray
    truth: float
    width: float
    cap: int


def drawn(outcome, rate, cap, seed):
    """Draw the queries of one run."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, LAST)
    c = np.minimum(rng.poisson(rate * KINDS[kind]), cap)
    inside, others, gap, width = OUTCOMES[outcome](rng, kind, c)
    expected = [mean_pairs(rate * times, cap) for times in KINDS]
    truth = float(np.dot(expected, gap) / np.sum(expected))
    return Draw(c.astype(float), c * inside - others, truth, width, cap)


@cache
def mean_pairs(rate, cap):
    """E min(Poisson(rate), cap)."""
    below = np.arange(cap)
    law = stats.poisson(rate)
    return float(below @ law.pmf(below) + cap * law.sf(cap - 1))


def skewed_binary(rng, kind, c):
    """5 % in the group on average, never outside it."""
    return rng.random(LAST) < 0.05 * KINDS[kind], np.zeros(LAST), 0.05 * KINDS, 1.0


def symmetric_binary(rng, kind, c):
    """2 % in the group and outside it."""
    return rng.random(LAST) < 0.02, rng.binomial(c, 0.02), 0 * KINDS, 1.0


def capped_lognormal(rng, kind, c):
    """Money: σ = 1.5 in the group, 0.5 outside it, set to 20 above 20."""
    inside = np.minimum(KINDS[kind] * np.exp(1.5 * rng.normal(size=LAST)), TOP)
    each = np.minimum(np.exp(0.5 * rng.normal(size=(LAST, int(c.max())))), TOP)
    others = (each * (np.arange(each.shape[1]) < c[:, None])).sum(axis=1)
    gap = [_mean_capped(times, 1.5) - _mean_capped(1.0, 0.5) for times in KINDS]
    return inside, others, gap, TOP


@cache
def _mean_capped(times, sigma):
    """E min(times · exp(σZ), TOP)."""
    cut = np.log(TOP / times) / sigma
    below = times * np.exp(sigma**2 / 2) * stats.norm.cdf(cut - sigma)
    return below + TOP * stats.norm.sf(cut)


def normal(rng, kind, c):
    """No bounds, so bets cannot be had."""
    inside = KINDS[kind] + rng.normal(size=LAST)
    return inside, np.sqrt(c) * rng.normal(size=LAST), KINDS, np.nan


OUTCOMES = {
    "binary, 5 % against 0": skewed_binary,
    "binary, 2 % against 2 %": symmetric_binary,
    "lognormal(1.5), at most 20": capped_lognormal,
    "normal": normal,
}


def paper(_outcome, _rate, cap, seed):
    """Draw the paper's example, group "1" at ε = 0.05, whose queries never have as many pairs."""
    ranking = synthetic(queries=LAST, seed=seed)
    log = sort_rows(ranking)
    member = ranking.member("1")[log.row]
    c, d = capped_by_unit(log, member, MODES["matched"].side, EPSILON, cap, 0)
    return Draw(c, d, synthetic_truth(EPSILON), 1.0, cap)


def looks(draw, outcome, rate, cap, seed):
    """Return whether each interval ever misses, and how wide it is at the end."""
    run = draw(outcome, rate, cap, seed)
    c, d, seen = run.pairs, run.sums, np.arange(1, LAST + 1)
    totals = np.cumsum(np.stack([c, d, c * c, c * d, d * d]), axis=1)
    count = np.maximum(totals[0], 1.0)
    mean = totals[1] / count
    squares = np.maximum(totals[4] - 2 * mean * totals[3] + mean**2 * totals[2], 0.0)
    variance = squares / count**2
    low, high = confidence_sequence(mean, variance, seen, np.cumsum(c > 0), level=LEVEL)
    missed = {
        "asymptotic": (low > run.truth) | (high < run.truth),
        "fixed": _misses_now(
            np.abs(mean - run.truth), variance, count**2 / np.maximum(totals[2], 1.0)
        ),
    }
    ends = {"asymptotic": (low[-1], high[-1])}
    if np.isfinite(run.width):
        missed["rows"], missed["sums"] = _won(run, totals)
        if seed < MEASURED:
            ends |= _ends(run, totals)
    widths = {name: end[1] - end[0] for name, end in ends.items()}
    ever = {name: bool(where[FIRST - 1 :].any()) for name, where in missed.items()}
    return ever, widths


def _misses_now(off, variance, effective):
    """Return where the interval of one look misses, at every tenth."""
    known = np.zeros(len(off), dtype=bool)
    known[FIRST - 1 :: 10] = effective[FIRST - 1 :: 10] >= 3
    half = critical((1 - LEVEL) / 2, effective[known] - 1) * np.sqrt(variance[known])
    known[known] = off[known] > half
    return known


def log_capital(pairs, sums, bets, theta, *, width, cap):
    """Return the log capital after every query of bets on a gap above θ, and on one below."""
    x = np.minimum(bets, MOST_LOST / (cap * (width + abs(theta)))) * (sums - theta * pairs)
    return np.cumsum(np.log1p(x)), np.cumsum(np.log1p(-x))


def _won(run, totals):
    """Return after which queries enough is won against the truth, from rows and from sums."""
    how = {"width": run.width, "cap": run.cap}
    bets = predictable_bets(run.pairs, run.sums, width=run.width, level=LEVEL, planned=1_000)
    enough = np.log(2 / (1 - LEVEL))
    rows = np.logaddexp(*log_capital(run.pairs, run.sums, bets, run.truth, **how)) >= enough
    sums = np.logaddexp(*log_capital_of_sums(totals, np.array([run.truth]), **how)) >= enough
    return rows, sums


def _ends(run, totals):
    """Return the intervals of the last look."""
    how = {"width": run.width, "cap": run.cap}
    return {
        "rows": betting_sequence(run.pairs, run.sums, **how),
        "sums": sequence_from_sums(totals[:, -1], **how),
    }


def row(draw, outcome, rate, cap, repetitions, jobs):
    """Return the cells of one design, and whether what must hold does."""
    found = repeat(partial(looks, draw, outcome, rate, cap), repetitions, jobs)
    names = ("rows", "sums", "asymptotic", "fixed")
    rates = {name: float(np.mean([ever[name] for ever, _ in found])) for name in found[0][0]}
    held = ("rows", "sums") if "rows" in rates else ("asymptotic",)
    good = all(bounded(rates[name], repetitions, AT_MOST)[0] for name in held)
    measured = found[:MEASURED]
    # A sequence that has not begun at the last look has no width there.
    wide = {
        name: float(np.nanmean([widths[name] for _, widths in measured])) for name in found[0][1]
    }
    cells = [rates.get(name, "–") for name in names] + [wide.get(name, "–") for name in names[:3]]
    return [outcome, f"{rate:g}", cap, *cells], good


def designs():
    """Yield what every row is drawn by."""
    for outcome in OUTCOMES:
        for rate in RATES:
            yield drawn, outcome, rate, CAP
        if outcome != "normal":
            yield drawn, outcome, RATES[1], LOW_CAP
    yield paper, "paper's example", 0.71, CAP


def main() -> int:
    """Run the simulations, print the table, return the exit code."""
    chosen = options(__doc__)
    print(f"{chosen.repetitions:,} runs, looked at after every query from {FIRST} to {LAST:,}\n")
    found = []
    for design in designs():
        found.append(row(*design, chosen.repetitions, chosen.jobs))
        print(*found[-1], file=sys.stderr, flush=True)
    show(HEADER, found)
    return 0 if all(good for _, good in found) else 1


if __name__ == "__main__":
    sys.exit(main())
