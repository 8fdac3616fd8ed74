"""A part of a log that is never whole in one place, and what a scoring rule makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.pairing.arrays import Flags, Floats, Ints, Masks
from mpc_lab.pairing.log import Log, rescore, resort
from mpc_lab.ranking import LogFacts
from mpc_lab.scoring import Baseline, Boosted, Calibrated, Column, Rule
from mpc_lab.scoring.calibrated import Steps


@dataclass(frozen=True)
class Part:
    """Whole units of a log, as logged.

    Attributes
    ----------
    log : Log
    columns : dict of float64 arrays
        Other score columns, in the order of the log.
    names : uint64 array
        What the items of the log are called everywhere, by their codes here; empty where codes
        are the same everywhere.
    """

    log: Log
    columns: dict[str, Floats] = field(default_factory=dict)
    names: Masks = field(default_factory=lambda: np.empty(0, dtype=np.uint64))


class Change(Protocol):
    """Makes of a part the log of a rule; it travels to where the part is."""

    def __call__(self, part: Part) -> Log:
        """Return the log of the rule."""
        ...


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
        member = member_of(part.log, self.group)
        score = np.where(member, part.log.score + self.alpha, part.log.score)
        if not np.isfinite(score).all():
            raise MpcError(
                f"The rule {self.label!r} must give finite scores, but a boost of {self.alpha:g} "
                "makes some infinite: choose another alpha."
            )
        return rescore(part.log, score, member)


@dataclass(frozen=True)
class _Fitted:
    """The scores inside and outside one group, each by its own step function."""

    group: int
    inside: Steps
    outside: Steps

    def __call__(self, part: Part) -> Log:
        member = member_of(part.log, self.group)
        score = np.where(member, self.inside(part.log.score), self.outside(part.log.score))
        return rescore(part.log, score, member)


class Fits(Protocol):
    """Finds the step functions of the rule ``calibrated``."""

    def __call__(self, group: int) -> tuple[Steps, Steps]:
        """Return the fit inside a group and the fit outside it."""
        ...


def member_of(log: Log, group: int) -> Flags:
    """Return which rows of a log are in a group."""
    bit = np.uint64(1) << np.uint64(group % 64)
    return np.asarray(log.masks[group // 64] & bit != 0)


def changes(
    rule: Rule, n_groups: int, facts: LogFacts, fits: Fits
) -> Iterator[tuple[Ints, Change]]:
    """Yield the groups, by number, and what makes the log that serves them."""
    if isinstance(rule, Baseline):
        yield np.arange(n_groups), _AsLogged()
    elif isinstance(rule, Column):
        yield np.arange(n_groups), _ByColumn(str(rule.name))
    elif isinstance(rule, Boosted):
        for group in range(n_groups):
            yield np.array([group]), _Moved(rule.label, group, rule.alpha_in(facts))
    elif isinstance(rule, Calibrated):
        for group in range(n_groups):
            yield np.array([group]), _Fitted(group, *fits(group))
    else:
        raise MpcError(
            f"The scoring rule {rule.label!r} needs all rows in memory: write its scores into a "
            "column of the log and pass mpc.Column."
        )


def changes_of_all(
    rules: Sequence[Rule], n_groups: int, facts: LogFacts, fits: Fits
) -> list[tuple[int, Ints, Change]]:
    """Return the number of each rule, the groups served, and what makes their log."""
    return [
        (number, groups, change)
        for number, rule in enumerate(rules)
        for groups, change in changes(rule, n_groups, facts, fits)
    ]
