"""Questions for an audit with odd arguments, for a fuzz run: every public method and function.

What a method takes is read from its signature, so that a new method is asked too, and a new
argument must be given good values here. Explorers are left out: their traits refuse with a
``TraitError``, as those of every widget do.
"""

from __future__ import annotations

import functools
import inspect
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import mpc_lab as mpc

QUERIES = 40
CHARTS = (
    *("boost", "bracket", "calibration", "epsilon_curve", "forest", "distance_density", "ladder"),
    *("love", "mpc_ndcg", "placebo", "power", "rivals"),
)


def fit_offsets(tolerance=None, ndcg_drop=0.001, min_effective=20, level=0.95, seed=0):
    """Fit offsets to a small log: parameters are looked at only then."""
    found = mpc.FairOffsets(tolerance, ndcg_drop, min_effective, level=level, seed=seed)
    return found.fit(mpc.datasets.synthetic(queries=QUERIES))


FUNCTIONS = {
    "FairOffsets": fit_offsets,
    "difference": mpc.difference,
    "discover": mpc.discover,
    "from_ranx": mpc.from_ranx,
    "load": mpc.load,
    "pool": mpc.pool,
    "preflight": mpc.preflight,
    "read_letor": mpc.read_letor,
    "read_run": mpc.read_run,
    "trend": mpc.trend,
    "Boosted": mpc.Boosted,
    "Column": mpc.Column,
    "Demoted": mpc.Demoted,
    "PowerLaw": mpc.PowerLaw,
    "Enough": mpc.Enough,
    "Powered": mpc.Powered,
    "Quantile": mpc.Quantile,
    "Smallest": mpc.Smallest,
    "clicks": mpc.datasets.clicks,
    "clicks_truth": mpc.datasets.clicks_truth,
    "messy": mpc.datasets.messy,
    "messy_truth": mpc.datasets.messy_truth,
    "synthetic": mpc.datasets.synthetic,
    "synthetic_truth": mpc.datasets.synthetic_truth,
    "svd": mpc.rankers.svd,
    "save_chart": mpc.charts.save,
    **{f"charts.{name}": getattr(mpc.charts, name) for name in CHARTS},
}
# By another name than a function: an audit and the front door both have a difference.
METHODS = {
    f"audit.{name}": method
    for name, method in inspect.getmembers(mpc.Audit, inspect.isfunction)
    if not name.startswith("_") and name != "explore"
}

ASKED = METHODS | FUNCTIONS
# Always given, because the default takes long, or warns.
ALWAYS = ("alphas", "draws", "inconclusive", "permutations", "progress")
# A report takes seconds, all else a few hundredths of one.
OFTEN = [name for name in sorted(ASKED) for _ in range(1 if name == "audit.report" else 8)]
# What the question is about: without it there is none.
NEVER_ODD = ("audit", "chart", "found")


class Odd:
    """An object that no argument takes."""

    def __repr__(self):
        return "an odd object"


NUMBERS = (
    *(True, False, np.True_, math.nan, math.inf, -math.inf, -1, -0.5, 0, 1, 2, 2.5, 1e12, 1e300),
    *(5e-324, 2**63, 10**30, 10**400, 1j, Decimal("0.1"), Decimal("nan"), pd.NA, pd.NaT),
    *(np.float64(0.1), np.float32(0.1), np.int8(3), np.array(3), np.datetime64("NaT")),
)
TEXTS = (
    *("", " ", "a", "none", "1", "\0", "baselin", "\ud800", "x" * 300, "é" * 300, "~", "<b>"),
    *(b"a", bytearray(b"x"), np.str_("a"), Path("/"), Path(), Path("no/such.nc")),
)
SEVERAL = (
    *((), [], {}, set(), ["a"], ("a", "a"), ["none"], [None], [[1]], ["a", 1], [math.nan]),
    *([math.inf], [0.2, 0.1], [True], [1e300, -1e300], ["a", ["a"]], {"x": [1]}, {"x": None}),
    *({"a": 1}, {"a"}, np.array([1.0, 2.0]), np.array([]), np.zeros((2, 2)), np.array(["a"])),
    *(pd.Series([1.0]), pd.DataFrame(), range(3), [b"a"], {1: np.zeros(1)}),
)
OTHERS = (None, Odd(), len, lambda *given: None, slice(None), Ellipsis, NotImplemented)
ODD = NUMBERS + TEXTS + SEVERAL + OTHERS

