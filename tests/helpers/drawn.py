"""Every chart, and what its specification holds."""

from __future__ import annotations

import functools

import mpc_lab as mpc
from mpc_lab import charts

# Every chart as a function of an audit and a group.
CHARTS = {
    "overview": lambda audit, group: charts.overview(audit),
    "forest": lambda audit, group: charts.forest(audit),
    "ladder": lambda audit, group: charts.ladder(audit),
    "mpc_ndcg": lambda audit, group: charts.mpc_ndcg(audit),
    "mpc_ndcg of one": charts.mpc_ndcg,
    "epsilon_curve": charts.epsilon_curve,
    "bracket": charts.bracket,
    "boost": charts.boost,
    "calibration": charts.calibration,
    "placebo": charts.placebo,
    "power": charts.power,
    "love": charts.love,
    "distance_density": charts.distance_density,
    "rivals": charts.rivals,
    "tie": charts.tie,
    "partial": lambda audit, group: charts.partial(audit),
    "examination": lambda audit, group: charts.examination(examined()),
    "difference": lambda audit, group: charts.difference(
        audit.difference(modes=("matched", "mirrored"))
    ),
    "drivers": lambda audit, group: charts.drivers(audit.drivers(group, limit=3)),
    "trend": lambda audit, group: charts.trend(followed()),
    "discover": lambda audit, group: charts.discover(discovered()),
}


@functools.cache
def examined():
    """Return the examination of a log of clicks: the audits of charts have no positions."""
    audit = mpc.audit(mpc.datasets.clicks(2000), epsilon=[0.01], progress=False)
    return audit.examination(places=5)


@functools.cache
def followed():
    """Return the gaps of three periods: the audits of charts have one."""
    weeks = [mpc.datasets.synthetic(queries=300, seed=week) for week in range(3)]
    return mpc.trend([mpc.audit(week, threshold=0.05, progress=False) for week in weeks])


@functools.cache
def discovered():
    """Return the slices of the paper's example: the audits of charts have no attributes."""
    log = mpc.datasets.synthetic(queries=600)
    return mpc.discover(log, ["type", "query_type"], threshold=0.1, progress=False)


def spec(chart):
    """Return the specification, unchecked: that it is valid has a test of its own."""
    return chart.to_dict(validate=False)


def title(chart):
    return " ".join(chart.title.text)


def subtitle(chart):
    return " ".join(chart.title.subtitle)


def walk(node):
    """Yield every dict inside a specification, leaving out the data."""
    if isinstance(node, dict):
        yield node
        for key, value in node.items():
            if key != "datasets":
                yield from walk(value)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value)


def marks(chart):
    return [node["mark"]["type"] for node in walk(spec(chart)) if "mark" in node]


def rows(chart, *columns):
    """Return the rows of the largest dataset that has the columns."""
    tables = spec(chart)["datasets"].values()
    fit = [table for table in tables if table and set(columns) <= set(table[0])]
    return max(fit, key=len)


def fields(chart):
    """Yield (channel, definition) of every encoding that reads a field."""
    for node in walk(spec(chart)):
        for channel, definition in node.get("encoding", {}).items():
            if isinstance(definition, dict) and "field" in definition:
                yield channel, definition
