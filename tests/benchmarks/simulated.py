"""Logs with a known truth, and what the package infers from them."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np

import mpc_lab as mpc
from mpc_lab.engines.memory import MemorySource
from mpc_lab.inference.bands import correlation, covariance, sup_t_band
from mpc_lab.inference.estimates import critical
from mpc_lab.inference.verdicts import METHODS, adjust
from mpc_lab.pairing.correlating import covariances
from mpc_lab.pairing.measure import (
    choose_thresholds,
    measure,
    weigh_curve,
    weigh_headline,
)
from mpc_lab.pairing.terms import Quantile, default_grid
from mpc_lab.results.assemble import infer, judge
from mpc_lab.scoring import Baseline
from mpc_lab.vocabulary import MATCHED, MIRRORED

LEVEL = 0.95
FIRST_PERCENTILE = Quantile(0.01)
QUERIES, SHOWN, ITEMS = 300, 20, 200


def shown_items(rng, *, queries=QUERIES, shown=SHOWN, items=ITEMS):
    """Return the items that each query lists, none twice in a query."""
    return np.argsort(rng.random((queries, items)), axis=1)[:, :shown]


def shared_catalogue(rng, *, in_group=80, item_sd=0.0, side_sd=0.0, segments=1):
    """Return a log whose queries share their items, the first of which are in group "g".

    The outcome has nothing to do with the score: a shock of the item, a shock of the query to its
    items on either side of the group, and noise. The true gap is 0 at every threshold, in every
    segment of queries.
    """
    item = shown_items(rng)
    member = item < in_group
    query = np.broadcast_to(np.arange(QUERIES)[:, None], item.shape)
    outcome = rng.normal(size=item.shape)
    outcome += item_sd * rng.normal(size=ITEMS)[item]
    outcome += side_sd * rng.normal(size=(QUERIES, 2))[query, member.astype(int)]
    segment = query * segments // QUERIES
    return ranking_of(item, rng.random(item.shape), outcome, {"g": member}, segment=segment)


def overlapping_groups(rng, *, groups=20, item_sd=0.0, effect=0.0):
    """Return a log of a shared catalogue whose groups are arcs of a circle of items.

    An arc starts every tenth item and takes 20 to 40 % of the circle, so that neighbours have most
    of their items in common. The items of the first group do better by the effect; without one,
    the true gap of every group is 0.
    """
    share = np.linspace(0.2, 0.4, groups)
    place, start = np.arange(ITEMS) / ITEMS, np.arange(groups) / groups
    of_item = (place[:, None] - start) % 1 < share
    item = shown_items(rng)
    value = item_sd * rng.normal(size=ITEMS) + effect * of_item[:, 0]
    outcome = value[item] + rng.normal(size=item.shape)
    member = {f"g{k:02d}": of_item[item, k] for k in range(groups)}
    return ranking_of(item, rng.random(item.shape), outcome, member)


def without_bias(rng, *, queries=1000, shown=10, share=0.4):
    """Return a log of a ranker without bias: the outcome has the chance that the score says.

    The groups are "g" and its complement; every row is an item of its own.
    """
    score = rng.random((queries, shown))
    member = rng.random(score.shape) < share
    outcome = rng.random(score.shape) < score
    item = np.arange(score.size).reshape(score.shape)
    return ranking_of(item, score, outcome, {"g": member, "not g": ~member})


def rising_outcomes(rng, *, queries=4000, shown=10, share=0.4, gap=0.05, noise=0.3):
    """Return a log whose outcome rises with the score and is higher by `gap` in group "g".

    At a tie the true gap is `gap`. Every row is an item of its own.
    """
    score = rng.random((queries, shown))
    member = rng.random(score.shape) < share
    outcome = score + gap * member + noise * rng.normal(size=score.shape)
    item = np.arange(score.size).reshape(score.shape)
    return ranking_of(item, score, outcome, {"g": member})


def ranking_of(item, score, outcome, member, **more):
    """Return the ranking of tables (query, place); ``more`` are further columns by their role."""
    query = np.repeat(np.arange(len(item)), item.shape[1])
    columns = {"query": query, "item": item, "score": score, "outcome": outcome, **member, **more}
    return mpc.Ranking(
        {name: np.ravel(values) for name, values in columns.items()},
        query="query",
        item="item",
        score="score",
        outcome="outcome",
        group=list(member),
        **{role: role for role in more},
    )


def source_of(ranking, groups=None):
    return MemorySource(ranking, ranking.groups if groups is None else tuple(groups))


def sums(source, edges, modes=(MATCHED, MIRRORED)):
    """Return the sums over pairs up to the thresholds, the same for all groups or one row each."""
    edges = np.broadcast_to(edges, (len(source.groups), np.shape(edges)[-1]))
    found = measure(source, Baseline(), np.ascontiguousarray(edges), modes=modes, items=True)
    return weigh_headline(source, Baseline(), found)[0]


def inferred(moments, cluster="union"):
    """Return the estimates as an audit makes them."""
    return infer(moments, cluster=cluster, level=LEVEL, correction="cr3")


def thresholds(source):
    """Return the first percentile of the gaps of each group."""
    return choose_thresholds(source, Baseline(), (FIRST_PERCENTILE,))[0].epsilon


def covers(moments, truth):
    """Return whether each kind of interval of matched pairs holds the truth, one entry a cell.

    None where no interval can be given. "query, Q − 1" has as many degrees of freedom as a
    regression clustered by query would take.
    """
    found = {name: inferred(moments, name) for name in ("union", "query", "naive")}
    held = {}
    for name, cells in found.items():
        inside = (cells.ci_low <= truth) & (truth <= cells.ci_high)
        held[name] = np.where(cells.estimable, inside, None)[0].ravel()
    cells = infer(moments, cluster="query", level=LEVEL, correction="plain")
    half = critical((1 - LEVEL) / 2, np.maximum(moments.clusters - 1.0, 1.0)) * cells.std_error
    inside = np.abs(cells.estimate - truth) <= half
    held["query, Q − 1"] = np.where(cells.estimable, inside, None)[0].ravel()
    return held


def curve_grid(source):
    """Return the grid that an audit of the one group takes by default."""
    return default_grid(thresholds(source)[None], False)


def band_over(source, grid):
    """Return the band of the one group over a grid, and the intervals of Bonferroni and pointwise.

    Each as (low, high), and NaN where no interval can be given.
    """
    moments = sums(source, grid)
    cells = inferred(moments)
    estimate, spread, dof = (x[0, 0] for x in (cells.estimate, cells.std_error, cells.dof))
    ((_, cross),) = weigh_curve(source, Baseline(), moments)[1]
    pairs = moments.pairs[0, 0].astype(float)
    delta = moments.by["naive"].cu[0, 0] / np.maximum(pairs, 1.0)
    together = covariance(pairs, delta, cross.cc[0, 0], cross.cu[0, 0], cross.uu[0, 0])
    band = sup_t_band(estimate, spread, dof, together, level=LEVEL)
    found = {"band": (band.low, band.high)}
    for name, tests in {"Bonferroni": max(1, int(band.covered.sum())), "pointwise": 1}.items():
        half = critical((1 - LEVEL) / 2 / tests, dof) * spread
        found[name] = (estimate - half, estimate + half)
    return found


def rejections(source, epsilon, *, cluster="union"):
    """Return which cells each method of adjustment rejects among matched pairs."""
    moments = sums(source, [epsilon])
    cells = inferred(moments, cluster)
    matched = (getattr(cells, x)[0, :, 0] for x in ("p_value", "estimate", "std_error", "dof"))
    p, estimate, error, dof = matched
    every = np.full((1, len(source.groups)), epsilon)
    only = moments.of_modes(["matched"])
    together = correlation(covariances(source, [Baseline()], only.modes, every, [only])[0])
    how = {"level": LEVEL, "correlation": together}
    return {
        method: adjust(p, estimate, error, dof, method=method, **how).p_adjusted <= 1 - LEVEL
        for method in METHODS
    }


def verdicts(moments, *, method="holm", tolerance=None):
    """Return verdicts on matched pairs and their reasons, as arrays (threshold, group)."""
    found = []
    for k in range(moments.edges.shape[1]):
        own = moments.at(np.full((len(moments.center), 1), k))
        cells = [inferred(own)]
        judged = judge(own.modes, cells, method=method, level=LEVEL, tolerance=tolerance, seed=0)
        found.append((judged["verdict"][0, 0], judged["verdict_reason"][0, 0]))
    return tuple(np.array(part) for part in zip(*found, strict=True))


@cache
def movielens_source(genre):
    """Return the log of MovieLens 1M for one genre."""
    return source_of(_movielens(), [genre])


@cache
def movielens_threshold(genre):
    """Return the threshold an audit gives the genre; it depends on scores and groups alone."""
    return float(thresholds(movielens_source(genre))[0])


@cache
def _movielens():
    return mpc.datasets.movielens_ranking("1m")


def movielens_lists(rng, genre, *, side_sd=0.3):
    """Return lists, scores and genre of MovieLens 1M with outcomes drawn again; the true gap is 0.

    The outcome is a shock of the user to movies on either side of the genre, and noise.
    """
    source = movielens_source(genre)
    log = source.log
    query = source.ranking.query_code[log.row]
    side = (log.masks[0] & np.uint64(1)).astype(int)
    outcome = rng.normal(size=len(query))
    outcome += side_sd * rng.normal(size=(source.ranking.n_queries, 2))[query, side]
    drawn = copy(source)
    drawn.log = replace(log, outcome=outcome)
    return drawn
