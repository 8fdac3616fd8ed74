"""Logs that charts are drawn from, and what a chart's specification holds."""

from __future__ import annotations

import numpy as np

from mpc_lab import charts

HOSTILE = (
    "</script><script>alert(1)</script>\x01",
    "a'b\"c&d\\",
    "datum.group ? 1 : 2",
    "😀",
    "עברית",
    "line\nbreak",
    "x" * 200,
    "x" * 200 + "y",
)


def log(groups, queries=150, items=12, seed=0):
    """Return a log whose rows carry the groups in turn."""
    draw = np.random.default_rng(seed)
    n = queries * items
    score = draw.uniform(size=n)
    return {
        "query": np.repeat(np.arange(queries), items),
        "item": draw.integers(0, 400, n) * items + np.tile(np.arange(items), queries),
        "score": score,
        "outcome": (draw.uniform(size=n) < score).astype(float),
        "group": np.array(groups, dtype=object)[draw.integers(0, len(groups), n)],
    }


# Every chart as a function of an audit and a group.
CHARTS = {
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
    "gap_density": charts.gap_density,
    "rivals": charts.rivals,
}


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
