"""The plan of an audit: every choice checked before any work is done, printable and stored.

Plans that were carried out are counted for each log: an audit that shows one of six thresholds that
were tried should show that there were six.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mpc_lab import __version__
from mpc_lab.errors import (
    MpcError,
    as_number,
    check_count,
    check_epsilon,
    check_level,
    check_number,
    check_whole,
    near_match,
)
from mpc_lab.inference.verdicts import METHODS, check_tolerance
from mpc_lab.pairing.terms import (
    CLOSENESS,
    CONTRASTS,
    DIFFERENCE,
    ESTIMANDS,
    PAIRS,
    SCORE,
    Quantile,
    Terms,
    Threshold,
    as_threshold,
)
from mpc_lab.ranking import Known, LogFacts, Ranking, group_index
from mpc_lab.ranking.examination import Curve
from mpc_lab.results.wording import PRIMARY_PARTS, Primary
from mpc_lab.scoring import Boosted, Column, Custom, Rule, as_rule, as_rules
from mpc_lab.vocabulary import (
    ADJACENT,
    CORRECTIONS,
    CR3,
    ITEM,
    MODES,
    PRODUCER,
    VARIANCES,
    Floats,
    Mode,
    default_modes,
    of_owner,
    public_variances,
    swept_modes,
)

# The band of a curve needs a matrix over its thresholds for every cell.
_THRESHOLDS_AT_MOST = 250
_PAIRS_AT_MOST = 10**6
_LARGEST = 1e100  # the largest outcome
BASELINE = "baseline"


@dataclass(frozen=True)
class Plan:
    """What an audit will compute; as the keywords of :func:`mpc_lab.audit`.

    In `cluster`, ``"auto"`` is already resolved. `owner` says whether the pairs of items move with
    those of their producer, `place_effect` whether the effect of place is computed.
    """

    groups: tuple[str, ...]
    scoring_rules: tuple[Rule, ...]
    pairing_modes: tuple[str, ...]
    threshold: Threshold
    epsilon: tuple[float, ...] | None
    cluster: str
    level: float
    adjust: str
    tolerance: float | None
    bootstrap: int
    seed: int
    primary: Primary | None = None
    bounds: tuple[float, float] | None = None
    pairs_cap: int = 10
    closeness: str = SCORE
    contrast: str = DIFFERENCE
    against: str | None = None
    outcome_cap: float | None = None
    owner: str = ITEM
    estimand: str = PAIRS
    correction: str = CR3
    place_effect: bool = True

    @property
    def inference(self) -> dict[str, Any]:
        """How standard errors and intervals are made."""
        return {"cluster": self.cluster, "level": self.level, "correction": self.correction}

    @property
    def terms(self) -> Terms:
        """On what terms rows are compared."""
        return Terms(self.closeness, self.contrast, self.against, self.estimand)

    @property
    def masked_groups(self) -> tuple[str, ...]:
        """The groups whose membership must be known for every row, the audited ones first."""
        known = self.against is None or self.against in self.groups
        return self.groups if known else (*self.groups, str(self.against))

    @property
    def against_bit(self) -> int | None:
        """The index in `masked_groups` of the group that others are compared with."""
        return None if self.against is None else self.masked_groups.index(self.against)

    @property
    def rule_labels(self) -> tuple[str, ...]:
        """The names of the scoring rules."""
        return tuple(rule.label for rule in self.scoring_rules)

    @property
    def common_scores(self) -> list[int]:
        """The rules, by number, that give an item the same score whichever group is audited."""
        own = (Boosted, Custom)
        return [k for k, rule in enumerate(self.scoring_rules) if not isinstance(rule, own)]

    @property
    def swept_modes(self) -> tuple[Mode, ...]:
        """The modes that are summed over: a verdict on ``matched`` needs ``mirrored`` too."""
        return swept_modes(self.pairing_modes)

    @property
    def mode_rows(self) -> list[int]:
        """The indices of the wanted modes among the swept ones."""
        swept = [mode.name for mode in self.swept_modes]
        return [swept.index(mode) for mode in self.pairing_modes]

    def to_json(self) -> str:
        """Return the plan as one JSON text."""
        options = {name: getattr(self, name) for name in self.__dataclass_fields__}
        del options["owner"]  # it follows from the columns and the cluster
        del options["place_effect"]  # it is not an option of an audit
        options["scoring_rules"] = self.rule_labels
        options["threshold"] = repr(self.threshold)
        options["primary"] = None if self.primary is None else self.primary.to_dict()
        return json.dumps(options)

    def __str__(self) -> str:
        lines = (f"{name:>14}: {value}" for name, value in json.loads(self.to_json()).items())
        return "\n".join(lines)


def make_plan(
    log: Known,
    *,
    groups: Sequence[str] | None,
    scoring_rules: Any,
    pairing_modes: Sequence[str] | None,
    threshold: object,
    epsilon: ArrayLike | None,
    cluster: str,
    level: float,
    adjust: str,
    tolerance: float | None,
    bootstrap: int,
    seed: int,
    primary: Any = None,
    bounds: tuple[float, float] | None = None,
    pairs_cap: int = 10,
    closeness: str = SCORE,
    contrast: str = DIFFERENCE,
    against: str | None = None,
    outcome_cap: float | None = None,
    estimand: str = PAIRS,
    correction: str = CR3,
) -> Plan:
    """Check every option of an audit against what is known about the log."""
    check_tolerance(tolerance)
    against = _against(log, against)
    if log.columns.is_rank_only:
        pairing_modes, threshold, epsilon = _rank_only(
            as_rules(scoring_rules), pairing_modes, as_threshold(threshold), epsilon, closeness
        )
    plan = Plan(
        groups=_groups(log, groups, against),
        scoring_rules=as_rules(scoring_rules),
        pairing_modes=_modes(log, pairing_modes),
        threshold=as_threshold(threshold),
        epsilon=None if epsilon is None else _grid(epsilon),
        cluster=_cluster(log, cluster),
        level=check_level(level),
        adjust=_label("adjust", adjust, METHODS),
        tolerance=None if tolerance is None else float(tolerance),
        bootstrap=check_whole("bootstrap", bootstrap),
        seed=check_whole("seed", seed),
        bounds=_bounds(bounds),
        pairs_cap=check_count("pairs_cap", pairs_cap, at_most=_PAIRS_AT_MOST),
        closeness=_label("closeness", closeness, CLOSENESS),
        contrast=_label("contrast", contrast, CONTRASTS),
        against=against,
        outcome_cap=None if outcome_cap is None else check_number("outcome_cap", outcome_cap),
        owner=_owner(log, cluster),
        estimand=_label("estimand", estimand, ESTIMANDS),
        correction=_label("correction", correction, CORRECTIONS),
    )
    named = as_primary(primary, plan.rule_labels, plan.pairing_modes, plan.threshold)
    return replace(plan, primary=named)


# With places alone, only neighbours are known to be close, and their distance is 1.
_NEIGHBOURS = 1.0


def _rank_only(
    rules: tuple[Rule, ...],
    modes: Any,
    threshold: Threshold,
    epsilon: ArrayLike | None,
    closeness: str,
) -> tuple[Any, float, list[float]]:
    """Return the mode, threshold and grid of a log without scores; refuse all others."""
    asked = {
        "scoring_rules": [rule.label for rule in rules] != [BASELINE],
        "pairing_modes": modes is not None and list(_names(modes)) != [ADJACENT.name],
        "threshold": threshold not in (Quantile(), _NEIGHBOURS),
        "epsilon": epsilon is not None and list(_grid(epsilon)) != [_NEIGHBOURS],
        "closeness": closeness != SCORE,
    }
    for option, other in asked.items():
        if other:
            raise MpcError(
                f"{option} must be left out for a log without scores; got another choice. Places "
                "do not say how far apart two items are, so only neighbours are compared. Give "
                "score= for more."
            )
    return (ADJACENT.name,), _NEIGHBOURS, [_NEIGHBOURS]


def _names(given: Any) -> Iterable[Any]:
    return (given,) if isinstance(given, str) else _iterable("pairing_modes", given)


def _against(log: Known, against: Any) -> str | None:
    if against is None:
        return None
    if not isinstance(against, str):
        raise MpcError(f"against must be the name of a group; got {against!r}.")
    return log.groups[group_index(log.groups, against)]


def _groups(
    log: Known, groups: Sequence[str] | None, against: str | None = None
) -> tuple[str, ...]:
    if groups is None:
        chosen = tuple(group for group in log.groups if group != against)
    else:
        chosen = tuple([groups] if isinstance(groups, str) else _iterable("groups", groups))
        for group in chosen:
            group_index(log.groups, group)
        _refuse_twice("groups", chosen)
        if against in chosen:
            raise MpcError(
                f"groups must not name {against!r}, which the others are compared with "
                "(against=); got it in both. Leave it out of one of them."
            )
    if not chosen and groups is not None:
        raise MpcError(
            "groups must name at least one group; got none. Leave groups out for all of them."
        )
    if not chosen:
        raise MpcError(
            "An audit must have at least one group; got none. Name the column of groups."
        )
    return chosen


def _modes(log: Known, modes: Sequence[str] | None) -> tuple[str, ...]:
    if modes is None:
        return default_modes(log.columns.position is not None)
    return _labels("pairing_modes", modes, tuple(MODES))


def _cluster(log: Known, cluster: str) -> str:
    known = log.columns.item is not None
    if cluster == "auto":
        return "union" if known else "query"
    _label("cluster", cluster, public_variances(), "auto")
    if VARIANCES[cluster].needs_items and not known:
        raise MpcError(
            f"cluster={cluster!r} must know the items; got a log without them. Name the item "
            "column of the ranking, or use cluster='query'."
        )
    if VARIANCES[cluster].owner == PRODUCER and log.columns.producer is None:
        raise MpcError(
            f"cluster={cluster!r} must know the producers; got a log without them. Name the "
            "producer column of the ranking, or use cluster='union'."
        )
    return cluster


def _owner(log: Known, cluster: str) -> str:
    """Return what items are summed by: their producers, where these are known."""
    by_item = log.columns.producer is None or cluster == ITEM
    return ITEM if by_item else PRODUCER


def _bounds(given: object) -> tuple[float, float] | None:
    if given is None:
        return None
    ends = [as_number(end) for end in given] if isinstance(given, tuple | list) else []
    if len(ends) != 2 or not -_LARGEST <= ends[0] < ends[1] <= _LARGEST:
        raise MpcError(
            "bounds must be the lowest and the highest outcome that can occur, such as (0, 5); got "
            f"{given!r}."
        )
    return ends[0], ends[1]


def _labels(option: str, given: Sequence[str] | str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(_iterable(option, given))
    if not names:
        raise MpcError(f"{option} must name at least one of {_list(known)}; got none.")
    for name in names:
        _label(option, name, known)
    _refuse_twice(option, names)
    return names


def _iterable(option: str, given: Any) -> Iterable[Any]:
    if not isinstance(given, Iterable):
        raise MpcError(f"{option} must be a name or a list of names; got {given!r}.")
    return given


def _label(option: str, name: Any, known: tuple[str, ...], *also: str) -> str:
    choices = (*also, *known)
    if not isinstance(name, str) or name not in choices:
        hint = near_match(name, choices) if isinstance(name, str) else ""
        hint = hint if "mean" in hint else ""
        raise MpcError(f"{option} must be one of {_list(choices)}; got {name!r}.{hint}")
    return name


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(repr(name) for name in names)


def _refuse_twice(option: str, names: tuple[str, ...]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise MpcError(f"{option} must name each one once; got {twice!r} twice.")


def _grid(epsilon: ArrayLike) -> tuple[float, ...]:
    try:
        given = np.atleast_1d(np.asarray(epsilon))
        if given.dtype.kind in "SU":  # text that reads as a number is still a slip
            raise TypeError
        grid = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise MpcError(f"epsilon must be numbers; got {epsilon!r}.") from None
    if grid.ndim != 1 or not grid.size:
        raise MpcError(f"epsilon must be a list of at least one number; got {epsilon!r}.")
    for value in grid.tolist():
        check_epsilon(value)
    if grid.size > _THRESHOLDS_AT_MOST:
        raise MpcError(
            f"epsilon must be at most {_THRESHOLDS_AT_MOST} thresholds; got {grid.size:,}. Give "
            "fewer."
        )
    if (np.diff(grid) <= 0).any():
        raise MpcError(
            "epsilon must ascend, with each number once; got numbers that do not. "
            "Pass np.unique(epsilon)."
        )
    return tuple(grid.tolist())


def rule_parts(rule: Rule) -> list[Any]:
    """Return the kind of a rule and its argument, as the attributes of an audit keep them."""
    if isinstance(rule, Custom):
        return ["function", rule.label]
    if isinstance(rule, Column):
        return ["column", rule.name if isinstance(rule.name, str | int) else str(rule.name)]
    if isinstance(rule, Boosted) and rule.alpha is not None:
        return [rule._name, rule.alpha]
    return [rule.label, None]


_WRITE = 'Write primary=("baseline", "matched", mpc.Quantile(0.01)).'


def as_primary(
    given: Any, rules: Sequence[str], modes: Sequence[str], threshold: Threshold
) -> Primary | None:
    """Return the declaration of a run, None where there is none.

    Parameters
    ----------
    given : tuple, mapping or None
        A rule, a mode and a threshold, in this order or by name.
    rules, modes : sequence of str
        Those of the run.
    threshold : Threshold
        The threshold of the run.
    """
    if given is None:
        return None
    rule, mode, written = _parts(given)
    label = rule if isinstance(rule, str) else as_rule(rule).label
    _check_one("scoring rule", label, rules, "scoring_rules")
    _check_one("pairing mode", mode, modes, "pairing_modes")
    if as_threshold(written) != threshold:
        raise MpcError(
            f"primary must name the threshold of this run, {threshold!r}; got {written!r}. "
            "Pass the same one as threshold=."
        )
    return Primary(label, mode, repr(threshold))


def _parts(given: Any) -> tuple[Any, Any, Any]:
    if isinstance(given, Mapping):
        if set(given) != set(PRIMARY_PARTS):
            named = ", ".join(map(repr, given)) or "nothing"
            raise MpcError(f"primary must name {', '.join(PRIMARY_PARTS)}; got {named}. {_WRITE}")
        return given["scoring_rule"], given["pairing_mode"], given["threshold"]
    if not isinstance(given, list | tuple) or len(given) != len(PRIMARY_PARTS):
        raise MpcError(f"primary must be a rule, a mode and a threshold; got {given!r}. {_WRITE}")
    return given[0], given[1], given[2]


def _check_one(what: str, label: Any, known: Sequence[str], option: str) -> None:
    if label not in known:
        raise MpcError(
            f"primary must name a {what} of this run ({', '.join(map(repr, known))}); got "
            f"{label!r}. Add it to {option}=, or declare another one."
        )


def find_bounds(
    given: tuple[float, float] | None, outcome: Floats, *, sign: bool = False
) -> tuple[float, float] | None:
    """Return the bounds of an outcome: those given, or (0, 1) where it is 0 or 1; else None.

    The sign of a difference has the bounds of such an outcome, whatever the outcome is.

    Examples
    --------
    >>> import numpy as np
    >>> find_bounds(None, np.array([0.0, 1.0, 1.0])), find_bounds(None, np.array([0.0, 0.5]))
    ((0.0, 1.0), None)
    """
    if given is None:
        binary = sign or bool(np.isin(outcome, (0.0, 1.0)).all())
        return (0.0, 1.0) if binary else None
    low, high = given
    check_bounds(given, int(((outcome < low) | (outcome > high)).sum()))
    return (0.0, 1.0) if sign else (low, high)


def check_bounds(bounds: tuple[float, float], outside: int) -> None:
    """Refuse bounds that some rows are outside of."""
    if outside:
        low, high = bounds
        raise MpcError(
            f"outcome must be within bounds=({low:g}, {high:g}); got {outside:,} rows outside. "
            "Give the lowest and the highest outcome that can occur."
        )


# ---- what an audit says of how it was made

_LIBRARIES = ("numpy", "pandas", "scipy", "statsmodels", "numba", "xarray", "narwhals")


def attributes(
    plan: Plan, facts: LogFacts, origin: Mapping[str, Any]
) -> dict[str, int | float | str]:
    """Return what makes the audit reproducible; the fingerprint of the rows is added on saving."""
    alphas = {
        rule.label: alpha
        for rule in plan.scoring_rules
        if (alpha := rule.alpha_in(facts)) is not None
    }
    return {
        **plan_attributes(plan),
        "versions": json.dumps(_versions()),
        "columns": json.dumps(_columns(facts), default=_plain),
        "source": json.dumps(dict(origin), default=str),
        "rule_kinds": json.dumps([rule_parts(rule) for rule in plan.scoring_rules]),
        "alpha": json.dumps(alphas),
        "in_sample": json.dumps([rule.label for rule in plan.scoring_rules if rule.in_sample]),
        "all_groups": int(plan.groups == facts.groups),
        "n_rows": facts.n_rows,
        "n_queries": facts.n_queries,
        "n_units": facts.n_units,
        "n_items": facts.n_items,
        "n_dropped": facts.dropped,
        "outcome_low": facts.outcome_range[0],
        "outcome_high": facts.outcome_range[1],
        "n_capped": facts.n_capped,
        "n_floored": facts.n_floored,
    }


def complements_attribute(
    plan: Plan, pairs: Sequence[tuple[int, int]], rules: Sequence[int]
) -> dict[str, int | float | str]:
    """Return the attribute that says which groups are complements, and which rules that binds."""
    if not pairs:
        return {}
    named = [[plan.groups[one], plan.groups[other]] for one, other in pairs]
    bound = [plan.rule_labels[k] for k in rules]
    return {"complements": json.dumps({"groups": named, "rules": bound})}


def plan_attributes(plan: Plan) -> dict[str, int | float | str]:
    """Return the attributes that say how an audit was made."""
    family = {
        "adjust": plan.adjust,
        "over": "the estimable groups of one scoring rule and one pairing mode",
        "groups": plan.groups,
        "scoring_rules": plan.rule_labels,
    }
    return {
        "options": plan.to_json(),
        "family": json.dumps(family),
        "cluster": plan.cluster,
        "owner": plan.owner,
        "correction": of_owner(
            VARIANCES[plan.cluster].describe_correction(plan.correction), plan.owner
        ),
        "level": plan.level,
        "adjust": plan.adjust,
        "threshold": repr(plan.threshold),
    }


@cache
def _versions() -> dict[str, str]:
    found = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return {"mpc_lab": __version__, "python": platform.python_version(), **found}


def _plain(value: Any) -> Any:
    """Return the form in which a value that JSON does not know is stored."""
    return value.to_json() if isinstance(value, Curve) else str(value)


def _columns(facts: LogFacts) -> dict[str, Any]:
    return {name: getattr(facts.columns, name) for name in facts.columns.__dataclass_fields__}


# ---- how many audits of one log this process has made; not part of comparing or pooling

_KEPT_AT_MOST = 1_000
_LOCK = threading.Lock()
_MADE: dict[str, list[dict[str, Any]]] = {}


def key_of(ranking: Ranking | None, origin: Mapping[str, Any]) -> str | None:
    """Return a key that identifies a log; None if there is no such key.

    The SHA-256 of queries and outcomes of rows in memory, the checksums of files that are walked:
    audits with other scores, groups or directions look at the same log, but have other fingerprints
    of the audited rows. Frames on a cluster are not counted.
    """
    if ranking is None:
        stamps = [one.get("sha256") for one in origin.get("files", []) if isinstance(one, dict)]
        return json.dumps(stamps) if stamps and all(stamps) else None
    digest = hashlib.sha256()
    for part in (ranking.query_code, ranking.outcome_given):
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def count_look(key: str | None, attrs: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Note an audit by its attributes; return the options of all of its log, this one last."""
    if key is None:
        return ()
    options, columns = (json.loads(str(attrs[name])) for name in ("options", "columns"))
    with _LOCK:
        made = _MADE.setdefault(key, [])
        made.append(options | columns)
        if len(made) > _KEPT_AT_MOST:
            del made[1]
        if len(_MADE) > _KEPT_AT_MOST:
            _MADE.pop(next(iter(_MADE)))
        return tuple(dict(one) for one in made)
