"""A log in parts: chunks on this disk, or partitions on the machines of a cluster.

A part holds whole units, so that every sum over pairs is a sum over parts. Engines differ in where
their parts are, and so in how they answer three requests: collect, total and exchange (`Parts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.pairing.items import exchange_items
from mpc_lab.pairing.log import (
    Log,
    PlainWalk,
    Task,
    apply_terms,
    only_against,
    rescore,
    resort,
    without_owners,
)
from mpc_lab.pairing.terms import AS_LOGGED, Terms
from mpc_lab.ranking import Facts
from mpc_lab.ranking.spread import NOTHING, exact_mean, exact_sum, squared_deviations
from mpc_lab.scoring import Baseline, Boosted, Calibrated, Column, Rule
from mpc_lab.scoring.calibrated import Pool, Steps
from mpc_lab.vocabulary import Flags, Floats, Ints, Masks

if TYPE_CHECKING:
    from mpc_lab.pairing.clusters import ItemSums
    from mpc_lab.pairing.moments import Moments
    from mpc_lab.pairing.walk import Logs, Takes
    from mpc_lab.ranking import Known
    from mpc_lab.results.plan import Plan
    from mpc_lab.scoring.calibrated import Steps


Result = TypeVar("Result")
Bucket = TypeVar("Bucket")


@dataclass(frozen=True)
class Part:
    """Whole units of a log, as logged.

    Attributes
    ----------
    log : Log
    columns : dict of float64 arrays
        Other score columns, in the order of the log.
    names, owner_names : uint64 arrays
        By code in this part, the names that the items, and their producers, have in all parts;
        empty where codes are the same in all parts.
    labels : array of objects, optional
        The ids of the items, by their codes, for an error about one of them.
    """

    log: Log
    columns: dict[str, Floats] = field(default_factory=dict)
    names: Masks = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    owner_names: Masks = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    labels: NDArray[Any] | None = None


class Parts(Protocol):
    """All parts of a log, wherever they are. Tasks are functions of a module with arguments bound.

    Attributes
    ----------
    same_codes : bool
        Whether an item has the same code in all parts.
    buckets : int
        How many buckets to use in an exchange.
    pairs_at_once : int
        Pairs whose items can be held in memory, by all workers together.
    """

    same_codes: bool
    buckets: int
    pairs_at_once: int

    def collect(self, task: Callable[[Part], Result], label: str) -> Iterable[Result]:
        """Return what the task makes of every part, in their order."""
        ...

    def total(self, task: Callable[[Part], Result], label: str, start: Result) -> Result:
        """Return the sum of the task's results over all parts; `start` adds nothing."""
        ...

    def exchange(
        self,
        split: Callable[[Part], list[Bucket]],
        merge: Callable[[list[Bucket]], Result],
        buckets: int,
        label: str,
    ) -> list[Result]:
        """Split every part into buckets, and return what `merge` makes of each bucket of all."""
        ...


class PartsWalk:
    """A `Walk` over all parts, rescored as a scoring rule wants."""

    def __init__(self, parts: Parts, rescoring: Rescoring) -> None:
        self.parts, self.rescoring = parts, rescoring

    def __call__(self, task: Task[Result], label: str) -> Iterator[Result]:
        """Yield what the task returns for each block, in order."""
        for results in self.parts.collect(partial(_walk_part, self.rescoring, task), label):
            yield from results

    def total(self, task: Task[Result], label: str, start: Result) -> Result:
        """Add what the task returns: first within each part, then over all parts."""
        return self.parts.total(partial(_add_part, self.rescoring, task, start), label, start)

    def item_sums(self, moments: Moments, *, by_item: bool = False) -> list[list[ItemSums]]:
        """Return the sums over items of each group and mode, by an exchange on items."""
        exchange = partial(self._exchange, by_item)
        return exchange_items(exchange, self.parts.buckets, moments, self.parts.pairs_at_once)

    def _exchange(
        self,
        by_item: bool,
        split: Callable[[Log, Masks], list[Bucket]],
        merge: Callable[[list[Bucket]], Result],
        buckets: int,
        label: str,
    ) -> list[Result]:
        of_part = partial(_split_part, self.rescoring, by_item, split)
        return self.parts.exchange(of_part, merge, buckets, label)


