"""The rules that are a line of arithmetic, a column, or a function of the user's."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from mpc_lab.arguments import as_number
from mpc_lab.errors import MpcError
from mpc_lab.scoring.checks import Floats, checked_scores

if TYPE_CHECKING:
    from mpc_lab.ranking import LogFacts, Ranking


class Rule(Protocol):
    """What every scoring rule has.

    Attributes
    ----------
    label : str
        Its name in results.
    same_for_all_groups : bool
        Whether the scores are the same whichever group is audited, so that one sort serves all.
    in_sample : bool
        Whether the scores were fitted to the outcomes they are audited with.
    """

    same_for_all_groups: ClassVar[bool]
    in_sample: ClassVar[bool]

    @property
    def label(self) -> str:
        """Return the name of the rule in results."""
        ...

    def scores(self, ranking: Ranking, group: str) -> Floats:
        """Return the score of each row when `group` is audited."""
        ...

    def alpha_in(self, ranking: LogFacts) -> float | None:
        """Return what is added to the scores of the group; None for a rule that is no boost."""
        ...


class _NoBoost:
    same_for_all_groups: ClassVar[bool] = False
    in_sample: ClassVar[bool] = False

    def alpha_in(self, ranking: LogFacts) -> float | None:
        """Return None: the rule is no boost."""
        return None


@dataclass(frozen=True)
class Baseline(_NoBoost):
    """The scores as they were logged."""

    same_for_all_groups: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """Return ``"baseline"``."""
        return "baseline"

    def scores(self, ranking: Ranking, group: str) -> Floats:
        """Return the logged scores."""
        ranking.group_index(group)
        return ranking.score


@dataclass(frozen=True)
class Boosted:
    r"""The scores of the group's items raised by α: :math:`s + \alpha 1(i \in g)`.

    Parameters
    ----------
    alpha : float, optional
        By default a third of the population standard deviation of all scores.

    Examples
    --------
    >>> Boosted().label, Boosted(0.1).label
    ('boosted', 'boosted(0.1)')
    """

    alpha: float | None = None
    same_for_all_groups: ClassVar[bool] = False
    in_sample: ClassVar[bool] = False
    _name: ClassVar[str] = "boosted"
    _sign: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        alpha = self.alpha
        if alpha is None:
            return
        if not isfinite(as_number(alpha)):
            raise MpcError(
                f"{type(self).__name__}(alpha) takes a finite number of score units, not "
                f"{alpha!r}; leave it out for a third of the scores' standard deviation."
            )
        object.__setattr__(self, "alpha", as_number(alpha))

    @property
    def label(self) -> str:
        """Return the name of the rule, with its α where one was given."""
        return self._name if self.alpha is None else f"{self._name}({self.alpha!r})"

    def alpha_in(self, ranking: LogFacts) -> float:
        """Return what is added to the scores of the group: α, or −α for a demotion."""
        alpha = default_alpha(ranking) if self.alpha is None else self.alpha
        return self._sign * alpha

    def scores(self, ranking: Ranking, group: str) -> Floats:
        """Return the score of each row when `group` is audited."""
        with np.errstate(over="ignore"):
            raised = ranking.score + self.alpha_in(ranking)
        moved = np.where(ranking.member(group), raised, ranking.score)
        return checked_scores(moved, ranking.n_rows, f"The rule {self.label!r}")


@dataclass(frozen=True)
class Demoted(Boosted):
    r"""The scores of the group's items lowered by α: :math:`s - \alpha 1(i \in g)`.

    Parameters
    ----------
    alpha : float, optional
        By default a third of the population standard deviation of all scores.
    """

    _name: ClassVar[str] = "demoted"
    _sign: ClassVar[float] = -1.0


@dataclass(frozen=True)
class Column(_NoBoost):
    """The scores of another column of the log, such as those of a new ranker.

    Parameters
    ----------
    name : column
        A column of the table that the ranking was made of.
    """

    name: Hashable
    same_for_all_groups: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """Return the name of the column."""
        return str(self.name)

    def scores(self, ranking: Ranking, group: str) -> Floats:
        """Return the column."""
        ranking.group_index(group)
        return checked_scores(
            ranking.column(self.name), ranking.n_rows, f"The score column {self.name!r}"
        )


@dataclass(frozen=True)
class Custom(_NoBoost):
    """The scores that a function of (ranking, group) returns.

    Parameters
    ----------
    function : callable
        Takes a `Ranking` and the name of a group, returns one number a row.
    """

    function: Callable[[Ranking, str], Any]

    @property
    def label(self) -> str:
        """Return the name of the function."""
        return str(getattr(self.function, "__name__", ""))

    def scores(self, ranking: Ranking, group: str) -> Floats:
        """Return what the function gives."""
        ranking.group_index(group)
        with _read_only(ranking, self.label):
            given = self.function(ranking, group)
        return checked_scores(given, ranking.n_rows, f"The scoring rule {self.label!r}")


@contextmanager
def _read_only(ranking: Ranking, label: str) -> Iterator[None]:
    """Keep a user's function from changing the ranking that is being audited."""
    arrays = [
        part for part in (ranking.score, ranking.outcome, ranking.masks) if part.flags.writeable
    ]
    for array in arrays:
        array.flags.writeable = False
    try:
        yield
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise MpcError(
            f"The scoring rule {label!r} changes the ranking in place; let it work on a copy, "
            "such as ranking.score.copy()."
        ) from error
    finally:
        for array in arrays:
            array.flags.writeable = True


def default_alpha(ranking: LogFacts) -> float:
    """Return a third of the population standard deviation of all scores."""
    return ranking.score_std / 3
