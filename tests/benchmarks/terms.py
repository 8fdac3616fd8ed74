"""Do signs and caps cover where money has a long tail, and is a gap on a larger scale found?

One group has lognormal outcomes with a standard deviation of logs of 2, the others of 0.5, all with
a mean of 1; outcomes have nothing to do with scores, so the gap of means is 0 at every threshold,
and the truths of the sign and of capped outcomes are known. In the second study half the queries
have scores ten times as large, and the group is worth more in these alone.

    python tests/benchmarks/terms.py --repetitions 1000 --jobs 2
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
from scipy.stats import norm

import mpc_lab as mpc
from mpc_lab.engines.memory import MemorySource
from mpc_lab.inference.verdicts import adjust
from mpc_lab.pairing.measure import choose_thresholds, measure
from mpc_lab.pairing.terms import Quantile, Terms
from mpc_lab.ranking import cap_outcomes
from mpc_lab.results.assemble import infer
from mpc_lab.scoring import Baseline
from mpc_lab.vocabulary import MATCHED
from repeating import AT_LEAST_93, bounded, error, options, repeat, show

LEVEL, EPSILON, CAP = 0.95, 0.05, 5.0
QUERIES, SHOWN = 300, 20
GROUPS = ("a", "b", "c", "d")
SIGMA = {"a": 2.0, "b": 0.5, "c": 0.5, "d": 0.5}
CONTRASTS = ("mean", "cap", "sign")
SCALES = ("score", "query_sd", "percentile")
EFFECT = 0.25


def ranking_of(score, outcome, member):
    columns = {"query": np.repeat(np.arange(len(score)), score.shape[1])}
    columns |= {"score": score.ravel(), "outcome": outcome.ravel()}
    columns |= {name: flags.ravel() for name, flags in member.items()}
    roles = {"query": "query", "score": "score", "outcome": "outcome"}
    return mpc.Ranking(columns, **roles, group=list(member))


def skewed_money(seed):
    """Return a log of four groups of one size, whose outcomes have the same mean."""
    rng = np.random.default_rng(seed)
    shape = (QUERIES, SHOWN)
    which = rng.integers(len(GROUPS), size=shape)
    sigma = np.array([SIGMA[group] for group in GROUPS])[which]
    outcome = np.exp(sigma * rng.normal(size=shape) - sigma**2 / 2)
    member = {group: which == k for k, group in enumerate(GROUPS)}
    return ranking_of(rng.random(shape), outcome, member)


def two_scales(seed):
    """Return a log with half its scores ten times as large, and a gap in these queries alone."""
    rng = np.random.default_rng(seed)
    shape = (2 * QUERIES, SHOWN)
    scale = np.where(np.arange(2 * QUERIES) % 2, 10.0, 1.0)[:, None]
    member = rng.random(shape) < 0.4
    outcome = rng.normal(size=shape) + EFFECT * (member & (scale > 1))
    return ranking_of(scale * rng.random(shape), outcome, {"g": member})


def capped_mean(sigma, cap):
    """Return E[min(Y, cap)] of a lognormal Y with mean 1."""
    mu, log_cap = -(sigma**2) / 2, np.log(cap)
    inside = norm.cdf((log_cap - mu - sigma**2) / sigma)
    return float(inside + cap * norm.sf((log_cap - mu) / sigma))


def higher(one, other):
    """Return P(Y > Y') − P(Y < Y') of two lognormals with mean 1."""
    apart = (other**2 - one**2) / 2
    return float(2 * norm.cdf(apart / np.hypot(one, other)) - 1)


def truths(contrast):
    """Return the gap of each group against the three others, which are equally likely."""
    if contrast == "mean":
        return np.zeros(len(GROUPS))
    found = []
    for group in GROUPS:
        rest = [SIGMA[other] for other in GROUPS if other != group]
        if contrast == "sign":
            found.append(np.mean([higher(SIGMA[group], sigma) for sigma in rest]))
        else:
            others = np.mean([capped_mean(sigma, CAP) for sigma in rest])
            found.append(capped_mean(SIGMA[group], CAP) - others)
    return np.array(found)


def estimates(ranking, terms, epsilon=None):
    """Return the estimates of matched pairs, clustered by query, at a threshold or a percentile."""
    source = MemorySource(ranking, ranking.groups, terms=terms)
    n = len(ranking.groups)
    edges = np.full(n, epsilon)
    if epsilon is None:
        edges = choose_thresholds(source, Baseline(), (Quantile(0.01),))[0].epsilon
    moments = measure(source, Baseline(), edges[:, None], modes=(MATCHED,), items=False)
    return infer(moments, cluster="query", level=LEVEL)


def covered(seed):
    """Return, for each contrast, whether the interval of "a" holds, and whether all adjusted do."""
    ranking = skewed_money(seed)
    found = []
    for contrast in CONTRASTS:
        seen = cap_outcomes(ranking, CAP if contrast == "cap" else None)
        cells = estimates(
            seen, Terms(contrast="sign" if contrast == "sign" else "difference"), EPSILON
        )
        estimate, spread, dof, p = (
            x[0, :, 0] for x in (cells.estimate, cells.std_error, cells.dof, cells.p_value)
        )
        truth = truths(contrast)
        # Intervals that are cut at 0 are decisions about 0; the family is held by the uncut ones.
        family = adjust(p, estimate - truth, spread, dof, method="none", level=1 - 0.05 / len(p))
        all_hold = ((family.ci_low_adjusted <= 0) & (family.ci_high_adjusted >= 0)).all()
        low, high = cells.ci_low[0, 0, 0], cells.ci_high[0, 0, 0]
        found.append((low <= truth[0] <= high, bool(all_hold)))
    return found


def detected(seed):
    """Return, for each scale, whether the interval excludes 0."""
    ranking = two_scales(seed)
    ends = [estimates(ranking, Terms(closeness=scale)) for scale in SCALES]
    return [bool(found.ci_low[0, 0, 0] > 0) for found in ends]


def main() -> int:
    chosen = options(__doc__)
    n = chosen.repetitions
    held = np.array(repeat(partial(covered), n, chosen.jobs), dtype=float).mean(axis=0)
    rows = []
    for contrast, (one, family) in zip(CONTRASTS, held, strict=True):
        good, words = bounded(one, n, AT_LEAST_93)
        cells = [contrast, float(one), float(error(one, n)), float(family), words]
        # That the mean does not cover is what is shown: it is not held to any bound.
        rows.append((cells, good or contrast == "mean"))
    print(f"Skewed money, {n} logs, nominal 95 %\n")
    show(["contrast", "covers", "Monte-Carlo error", "all four groups", "bound"], rows)
    few = max(n // 4, 1)
    found = np.array(repeat(partial(detected), few, chosen.jobs), dtype=float).mean(axis=0)
    print(f"\nTwo scales of scores, {few} logs, a gap on the larger one\n")
    good = found[1] >= 2 * found[0]
    show(
        ["closeness", "found"],
        [([s, float(f)], bool(good)) for s, f in zip(SCALES, found, strict=True)],
    )
    return 0 if all(row[1] for row in rows) and good else 1


if __name__ == "__main__":
    sys.exit(main())
