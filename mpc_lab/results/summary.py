"""An audit in plain words: its cells in the order a person reads them, and a sentence for each.

The words are chosen so as not to overstate: a gap that was not found is not a gap that is absent.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpc_lab.inference.estimates import FEWEST_CLUSTERS, TOO_FEW_CLUSTERS, TOO_FEW_PRODUCERS
from mpc_lab.pairing.terms import MOST_VISITED, SIGN, Enough
from mpc_lab.results.base import has_tied_pairs, settings
from mpc_lab.results.questions.power import findable, threshold_of, tried
from mpc_lab.results.wording import (
    columns_of,
    declared,
    gap_in_words,
    left_out_in_words,
    outcome_word,
    terms_in_words,
)
from mpc_lab.text import (
    between,
    decimals,
    guard_range,
    listing,
    noun,
    number,
    percent,
    plural,
    quote,
    shared_decimals,
)
from mpc_lab.vocabulary import (
    DIRECTIONS,
    INCONCLUSIVE,
    ITEM,
    MATCHED,
    MODES,
    NOT_ESTIMABLE,
    OVERVALUED,
    REASONS,
    VARIANCES,
    VERDICTS,
    WITHIN,
    of_owner,
    verdict_modes,
)

if TYPE_CHECKING:
    from mpc_lab.results.audit import Audit

_NAMED_AT_MOST = 8
_OTHERS_AT_MOST = 12
_FEW_GROUPS = 3
_COARSE = 1.25
_FEW_CLUSTERS = 20
_LAST_BITS = 1e-12

CUT_AT_0 = "An interval that ends at exactly 0 was cut there by the test that excludes 0."
_COVERS = "covers 0: no evidence of a gap, which is not evidence that there is none"
_NOT_ESTIMABLE = {
    "no pairs": "no pairs within the threshold",
    "nothing to pair": "in no query is there a pair of an item inside the group and one outside it",
    "effective clusters below 2": "pairs from fewer than 2 effective queries or items",
    TOO_FEW_CLUSTERS: f"pairs from fewer than {FEWEST_CLUSTERS} effective queries or items",
    TOO_FEW_PRODUCERS: (
        f"pairs from fewer than {FEWEST_CLUSTERS} effective producers, too few to speak for other "
        'producers; for these producers as they are, use cluster="query"'
    ),
    "variance is 0": "all pairs alike, so that there is no variance to measure",
}
# The same for the pairs of the other side, which the verdict needs too.
_OTHER_SIDE = {
    "no pairs": "there are no {those} within the threshold",
    TOO_FEW_CLUSTERS: f"the {{those}} are from fewer than {FEWEST_CLUSTERS} effective queries or "
    "items",
    "variance is 0": "the {those} are all alike, so that there is no variance to measure",
}
_FIELDS = {
    "verdict": "verdict",
    "reason": "verdict_reason",
    "estimate": "estimate",
    "std_error": "std_error",
    "low": "bracket_low",
    "high": "bracket_high",
    "p": "bracket_p_adjusted",
    "pairs": "n_pairs",
    "queries": "n_queries",
    "effective": "n_effective",
    "epsilon": "epsilon",
    "ties": "tie_inflation",
}


_OPTIONAL = {
    "underpowered": ("underpowered", False),
    "short": ("short_of_pairs", False),
}


@dataclass(frozen=True)
class Cell:
    """One group under one rule and mode. Interval and p are those that the verdict rests on.

    `tied` says whether any pairs under the rule are tied.
    """

    group: str
    verdict: str
    reason: str
    estimate: float
    std_error: float
    low: float
    high: float
    p: float
    pairs: int
    queries: int
    effective: float
    epsilon: float
    ties: float
    underpowered: bool
    short: bool = False
    tied: bool = False


@dataclass(frozen=True)
class Slice:
    """All groups under one scoring rule and pairing mode, those with a finding first."""

    rule: str
    mode: str
    cells: tuple[Cell, ...]
    exploratory: bool = False

    @property
    def name(self) -> str:
        """Rule and mode, and whether they differ from those declared before the run."""
        note = " (exploratory)" if self.exploratory else ""
        return f"Rule {quote(self.rule)}, {self.mode} pairs{note}"

    def having(self, *verdicts: str) -> list[Cell]:
        """Return the cells with one of the verdicts."""
        return [cell for cell in self.cells if cell.verdict in verdicts]

    @property
    def against(self) -> str:
        """Whom the items of its groups are compared with, after "higher than for"."""
        epsilon = max((cell.epsilon for cell in self.cells if cell.pairs), default=math.nan)
        return MODES[self.mode].compared_with(epsilon, any(cell.tied for cell in self.cells))


def slices(audit: Audit) -> list[Slice]:
    """Return the slices of an audit: what was declared, then ``baseline`` and the first mode."""
    rules = audit.headline["scoring_rule"].values.tolist()
    modes = audit.headline["pairing_mode"].values.tolist()
    rules = sorted(rules, key=lambda rule: rule != "baseline")
    cells = [(rule, mode) for mode in modes for rule in rules]
    primary = declared(settings(audit))
    if primary is None:
        return [Slice(*cell, _cells(audit, *cell)) for cell in cells]
    cells = sorted(cells, key=lambda cell: cell != primary.cell)
    return [Slice(*cell, _cells(audit, *cell), cell != primary.cell) for cell in cells]


def interval_range(cells: Iterable[Cell]) -> tuple[float, float]:
    """Return the ends of a scale that holds 0 and that one very wide interval does not spoil."""
    ends = [(c.low, c.high) for c in cells if math.isfinite(c.low) and math.isfinite(c.high)]
    if not ends:
        return -1.0, 1.0
    sizes = sorted(max(abs(low), abs(high)) for low, high in ends)
    bound = 2 * sizes[(4 * len(sizes)) // 5] or 1.0
    low = max(min(0.0, *(low for low, _ in ends)), -bound)
    high = min(max(0.0, *(high for _, high in ends)), bound)
    return (low, high) if high > low else (-1.0, 1.0)


def decimals_of(cells: Sequence[Cell]) -> int:
    """Return one number of decimals for a column of gaps: what its middle finding deserves."""
    known = [cell for cell in cells if math.isfinite(cell.low) and math.isfinite(cell.high)]
    found = [cell for cell in known if cell.verdict in DIRECTIONS] or known
    return shared_decimals((cell.low, cell.high) for cell in found)


def largest_first(findings: Sequence[str], part: Slice) -> list[str]:
    """Return the sentences of the findings with that about the largest in front."""
    start = f"Group {quote(part.cells[0].group)} " if part.cells else ""
    return sorted(findings, key=lambda line: not line.startswith(start))


def family_size(part: Slice) -> int:
    """Return how many groups of a slice are estimable: they are adjusted together."""
    return sum(math.isfinite(cell.std_error) for cell in part.cells)


def is_cut(cell: Cell) -> bool:
    """Return whether a finding has an interval that ends at 0, and so seems to include it."""
    return cell.verdict in DIRECTIONS and 0.0 in (cell.low, cell.high)


def interval_word(mode: str, options: dict[str, Any]) -> str:
    """Return the name of the interval that a verdict rests on."""
    # Verdicts of version 0.1 rested on the mode's own interval.
    several = len(verdict_modes(mode)) > 1 and not options.get("rules")
    return "bracket" if several else "interval"


def _cells(audit: Audit, rule: str, mode: str) -> tuple[Cell, ...]:
    at = audit.headline.sel(scoring_rule=rule, pairing_mode=mode)
    columns = [at[variable].values.tolist() for variable in _FIELDS.values()]
    optional = [
        at[variable].values.tolist() if variable in at else [absent] * len(audit.groups)
        for variable, absent in _OPTIONAL.values()
    ]
    rows = zip(audit.groups, *columns, *optional, strict=True)
    names = ("group", *_FIELDS, *_OPTIONAL)
    tied = has_tied_pairs(audit, rule)
    found = [Cell(**dict(zip(names, row, strict=True)), tied=tied) for row in rows]
    return tuple(_in_reading_order(found))


def _in_reading_order(cells: list[Cell]) -> Iterator[Cell]:
    found = [cell for cell in cells if cell.verdict in DIRECTIONS]
    yield from sorted(found, key=lambda cell: -abs(cell.estimate))
    for verdict in VERDICTS:
        if verdict not in DIRECTIONS:
            yield from (cell for cell in cells if cell.verdict == verdict)


@dataclass(frozen=True)
class Reading:
    """The sentences of a summary, grouped by topic."""

    preflight: list[str]
    findings: list[str]
    others: list[str]
    compared: list[str]
    more: list[str]
    cautions: list[str]


def summary(audit: Audit) -> str:
    """Return the reading of an audit, one sentence a line."""
    found = reading(audit)
    parts = (
        found.preflight,
        found.findings,
        found.others,
        found.compared,
        found.more,
        found.cautions,
    )
    return "\n".join(line for part in parts for line in part)


def reading(audit: Audit, *, leaves: bool = False) -> Reading:
    """Return the sentences of the summary.

    Parameters
    ----------
    audit : Audit
    leaves : bool
        For a document that others read: fewer than 10 queries are not counted.
    """
    parts, options = slices(audit), settings(audit)
    first = parts[0]
    poor = [one for one in audit._checked if one.state != "ok"]
    return Reading(
        preflight=[one.to_leave().line if leaves else one.line for one in poor],
        findings=list(_findings(first, options)),
        others=[*_others(first, options), *findable(audit, first, options)],
        compared=[
            *_say_declared(options),
            _say_compared(first, options, leaves),
            *terms_in_words(options),
            *tried(audit, first),
            *_place_effect(audit, first, options),
            _inference(first, options),
        ],
        more=list(_more(parts)),
        cautions=[*_cautions(parts, options), *_left_out_of_sides(audit, options, leaves)],
    )


def _say_declared(options: dict[str, Any]) -> list[str]:
    primary = declared(options)
    return [] if primary is None else [primary.sentence()]


def _findings(part: Slice, options: dict[str, Any]) -> Iterator[str]:
    flagged = part.having(*DIRECTIONS)
    named = sorted(flagged[:_NAMED_AT_MOST], key=lambda cell: DIRECTIONS.index(cell.verdict))
    for cell in named:
        yield sentence(cell, part.mode, options)
    rest = flagged[_NAMED_AT_MOST:]
    if rest:
        counts = _counts(Slice(part.rule, part.mode, tuple(rest)), names=0)
        yield f"And {len(rest):,} more: {counts}; audit.to_frame() has them all."
    if not flagged:
        yield _nothing_found(part)
    judge = MODES[part.mode].judged_by
    if judge and flagged:
        yield (
            f"The verdicts are those of the {judge} pairs; the gaps are of the {part.mode} ones."
        )


def _nothing_found(part: Slice) -> str:
    if part.cells and all(cell.verdict == NOT_ESTIMABLE for cell in part.cells):
        return "No group could be estimated."
    return "No group is found undervalued or overvalued."


def sentence(cell: Cell, mode: str, options: dict[str, Any]) -> str:
    """Return the finding of one cell with its numbers."""
    places = decimals(cell.low, cell.high)
    # With weights such as 0.1 and 0.2, a sum that should be 0 may differ in its last bits.
    is_0 = abs(cell.estimate) <= _LAST_BITS * max(abs(cell.low), abs(cell.high))
    estimate = 0.0 if is_0 else cell.estimate
    size = number(abs(estimate), places)
    low, high = number(cell.low, places), number(cell.high, places)
    word = interval_word(mode, options)
    interval = f"{percent(options.get('level', 0.95))} {word} {low} to {high}"
    gap = f"gap -{size}, " if estimate < 0 else ""
    start = f"Group {quote(cell.group)} is {cell.verdict}"
    against = MODES[mode].compared_with(cell.epsilon, cell.tied)
    said = gap_in_words(estimate, size, against, options)
    return f"{start}: {said} ({gap}{interval}){_tail(cell, mode, options)}."


def _tail(cell: Cell, mode: str, options: dict[str, Any]) -> str:
    if cell.reason == "interval covers 0":
        return f"; the {interval_word(mode, options)} {_COVERS}"
    if cell.reason in REASONS:
        return f"; this is '{cell.reason}': {REASONS[cell.reason].sentence}"
    # By the rules of version 0.1, matched pairs alone could make a group undervalued.
    rests_on = DIRECTIONS if not options.get("rules") else (OVERVALUED,)
    others = [MODES[name].compared_too(cell.tied) for name in verdict_modes(mode) if name != mode]
    if cell.verdict in rests_on and others and cell.epsilon != 0:  # at 0 they are the same pairs
        side = "lower" if cell.verdict == OVERVALUED else "higher"
        return f", and {side} than for {others[0]} too"
    return ""


def _others(part: Slice, options: dict[str, Any]) -> Iterator[str]:
    if len(part.cells) <= _FEW_GROUPS:
        for cell in part.having(WITHIN, INCONCLUSIVE):
            yield sentence(cell, part.mode, options)
    else:
        yield from _kinds(part, options)
    reasons: dict[str, list[Cell]] = {}
    for cell in part.having(NOT_ESTIMABLE):
        reasons.setdefault(why_not(cell), []).append(cell)
    for reason, cells in reasons.items():
        yield f"Not estimable, {_names(cells)}: {reason}."


def _kinds(part: Slice, options: dict[str, Any]) -> Iterator[str]:
    within = part.having(WITHIN)
    if within:
        margin = options.get("tolerance")
        yield f"Within tolerance{f' ({margin:g})' if margin else ''}, {_names(within)}."
    reasons: dict[str, list[Cell]] = {}
    for cell in part.having(INCONCLUSIVE):
        reasons.setdefault(cell.reason, []).append(cell)
    for reason, cells in reasons.items():
        if reason in REASONS:
            yield f"Inconclusive ('{reason}'), {_names(cells)}: {REASONS[reason].sentence}."
        elif reason == "interval covers 0":
            word = interval_word(part.mode, options)
            yield f"Inconclusive, {_names(cells)}; the {word} {_COVERS}."
        else:
            yield f"Inconclusive{f' ({reason})' if reason else ''}, {_names(cells)}."


def why_not(cell: Cell) -> str:
    """Return in words why a cell is not estimable."""
    if cell.pairs == 0:
        # A quantile of no distances is not a number; a threshold that was given is one.
        return _NOT_ESTIMABLE["nothing to pair" if math.isnan(cell.epsilon) else "no pairs"]
    known = cell.reason or (TOO_FEW_CLUSTERS if cell.effective < FEWEST_CLUSTERS else "")
    side, found, reason = known.rpartition(": ")
    said = _NOT_ESTIMABLE.get(reason, reason or "no variance to measure")
    if not found:
        return said
    those = f"{side} pairs, which the verdict needs too,"
    said = _OTHER_SIDE.get(reason, f"the {{those}} have no interval: {said}")
    return said.replace("{those}", those)


def _names(cells: list[Cell]) -> str:
    noun = "group" if len(cells) == 1 else "groups"
    return f"{len(cells):,} {noun} ({listing([quote(cell.group) for cell in cells])})"


def _say_compared(part: Slice, options: dict[str, Any], leaves: bool) -> str:
    used = [cell for cell in part.cells if cell.pairs]
    if not used:
        return f"Compared: nothing; no group has {part.mode} pairs within the threshold."
    several = len(used) > 1
    threshold = options.get("threshold")
    pairs, queries = [cell.pairs for cell in used], [cell.queries for cell in used]
    return (
        f"Compared: {between(pairs, ',')} {part.mode} {noun(max(pairs), 'pair')}"
        f"{' a group' if several else ''} in "
        f"{guard_range(queries) if leaves else between(queries, ',')} "
        f"{noun(max(queries), 'query')}; a pair is an item of the group and one "
        f"{_others_in(options)}, in one query, with scores "
        f"at most epsilon = {between([cell.epsilon for cell in used], '.3g')} apart"
        f"{f' (threshold {threshold})' if threshold is not None else ''}."
    )


def _others_in(options: dict[str, Any]) -> str:
    against = options.get("against")
    return "outside it" if against is None else f"of {quote(against)}"


def _place_effect(audit: Audit, part: Slice, options: dict[str, Any]) -> Iterator[str]:
    """State the effect of a higher place, from the group that estimates it best."""
    if "place_effect" not in audit.headline:
        return
    at = audit.headline.sel(scoring_rule=part.rule, pairing_mode=part.mode)
    width = (at["place_effect_high"] - at["place_effect_low"]).values.tolist()
    by_width = sorted(zip(width, audit.groups, strict=True))
    said = (place_sentence(audit, part.rule, part.mode, group, options) for _, group in by_width)
    yield from itertools.islice(filter(None, said), 1)


def place_sentence(audit: Audit, rule: str, mode: str, group: str, options: dict[str, Any]) -> str:
    """State the effect of a higher place, estimated from the pairs of a group.

    Returns
    -------
    str
        Empty where no positions were logged, where outcomes were divided by how likely a place is
        looked at, or where the effect is not clear.
    """
    columns = columns_of(options)
    if "place_effect" not in audit.headline or not columns.get("position"):
        return ""
    if columns.get("examined") is not None:
        return ""
    at = audit.headline.sel(scoring_rule=rule, pairing_mode=mode, group=group)
    names = ("place_effect", "place_effect_low", "place_effect_high")
    worth, low, high = (float(at[name]) for name in names)
    if not (low > 0 or high < 0):
        return ""
    digits = decimals(low, high)
    shown, *ends = (number(value, digits) for value in (worth, low, high))
    by = f", by the pairs of group {quote(group)}" if len(audit.groups) > 1 else ""
    return (
        f"Being shown above an item with the same score changes `{outcome_word(options)}` by "
        f"{shown} ({ends[0]} to {ends[1]}){by}. Matched pairs include this; symmetric pairs do not."
    )


def _owner(options: dict[str, Any]) -> str:
    """Return what the pairs of items were summed by; older audits know items only."""
    return str(options.get("owner", ITEM))


def _inference(part: Slice, options: dict[str, Any]) -> str:
    cluster, adjust = str(options.get("cluster", "")), str(options.get("adjust", ""))
    words = VARIANCES[cluster].clustered_by(_owner(options)) if cluster in VARIANCES else ""
    clustered = f", clustered {words}" if words else ""
    size = family_size(part)
    if adjust == "none":
        adjusted = ", not adjusted for the number of groups"
    elif options.get("rules"):
        adjusted = f", adjusted over all groups and rules (adjust '{adjust}')"
    elif adjust and size > 1:
        adjusted = f", adjusted over {size:,} groups (adjust '{adjust}')"
    else:
        adjusted = ""
    rule = "" if part.rule == "baseline" else f" Scores of rule {quote(part.rule)}."
    return f"Inference: {percent(options.get('level', 0.95))} intervals{clustered}{adjusted}.{rule}"


def _more(parts: list[Slice]) -> Iterator[str]:
    # A mode that takes its verdict from another is skipped, or the verdict would count twice.
    others = [part for part in parts[1:] if not MODES[part.mode].judged_by]
    for part in others[:_OTHERS_AT_MOST]:
        pairs = "" if part.mode == parts[0].mode else f", {part.mode} pairs"
        start = "Exploratory, under" if part.exploratory else "Under"
        yield f"{start} rule {quote(part.rule)}{pairs}: {_counts(part, names=4)}."
    if len(others) > _OTHERS_AT_MOST:
        yield f"And {len(others) - _OTHERS_AT_MOST} more combinations of rule and pairing mode."


def _counts(part: Slice, names: int) -> str:
    counted = []
    for verdict in VERDICTS:
        cells = part.having(verdict)
        named = ""
        if names and verdict in DIRECTIONS:
            named = f" ({listing([quote(cell.group) for cell in cells], names)})"
        counted += [f"{len(cells):,} {verdict}{named}"] if cells else []
    return ", ".join(counted)


def _cautions(parts: list[Slice], options: dict[str, Any]) -> Iterator[str]:
    shown = [part for part in parts if not MODES[part.mode].judged_by] or parts[:1]
    cells = [(part, cell) for part in shown for cell in part.cells]
    # The number of pairs asked for counts matched pairs.
    coarse = [(p, c) for p, c in cells if c.ties > _COARSE and p.mode == MATCHED.name]
    if coarse:
        named = [f"{_where(p, c, parts)} ({c.ties:.3g} times)" for p, c in coarse]
        yield (
            "Caution: the scores are too coarse for the threshold, and ties bring in more pairs "
            f"than were asked for: {listing(named, 4)}."
        )
    few = [(p, c) for p, c in cells if c.effective < _FEW_CLUSTERS and math.isfinite(c.std_error)]
    if few:
        kinds = {"query": "queries", "item": "items", "producer": "producers"}
        kind = kinds.get(str(options.get("cluster")), of_owner("queries or items", _owner(options)))
        named = [f"{_where(p, c, parts)} (effective number {c.effective:.3g})" for p, c in few]
        yield f"Caution: the gap rests on few {kind}: {listing(named, 4)}."
    span = _outcome_span(options)
    wide = [(p, c) for p, c in cells if c.high - c.low > span]
    if wide:
        named = [_where(p, c, parts) for p, c in wide]
        yield (
            f"Caution: the interval is wider than the range of the outcome ({span:.3g}), so it "
            f"says next to nothing: {listing(named, 4)}."
        )
    weak = [(p, c) for p, c in cells if c.underpowered]
    if weak:
        named = [_where(p, c, parts) for p, c in weak]
        yield (
            "Caution: no threshold has the power that was asked for, and the one with the smallest "
            f"standard error was taken: {listing(named, 4)}."
        )
    yield from _short(cells, parts, options)
    if options.get("assumes"):
        yield f"This pool assumes {options['assumes']}: whether one occurs twice was not checked."
    lost = json.loads(str(options.get("not_pooled", "[]")))
    yield from (f"Not pooled: {said}." for said in lost if "symmetric pairs" in said)
    if any(is_cut(cell) for _, cell in cells):
        yield CUT_AT_0
    if options.get("rules"):
        yield (
            f"The verdicts follow the rules of {options['rules']}; audit.check() follows those of "
            "today."
        )
    if any(part.rule == "calibrated" for part in parts):
        yield "The rule 'calibrated' is fitted to the same outcomes that it is audited with."
    if options.get("dyads_once"):
        said = (
            "Some lists have so many pairs that they were summed without visiting each: in the "
            "item variance two items that meet more than once there count as separate pairs."
        )
        yield of_owner(said, _owner(options))
    if left_out := left_out_in_words(options):
        yield left_out


def _short(
    cells: list[tuple[Slice, Cell]], parts: list[Slice], options: dict[str, Any]
) -> Iterator[str]:
    """Say where a tenth of the spread of scores does not hold enough pairs."""
    threshold = threshold_of(options)
    short = [(p, c) for p, c in cells if c.short and p.mode == parts[0].mode]
    if not short or not isinstance(threshold, Enough):
        return
    named = [f"{_where(p, c, parts)} ({c.pairs:,})" for p, c in short]
    yield (
        f"Caution: {threshold.pairs:,} pairs in {threshold.queries:g} effective queries were asked "
        "for, and even the largest threshold allowed, a tenth of the standard deviation of scores, "
        f"does not give them: {listing(named, 4)}."
    )


def _left_out_of_sides(audit: Audit, options: dict[str, Any], leaves: bool) -> Iterator[str]:
    """Say which queries have too many pairs to look at; ids appear only on the screen."""
    n_left_out = int(options.get("n_left_out_of_sides", 0))
    if not n_left_out:
        return
    numbers = json.loads(str(options.get("left_out_of_sides", "[]")))
    named = [f"query {k:,} of {int(options.get('n_queries', 0)):,}" for k in numbers]
    if audit.ranking is not None and not leaves:
        labels = audit.ranking.query_labels([k - 1 for k in numbers])
        named = [f"query {quote(str(label))}" for label in labels]
    which = f" ({listing(named, 4)})" if named else ""
    yield (
        f"Caution: {n_left_out:,} {noun(n_left_out, 'query')}{which} with more than "
        f"{MOST_VISITED:,} close pairs had to be left out of symmetric pairs and of the effect of "
        "place, which look at every pair."
    )


def _outcome_span(options: dict[str, Any]) -> float:
    """Return the range of the outcome, without limit where it is not known."""
    if options.get("contrast") == SIGN:
        return 1.0
    return float(options.get("outcome_high", math.inf)) - float(options.get("outcome_low", 0.0))


def _where(part: Slice, cell: Cell, parts: list[Slice]) -> str:
    rule = "" if part.rule == parts[0].rule else f" under {quote(part.rule)}"
    mode = "" if part.mode == parts[0].mode else f", {part.mode}"
    return f"{quote(cell.group)}{rule}{mode}"


# ---- one sentence for a title

_IN_A_TITLE = 4
# Characters of these names together.
_NAMES_IN_A_TITLE = 90


def finding_title(part: Slice, always: bool = False) -> str:
    """Return the finding of a slice in one sentence, for the title of a chart.

    The name of the rule comes first, unless it is the baseline; with `always`, even then.
    """
    found = _found_in(part)
    if part.rule == "baseline" and not always:
        return found
    found = found.replace("No group", "no group", 1) if found.startswith("No group") else found
    return f"Under rule {quote(part.rule)}: {found}"


def _found_in(part: Slice) -> str:
    found = [_name_by_verdict(part.having(verdict), verdict) for verdict in DIRECTIONS]
    if any(found):
        return "; ".join(words for words in found if words)
    if part.cells and not [c for c in part.cells if c.verdict != NOT_ESTIMABLE]:
        return "No group could be estimated"
    return "No group is found undervalued or overvalued"


def _name_by_verdict(cells: list[Cell], verdict: str) -> str:
    if not cells:
        return ""
    names = [quote(cell.group) for cell in cells]
    if len(names) > _IN_A_TITLE + 1:
        # As many as stay on a line: four long names would be a title of seven.
        together = itertools.accumulate(len(name) for name in names[:_IN_A_TITLE])
        fit = sum(size <= _NAMES_IN_A_TITLE for size in together)
        shown = listing(names, max(fit, 1))
        return f"{plural(len(names), 'group')} {verdict} ({shown})"
    return f"{listing(names, _IN_A_TITLE + 1)} {'is' if len(names) == 1 else 'are'} {verdict}"
