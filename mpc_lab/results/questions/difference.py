"""Differences of gaps from the rows: of two rules, two groups, two modes or two audits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.pairing.terms import terms_of
from mpc_lab.results.base import (
    check_label,
    correction_of,
    headline_epsilon,
    names_in,
    need_rows,
    rule_scores,
    settings,
)
from mpc_lab.results.difference import DIMS, NOTES, Difference
from mpc_lab.results.questions.pairs import CellRows, shown_scores
from mpc_lab.results.schema import HEADLINE_DIMS, AuditBase, text
from mpc_lab.results.wording import outcome_word
from mpc_lab.text import plural, quote
from mpc_lab.vocabulary import CR3, ITEM, MODES, VARIANCES, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.inference.difference import ListedEstimate, Stacked
    from mpc_lab.pairing.log import Log
    from mpc_lab.pairing.walk import Rewalk
    from mpc_lab.ranking import Ranking

TOP = 10
_ORDERS = ("matched", "mirrored")
BELOW, ABOVE = "below", "above"
# Pairs of both estimates of a difference; about 0.4 kB each. With more, a log is walked again.
LISTED_AT_ONCE = 5_000_000
_ROMANO_WOLF = "Adjusted by Holm: Romano–Wolf needs the sums of single queries of all groups."


@dataclass(frozen=True)
class Compared:
    """A cell of an audit: one of the two sides of a difference."""

    audit: AuditBase
    group: str
    rule: str
    mode: str

    def value(self, name: str) -> float:
        """Return a number of the headline; NaN where the audit lacks the group."""
        if self._at is None:
            return float("nan")
        return float(self.audit.headline.variables[name].values[self._at])

    @cached_property
    def _at(self) -> tuple[int, ...] | None:
        """The index of the cell: looking up labels each time would take longer than the sums."""
        if self.group not in self.audit.groups:
            return None
        labels = zip(HEADLINE_DIMS, (self.group, self.rule, self.mode), strict=True)
        known = self.audit.headline.variables
        return tuple(known[dim].values.tolist().index(label) for dim, label in labels)


@dataclass(frozen=True)
class SharedCodes:
    """Numbers of queries and items of a ranking that another one shares.

    Attributes
    ----------
    query, item : int64 arrays or None
        From the codes of the ranking to the shared ones; None where they are the same.
    rows_shared : bool
        Whether the rows have the same numbers too.
    first_pair : int
        The first number for pairs that rows or items do not identify.
    """

    query: Ints | None = None
    item: Ints | None = None
    rows_shared: bool = True
    first_pair: int = 0


class ListedRows:
    """Lists the pairs of cells of one audit; rows are sorted once for groups that share scores."""

    def __init__(self, audit: AuditBase, codes: SharedCodes) -> None:
        self.audit, self._codes = audit, codes
        self.ranking = need_rows(audit, "difference")
        self._terms = terms_of(settings(audit))
        self._sorted: tuple[Floats | None, Log] | None = None

    def open(self, group: str, rule: str, mode: str) -> CellRows:
        """Return the rows sorted under a rule, with the group marked."""
        from mpc_lab.pairing.log import compare_group

        scores = rule_scores(self.audit, group, rule, mode)
        if not self._terms.are_default:
            log, whole = compare_group(self.ranking, group, scores, self._terms)
            return CellRows(self.ranking, log, whole, rule)
        whole = self.sort(group, scores)
        member = self.ranking.member(group)[whole.row].astype(np.uint64)[None]
        marked = replace(whole, masks=member)
        return CellRows(self.ranking, marked, marked, rule)

    def sort(self, group: str, scores: Floats | None) -> Log:
        """Return all rows sorted by some scores, those of the log for None."""
        from mpc_lab.pairing.log import sort_rows

        if self._sorted is None or not same_scores(self._sorted[0], scores):
            member = self.ranking.member(group).astype(np.uint64)[None]
            self._sorted = (scores, sort_rows(self.ranking, scores, member))
        return self._sorted[1]

    def estimate(self, cell: Compared) -> ListedEstimate:
        """Return the estimate of a cell and what each of its pairs adds to its error."""
        from mpc_lab.inference.difference import list_estimate

        opened = self.open(cell.group, cell.rule, cell.mode)
        # Without a threshold there is no pair.
        epsilon = np.nan_to_num(cell.value("epsilon"), nan=-1.0)
        pairs = opened.pairs(cell.mode, float(epsilon), cell.value("n_pairs"))
        weight = np.ones(len(pairs.d)) if pairs.weight is None else pairs.weight
        shares, places = weight[None], None
        if MODES[cell.mode].two_sided:
            sided = opened.sided(pairs, tie=0.5)
            shares = sided.shares(sided.weighted) if sided.n_cells > 1 else sided.weighted
            places = sided.cell if sided.n_cells > 1 else None
        query, inside, outside = pairs.query, pairs.owner_i, pairs.owner_j
        if self._codes.query is not None:
            query = self._codes.query[query]
        if inside is not None and outside is not None and self._codes.item is not None:
            inside, outside = self._codes.item[inside], self._codes.item[outside]
        row_i, row_j = opened.log.row[pairs.row_i], opened.log.row[pairs.row_j]
        pair = self._number(row_i, row_j, query)
        return list_estimate(pairs.d, shares, query, inside, outside, pair, places)

    def _number(self, row_i: Ints, row_j: Ints, query: Ints) -> Ints:
        """Return numbers that identify pairs, the same in both audits."""
        if self._codes.rows_shared:
            least, most = np.minimum(row_i, row_j), np.maximum(row_i, row_j)
            return np.asarray(least * self.ranking.n_rows + most)
        return np.asarray(self._codes.first_pair + np.arange(len(query)))


def same_scores(one: Floats | None, other: Floats | None) -> bool:
    """Whether two rules have the same scores; None are those of the log."""
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one, other)


def of_audit(
    audit: AuditBase,
    rule: str | None,
    base: str | None,
    groups: Any,
    modes: Any,
) -> Difference:
    """Return the difference of two rules, groups or modes; see :meth:`mpc_lab.Audit.difference`."""
    rules = audit.headline["scoring_rule"].values.tolist()
    own_modes = audit.headline["pairing_mode"].values.tolist()
    if groups is not None and modes is not None:
        raise MpcError(
            "difference must compare either two groups or two modes; got both. Leave one out."
        )
    if groups is None and modes is None:
        if rule is None:
            raise MpcError(
                "difference must have two rules, groups=(a, b) or modes=(a, b); got nothing. Give "
                'audit.difference("new", "baseline").'
            )
        base = "baseline" if base is None else base
        if len(rules) == 1 and not {rule, base} <= set(rules):
            raise MpcError(
                f"difference must have an audit with two scoring rules; got one, {rules[0]!r}. "
                'Audit with scoring_rules=["baseline", mpc.Column("new_score")], or compare two '
                "audits with mpc.difference(new, old)."
            )
        for label in (rule, base):
            check_label("scoring rule", label, rules)
        cells = [
            [
                (Compared(audit, group, rule, mode), Compared(audit, group, base, mode))
                for group in audit.groups
            ]
            for mode in own_modes
        ]
        named = (f"rule {quote(rule)}", f"rule {quote(base)}")
        return _from_rows(cells, list(audit.groups), own_modes, named)
    if base is not None:
        raise MpcError(
            f"base must be left out where groups or modes are compared; got {base!r}. Pass the one "
            "rule as the first argument."
        )
    only = rule or ("baseline" if "baseline" in rules else rules[0])
    check_label("scoring rule", only, rules)
    two = names_in(groups if modes is None else modes)
    what = "groups" if modes is None else "modes"
    if len(two) != 2 or two[0] == two[1]:
        raise MpcError(
            f'{what} must be two names that differ; got {two!r}. Give {what}=("a", "b").'
        )
    if modes is None:
        for group in two:
            check_label("group", group, audit.groups)
        a, b = two
        cells = [
            [(Compared(audit, a, only, mode), Compared(audit, b, only, mode))] for mode in own_modes
        ]
        named = (f"group {quote(a)}", f"group {quote(b)}")
        return _from_rows(cells, [f"{a} − {b}"], own_modes, named)
    for mode in two:
        check_label("pairing mode", mode, own_modes)
    a, b = two
    pairs = [
        (Compared(audit, group, only, a), Compared(audit, group, only, b)) for group in audit.groups
    ]
    return _from_rows([pairs], list(audit.groups), [f"{a} − {b}"], (f"{a} pairs", f"{b} pairs"))


def of_two_audits(
    new: AuditBase,
    old: AuditBase,
    groups: Sequence[str],
    modes: Sequence[str],
    rules: tuple[str, str],
) -> Difference:
    """Return the difference of two audits that keep their rows."""
    cells = [
        [
            (Compared(new, group, rules[0], mode), Compared(old, group, rules[1], mode))
            for group in groups
        ]
        for mode in modes
    ]
    return _from_rows(cells, list(groups), list(modes), ("the new audit", "the old audit"))


def _from_rows(
    cells: list[list[tuple[Compared, Compared]]],
    groups: list[str],
    modes: list[str],
    named: tuple[str, str],
) -> Difference:
    from mpc_lab.inference.difference import stack

    new, old = cells[0][0][0].audit, cells[0][0][1].audit
    if new is old and new.ranking is None and new._reread is None:
        return _from_saved(new, cells, groups, modes, named)
    _check_modes((new, old), cells)
    if new is old and new._walk is not None and _walks(new, cells):
        return _from_walk(new, new._walk, cells, groups, modes, named)
    codes, notes = _shared_codes(new, old)
    rows = [ListedRows(new, codes[0]), ListedRows(old, codes[1])]
    if len({audit.ranking.owner for audit in rows}) > 1:
        raise MpcError(
            "Both audits must be clustered by items, or both by producers; got one of each. Run "
            "both alike."
        )
    owner = rows[0].ranking.owner
    options = settings(new)
    by_item = VARIANCES[str(options["cluster"])].needs_items
    stacked: list[list[Any]] = []
    for of_mode in cells:
        stacked.append([])
        for one, other in of_mode:
            both = [opened.estimate(cell) for opened, cell in zip(rows, (one, other), strict=True)]
            if not by_item:
                both = [replace(found, inside=None, outside=None) for found in both]
            stacked[-1].append(stack(both[0], both[1], owner))
    more = _lists(rows, cells[0]) if codes[0].rows_shared else {}
    return label(stacked, cells, groups, modes, named, {"from": "rows"}, notes, more)


def _from_saved(
    audit: AuditBase,
    cells: list[list[tuple[Compared, Compared]]],
    groups: list[str],
    modes: list[str],
    named: tuple[str, str],
) -> Difference:
    """Return the difference inside a saved audit, from what it kept of every query."""
    from mpc_lab.results.two_audits import of_saved_queries

    if "queries" not in audit._saved:
        raise MpcError(
            "audit.difference() must have the rows of the log, or what every query has; got an "
            'audit without both. Give the rows with mpc.load("a.nc", ranking=ranking), or save '
            "with queries=True and a key."
        )
    return of_saved_queries(cells, groups, modes, named)


def _check_modes(audits: Sequence[AuditBase], cells: list[list[tuple[Compared, Compared]]]) -> None:
    two_sided = any(
        MODES[cell.mode].two_sided for of_mode in cells for both in of_mode for cell in both
    )
    if two_sided and any(audit.attrs.get("n_left_out_of_sides") for audit in audits):
        raise MpcError(
            "difference must have queries with at most 20,000,000 symmetric pairs; got some "
            "with more. Leave them out, or take a smaller threshold."
        )


def _walks(audit: AuditBase, cells: list[list[tuple[Compared, Compared]]]) -> bool:
    """Whether rows stay where they are, or there are more pairs than are listed at once."""
    most = max(
        float(np.nansum([cell.value("n_pairs") for cell in both]))
        for of_mode in cells
        for both in of_mode
    )
    return audit.ranking is None or most > LISTED_AT_ONCE


def _from_walk(
    audit: AuditBase,
    walk: Rewalk,
    cells: list[list[tuple[Compared, Compared]]],
    groups: list[str],
    modes: list[str],
    named: tuple[str, str],
) -> Difference:
    """Walk the log again, wherever it is, and list the pairs of some units at a time."""
    from mpc_lab.inference.stacking import End, stack_walked
    from mpc_lab.objective.ndcg import compare_lists

    options, rules = settings(audit), [rule.label for rule in walk.rules]

    def number(cell: Compared) -> End:
        # Without a threshold there is no pair.
        epsilon = np.nan_to_num(headline_epsilon(audit, cell.group, cell.rule), nan=-1.0)
        at = (rules.index(cell.rule), audit.groups.index(cell.group))
        return End(*at, cell.mode, float(epsilon), float(np.nan_to_num(cell.value("estimate"))))

    contrasts = [(number(one), number(other)) for of_mode in cells for one, other in of_mode]
    with walk.open() as source:
        found = stack_walked(
            source,
            walk.rules,
            contrasts,
            by_item=VARIANCES[str(options["cluster"])].needs_items,
            owner=str(options.get("owner", ITEM)),
        )
        # If groups are compared with one other group, the log has lost all other rows of its lists.
        more = {}
        if cells[0][0][0].rule != cells[0][0][1].rule and source.terms.against is None:
            of_lists = (contrasts[: len(groups)], TOP, float(options["level"]))
            more = compare_lists(source, walk, *of_lists)
    size = len(groups)
    stacked = [found[first : first + size] for first in range(0, len(found), size)]
    return label(stacked, cells, groups, modes, named, {"from": "rows"}, [], more)


def _shared_codes(
    new: AuditBase, old: AuditBase
) -> tuple[tuple[SharedCodes, SharedCodes], list[str]]:
    """Return one numbering of the queries and items of two audits, and the notes on it."""
    from mpc_lab.results.pooling import names_of_owners

    one, other = need_rows(new, "difference"), need_rows(old, "difference")
    if one is other or same_rows(one, other):
        return (SharedCodes(), SharedCodes()), []
    labels = [_unit_names(ranking) for ranking in (one, other)]
    queries, shared = _number_together(*labels)
    items: tuple[Ints | None, Ints | None] = (None, None)
    if one.item_code is not None and other.item_code is not None:
        items, _ = _number_together(names_of_owners(one), names_of_owners(other))
    found = (
        f"{plural(shared, 'query')} {'is' if shared == 1 else 'are'}" if shared else "no query is"
    )
    said = f"Queries are matched by their ids: {found} in both logs."
    return (
        SharedCodes(queries[0], items[0], rows_shared=False),
        SharedCodes(queries[1], items[1], rows_shared=False, first_pair=1 << 60),
    ), [said]


def same_rows(one: Ranking, other: Ranking) -> bool:
    """Whether two rankings have the same queries, items and outcomes in the same rows."""
    if one.n_rows != other.n_rows:
        return False
    names = ("query_code", "item_code", "unit_code", "outcome")
    both = [(getattr(one, name), getattr(other, name)) for name in names]
    return all(
        (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))
        for a, b in both
    )


def _unit_names(ranking: Ranking) -> NDArray[Any]:
    known = ranking.unit_code is None
    labels = (
        ranking.query_labels(np.arange(ranking.n_queries))
        if known
        else ranking.unit_labels(np.arange(ranking.n_units))
    )
    return np.array([str(label) for label in labels], dtype=object)


def _number_together(one: NDArray[Any], other: NDArray[Any]) -> tuple[tuple[Ints, Ints], int]:
    """Return numbers that two lists of names share, and how many names are in both."""
    import pandas as pd

    codes, names = pd.factorize(np.concatenate([one, other]))
    numbers = codes.astype(np.int64)
    return (numbers[: len(one)], numbers[len(one) :]), len(one) + len(other) - len(names)


def _lists(
    rows: Sequence[ListedRows], cells: Sequence[tuple[Compared, Compared]]
) -> dict[str, Floats]:
    """Return how the lists change: NDCG, DCG, the top and places, paired by query."""
    from mpc_lab.objective.ndcg import change_between, query_objective
    from mpc_lab.pairing.pairs import ranks

    level = float(settings(rows[0].audit)["level"])
    ranking = rows[1].ranking
    found: list[dict[str, float]] = []
    last: tuple[Floats | None, Floats | None] | None = None
    for both in cells:
        if both[0].rule == both[1].rule and both[0].audit is both[1].audit:
            return {}
        given = [
            rule_scores(opened.audit, cell.group, cell.rule, cell.mode)
            for opened, cell in zip(rows, both, strict=True)
        ]
        if last is not None and all(map(same_scores, last, given)):
            found.append(found[-1])
            continue
        last = (given[0], given[1])
        # The new scores may be the logged scores of the other log.
        used = [
            opened.ranking.score if scores is None else scores
            for opened, scores in zip(rows, given, strict=True)
        ]
        after, before = (query_objective(ranking, scores) for scores in used)
        change = change_between(ranking, before, after, level=level).flat()
        names = [f"{name}_change{end}" for name in ("ndcg", "dcg") for end in ("", "_low", "_high")]
        place = []
        for opened, cell, scores in zip(rows, both, given, strict=True):
            log = opened.sort(cell.group, scores)
            of_row = np.empty(ranking.n_rows, dtype=np.int64)
            of_row[log.row] = ranks(log, opened.ranking, logged=scores is None)
            place.append(of_row)
        found.append({name: change[name] for name in names} | _churn(ranking, place[0], place[1]))
    return {name: np.array([one[name] for one in found]) for name in found[0]} if found else {}


def _churn(ranking: Ranking, new: Ints, old: Ints) -> dict[str, float]:
    """Return the share of queries whose top differs, and how far items move on average."""
    differs = (new <= TOP) != (old <= TOP)
    changed = np.bincount(ranking.query_code[differs], minlength=ranking.n_queries) > 0
    return {"churn": float(changed.mean()), "displacement": float(np.abs(new - old).mean())}


def label(
    stacked: Sequence[Sequence[Stacked]],
    cells: Sequence[Sequence[tuple[Compared, Compared]]],
    groups: Sequence[str],
    modes: Sequence[str],
    named: tuple[str, str],
    attrs: dict[str, Any],
    notes: Sequence[str],
    more: dict[str, Floats] | None = None,
    cluster: str | None = None,
) -> Difference:
    """Infer from what was stacked (mode, group), and label it."""
    from mpc_lab.inference.difference import estimate_differences, judge_differences

    new = cells[0][0][0].audit
    options, said = settings(new), list(notes)
    cluster = str(options["cluster"]) if cluster is None else cluster
    level, method = float(options["level"]), str(options["adjust"])
    owner, correction = str(options.get("owner", ITEM)), correction_of(new)
    if method == "romano_wolf":
        method = "holm"
        said.append(_ROMANO_WOLF)
    rows: dict[str, list[NDArray[Any]]] = {}
    for of_mode, both in zip(stacked, cells, strict=True):
        how: dict[str, Any] = {"cluster": cluster, "level": level, "owner": owner}
        found = estimate_differences(of_mode, **how, corrected=correction == CR3)
        adjusted, verdict = judge_differences(found, method=method, level=level)
        values: dict[str, NDArray[Any]] = {
            name: getattr(found, name)
            for name in ("difference", "std_error", "ci_low", "ci_high", "p_value", "dof")
        }
        values |= {
            name: getattr(adjusted, name)
            for name in ("p_adjusted", "ci_low_adjusted", "ci_high_adjusted", "ci_cut")
        }
        values |= {
            "n_effective": found.n_effective,
            "verdict": text(verdict),
            "verdict_reason": text(found.reason),
            "variance_from": text(found.variance_from),
            "sum_std_error": found.sum_std_error,
            "sum_dof": found.sum_dof,
            "new": np.array([cell.new for cell in of_mode]),
            "old": np.array([cell.old for cell in of_mode]),
            "n_pairs_shared": np.array([cell.shared_pairs for cell in of_mode]),
        }
        values |= _of_headlines(both)
        for name, array in values.items():
            rows.setdefault(name, []).append(array)
    variables: dict[str, Any] = {
        name: (DIMS, np.stack(arrays, axis=1), {"long_name": NOTES[name]})
        for name, arrays in rows.items()
    }
    for name, array in (more or {}).items():
        variables[name] = ("group", array, {"long_name": NOTES[name]})
    how_made = {
        "new": named[0],
        "old": named[1],
        "cluster": cluster,
        "level": level,
        "adjust": method,
        "correction": correction,
        "outcome": outcome_word(options),
        "assumes": "",
        **({"top": TOP} if more else {}),
    }
    coords = {"group": text(groups), "pairing_mode": text(modes)}
    return Difference(
        xr.Dataset(variables, coords, {**how_made, **attrs, "notes": "\n".join(said)})
    )


def _of_headlines(both: Sequence[tuple[Compared, Compared]]) -> dict[str, NDArray[Any]]:
    """Return the variables of the two headlines for the cells that are compared."""

    def read(which: int, name: str) -> Floats:
        return np.array([cell[which].value(name) for cell in both])

    apart = np.hypot(read(0, "std_error"), read(1, "std_error"))
    found: dict[str, NDArray[Any]] = {"std_error_independent": apart}
    for which, end in enumerate(("new", "old")):
        found[f"n_pairs_{end}"] = np.nan_to_num(read(which, "n_pairs")).astype(np.int64)
        found[f"epsilon_{end}"] = read(which, "epsilon")
    return found


# ---- pairs that changed sides, which make up the difference of two rules


def changed_sides(new: Compared, old: Compared) -> pd.DataFrame:
    """Return the pairs that are close under old or new, and in a different order under new.

    Parameters
    ----------
    new, old : Compared
        The same group under two rules, of audits with the same rows.

    Returns
    -------
    pandas.DataFrame
        ``query``, ``item``, ``other_item`` (and ``label``, ``other_label`` where the ranking has
        them), ``was`` and ``is`` (whether the item of the group is below or above the other),
        ``score``, ``other_score`` under old, ``new_score``, ``other_new_score``, ``outcome``,
        ``other_outcome``, ``difference``; the closest under old first. ``attrs["n_close"]`` is how
        many pairs are close under at least one of the two.
    """
    sides = [ListedRows(cell.audit, SharedCodes()) for cell in (new, old)]
    ranking = sides[0].ranking
    if not same_rows(ranking, sides[1].ranking):
        raise MpcError(
            "Pairs that changed sides must come from one log; got two. Audit both scores as rules "
            "of one log."
        )
    keys = [_close(rows, cell) for rows, cell in zip(sides, (new, old), strict=True)]
    key = np.union1d(*keys)
    i, j = np.divmod(key, ranking.n_rows)
    after, before = (_scores(rows, cell) for rows, cell in zip(sides, (new, old), strict=True))
    was, now = np.sign(before[j] - before[i]), np.sign(after[j] - after[i])
    turned = was * now < 0
    i, j, was = i[turned], j[turned], was[turned]
    order = np.argsort(np.abs(before[j] - before[i]), kind="stable")
    i, j, was = i[order], j[order], was[order]
    columns: dict[str, Any] = {"query": ranking.query_labels(ranking.query_code[i])}
    if ranking.item_code is not None:
        columns["item"] = ranking.item_labels(ranking.item_code[i])
        columns["other_item"] = ranking.item_labels(ranking.item_code[j])
        if ranking.item_label is not None:
            columns["label"] = ranking.item_names(ranking.item_code[i])
            columns["other_label"] = ranking.item_names(ranking.item_code[j])
    columns["was"] = np.where(was > 0, BELOW, ABOVE)
    columns["is"] = np.where(was > 0, ABOVE, BELOW)
    for name, scores, cell in (("score", before, old), ("new_score", after, new)):
        shown = shown_scores(ranking, cell.rule, scores)
        columns |= {name: shown[i], f"other_{name}": shown[j]}
    given = ranking.outcome_given
    columns |= {"outcome": given[i], "other_outcome": given[j], "difference": given[i] - given[j]}
    frame = pd.DataFrame(columns)
    frame.attrs["n_close"] = len(key)
    return frame


def _close(rows: ListedRows, cell: Compared) -> Ints:
    """Return the pairs within the threshold of a cell in either order, as one number each."""
    opened = rows.open(cell.group, cell.rule, cell.mode)
    epsilon = float(np.nan_to_num(headline_epsilon(cell.audit, cell.group, cell.rule), nan=-1.0))
    found = []
    for order in _ORDERS:
        pairs = opened.pairs(order, epsilon)
        one, other = opened.log.row[pairs.row_i], opened.log.row[pairs.row_j]
        found.append(one * rows.ranking.n_rows + other)
    return np.concatenate(found)


def _scores(rows: ListedRows, cell: Compared) -> Floats:
    scores = rule_scores(cell.audit, cell.group, cell.rule, cell.mode)
    return rows.ranking.score if scores is None else scores
