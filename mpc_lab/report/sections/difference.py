"""What each scoring rule changes against the first: gaps, ranked lists, and in words."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

from mpc_lab.charts.difference import difference, difference_rows
from mpc_lab.html import Head, escape, label, paragraphs, table
from mpc_lab.report.context import Context
from mpc_lab.results.difference import Difference
from mpc_lab.text import (
    NOTHING,
    beside,
    minus,
    p_value,
    percent,
    shared_decimals,
    with_ends,
    with_interval,
)
from mpc_lab.vocabulary import NOT_ESTIMABLE

_ROWS = 50


def has_rules(context: Context) -> bool:
    """Whether there are two rules to compare."""
    return context.audit.headline.sizes["scoring_rule"] > 1


def rules(context: Context) -> str:
    """Return the difference of each rule from the first one, with chart and words."""
    how = (
        "Two intervals side by side do not say whether a gap changed: both rules order the same "
        "items of the same queries, so that their gaps move together. Here each gap is subtracted "
        "from that of the other rule, and the interval is that of the difference, adjusted over "
        "groups. Each rule is at its own threshold."
    )
    pieces = [paragraphs([how], "soft")]
    base = context.part.rule
    for rule in context.audit.headline["scoring_rule"].values.tolist():
        if rule != base:
            pieces.append(f"<h3>{label(rule)} less {label(base)}</h3>")
            pieces.append(context.attempt(_rule, context, rule, base))
    return "".join(pieces)


def _rule(context: Context, rule: str, base: str) -> str:
    found = context.audit.difference(rule, base)
    mode = context.part.mode
    frame = difference_rows(found, mode)
    heads = [Head("Group", True), Head("Verdict", True), Head("Old gap"), Head("New gap")]
    heads += [Head("Difference"), Head("Adjusted <i>p</i>")]
    shown = frame.head(_ROWS)
    places = shared_decimals(zip(shown["low"], shown["high"], strict=True))
    rows = [_row(row, places) for row in shown.to_dict("records")]
    more = len(frame) - len(rows)
    pieces = [context.figure(difference(found, mode)), table(heads, rows)]
    pieces += [paragraphs([f"And {more:,} more groups."], "note")] if more else []
    notes = str(found.attrs["notes"]).split("\n")
    return "".join([*pieces, paragraphs([*_lists(found, frame["group"][0]), *notes], "note")])


def _row(row: Mapping[Hashable, Any], places: int) -> list[str]:
    verdict, known = str(row["verdict"]), row["verdict"] != NOT_ESTIMABLE
    size, ends = with_ends(row["difference"], row["low"], row["high"], places)
    noise = 1e-9 * (row["high"] - row["low"])  # a mean of exact opposites is 0 but for rounding
    return [
        label(row["group"]),
        escape(verdict if known else f"{verdict}: {row['reason'] or 'a gap has no pairs'}"),
        *(beside(0.0 if abs(row[side]) < noise else row[side], 3) for side in ("old", "new")),
        escape(f"{size} ({ends})" if known and size != NOTHING else NOTHING),
        escape(p_value(row["p"])),
    ]


def _lists(found: Difference, group: str) -> list[str]:
    """Say what becomes of the ranked lists; a rule may have lists of its own for each group."""
    if "ndcg_change" not in found.data:
        return []
    one = found.data.sel(group=group)
    ends = [float(one[f"ndcg_change{end}"]) for end in ("", "_low", "_high")]
    ndcg = f"NDCG changes by {with_interval(*ends)}; " if math.isfinite(ends[0]) else ""
    churn, moved = float(one["churn"]), float(one["displacement"])
    values = found.data["churn"].values
    own = len(values) > 1 and not math.isclose(values.min(), values.max())
    which = f" under the scores for group '{group}'" if own else ""
    return [
        minus(
            f"Ranked lists{which}: {ndcg}the first {found.attrs['top']} items of "
            f"{percent(round(churn, 3))} of the queries differ, and an item moves by "
            f"{moved:.3g} places on average."
        )
    ]
