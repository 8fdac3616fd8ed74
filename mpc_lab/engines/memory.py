"""The choice of an engine for what an audit was given, and the engine that works in memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mpc_lab.engines import OpenLog
from mpc_lab.engines.parts import find_members
from mpc_lab.engines.running import Progress, as_limits
from mpc_lab.errors import MpcError
from mpc_lab.files import Files, find_files
from mpc_lab.pairing.clusters import ItemSums
from mpc_lab.pairing.item_sweep import can_sweep_items, sweep_items
from mpc_lab.pairing.items import sum_items
from mpc_lab.pairing.kernels import FEW_ROWS, n_threads
from mpc_lab.pairing.log import (
    Log,
    Task,
    add_up,
    apply_terms,
    below_by_score,
    only_against,
    rescore,
    select_groups,
    sort_rows,
    without_owners,
)
from mpc_lab.pairing.moved import MovedLog, move_rows
from mpc_lab.pairing.terms import AS_LOGGED, Terms
from mpc_lab.pairing.threads import in_order
from mpc_lab.pairing.walk import Source, Takes
from mpc_lab.ranking import ColumnNames, as_ranking, cap_outcomes, read_ranking, sum_by
from mpc_lab.ranking.checks import check_names
from mpc_lab.ranking.names import check_named, column_names, drops
from mpc_lab.scoring import Baseline, Boosted, Calibrated, Column, Rule
from mpc_lab.scoring.calibrated import Steps, fit_sorted
from mpc_lab.vocabulary import Flags, Floats, Ints, Masks

if TYPE_CHECKING:
    from mpc_lab.engines.running import Progress
    from mpc_lab.pairing.moments import Moments
    from mpc_lab.pairing.walk import Logs
    from mpc_lab.ranking import LogFacts, Ranking
    from mpc_lab.results.plan import Plan


# The log of one group is as large as the whole log.
_LOGS_AT_ONCE = 2

Job = TypeVar("Job")
Result = TypeVar("Result")


class InMemory(OpenLog):
    """A log that is a `Ranking`."""

    ranking: Ranking

    def __init__(self, ranking: Ranking, origin: Mapping[str, Any] | None = None) -> None:
        self.ranking = self.known = ranking
        # A ranking that was read from a run and judgements knows its files.
        self.origin = getattr(ranking, "origin", self.origin) if origin is None else origin

    def with_cap(self, cap: float | None) -> OpenLog:
        """Return the log with outcomes above a cap set to it."""
        return InMemory(cap_outcomes(self.ranking, cap), self.origin)

    def with_owner(self, owner: str) -> OpenLog:
        """Return the log with items that move with their producers, or each on its own."""
        return InMemory(sum_by(self.ranking, owner), self.origin)

    @contextmanager
    def source(self, plan: Plan, progress: Progress | None) -> Iterator[Source]:
        """Sort the rows."""
        yield MemorySource(self.ranking, plan.groups, progress, plan.terms)


class MemorySource:
    """A ranking in memory, its groups to audit, and its log sorted once.

    Parameters
    ----------
    ranking : Ranking
    groups : tuple of str
    progress : Progress, optional
    terms : Terms
        On what terms rows are compared.
    """

    counts_items = True
    pairs_at_once = 20_000_000

    def __init__(
        self,
        ranking: Ranking,
        groups: tuple[str, ...],
        progress: Progress | None = None,
        terms: Terms = AS_LOGGED,
    ) -> None:
        self.ranking = ranking
        self.groups = groups
        self.progress = progress
        self.terms = terms
        chosen = np.array([ranking.group_index(group) for group in groups], dtype=np.int64)
        everything = groups == ranking.groups
        self.masks = ranking.masks if everything else select_groups(ranking.masks, chosen)
        self.log = sort_rows(ranking, masks=self.masks)
        by_place = ranking.position is not None
        self._below = below_by_score(self.log.starts) if by_place else self.log.below

    @property
    def facts(self) -> LogFacts:
        """The ranking."""
        return self.ranking

    def walks(self, rule: Rule) -> Iterator[tuple[Ints, MemoryWalk]]:
        """Yield the groups, by number, that a walk serves; over all walks, every group once."""
        for groups, log in self._logs(rule):
            yield groups, MemoryWalk(log, self.progress)

    def each_walk(
        self,
        rule: Rule,
        task: Callable[[Ints, MemoryWalk], Result],
        label: str,
        takes: Takes | None = None,
    ) -> Iterator[Result]:
        """Yield the task's result for each walk; where each group has a log, a few at once."""
        if not self.terms.are_default or not isinstance(rule, Boosted | Calibrated):
            yield from (task(groups, walk) for groups, walk in self.walks(rule))
            return
        every = np.arange(len(self.groups))
        if isinstance(rule, Boosted) and takes is not None:
            moved = self._boost(rule)
            if moved is not None and takes(every, moved):
                yield task(every, MemoryWalk(moved, self.progress))
                return
        yield from self._each_group(rule, task, label, takes)

    def _each_group(
        self,
        rule: Rule,
        task: Callable[[Ints, MemoryWalk], Result],
        label: str,
        takes: Takes | None,
    ) -> Iterator[Result]:
        """Make the log of each group and drop it after the task: never more than a few at once."""
        at_once = min(_LOGS_AT_ONCE, n_threads(), len(self.groups))
        threads = n_threads() // at_once
        # What all groups share is made here, in one thread.
        fits = self._fits if isinstance(rule, Calibrated) else None

        def job(k: int) -> Result:
            group = np.array([k])
            if fits is not None and takes is not None:
                moved = fits.move(k)
                if takes(group, moved):
                    return task(group, MemoryWalk(moved, threads=threads))
            return task(group, MemoryWalk(self._log_of(rule, self.groups[k]), threads=threads))

        yield from reported(
            in_order(job, range(len(self.groups)), here=self._is_small, threads=at_once),
            self.progress(label, len(self.groups)) if self.progress else None,
        )

    def _boost(self, rule: Boosted) -> MovedLog | None:
        """Return the log in which members of any group are raised.

        Return None where a score becomes infinite; the log of the group with that score reports it.
        """
        with np.errstate(over="ignore"):
            raised = self.log.score + rule.alpha_in(self.ranking)
        if not np.isfinite(raised).all():
            return None
        return move_rows(self.log, raised, self.log.score, self.log.masks)

    @property
    def _is_small(self) -> bool:
        return len(self.log.row) < FEW_ROWS

    def _logs(self, rule: Rule) -> Iterator[tuple[Ints, Log]]:
        """Yield the groups that a log serves, and the log on the terms of the audit."""
        for groups, log in self._logs_of_rule(rule):
            if self.terms.are_default:
                yield groups, log
                continue
            compared = apply_terms(self.terms, log, self.log)
            if self.terms.against is None:
                yield groups, compared
                continue
            other = self.ranking.member(self.terms.against)[compared.row]
            for k, group in enumerate(groups):
                yield np.array([group]), only_against(compared, k, other)

    def _logs_of_rule(self, rule: Rule) -> Iterator[tuple[Ints, Log]]:
        if not rule.same_for_all_groups:
            for k, group in enumerate(self.groups):
                yield np.array([k]), self._log_of(rule, group)
            return
        log = self.log
        if not isinstance(rule, Baseline):
            scores = rule.scores(self.ranking, self.groups[0])
            log = sort_rows(self.ranking, scores, self.masks)
        yield np.arange(len(self.groups)), log

    def together(
        self, rules: Sequence[Rule], task: Callable[[Logs], Result], label: str, start: Result
    ) -> Result:
        """Add what the task makes of the whole log."""
        return start + task(self._logs_of_rules(rules))  # type: ignore[operator, no-any-return]

    def exchange(
        self,
        rules: Sequence[Rule],
        split: Callable[[int, Logs, Masks], list[Any]],
        merge: Callable[[list[Any]], Result],
        label: str,
    ) -> list[Result]:
        """Merge the one bucket that there is."""
        no_names = np.empty(0, dtype=np.uint64)
        return [merge(split(1, self._logs_of_rules(rules), no_names))]

    def _logs_of_rules(self, rules: Sequence[Rule]) -> Logs:
        return (
            (number, groups, log)
            for number, rule in enumerate(rules)
            for groups, log in self._logs(rule)
        )

    def _log_of(self, rule: Rule, group: str) -> Log:
        number, moved = self.groups.index(group), None
        if isinstance(rule, Calibrated):
            moved = self._fits.move(number)
        elif isinstance(rule, Boosted):
            moved = self._boost(rule)
        if moved is not None:
            member = find_members(self.log.masks, number)
            below = self._below
            return rescore(self.log, moved.score, member, raised=moved.raised, below=below)
        scores = rule.scores(self.ranking, group)
        return sort_rows(self.ranking, scores, self.ranking.member(group).astype(np.uint64)[None])

    @cached_property
    def _fits(self) -> Fits:
        return Fits(self.ranking, self.log)