def _walk_part(rescoring: Rescoring, task: Task[Result], part: Part) -> list[Result]:
    return list(PlainWalk(rescoring(part))(task))


def _split_part(
    rescoring: Rescoring,
    by_item: bool,
    split: Callable[[Log, Masks], list[Bucket]],
    part: Part,
) -> list[Bucket]:
    log = rescoring(part)
    if by_item:
        return split(without_owners(log), part.names)
    return split(log, part.owner_names if len(log.owner) else part.names)


def _add_part(rescoring: Rescoring, task: Task[Result], start: Result, part: Part) -> Result:
    return PlainWalk(rescoring(part)).total(task, "", start)


class PartsSource:
    """A log in parts, ready to be walked.

    Parameters
    ----------
    parts : Parts
    groups : tuple of str
    facts : Facts
    fit : callable
        Fits the rule ``calibrated``: for each group the step functions inside and outside it.
        Called once, when a rule first needs it.
    terms : Terms
        On what terms rows are compared.
    against : int, optional
        The bit of the group that others are compared with, in the masks of the parts.
    """

    def __init__(
        self,
        parts: Parts,
        groups: tuple[str, ...],
        facts: Facts,
        fit: Callable[[], list[tuple[Steps, Steps]]],
        terms: Terms = AS_LOGGED,
        against: int | None = None,
    ) -> None:
        self.parts, self.groups, self.facts = parts, groups, facts
        self.terms, self.against = terms, against
        self.counts_items, self.pairs_at_once = parts.same_codes, parts.pairs_at_once
        self._fit = fit
        self._fits: list[tuple[Steps, Steps]] = []

    def walks(self, rule: Rule) -> Iterator[tuple[Ints, PartsWalk]]:
        """Yield the groups, by number, that a walk serves; over all walks, every group once."""
        for groups, rescoring in self._rescorings(rule):
            yield groups, PartsWalk(self.parts, rescoring)

    def walk_logged(self, columns: Sequence[str]) -> PartsWalk:
        """Return a walk of all groups under the logged scores, whose logs carry columns.

        An item, or a producer, has one code in all of its blocks.
        """
        ((_, rescoring),) = self._rescorings(Baseline())
        turn = -1.0 if self.facts.columns.ascending else 1.0
        return PartsWalk(self.parts, _Carrying(rescoring, tuple(columns), turn))

    def each_walk(
        self,
        rule: Rule,
        task: Callable[[Ints, Any], Result],
        label: str,
        takes: Takes | None = None,
    ) -> Iterator[Result]:
        """Yield what a task makes of the groups and the walk of each of `walks`."""
        return (task(groups, walk) for groups, walk in self.walks(rule))

    def together(
        self, rules: Sequence[Rule], task: Callable[[Logs], Result], label: str, start: Result
    ) -> Result:
        """Add what the task makes of the logs of all rules, part by part."""
        of_part = partial(_apply_to_all, self._rescorings_of_rules(rules), task)
        return self.parts.total(of_part, label, start)

    def exchange(
        self,
        rules: Sequence[Rule],
        split: Callable[[int, Logs, Masks], list[Bucket]],
        merge: Callable[[list[Bucket]], Result],
        label: str,
    ) -> list[Result]:
        """Split the logs of all rules of every part into buckets, and merge each bucket of all."""
        buckets = self.parts.buckets
        of_part = partial(_split_all, self._rescorings_of_rules(rules), partial(split, buckets))
        return self.parts.exchange(of_part, merge, buckets, label)

    def _rescorings_of_rules(self, rules: Sequence[Rule]) -> list[tuple[int, Ints, Rescoring]]:
        return [
            (number, groups, rescoring)
            for number, rule in enumerate(rules)
            for groups, rescoring in self._rescorings(rule)
        ]

    def _rescorings(self, rule: Rule) -> Iterator[tuple[Ints, Rescoring]]:
        """Yield groups, by number, and the rescoring that makes their log on the audit's terms."""
        for groups, rescoring in self._rescorings_of_rule(rule):
            if self.against is None:
                same = self.terms.are_default
                yield groups, rescoring if same else _OnTerms(rescoring, self.terms)
                continue
            for k, group in enumerate(groups.tolist()):
                yield np.array([group]), _OnTerms(rescoring, self.terms, k, self.against)

    def _rescorings_of_rule(self, rule: Rule) -> Iterator[tuple[Ints, Rescoring]]:
        every = np.arange(len(self.groups))
        if isinstance(rule, Baseline):
            yield every, _AsLogged()
        elif isinstance(rule, Column):
            yield every, _ByColumn(str(rule.name))
        elif isinstance(rule, Boosted):
            alpha = rule.alpha_in(self.facts)
            for group in every.tolist():
                yield np.array([group]), _Moved(rule.label, group, alpha)
        elif isinstance(rule, Calibrated):
            self._fits = self._fits or self._fit()
            for group in every.tolist():
                yield np.array([group]), _Fitted(group, *self._fits[group])
        else:
            raise MpcError(
                f"Scoring rule {rule.label!r} must have all rows in memory; got a log that "
                "is read in parts. Write its scores into a column of the log and pass "
                "mpc.Column."
            )


