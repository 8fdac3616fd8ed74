"""What the finding rests on: curves over ε, the ladder of standard errors, power, balance."""

from __future__ import annotations

import math

import xarray as xr

from mpc_lab.charts.tie import draw as draw_tie
from mpc_lab.html import Head, escape, label, paragraphs, table
from mpc_lab.report.context import PLACEBOS, Context
from mpc_lab.results.base import is_rank_only
from mpc_lab.results.questions.drivers import heaviest_in_words
from mpc_lab.results.questions.limit import sides_by_place
from mpc_lab.results.questions.power import gap_that_matters
from mpc_lab.results.summary import Cell, decimals_of
from mpc_lab.text import NOTHING, beside, entry, minus, p_value, percent, quote, with_ends

_ROWS = 50
_POWER = 0.8


def curves(context: Context) -> str:
    """Return a curve for each of them."""
    how = (
        "A gap that is there only at one ε deserves distrust. The inner area is the interval at "
        "each ε on its own, the outer one a band that covers the whole curve at once. At ε above 0 "
        "the item scored lower should have a slightly lower outcome whatever its group, so that "
        "curves tend to fall."
    )
    # The overview has the curves of all groups, and one walk makes them together with these.
    context.make_curves()
    pieces = [_of_ties(context), paragraphs([how], "soft")]
    pieces.append(paragraphs([context.focus_note()], "note"))
    for cell in context.focus:
        pieces.append(f"<h3>Group {label(cell.group)}</h3>")
        pieces.append(context.attempt(_curve, context, cell))
    if not context.has_rows:
        pieces.append(
            paragraphs(["The limit ε → 0 and the certificate need the rows of the log."], "note")
        )
    return "".join(pieces)


def _curve(context: Context, cell: Cell) -> str:
    part = context.part
    drawn = context.draw("epsilon_curve", cell.group, part.rule, part.mode)
    if not context.has_rows:
        return drawn
    if not is_rank_only(context.audit):
        # What the gap at a tie is comes before how it changes with ε.
        drawn = f'<div class="beside">{context.attempt(_tie, context, cell)}{drawn}</div>'
    return (
        drawn
        + context.attempt(_limit, context, cell)
        + context.attempt(_certificate, context, cell)
    )


def _tie(context: Context, cell: Cell) -> str:
    rule = context.part.rule
    return context.figure(
        draw_tie(context.audit, cell.group, rule, lambda: context.tie(cell.group, rule))
    )


def _of_ties(context: Context) -> str:
    """Say how both sides of a tie are read, where they are drawn."""
    if not context.has_rows or is_rank_only(context.audit):
        return ""
    shown = sides_by_place(context.audit)
    how = [
        "First, pairs with nearly equal scores: left of 0 the item of the group was "
        f"{'shown' if shown else 'ranked'} below the other, right of it above. At 0 their scores "
        "are equal. Half the jump there is what being above is worth; its middle is the gap at a "
        "tie, which that does not touch. The mean of both sides over all these pairs is the gap of "
        "symmetric pairs.",
        ""
        if shown
        else "Sides go by score here, not by where items were shown: the jump is not called an "
        "effect of place.",
    ]
    return paragraphs(how, "soft")


def _limit(context: Context, cell: Cell) -> str:
    part = context.part
    found = context.limit(cell.group, part.rule, part.mode)
    value, ends = with_ends(float(found.estimate), float(found.ci_low), float(found.ci_high))
    method = str(found.method.item())
    if method == "not estimable":
        return f"<p><b>Limit ε → 0:</b> not estimable ({escape(found.reason.item())}).</p>"
    return (
        f"<p><b>Limit ε → 0:</b> {value} ({escape(context.level)} interval {ends}, not adjusted "
        f"for the number of groups), by {escape(method)} "
        f"over {int(found.n_pairs):,} pairs with distances up to {float(found.bandwidth):.3g}; "
        f"{escape(percent(round(float(found.tie_share), 4)))} of them are ties.</p>"
    )


def _certificate(context: Context, cell: Cell) -> str:
    found = context.certificate(cell.group, context.part.rule)
    return f"<p><b>Certificate:</b> {minus(escape(found.sentence))}</p>"


def ladder(context: Context) -> str:
    """Return the standard errors by what is taken as independent."""
    how = (
        "Pairs that share a query or an item are not independent. Each mark is the standard error "
        "under one assumption; the upright tick is the one used. A wide ladder says that the "
        "gap rests on few queries or items."
    )
    drawn = context.draw("ladder", context.part.rule, context.part.mode)
    pieces = [paragraphs([how], "soft"), drawn]
    if context.has_rows:
        pieces += [context.attempt(_heaviest, context, cell) for cell in context.focus]
    return "".join(pieces)


def _heaviest(context: Context, cell: Cell) -> str:
    """Name the query, and the item, without which the gap would change most."""
    part = context.part
    found = context.heaviest(cell.group, part.rule, part.mode)
    words = [heaviest_in_words(one, show_ids=context.show_ids) for one in found]
    return paragraphs(words, "note")


