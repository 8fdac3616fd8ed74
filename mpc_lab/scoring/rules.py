"""The scoring rules, and how a user's words become one of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from mpc_lab.errors import MpcError, check_number, near_match
from mpc_lab.scoring.calibrated import isotonic
from mpc_lab.vocabulary import Floats

if TYPE_CHECKING:
    from mpc_lab.ranking import LogFacts, Ranking


def check_scores(values: Any, n_rows: int, what: str) -> Floats:
    """Return `values` as float64, one finite number for each of `n_rows` rows."""
    found = np.asarray(values)
    if found.shape != (n_rows,):
        raise MpcError(
            f"{what} must give one score for each of the {n_rows:,} rows; got an array of shape "
            f"{found.shape}. Return the scores in the order of the rows."
        )
    scores = _numbers(found, what)
    bad = ~np.isfinite(scores)
    if bad.any():
        raise MpcError(
            f"{what} must give finite scores; got {int(bad.sum()):,} of {n_rows:,} missing or "
            f"infinite, the first in row {int(np.flatnonzero(bad)[0])}. Fill or remove them."
        )
    return scores


def _numbers(found: NDArray[Any], what: str) -> Floats:
    wrong = ""
    if found.dtype == object:
        kinds = {type(value) for value in found.tolist()}
        strange = [kind for kind in kinds if not issubclass(kind, Real) and kind is not type(None)]
        wrong = strange[0].__name__ if strange else ""
    elif found.dtype.kind not in "biuf":
        wrong = str(found.dtype)
    if wrong:
        raise MpcError(f"{what} must give numbers; got {wrong}. Convert them to float64.")
    return np.ascontiguousarray(found, dtype=np.float64)


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
        """Return what is added to the scores of the group; None for a rule that is not a boost."""
        ...


class _NoBoost:
    same_for_all_groups: ClassVar[bool] = False
    in_sample: ClassVar[bool] = False

    def alpha_in(self, ranking: LogFacts) -> float | None:
        """Return None: the rule is not a boost."""
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
        found = check_number(
            f"alpha of {type(self).__name__}",
            alpha,
            remedy="Leave it out for a third of the scores' standard deviation.",
        )
        object.__setattr__(self, "alpha", found)

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
        return check_scores(moved, ranking.n_rows, f"The rule {self.label!r}")


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
class Calibrated(_NoBoost):
    r"""Isotonic regression of the outcome on the score, separately inside and outside the group.

    On each side the scores become

    .. math:: \arg\min_{f \uparrow} \sum_r (y_r - f(s_r))^2,

    with tied scores averaged first. Block values are rounded to 12 significant digits, so that
    equal means tie. The fit is to the outcomes that are audited: the rule is `in_sample`.

    References
    ----------
    Barlow & Brunk (1972), The isotonic regression problem and its dual.
    """

    in_sample: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """Return ``"calibrated"``."""
        return "calibrated"

    def scores(self, ranking: Ranking, group: str) -> Floats:
        """Return the fitted outcome of each row."""
        member = ranking.member(group)
        fitted = np.empty(ranking.n_rows)
        for side in (member, ~member):
            if side.any():
                fitted[side] = isotonic(ranking.score[side], ranking.outcome[side])
        return fitted


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
        what = f"The score column {self.name!r}"
        return ranking.directed(check_scores(ranking.column(self.name), ranking.n_rows, what))


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
        return check_scores(given, ranking.n_rows, f"The scoring rule {self.label!r}")


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
            f"Scoring rule {label!r} must leave the ranking unchanged; got a change in place. Let "
            "it work on a copy, such as ranking.score.copy()."
        ) from error
    finally:
        for array in arrays:
            array.flags.writeable = True


def default_alpha(ranking: LogFacts) -> float:
    """Return a third of the population standard deviation of all scores."""
    return ranking.score_std / 3


_BY_NAME: dict[str, Rule] = {
    rule.label: rule for rule in (Baseline(), Boosted(), Demoted(), Calibrated())
}
SCORING_RULES = tuple(_BY_NAME)
_KINDS = (Baseline, Boosted, Demoted, Calibrated, Column, Custom)
_WAYS = (
    '"baseline", "boosted", "demoted", "calibrated", mpc.Boosted(alpha), mpc.Demoted(alpha), '
    'mpc.Column("name") or a function (ranking, group) -> scores'
)


def as_rule(value: Any) -> Rule:
    """Return the rule that a name, a rule or a function means.

    Examples
    --------
    >>> as_rule("boosted")
    Boosted(alpha=None)
    """
    if isinstance(value, str):
        if value not in _BY_NAME:
            raise MpcError(
                f"There is no scoring rule {value!r}. For a column of the log write "
                f"mpc.Column({value!r}).{near_match(value, SCORING_RULES)}"
            )
        return _BY_NAME[value]
    rule = Custom(value) if callable(value) and not isinstance(value, (*_KINDS, type)) else value
    if not isinstance(rule, _KINDS):
        raise MpcError(f"A scoring rule must be {_WAYS}; got {value!r}.")
    return _check_name(cast(Rule, rule))


def as_rules(values: Any) -> tuple[Rule, ...]:
    """Return the rules of a list, or of one rule alone; their labels must differ."""
    several = isinstance(values, Iterable) and not isinstance(values, str)
    rules = tuple(as_rule(value) for value in (values if several else [values]))
    if not rules:
        raise MpcError(f"scoring_rules must name at least one rule; got none. Give {_WAYS}.")
    labels = [rule.label for rule in rules]
    for label in labels:
        if labels.count(label) > 1:
            raise MpcError(
                f"Scoring rules must have different labels; got {label!r} twice. Rename a "
                "function or column, or give each boost another alpha."
            )
    return rules


def _check_name(rule: Rule) -> Rule:
    if not rule.label.strip() or "\0" in rule.label:
        raise MpcError(
            f"A scoring rule must have a name that can be printed; got {rule!r}. Give it one, for "
            "example by a def."
        )
    if isinstance(rule, Column | Custom) and rule.label in _BY_NAME:
        raise MpcError(
            "A column or function must not have the label of a built-in scoring rule; got "
            f"{rule.label!r}. Rename it."
        )
    return rule