def _apply_to_all(
    every: list[tuple[int, Ints, Rescoring]], task: Callable[[Logs], Result], part: Part
) -> Result:
    return task((number, groups, rescoring(part)) for number, groups, rescoring in every)


def _split_all(
    every: list[tuple[int, Ints, Rescoring]],
    split: Callable[[Logs, Masks], list[Bucket]],
    part: Part,
) -> list[Bucket]:
    names = part.owner_names if len(part.log.owner) else part.names
    return _apply_to_all(every, lambda logs: split(logs, names), part)


class Rescoring(Protocol):
    """Turns a part into the log of a scoring rule; it is sent to where the part is."""

    def __call__(self, part: Part) -> Log:
        """Return the log of the rule."""
        ...


@dataclass(frozen=True)
class _OnTerms:
    """The log of a rule on other terms; with `against`, only one group and its partners."""

    rescoring: Rescoring
    terms: Terms
    group: int = 0
    against: int | None = None

    def __call__(self, part: Part) -> Log:
        log = apply_terms(self.terms, self.rescoring(part), part.log)
        if self.against is None:
            return log
        partner = np.zeros(len(part.log.row), dtype=np.bool_)
        partner[part.log.row] = find_members(part.log.masks, self.against)
        return only_against(log, self.group, partner[log.row])


@dataclass(frozen=True)
class _Carrying:
    """A log with further columns, in which items have the same codes as in all other parts.

    Columns are stored as scores are; multiplied by `turn`, they are as they were given.
    """

    rescoring: Rescoring
    columns: tuple[str, ...]
    turn: float

    def __call__(self, part: Part) -> Log:
        log = self.rescoring(part)
        item, owner = log.item, log.owner
        if len(part.names) and len(item):
            item = part.names.view(np.int64)[item]
        if len(part.owner_names) and len(owner):
            owner = part.owner_names.view(np.int64)[owner]
        extra = np.empty((len(part.log.row), len(self.columns)))
        for k, name in enumerate(self.columns):
            extra[part.log.row, k] = self.turn * part.columns[name]
        return replace(log, item=item, owner=owner, extra=extra)


@dataclass(frozen=True)
class _AsLogged:
    def __call__(self, part: Part) -> Log:
        return part.log


@dataclass(frozen=True)
class _ByColumn:
    name: str

    def __call__(self, part: Part) -> Log:
        return resort(part.log, part.columns[self.name])


