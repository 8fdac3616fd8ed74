"""What the checks of a preflight look at, what they return, and the calls they suggest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_lab.results.base import settings
from mpc_lab.results.recipe import changed_call
from mpc_lab.results.summary import Slice, slices
from mpc_lab.results.wording import columns_of
from mpc_lab.text import noun, plain
from mpc_lab.vocabulary import Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking
    from mpc_lab.ranking.checks import LeftOut
    from mpc_lab.results.audit import Audit

OK, CAUTION, STOP = "ok", "caution", "stop"
MARKS = {OK: "✓", CAUTION: "!", STOP: "✗"}
ENOUGH, DIRECTION = "enough pairs", "score direction"
HEAVY_QUERY = 0.2  # share of the pairs of a group
# Among fewer pairs one query or item always has a large share; the check then says they are few.
FEWEST_PAIRS = 30
# Whole queries with about this many rows are enough for shares and correlations.
SAMPLED_ROWS = 50_000
_GOLDEN, _LOW_BITS = np.uint64(2_654_435_761), np.uint64(2**32 - 1)


@dataclass(frozen=True)
class Finding:
    """What one check says.

    Attributes
    ----------
    check : str
        What was looked at.
    state : {"ok", "caution", "stop"}
    sentence : str
        What was seen, with numbers; on the screen a query has its id.
    remedy : str
        A call to paste, or a sentence where no call helps; empty where all is well.
    leaves : str
        The sentence for files, where queries are numbered; empty if it is the same.
    remedy_leaves : str
        The remedy for files, which names no query; empty where it is the same.
    command : str
        The remedy for a shell, where it is a call and the log is in files.
    """

    check: str
    state: str
    sentence: str
    remedy: str = ""
    leaves: str = ""
    remedy_leaves: str = ""
    command: str = ""

    @property
    def line(self) -> str:
        """What it says in one line.

        Examples
        --------
        >>> Finding("items", "caution", "No item column.", "mpc.audit(frame, item='i')").line
        "Caution, items: No item column. Remedy: mpc.audit(frame, item='i')"
        """
        remedy = f" Remedy: {self.remedy}" if self.remedy else ""
        return f"{self.state.capitalize()}, {self.check}: {self.sentence}{remedy}"

    @property
    def for_shell(self) -> Finding:
        """The same finding with its remedy as a command, where there is one."""
        return replace(self, remedy=self.command) if self.command else self

    @property
    def is_call(self) -> bool:
        """Whether the remedy is Python to paste as it is."""
        return self.remedy.startswith(("audit = mpc.", "ranking = mpc."))

    @property
    def leads_on(self) -> bool:
        """Whether its remedy is a step towards a finding, and not only something to say."""
        poor = self.state != OK
        return poor and (self.is_call or self.state == STOP or self.check in (ENOUGH, DIRECTION))

    def to_leave(self) -> Finding:
        """Return the form that may be written to a file."""
        remedy = self.remedy_leaves or self.remedy
        return Finding(self.check, self.state, self.leaves or self.sentence, remedy)


@dataclass(frozen=True)
class Sample:
    """Some whole queries, sorted by query and ascending score.

    Attributes
    ----------
    rows : int64 array
        Their rows in the ranking.
    query : int64 array
        The query of each, counted from 0 without holes.
    sizes : int64 array
        How many rows each query has.
    """

    rows: Ints
    query: Ints
    sizes: Ints


class Look:
    """A log, or an audit with or without its rows, as the checks see it.

    Parameters
    ----------
    ranking : Ranking or None
        None where the rows stay in files or on a cluster, or were not saved.
    audit : Audit, optional
        Absent where outcomes must not be looked at.
    """

    def __init__(self, ranking: Ranking | None, audit: Audit | None = None) -> None:
        self.ranking = ranking
        self.audit = audit
        self._commands: dict[str, str] = {}

    def with_command(self, finding: Finding) -> Finding:
        """Return a finding with the shell command that does the same as its call."""
        return replace(finding, command=self._commands.get(finding.remedy, ""))

    @cached_property
    def options(self) -> dict[str, Any]:
        """The settings of the audit."""
        return {} if self.audit is None else settings(self.audit)

    @cached_property
    def part(self) -> Slice:
        """The rule and the mode that the audit is about."""
        if self.audit is None:
            raise TypeError("only an audit has findings")
        return slices(self.audit)[0]

    @cached_property
    def columns(self) -> dict[str, Any]:
        """The column of each role, as it was given."""
        if self.ranking is not None:
            return self.ranking.columns.given()
        known = columns_of(self.options)
        return {name: value for name, value in known.items() if value is not None}

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of the log; without rows, those that were audited."""
        if self.ranking is not None:
            return self.ranking.groups
        return () if self.audit is None else tuple(self.audit.groups)

    @cached_property
    def whole_groups(self) -> list[str]:
        """The groups asked for that have every row; none where the rows are not here."""
        if self.ranking is None:
            return []
        every = np.bitwise_and.reduce(self.ranking.masks, axis=1)
        asked = self.groups if self.audit is None else tuple(self.audit.groups)
        return [
            group
            for g, group in enumerate(self.ranking.groups)
            if every[g // 64] >> np.uint64(g % 64) & np.uint64(1) and group in asked
        ]

    @property
    def n_rows(self) -> float:
        """How many rows were read, without limit where that is not known."""
        if self.ranking is not None:
            return self.ranking.n_rows
        return float(self.options.get("n_rows", math.inf))

    @property
    def n_queries(self) -> float:
        """How many queries were read, without limit where that is not known."""
        if self.ranking is not None:
            return self.ranking.n_queries
        return float(self.options.get("n_queries", math.inf))

    def of_cells(self, name: str) -> dict[str, float]:
        """Return a variable of the headline by group, for the leading rule and mode."""
        if self.audit is None or name not in self.audit.headline:
            return {}
        at = self.audit.headline.sel(scoring_rule=self.part.rule, pairing_mode=self.part.mode)
        return dict(zip(self.audit.groups, at[name].values.tolist(), strict=True))

    def again(self, rows: str = "frame", **changes: Any) -> str:
        """Return the call that makes the audit, or the ranking, with some keywords changed.

        Parameters
        ----------
        rows : str
            Python for the rows to take.
        **changes
            Values by keyword; a ``Verbatim`` is written as it is.
        """
        if self.audit is not None:
            call, command = changed_call(self.audit, changes, rows)
            self._commands[call] = command or ""
            return call
        if self.ranking is None:
            raise TypeError("a preflight needs a log or an audit")
        given = {**self.ranking.columns.given(), **changes}
        given = {name: value for name, value in given.items() if value is not None}
        if self.ranking.dropped:
            given["missing"] = "drop"
        written = [f"{name}={_literal(value)}" for name, value in given.items()]
        return f"ranking = mpc.Ranking({', '.join([rows, *written])})"

    def again_of(self, rows: str, words: str, **changes: Any) -> str:
        """Return the call on some rows of a pandas frame, or what to do in words."""
        is_frame = self.ranking is not None and self.ranking.is_pandas
        return self.again(rows, **changes) if is_frame else words

    @cached_property
    def sample(self) -> Sample:
        """Whole queries, evenly spread over the log."""
        ranking = self.need_rows()
        # Scattered, not every k-th: anything that alternates in a log would be sampled on one side
        # only.
        scattered = (np.arange(ranking.n_queries, dtype=np.uint64) * _GOLDEN) & _LOW_BITS
        wanted = scattered <= _LOW_BITS * min(1.0, SAMPLED_ROWS / ranking.n_rows)
        wanted[0] = True
        chosen = np.flatnonzero(wanted[ranking.query_code])
        order = np.lexsort((ranking.score[chosen], ranking.query_code[chosen]))
        rows = chosen[order]
        query = np.unique(ranking.query_code[rows], return_inverse=True)[1].astype(np.int64)
        return Sample(rows, query, np.bincount(query))

    @cached_property
    def left_out(self) -> LeftOut | None:
        """What ``missing="drop"`` left out, with its groups; None where nothing was."""
        return self.need_rows().left_out()

    @cached_property
    def scale(self) -> float:
        """What scores are divided by, so that their squares are numbers; a power of two."""
        largest = float(np.abs(self.need_rows().score).max())
        return 2.0 ** math.floor(math.log2(largest)) if largest > 0 else 1.0

    @cached_property
    def scores(self) -> Floats:
        """The scores of the sample, divided by `scale`."""
        return np.asarray(self.need_rows().score[self.sample.rows] / self.scale)

    def need_rows(self) -> Ranking:
        """Return the rows, for a check that is only asked where there are some."""
        if self.ranking is None:
            raise TypeError("this check needs rows")
        return self.ranking


def line_up(score: Floats, at: Sample) -> Floats:
    """Return scores of the sample on one line, ascending, far apart between queries."""
    inside = score - score[np.cumsum(at.sizes) - at.sizes][at.query]
    # A gap wider than any distance of interest.
    room = 4.0 * max(float(inside.max(initial=0.0)), 1e-300)
    return np.asarray(inside + at.query * room)


def _literal(value: Any) -> str:
    return ascii(list(value) if isinstance(value, tuple) else value)


def close_pairs(keys: Floats, epsilon: float) -> Ints:
    """Return for each row how many rows above it in its query are at most epsilon away."""
    reach = np.searchsorted(keys, keys + epsilon, side="right")
    return np.asarray(reach - np.arange(1, len(keys) + 1), dtype=np.int64)


def and_more(count: int) -> str:
    """Return a sentence that counts further groups for which the same is true; else nothing."""
    return f" The same holds for {count:,} more {noun(count, 'group')}." if count else ""


def shown_share(share: float) -> str:
    """Return a share in whole per cent.

    Examples
    --------
    >>> shown_share(0.256), shown_share(0.002), shown_share(0.0)
    ('26 %', 'less than 1 %', '0 %')
    """
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.005 else "less than 1 %"


def shown_label(label: Any) -> str:
    """Return an id as a person reads it."""
    return repr(plain(label)) if isinstance(label, str) else plain(label)


def as_rows(findings: list[Finding]) -> list[Mapping[str, str]]:
    """Return findings as plain records, for a frame or a file."""
    return [
        {
            "check": one.check,
            "state": one.state,
            "sentence": one.sentence,
            "remedy": one.remedy,
        }
        for one in findings
    ]