class Fits:
    """The fits of the rule ``calibrated``: each made once, from rows that are sorted once.

    Parameters
    ----------
    ranking : Ranking
    log : Log
        The log of all its rows.
    """

    def __init__(self, ranking: Ranking, log: Log) -> None:
        self.log = log
        order = np.argsort(ranking.score, kind="stable")
        self.score, self.outcome = ranking.score[order], ranking.outcome[order]
        # Where each row of the log is in the order of scores, and the other way round.
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        self.place = place[log.row]
        self.masks = np.empty_like(log.masks)
        self.masks[:, self.place] = log.masks
        self._steps: dict[int, tuple[Steps, Steps]] = {}

    def move(self, group: int) -> MovedLog:
        """Return the log with the fits inside and outside a group as its scores."""
        if group not in self._steps:
            member = find_members(self.masks, group)
            self._steps[group] = (self._fit(member), self._fit(~member))
        raised, score = (self._values(steps) for steps in self._steps[group])
        bit = (self.log.masks[group // 64] >> np.uint64(group % 64)) & np.uint64(1)
        return move_rows(self.log, raised, score, bit[None])

    def _fit(self, side: Flags) -> Steps:
        return fit_sorted(self.score[side], self.outcome[side])

    def _values(self, steps: Steps) -> Floats:
        """Return the fit at each row of the log: a look-up among sorted scores costs the least."""
        if not len(steps.start):
            return np.zeros(len(self.place))
        first = np.searchsorted(self.score, steps.start[1:], side="left")
        size = np.diff(first, prepend=0, append=len(self.score))
        # The indices are within bounds; checking them again would cost as much as the look-up.
        return np.repeat(steps.value, size).take(self.place, mode="clip")


class MemoryWalk:
    """A `Walk` over the blocks of one log.

    Blocks are added in their order whatever the number of threads, so the bits of every sum are
    the same. Ctrl-C is seen at once.
    """

    def __init__(
        self,
        log: Log,
        progress: Callable[[str, int], Any] | None = None,
        threads: int | None = None,
    ) -> None:
        self.log = log
        self.blocks = log.blocks
        self.progress = progress
        self.threads = threads

    def __call__(self, task: Task[Result], label: str) -> Iterator[Result]:
        """Yield what the task returns for each block, in order."""
        return self.spread(lambda block: task(self.log, *block), self.blocks, label)

    def total(self, task: Task[Result], label: str, start: Result) -> Result:
        """Add what the task returns for each block, in order."""
        return add_up(self(task, label), start)

    def item_sums(self, moments: Moments, *, by_item: bool = False) -> list[list[ItemSums]]:
        """Return the sums over items of each group and mode: one walk for all, or one a group."""
        log = without_owners(self.log) if by_item else self.log
        if can_sweep_items(log, moments):
            return sweep_items(log, moments, self.spread)

        def task(group: int) -> list[ItemSums]:
            return sum_items(log, group, moments)

        return list(self.spread(task, range(len(moments.center)), "summing over items"))

    def spread(
        self, task: Callable[[Job], Result], jobs: Sequence[Job], label: str
    ) -> Iterator[Result]:
        """Yield what the task returns for each job, in order."""
        here = len(self.log.row) < FEW_ROWS or self.threads == 1
        done = self.progress(label, len(jobs)) if self.progress else None
        return reported(in_order(task, jobs, here=here, threads=self.threads), done)


def reported(results: Iterator[Result], done: Callable[[], object] | None) -> Iterator[Result]:
    """Yield results, and report progress after each."""
    for result in results:
        if done:
            done()
        yield result


def open_log(
    data: Any,
    columns: dict[str, Any],
    *,
    memory: Any = None,
    spill: Any = None,
    sep: Any = None,
    encoding: Any = None,
    rules: Any = (),
    progress: Progress | None = None,
) -> OpenLog:
    """Choose the engine for what was given.

    Parameters
    ----------
    data : Ranking, table, path or paths, Files, OpenLog
    columns : dict
        The keywords of `Ranking`.
    memory, spill, sep, encoding
        The keywords of :func:`mpc_lab.audit`, for files.
    rules : sequence
        Scoring rules, which may name further columns of scores.
    progress : Progress, optional
    """
    if isinstance(data, OpenLog):
        return data
    if isinstance(data, Files) or are_paths(data):
        names, drop = _read_names(columns)
        files = data if isinstance(data, Files) else find_files(data, sep, encoding)
        check_names(names, files.names, f"{files.paths[0]!r}")
        return _open_files(files, names, drop, memory, spill, _columns_of(rules), progress)
    for name, given in {"memory": memory, "spill": spill, "sep": sep, "encoding": encoding}.items():
        if given is not None:
            raise MpcError(
                f"{name} must go with files; got a log that is not in files. Leave {name} out, or "
                "give the paths of the files."
            )
    if _comes_from(data, "dask"):
        from mpc_lab.engines.dask import DaskLog

        names, drop = _read_names(columns)
        return DaskLog(data, names, drop=drop)
    if _comes_from(data, "pyspark"):
        from mpc_lab.engines.spark import SparkLog

        names, drop = _read_names(columns)
        return SparkLog(data, names, drop=drop)
    return InMemory(as_ranking(data, **columns))


def are_paths(data: Any) -> bool:
    """Say whether the rows were given as a path or as a list of paths."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(part, str | os.PathLike) for part in data)
    return isinstance(data, str | os.PathLike)


def _open_files(
    files: Files,
    names: ColumnNames,
    drop: bool,
    memory: Any,
    spill: Any,
    extra: list[Hashable],
    progress: Progress | None,
) -> OpenLog:
    """Read files that fit into memory; walk others, and those for which memory is limited."""
    for note in files.notes():
        print(note, file=sys.stderr)
    limits = as_limits(memory)
    files.schema(names.roles(extra))  # report problems of a column before reading any row
    if memory is None and files.bytes_in_memory(names.roles(extra)) <= limits.memory:
        done = progress("reading files", len(files.paths)) if progress else None
        ranking = read_ranking(files, names, drop=drop, extra=extra, done=done)
        return InMemory(ranking, files.origin(ranking.stamp))
    from mpc_lab.engines.duckdb import DuckLog

    log = DuckLog(files, names, drop=drop, limits=limits, spill=spill)
    log.origin = {**files.origin(log.stamp), "memory": memory}
    return log


def _columns_of(rules: Any) -> list[Hashable]:
    """Return the columns that scoring rules name; anything that is not a list is refused later."""
    listed = rules if isinstance(rules, list | tuple) else [rules]
    return [rule.name for rule in listed if isinstance(rule, Column)]


def _comes_from(data: Any, package: str) -> bool:
    """Tell whether the rows are a frame of a package that need not be installed."""
    return type(data).__module__.split(".")[0] == package and hasattr(type(data), "columns")


def _read_names(columns: dict[str, Any]) -> tuple[ColumnNames, bool]:
    """Return the names of columns, and whether rows with a missing value are left out."""
    given = {name: value for name, value in columns.items() if value is not None}
    check_named(given)
    drop = drops(given.pop("missing", "raise"))
    return column_names(**given), drop
