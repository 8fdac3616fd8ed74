"""What a fuzz run throws at the package: frames, options and files, and what may come out.

Nothing but ``MpcError`` comes out, no warning from numpy, and no input takes long.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import mpc_lab as mpc
from mpc_lab import cli

SECONDS_AT_MOST = 60.0
ROLES = ("query", "score", "outcome", "group", "item", "unit", "position", "segment")
ODD_NUMBERS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 1e300, -1e300, 1e-300, 5e-324, 1e12, 1 + 2**-52, 1 / 3),
    *(math.nan, math.inf, -math.inf, 2.0**53, -(2.0**63), 1.7976931348623157e308),
)
ODD_OUTCOMES = (0.0, -0.0, 1.0, 1e12, 1e12 + 1, -1e12, 1e-300, 5e-324, 1e100, -1e100)
ODD_TEXTS = (
    *("", " ", "a", "b", "a|b", "|", "a,b", "\0", "\x1b[2J", "<script>", "=1+1", "nan", "None"),
    *("NA", "True", "0", "007", "\ud800", "\u202e", "x" * 300, "é", "😀", "\n", '"', "'", "\\"),
)
# Options that an audit can be run with, and others that it must refuse in one sentence.
GOOD = {
    "threshold": (
        *(0, 0.1, 1e300, mpc.Quantile(0.5), mpc.Quantile(1), mpc.Smallest(1)),
        *(
            mpc.Smallest(10**9),
            mpc.Powered(0.1),
            mpc.Powered(1e-300),
            mpc.Enough(),
            mpc.Enough(3, 2),
        ),
    ),
    "epsilon": (None, [0.1], [0, 1e-300, 1e300]),
    "cluster": ("auto", "query", "naive"),
    "level": (0.95, 0.5, 0.999999999, 1e-9),
    "adjust": ("holm", "romano_wolf", "fdr_bh", "none"),
    "tolerance": (None, 0, 0.1, 1e300),
    "bootstrap": (0, 19),
    "seed": (0, 1, 2**32 - 1),
    "pairing_modes": (
        *(("matched",), ("matched", "mirrored", "adjacent"), ("adjacent",), "mirrored"),
    ),
    "scoring_rules": (
        *(("baseline", "boosted", "demoted", "calibrated"), "calibrated", (mpc.Boosted(1e300),)),
        *((mpc.Boosted(0.1), mpc.Demoted(0.1)), (mpc.Column("position"), "baseline")),
        (lambda ranking, group: ranking.score,),
    ),
    "groups": (None, ["a"], "a"),
    "group_sep": (None, "|"),
}
BAD = {
    "threshold": (-1, math.nan, "0.1", None, True, 10**400),
    "epsilon": ([], [0.2, 0.1], "x", [[1]], [None], [math.inf]),
    "cluster": ("union", "item", "all", None, 3),
    "level": (0, 1, 2, math.nan, "0.9", True, None),
    "adjust": ("bonferroni", None),
    "tolerance": (-1, math.inf, math.nan, "much", True),
    "bootstrap": (1, -1, 2.5, "x", True),
    "seed": (2**64, -1, 0.5, None, "x"),
    "pairing_modes": ((), ("matched", "matched"), ("none",), 3, (None,)),
    "scoring_rules": (
        *(("none",), (), (None,), 3, (lambda ranking, group: None,), (mpc.Column("none"),)),
        (lambda ranking, group: ranking.score * math.nan,),
    ),
    "groups": (["a", "a"], [], ["none"], 3, [None]),
    "missing": ("drop", "keep", None),
    "group_sep": ("", ",", 3),
}


@st.composite
def columns(draw, rows):
    """Draw a column of any kind, fit for something or for nothing."""
    kind = draw(st.sampled_from(("number", "grid", "text", "whole", "boolean", "list", "odd")))
    pick = {
        "number": st.one_of(st.sampled_from(ODD_NUMBERS), st.floats()),
        "grid": st.integers(0, 8).map(lambda k: k / 8),
        "text": st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=5)),
        "whole": st.integers(0, 4),
        "boolean": st.booleans(),
        "list": st.lists(st.sampled_from(ODD_TEXTS), max_size=3),
        "odd": st.sampled_from((None, 1, "a", 2.5, True, (), b"x", object, math.nan, 10**30)),
    }[kind]
    values = draw(st.lists(pick, min_size=rows, max_size=rows))
    if kind in ("list", "odd"):
        made = np.empty(rows, dtype=object)
        made[:] = values
        return made
    return values


@st.composite
def usable(draw, role, rows):
    """Draw a column that its role can use, so that the audit gets far."""
    # From a seed: to draw each number by itself would take most of the time of a run.
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if role in ("score", "outcome"):
        odd = ODD_NUMBERS[:12] if role == "score" else ODD_OUTCOMES
        kind = draw(st.sampled_from(("grid", "plain", "odd")))
        picked = {
            "grid": rng.integers(0, 9, rows) / 8,
            "plain": rng.uniform(-10, 10, rows),
            "odd": rng.choice(odd, rows),
        }[kind]
    elif role == "group":
        picked = rng.choice(("a", "b", "a|b", "", "<script>"), rows)
    elif role == "query":
        picked = rng.integers(0, max(1, rows // 6) + 1, rows)
    else:
        picked = np.arange(1, rows + 1)
    return picked.tolist()


@st.composite
def frames(draw):
    """Draw a log with its keywords, often usable."""
    rows = draw(st.one_of(st.integers(0, 12), st.integers(12, 60)))
    roles = list(ROLES[:4]) + draw(st.lists(st.sampled_from(ROLES[4:]), unique=True))
    spoilt = draw(st.sampled_from((0, 0, 0, 1, 2)))
    bad = draw(st.lists(st.sampled_from(roles), min_size=spoilt, max_size=spoilt))
    log = {role: draw(columns(rows) if role in bad else usable(role, rows)) for role in roles}
    for role, step in (("unit", 2), ("segment", 3)):
        # Each query is in one of them.
        if role in roles and role not in bad and "query" not in bad:
            log[role] = [query // step for query in log["query"]]
    named = {role: role for role in roles}
    if draw(st.integers(0, 9)) == 0:
        named[draw(st.sampled_from(roles))] = draw(
            st.one_of(st.sampled_from(ODD_TEXTS), st.none(), st.just(3), st.just(["query", "item"]))
        )
    return log, named


@st.composite
def options(draw):
    """Draw some options of an audit, now and then an impossible one."""
    chosen = draw(st.lists(st.sampled_from(sorted(GOOD)), max_size=3, unique=True))
    found = {name: draw(st.sampled_from(GOOD[name])) for name in chosen}
    if draw(st.integers(0, 4)) == 0:
        name = draw(st.sampled_from(sorted(BAD)))
        found[name] = draw(st.sampled_from(BAD[name]))
    return found


class Finding(AssertionError):
    """Something came out that should not have."""


def guard(work):
    """Run some work: an ``MpcError`` is an answer, anything else but a value is a finding."""
    # Time of the processor: that of the clock depends on what else the machine does.
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Of pandas and others, about what their next version will do.
        for kind in (DeprecationWarning, FutureWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", kind)
        try:
            found = work()
        except mpc.MpcError as error:
            text = str(error)
            if not text or len(text) > 20_000:
                raise Finding(f"an error of {len(text)} characters") from error
            found = None
    took = time.process_time() - start
    if took > SECONDS_AT_MOST:
        raise Finding(f"it took {took:.0f} seconds")
    return found


def as_pandas(log):
    """Return a log as a frame, or as it is where pandas takes no such columns."""
    try:
        return pd.DataFrame(log)
    except (ValueError, TypeError, OverflowError):
        return log


def audit_frame(log, named, chosen):
    """Audit a log and ask the result for everything that needs no long work."""
    audit = mpc.audit(log, **{**named, **chosen}, progress=False)
    audit.summary()
    audit._repr_html_()
    json.loads(audit.to_json(curve=False))
    audit.model_card()
    audit.power()
    return audit


ASKED = {
    "to_json": lambda audit, group: json.loads(audit.to_json()),
    "pairs": lambda audit, group: audit.pairs(group, limit=3),
    "limit": lambda audit, group: audit.limit(group),
    "certificate": lambda audit, group: audit.certificate(group),
    "balance": lambda audit, group: audit.balance((), group, permutations=3),
    "compare": lambda audit, group: audit.compare([group]),
    "fair_boost": lambda audit, group: audit.fair_boost(group),
    "boost_curve": lambda audit, group: audit.boost_curve(group, [0.0, 0.1]),
    "objective": lambda audit, group: audit.objective,
    "by_position": lambda audit, group: audit.by_position(group),
    "by_segment": lambda audit, group: audit.by_segment(),
    "calibration": lambda audit, group: audit.calibration(group, bins=3),
    "check": lambda audit, group: audit.check(inconclusive="pass"),
    "confidence_sequence": lambda audit, group: audit.confidence_sequence(),
    "bootstrap": lambda audit, group: audit.bootstrap(19),
}


def ask(audit, question):
    return ASKED[question](audit, audit.groups[0])


def spoil(content, edits):
    """Return bytes with some cut, changed or added."""
    data = bytearray(content)
    for kind, place, value in edits:
        at = place % (len(data) + 1)
        if kind == "cut":
            del data[at:]
        elif kind == "set" and at < len(data):
            data[at] = value
        elif kind == "add":
            data[at:at] = bytes([value]) * 3
        elif kind == "lose":
            del data[at : at + value]
    return bytes(data)


def edits():
    kinds = st.sampled_from(("cut", "set", "add", "lose"))
    one = st.tuples(kinds, st.integers(0, 10**7), st.integers(0, 255))
    return st.lists(one, min_size=1, max_size=4)


def seeds(folder: Path) -> dict[str, bytes]:
    """Return the bytes of a good file of each kind."""
    draw = np.random.default_rng(0)
    n = 60
    log = {
        "query": np.repeat(np.arange(10), 6),
        "score": draw.integers(0, 64, n) / 64,
        "outcome": draw.integers(0, 2, n).astype(float),
        "group": np.array(["a", "b", "a|b"])[draw.integers(0, 3, n)],
    }
    frame = pd.DataFrame(log)
    frame.to_csv(folder / "log.csv", index=False)
    frame.to_csv(folder / "log.csv.gz", index=False)
    frame.to_parquet(folder / "log.parquet")
    frame.to_feather(folder / "log.feather")
    (folder / "audit.toml").write_text(
        'files = "log.csv"\nquery = "query"\nscore = "score"\noutcome = "outcome"\n'
        'group = "group"\ngroup-sep = "|"\nrules = ["baseline", "boosted:0.1"]\ntolerance = 0.1\n'
    )
    audit = mpc.audit(log, **{role: role for role in ROLES[:4]}, progress=False)
    audit.save(folder / "audit.nc")
    names = ("log.csv", "log.csv.gz", "log.parquet", "log.feather", "audit.toml", "audit.nc")
    return {name: (folder / name).read_bytes() for name in names}


def read_file(folder: Path, name: str, content: bytes) -> int:
    """Write bytes to a file and read it as what its name says; return the exit code."""
    path = folder / name
    path.write_bytes(content)
    if name.endswith(".nc"):
        loaded = mpc.load(path)
        loaded.summary()
        return 0
    words = ["--config", str(path)] if name.endswith(".toml") else [str(path), *LINE]
    try:
        code = cli.main(["audit", *words, "--quiet", "--no-progress"])
    except SystemExit as stop:
        code = int(stop.code or 0)
    if code not in (0, 1, 2, 3):
        raise Finding(f"exit code {code}")
    return code


LINE = [word for role in ROLES[:4] for word in (f"--{role}", role)]


WORDS = {
    "--threshold": ("0.1", "quantile:0.5", "smallest:3", "powered:0.1:0.9", "0"),
    "--epsilon": ("0.1", "0.1,0.2"),
    "--rules": ("baseline", "baseline,boosted:0.1", "calibrated", "column:score"),
    "--modes": ("matched,adjacent", "mirrored"),
    "--groups": ("a", "a,b"),
    "--level": ("0.9",),
    "--adjust": ("holm", "none", "fdr_bh"),
    "--tolerance": ("0.1", "0"),
    "--bootstrap": ("19",),
    "--seed": ("3",),
    "--cluster": ("query", "naive"),
    "--planned": ("50",),
    "--group-sep": ("|",),
    "--missing": ("drop",),
    "--segment": ("query",),
    "--json": ("-",),
}
FLAGS = ("--gate", "--anytime", "--quiet", "--no-gate", "--", "-", "@x", "query", "--guess")


@st.composite
def lines(draw):
    """Draw words for the command line: mostly options with a value they take."""
    words = []
    for name in draw(st.lists(st.sampled_from(sorted(WORDS)), max_size=4, unique=True)):
        odd = draw(st.integers(0, 9)) == 0
        words += [name, draw(st.sampled_from(ODD_TEXTS if odd else WORDS[name]))]
    if draw(st.booleans()):
        words.append(draw(st.sampled_from(FLAGS)))
    if draw(st.integers(0, 9)) == 0:
        words.append(draw(st.text(max_size=8)))
    return words


def run_line(log: Path, words: list[str]) -> int:
    """Run a command line over a good log and return its exit code."""
    try:
        code = cli.main(["audit", str(log), *LINE, "--no-progress", *words])
    except SystemExit as stop:
        code = int(stop.code or 0)
    if code not in (0, 1, 2, 3):
        raise Finding(f"exit code {code}")
    return code


def scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="mpc_lab_fuzz_")