def power(context: Context) -> str:
    """Return the smallest gap that could have been found in each group."""
    effect = gap_that_matters(context.options)
    found = context.audit.power(effect, _POWER).sel(
        scoring_rule=context.part.rule, pairing_mode=context.part.mode
    )
    how = (
        f"The smallest gap that such a log shows with a probability of {percent(_POWER)}, for one "
        "group on its own and adjusted for the number of groups; and the floor below which more "
        "queries of the same catalogue do not help. A smaller gap may exist and not be seen."
    )
    heads = [Head("Group", True), Head("Gap found"), Head("Smallest detectable gap")]
    heads += [Head("Adjusted"), Head("Floor of the catalogue")]
    if effect is not None:
        heads.append(Head(f"Queries needed for a gap of {effect:g}"))
        heads.append(Head("Adjusted"))
    shown = context.part.cells[:_ROWS]
    places = decimals_of(shown)
    rows = [_power_row(cell, found, effect is not None, places) for cell in shown]
    more = len(context.part.cells) - len(shown)
    pieces = [paragraphs([how], "soft"), table(heads, rows)]
    pieces += [paragraphs([f"And {more:,} more groups."], "note")] if more else []
    if context.focus:
        cell = (context.focus[0].group, context.part.rule, context.part.mode)
        pieces.append(context.attempt(context.draw, "power", *cell))
    return "".join(pieces)


def _power_row(cell: Cell, found: xr.Dataset, with_effect: bool, places: int) -> list[str]:
    one = found.sel(group=cell.group)
    names = ["mde", "mde_adjusted", "mde_floor"]
    row = [label(cell.group), beside(cell.estimate, places)]
    row += [beside(float(one[name]), places) for name in names]
    if not with_effect:
        return row
    needed = [float(one[name]) for name in ("queries_needed", "queries_needed_adjusted")]
    return [*row, *("without end" if math.isinf(q) else entry(q, ",.0f") for q in needed)]


def balance(context: Context) -> str:
    """Return how alike the two sides are, how often items recur, and what placebos show."""
    if not context.focus:
        return paragraphs(["No group has pairs to compare."], "note")
    return context.attempt(_balance, context)


def _balance(context: Context) -> str:
    names = [cell.group for cell in context.focus]
    mode, found = context.mode_of_one_side, context.balance
    level = float(context.options.get("level", 0.95))
    how = (
        f"Placebos: {PLACEBOS} groups of the same size with members drawn at random"
        f"{_drawn(found)}. At most about {percent(round(1 - level, 4))} of them should be rejected "
        "by the audit's own standard errors; many more would say that its intervals are too "
        "narrow. Where the group has more items that are shown often, or more that are shown "
        "seldom, they centre on what the two kinds differ by, not on 0. The p-value is the rank of "
        "the group itself among its placebos, in both orders together. Few effective items say "
        "that the finding is about few items."
    )
    heads = [Head("Group", True), Head("Placebos rejected"), Head("between")]
    heads += [Head("Placebos centre on")]
    heads += [Head("Group itself"), Head("<i>p</i> among placebos")]
    heads += [Head("Effective queries"), Head("Effective items, group"), Head("others")]
    rows = [_balance_row(found.sel(group=name), name) for name in names]
    which = (
        f"These are {mode} pairs: in {context.part.mode} ones the item of the group is on either "
        "side."
        if mode != context.part.mode
        else ""
    )
    pieces = [paragraphs([which, how], "soft"), table(heads, rows)]
    cell = (context.focus[0].group, context.part.rule, mode)
    drawn = context.attempt(context.draw, "placebo", *cell, found=found)
    drawn += context.attempt(context.draw, "love", cell[0], (), *cell[1:], found=found)
    pieces.append(f'<div class="beside">{drawn}</div>')
    more = (
        "Only the position in the list is compared: audit.report(…, covariates=[…]) adds columns."
    )
    return "".join([*pieces, *([] if context.covariates else [paragraphs([more], "soft")])])


def _drawn(found: xr.Dataset) -> str:
    """Return in words what the labels of placebos were permuted among."""
    rows = [
        str(name)
        for name, by in zip(found["group"].values, found["placebo_by"].values, strict=True)
        if by == "row"
    ]
    if not rows:
        return " among items that are shown about as often"
    if len(rows) == found.sizes["group"]:
        return " among the rows of each query"
    named = ", ".join(quote(name) for name in rows)
    return f" among items that are shown about as often (for {named} among the rows of each query)"


def _balance_row(one: xr.Dataset, name: str) -> list[str]:
    shares = [float(one[f"placebo_rejected{end}"]) for end in ("", "_low", "_high")]
    row = [label(name)]
    if math.isfinite(shares[0]):
        # One decimal throughout: the rows are read down the column.
        share, low, high = (escape(f"{100 * value:.1f} %") for value in shares)
        row += [share, f"{low} and {high}"]
    else:
        row += [NOTHING, NOTHING]
    row += [beside(float(one[key]), 3) for key in ("placebo_expected", "placebo_observed")]
    row += [escape(p_value(float(one["placebo_observed_p_value"])))]
    row += [entry(float(one["effective_queries"]), 1)]
    sides = one["effective_items"].values.tolist() if "effective_items" in one else [math.nan] * 2
    return row + [entry(float(side), 1) for side in sides]
