"""What the finding rests on: the ladder of standard errors, power, balance and placebos."""

from __future__ import annotations

import math

import xarray as xr

from mpc_lab import charts
from mpc_lab.report.context import Context
from mpc_lab.report.html import Head, count, label, paragraphs, probability, signed, table, words
from mpc_lab.results.reading import Cell
from mpc_lab.results.wording import number, percent

_ROWS = 50
_PLACEBOS = 100
_POWER = 0.8


def ladder(context: Context) -> str:
    """Return the standard errors by what is taken as independent."""
    how = (
        "Pairs that share a query or an item are not independent. Each mark is the standard error "
        "under one assumption; the upright tick is the one used. A wide ladder says that few "
        "queries or items carry the finding."
    )
    chart = charts.ladder(context.audit, context.part.rule, context.part.mode)
    return paragraphs([how], "soft") + context.figure(chart)


def power(context: Context) -> str:
    """Return the smallest gap that could have been found in each group."""
    tolerance = context.options.get("tolerance")
    effect = float(tolerance) if tolerance else None
    found = context.audit.power(effect, _POWER).sel(
        scoring_rule=context.part.rule, pairing_mode=context.part.mode
    )
    how = (
        f"The smallest gap that such a log shows with a probability of {percent(_POWER)}, for one "
        "group on its own and adjusted for the number of groups; and the floor below which more "
        "queries of the same catalogue do not help. A gap below this may be there unseen."
    )
    heads = [Head("Group", True), Head("Gap found"), Head("Smallest findable")]
    heads += [Head("Adjusted"), Head("Floor of the catalogue")]
    if effect is not None:
        heads.append(Head(f"Queries needed for a gap of {effect:g}"))
    shown = context.part.cells[:_ROWS]
    rows = [_power_row(cell, found, effect is not None) for cell in shown]
    more = len(context.part.cells) - len(shown)
    pieces = [paragraphs([how], "soft"), table(heads, rows)]
    pieces += [paragraphs([f"And {more:,} more groups."], "note")] if more else []
    if context.focus:
        first = context.focus[0].group
        pieces.append(
            context.attempt(
                lambda: context.figure(
                    charts.power(context.audit, first, context.part.rule, context.part.mode)
                )
            )
        )
    return "".join(pieces)


def _power_row(cell: Cell, found: xr.Dataset, with_effect: bool) -> list[str]:
    one = found.sel(group=cell.group)
    names = ["mde", "mde_adjusted", "mde_floor"]
    row = [label(cell.group), signed(cell.estimate, 3)]
    row += [signed(float(one[name]), 3) for name in names]
    return [*row, count(float(one["queries_needed"]))] if with_effect else row


def balance(context: Context) -> str:
    """Return how alike the two sides are, how often items recur, and what placebos show."""
    if not context.focus:
        return paragraphs(["No group has pairs to compare."], "note")
    return context.attempt(lambda: _balance(context))


def _balance(context: Context) -> str:
    names = [cell.group for cell in context.focus]
    found = context.audit.balance(
        context.covariates, names, context.part.rule, context.part.mode, permutations=_PLACEBOS
    )
    level = float(context.options.get("level", 0.95))
    how = (
        f"Placebos: the same group with its members dealt out anew inside each query, {_PLACEBOS} "
        "times. About "
        f"{percent(round(1 - level, 4))} of them should be rejected by their own test, which "
        "gives random signs to the sums of queries; many more would say that groups without "
        "meaning do not centre on 0. Where the audit's own standard errors reject many more, its "
        "intervals are too narrow. The p-value is the rank of the group itself among its placebos, "
        "in both orders together. Few effective items say that the finding is about few items."
    )
    heads = [Head("Group", True), Head("Placebos rejected"), Head("as audited")]
    heads += [Head("Mean of placebos")]
    heads += [Head("Group itself"), Head("<i>p</i> among placebos")]
    heads += [Head("Effective queries"), Head("Effective items, group"), Head("others")]
    rows = [_balance_row(found.sel(group=name), name) for name in names]
    pieces = [paragraphs([how], "soft"), table(heads, rows)]
    cell = (context.focus[0].group, context.part.rule, context.part.mode)
    pieces.append(
        context.attempt(lambda: context.figure(charts.placebo(context.audit, *cell, found=found)))
    )
    pieces.append(
        context.attempt(
            lambda: context.figure(charts.love(context.audit, cell[0], (), *cell[1:], found=found))
        )
    )
    more = (
        "Only the position in the list is compared: audit.report(…, covariates=[…]) adds columns."
    )
    return "".join([*pieces, *([] if context.covariates else [paragraphs([more], "soft")])])


def _balance_row(one: xr.Dataset, name: str) -> list[str]:
    row = [label(name)]
    for key in ("placebo_rejected", "placebo_rejected_as_audited"):
        rejected = float(one[key])
        row.append(words(percent(round(rejected, 4))) if math.isfinite(rejected) else "–")
    row += [signed(float(one[key]), 3) for key in ("placebo_mean", "placebo_observed")]
    row += [probability(float(one["placebo_observed_p_value"]))]
    row += [_effective(float(one["effective_queries"]))]
    sides = one["effective_items"].values.tolist() if "effective_items" in one else [math.nan] * 2
    return row + [_effective(float(side)) for side in sides]


def _effective(value: float) -> str:
    return number(value, 1) if math.isfinite(value) else "–"