GOOD = {
    "alpha": (None, 0.1),
    "alphas": ([0.0, 0.1], 0.1),
    "anytime": (False, True),
    "asymptotic": (False, True),
    "attributes": ("segment", ["group", "item"], {"half": np.resize([0, 1], 6 * QUERIES)}),
    "background": (None, "white"),
    "base": (None, "baseline"),
    "bias": (0.0, 0.05),
    "bandwidth": (None, 0.2),
    "bins": (1, 3, 20),
    "by": ("query", "item"),
    "by_rank": (False, True),
    "by_segment": (False, True),
    "cluster": ("auto", "query"),
    "contrast": ("difference", "sign"),
    "covariates": ((), "score", ["score", "outcome"]),
    "curve": (False, True),
    "depth": (1, 2),
    "draws": (19,),
    "effect": (0.1,),
    "epsilon": (None, 0, 0.1, 1e300),
    "estimand": ("pairs", "root"),
    "eta": (0.0, 0.7),
    "found": (None,),
    "gate_rule": (None, "baseline"),
    "group": ("a", "b"),
    "groups": (None, ["a"], "b"),
    "honest": (False, True),
    "ids": (False, True),
    "inconclusive": ("pass", "raise"),
    "items": (False, True),
    "k": (1, 10),
    "key": (None, "secret"),
    "level": (None, 0.9),
    "limit": (3, 1),
    "labels": (None, ["first", "second"]),
    "lifted": (0.0, 0.5),
    "live": (False,),
    "min_effective": (0, 5.5),
    "min_pairs": (0, 10),
    "modes": (None, ("matched", "mirrored")),
    "name": ("score", 3),
    "outcome_cap": (None, 0.5),
    "ndcg_drop": (None, 0.01),
    "p": (0.5,),
    "pairing_mode": ("matched", "mirrored", "adjacent"),
    "pairs": (0, 2),
    "path": ("out.nc", "out.html", "out.svg"),
    "permutations": (0, 3),
    "places": (2, 5),
    "planned": (10, 1000),
    "power": (0.8, 0.5),
    "progress": (False,),
    "qrels": ({"q": {"a": 1, "b": 0}},),
    "quantiles": (2, 4),
    "queries": (1, 20, False),
    "rank": (1, 2),
    "rule": (None, "boosted"),
    "run": ({"q": {"a": 0.2, "b": 0.1}},),
    "scale": (1.0,),
    "scores": ([0.1, 0.2],),
    "scoring_rule": ("baseline", "boosted"),
    "seed": (None, 0, 3),
    "segment": (None, "0"),
    "show_ids": (False, True),
    "swapped": (0.0, 0.5),
    "threshold": (0.2, mpc.Quantile(0.5)),
    "title": (None, "a week"),
    "tolerance": (None, 0.1),
    "train_fraction": (0.8,),
    "unjudged": ("drop", "zero"),
    "weights": (None, [3.0, 2.0, 1.0], lambda place: 1 / place),
    "width": (None, 0.2),
}
_CELLS = np.random.default_rng(1).permutation(60)
GOOD["ratings"] = (
    {"user": _CELLS // 6, "item": _CELLS % 6, "rating": _CELLS % 5, "timestamp": np.arange(60)},
)


def _log(rows: int, rng: np.random.Generator) -> dict:
    """Draw a log with every role, six rows a query."""
    query = np.arange(rows) // 6
    return {
        "query": query,
        "score": rng.integers(0, 64, rows) / 64,
        "outcome": rng.integers(0, 2, rows).astype(float),
        "group": np.array(["a", "b", "a|b"])[rng.integers(0, 3, rows)],
        "item": rng.permuted(np.tile(np.arange(6), (rows // 6, 1)), axis=1).ravel(),
        "unit": query // 2,
        "position": np.arange(rows) % 6 + 1,
        "segment": query % 2,
    }


def audits(folder: Path) -> dict[str, mpc.Audit]:
    """Return small audits of each kind, in which every group is called "a" or "b"."""
    rng = np.random.default_rng(0)
    bare = ("query", "score", "outcome", "group")

    def run(roles, log, **options):
        named = {role: role for role in roles}
        return mpc.audit(log, **named, **{"group_sep": "|", "progress": False} | options)

    log, later = _log(6 * QUERIES, rng), _log(6 * QUERIES, rng)
    alone = {**log, "group": np.where(np.arange(6 * QUERIES) // 6 % 2, "a", "b")}
    halves = {**log, "group": np.where(log["score"] > 0.5, "a", "")}
    every = ("matched", "mirrored", "adjacent")
    found = {
        "plain": run(bare, log),
        "full": run(log, log, scoring_rules=("baseline", "boosted"), pairing_modes=every),
        "items": run((*bare, "item"), log, threshold=0.2, scoring_rules=("calibrated", "baseline")),
        "no pairs": run(bare, alone),
        "one group": run(bare, halves, threshold=1),
        "boosted alone": run(bare, log, scoring_rules=(mpc.Boosted(0.1),), tolerance=0.2),
    }
    path = folder / "good.nc"
    found["full"].save(path, items=True)
    found["loaded"] = mpc.load(path)
    found["with rows"] = mpc.load(path, ranking=found["full"].ranking)
    for day, rows in (("monday", log), ("tuesday", later)):
        found[day] = run(bare, rows, threshold=0.2, epsilon=[0.1, 0.2])
    found["pooled"] = mpc.pool([found["monday"], found["tuesday"]])
    return found


@functools.cache
def _chart(audit: mpc.Audit):
    return mpc.charts.forest(audit)


def good_values(name: str, audits: dict[str, mpc.Audit]) -> tuple:
    """Return good values of an argument, by its name."""
    if name == "audit":
        return tuple(audits.values())
    if name in ("new", "old"):
        return audits["monday"], audits["tuesday"]
    if name == "audits":
        return [audits["monday"], audits["tuesday"]], [audits["pooled"]], [audits["full"]] * 2
    if name == "data":
        return audits["plain"].ranking, audits["items"].ranking
    if name == "ranking":
        return None, audits["full"].ranking, audits["plain"].ranking
    if name == "chart":
        return (_chart(audits["plain"]),)
    return GOOD[name]


def arguments(function) -> dict[str, bool]:
    """Return what a function takes, and whether it must be given."""
    found = {}
    for name, one in inspect.signature(function).parameters.items():
        if name != "self" and one.kind != one.VAR_KEYWORD:
            found[name] = one.default is one.empty
    return found


@st.composite
def questions(draw, audits):
    """Draw a method or function, the audit it is asked of, and its arguments, some of them odd."""
    name = draw(st.sampled_from(OFTEN))
    takes = arguments(ASKED[name])
    free = sorted(set(takes) - set(NEVER_ODD))
    odd = draw(st.lists(st.sampled_from(free), max_size=2)) if free else []
    given = {}
    for argument, must in takes.items():
        if argument in odd:
            given[argument] = draw(st.sampled_from(ODD))
        elif must or argument in ALWAYS or draw(st.integers(0, 3)) == 0:
            given[argument] = draw(st.sampled_from(good_values(argument, audits)))
    return draw(st.sampled_from(sorted(audits))), name, given


def put(audits, question):
    """Ask one question."""
    kind, name, given = question
    if name in METHODS:
        return METHODS[name](audits[kind], **given)
    return FUNCTIONS[name](**given)