@dataclass(frozen=True)
class _Moved:
    """The scores of one group moved by α."""

    label: str
    group: int
    alpha: float

    def __call__(self, part: Part) -> Log:
        member = find_members(part.log.masks, self.group)
        score = np.where(member, part.log.score + self.alpha, part.log.score)
        if not np.isfinite(score).all():
            raise MpcError(
                f"Rule {self.label!r} must give finite scores; got some that are infinite with a "
                f"boost of {self.alpha:g}. Choose another alpha."
            )
        return rescore(part.log, score, member)


@dataclass(frozen=True)
class _Fitted:
    """The scores inside and outside one group, each by its own step function."""

    group: int
    inside: Steps
    outside: Steps

    def __call__(self, part: Part) -> Log:
        member = find_members(part.log.masks, self.group)
        score = np.where(member, self.inside(part.log.score), self.outside(part.log.score))
        return rescore(part.log, score, member)


def find_members(masks: Sequence[Any] | Masks, group: int) -> Flags:
    """Return which rows are in a group, from the words of their masks."""
    bit = np.uint64(1) << np.uint64(group % 64)
    return np.asarray(masks[group // 64] & bit != 0)


def count_rows(
    known: Known, parts: Parts, plan: Plan, outcomes: Sequence[tuple[float, float]], **counts: int
) -> Facts:
    """Add counts to the facts about a log, and the spread of scores if a rule needs it.

    `outcomes` are the lowest and the highest outcome of each part that has rows.
    """
    low, high = min(low for low, _ in outcomes), max(high for _, high in outcomes)
    facts = Facts(
        known.columns, known.groups, owner=plan.owner, outcome_range=(low, high), **counts
    )
    if any(isinstance(rule, Boosted) and rule.alpha is None for rule in plan.scoring_rules):
        facts = replace(facts, score_std=_score_std(parts, facts.n_rows))
    return facts


def _score_std(parts: Parts, n_rows: int) -> float:
    """Return the standard deviation of the scores, equal to the last bit to that in memory."""
    mean = exact_mean(parts.total(_sum_scores, "reading scores", NOTHING), n_rows)
    squares = parts.total(partial(_sum_squares, mean), "reading scores", NOTHING)
    return float(np.sqrt(exact_mean(squares, n_rows)))


def _sum_scores(part: Part) -> Ints:
    return exact_sum(part.log.score)


def _sum_squares(mean: float, part: Part) -> Ints:
    return squared_deviations(part.log.score, mean)


# ---- sorted rows, cut where a key changes


def cut_tables(batches: Iterable[Any], keys: Sequence[str], rows_at_once: int) -> Iterator[Any]:
    """Join sorted record batches into tables, none of which ends inside a run of one key.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Batches of any size.
    keys : sequence of str
        The columns that make the key.
    rows_at_once : int
        Rows to wait for before a table is cut off.
    """
    import pyarrow as pa

    held: list[Any] = []
    n_held, enough = 0, rows_at_once
    for batch in batches:
        held.append(batch)
        n_held += batch.num_rows
        if n_held < enough:
            continue
        table = pa.Table.from_batches(held)
        last = int(find_starts(table, keys)[-1])  # its run may continue in the next batch
        if last:
            yield table.slice(0, last)
            held, n_held = table.slice(last).to_batches(), n_held - last
        # A run that outgrows a table is looked at again only when it is twice as long.
        enough = max(rows_at_once, 2 * n_held)
    if n_held:
        yield pa.Table.from_batches(held)


def find_starts(table: Any, keys: Sequence[str]) -> Ints:
    """Return the rows that differ from the row above in some key; the first does."""
    import pyarrow.compute as pc

    fresh = np.zeros(table.num_rows, dtype=np.bool_)
    fresh[:1] = True
    for key in keys:
        column = table.column(key)
        fresh[1:] |= pc.fill_null(pc.not_equal(column[1:], column[:-1]), True).to_numpy()
    return np.flatnonzero(fresh)


# ---- the rule ``calibrated``: its fits need rows in the order of their scores

_BUCKETS = 32
_PROBES = 256
_ROWS_AT_ONCE = 1 << 20

# For each group the fits inside and outside it.
_Pools = list[tuple[Pool, Pool]]


class _Scored(NamedTuple):
    score: Floats
    outcome: Floats
    masks: Masks


def fit_sorted(batches: Iterable[Any], n_groups: int) -> list[tuple[Steps, Steps]]:
    """Fit the outcome on the score inside and outside every group, from sorted record batches.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Scores, ascending, outcomes, and the words of the masks.
    n_groups : int
    """
    pools = _make_pools(n_groups)
    for table in cut_tables(batches, ["score"], _ROWS_AT_ONCE):
        score, outcome, *words = (column.to_numpy() for column in table.columns)
        masks = np.array(words, dtype=np.uint64)
        _add_rows(pools, _Scored(score, outcome, masks))
    return [(inside.steps(), outside.steps()) for inside, outside in pools]


def fit_by_exchange(parts: Parts, n_groups: int) -> list[tuple[Steps, Steps]]:
    """Fit the outcome on the score inside and outside every group, by ranges of scores."""
    probes = np.sort(np.concatenate(list(parts.collect(_probe, "reading scores"))))
    places = np.linspace(0, len(probes), _BUCKETS + 1)[1:-1].astype(np.int64)
    cuts = np.unique(probes[np.minimum(places, len(probes) - 1)])
    found = parts.exchange(
        partial(_split, cuts), partial(_fit_range, n_groups), len(cuts) + 1, "calibrating"
    )
    pools = _make_pools(n_groups)
    for ranges in found:  # in the order of scores
        for sides, more in zip(pools, ranges, strict=True):
            for side, blocks in zip(sides, more, strict=True):
                side.add(blocks.start, blocks.total, blocks.weight)
    return [(inside.steps(), outside.steps()) for inside, outside in pools]


def _make_pools(n_groups: int) -> _Pools:
    return [(Pool(), Pool()) for _ in range(n_groups)]


def _add_rows(pools: _Pools, rows: _Scored) -> None:
    """Add rows whose scores ascend, and are above all that were added."""
    for group, (inside, outside) in enumerate(pools):
        member = find_members(rows.masks, group)
        inside.add(*_sum_levels(rows, member))
        outside.add(*_sum_levels(rows, ~member))


def _sum_levels(rows: _Scored, here: Flags) -> tuple[Floats, Floats, Floats]:
    """Return the distinct scores of some rows, the sums of their outcomes, and how many they are.

    Scores must ascend.
    """
    score, outcome = rows.score[here], rows.outcome[here]
    first = np.flatnonzero(np.diff(score, prepend=np.nan) != 0)
    if not len(first):
        return np.empty(0), np.empty(0), np.empty(0)
    count = np.diff(first, append=len(score)).astype(np.float64)
    return score[first], np.add.reduceat(outcome, first), count


def _probe(part: Part) -> Floats:
    score = part.log.score
    return np.quantile(score, np.linspace(0, 1, _PROBES)) if len(score) else score


def _split(cuts: Floats, part: Part) -> list[_Scored]:
    """Return the rows of each range of scores; a score that is a cut is above it."""
    log = part.log
    bucket = np.searchsorted(cuts, log.score, side="right")
    every = (bucket == k for k in range(len(cuts) + 1))
    return [_Scored(log.score[here], log.outcome[here], log.masks[:, here]) for here in every]


def _fit_range(n_groups: int, found: list[_Scored]) -> _Pools:
    score, outcome, masks = (np.concatenate(rows, axis=-1) for rows in zip(*found, strict=True))
    order = np.argsort(score, kind="stable")
    pools = _make_pools(n_groups)
    _add_rows(pools, _Scored(score[order], outcome[order], masks[:, order]))
    return pools
