"""Names and numbers as charts show them, and the frame of one cell."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mpc_lab.arguments import as_whole
from mpc_lab.errors import MpcError
from mpc_lab.results.reading import Cell, settings, slices
from mpc_lab.results.rows import check_label
from mpc_lab.results.wording import decimals, name, noun, number, percent, quoted

if TYPE_CHECKING:
    from mpc_lab.results import Audit


_LABEL = 34


def labels(names: Iterable[object]) -> list[str]:
    r"""Return names fit to show, still different from each other.

    Examples
    --------
    >>> labels(["a", "a\x00", "b"])
    ['a', 'a (2)', 'b']
    """
    seen: set[str] = set()
    shown = []
    for one in names:
        whole = name(one).strip() or "(no name)"
        label = base = whole if len(whole) <= _LABEL else whole[: _LABEL - 1] + "…"
        count = 2
        while label in seen:
            label, count = f"{base} ({count})", count + 1
        seen.add(label)
        shown.append(label)
    return shown


def find_cell(audit: Audit, group: str, rule: str, mode: str) -> Cell:
    """Return one cell of the headline, or say which names there are."""
    check_label("group", group, audit.groups)
    check_label("scoring_rule", rule, audit.headline["scoring_rule"].values.tolist())
    check_label("pairing_mode", mode, audit.headline["pairing_mode"].values.tolist())
    part = next(one for one in slices(audit) if (one.rule, one.mode) == (rule, mode))
    return next(cell for cell in part.cells if cell.group == group)


def groups_at_most(limit: object) -> int:
    """Accept how many groups a chart shows."""
    found = as_whole(limit)
    if found is None or found < 1:
        raise MpcError(f"limit must be a number of groups, 1 or more, not {limit!r}.")
    return found


def level_of(audit: Audit) -> str:
    """Return the level of an audit's intervals, as a percentage."""
    return percent(float(settings(audit).get("level", 0.95)))


def with_interval(estimate: float, low: float, high: float) -> str:
    """Return a number with its interval behind it."""
    if not math.isfinite(estimate):
        return "not estimable"
    if not (math.isfinite(low) and math.isfinite(high)):
        return signed(number(estimate, 4))
    places = decimals(low, high)
    # Held together where lines are broken.
    ends = f"{number(low, places)}\u00a0to\u00a0{number(high, places)}"
    return signed(f"{number(estimate, places)} ({ends})")


def signed(words: str) -> str:
    """Return numbers with a real minus sign."""
    return words.replace("-", "\u2212")


def of_rule(rule: str, mode: str) -> str:
    """Return which pairs a chart shows, unless they are the usual ones."""
    under = "" if rule == "baseline" else f", scores of rule {quoted(rule)}"
    return f"{mode} pairs{under}"


def plural(count: int, word: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {noun(count, word)}"
