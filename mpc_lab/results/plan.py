"""The plan of an audit: every choice checked before any work is done, printable and stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mpc_lab.errors import MpcError, near_match
from mpc_lab.inference.verdicts import check_tolerance
from mpc_lab.pairing import PAIRING_MODES
from mpc_lab.pairing.thresholds import Threshold, as_threshold

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

SCORING_RULES = ("baseline",)
CLUSTERS = ("naive", "query")
ADJUSTMENTS = ("none",)


@dataclass(frozen=True)
class Plan:
    """What an audit will compute; as the keywords of :func:`mpc_lab.audit`."""

    groups: tuple[str, ...]
    scoring_rules: tuple[str, ...]
    pairing_modes: tuple[str, ...]
    threshold: Threshold
    epsilon: tuple[float, ...] | None
    cluster: str
    level: float
    adjust: str
    tolerance: float | None
    seed: int

    def to_json(self) -> str:
        """Return the plan as one JSON text."""
        return json.dumps({**asdict(self), "threshold": repr(self.threshold)})

    def __str__(self) -> str:
        lines = (f"{name:>14}: {value}" for name, value in json.loads(self.to_json()).items())
        return "\n".join(lines)


def make_plan(
    ranking: Ranking,
    *,
    groups: Sequence[str] | None,
    scoring_rules: Sequence[str],
    pairing_modes: Sequence[str],
    threshold: object,
    epsilon: ArrayLike | None,
    cluster: str,
    level: float,
    adjust: str,
    tolerance: float | None,
    seed: int,
) -> Plan:
    """Check every option of an audit against the ranking."""
    check_tolerance(_number("tolerance", tolerance) if tolerance is not None else None)
    return Plan(
        groups=_groups(ranking, groups),
        scoring_rules=_labels("scoring_rules", scoring_rules, SCORING_RULES),
        pairing_modes=_labels("pairing_modes", pairing_modes, PAIRING_MODES),
        threshold=as_threshold(threshold),
        epsilon=None if epsilon is None else _grid(epsilon),
        cluster="query" if cluster == "auto" else _label("cluster", cluster, CLUSTERS, "auto"),
        level=_level(level),
        adjust=_label("adjust", adjust, ADJUSTMENTS),
        tolerance=None if tolerance is None else float(tolerance),
        seed=_seed(seed),
    )


def _groups(ranking: Ranking, groups: Sequence[str] | None) -> tuple[str, ...]:
    if groups is None:
        chosen = ranking.groups
    else:
        chosen = tuple([groups] if isinstance(groups, str) else groups)
        for group in chosen:
            ranking.group_index(group)
        _refuse_twice("groups", chosen)
    if not chosen:
        raise MpcError("An audit needs at least one group, but there is none to audit.")
    return chosen


def _labels(option: str, given: Sequence[str] | str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(_iterable(option, given))
    if not names:
        raise MpcError(f"{option} needs at least one of {_listed(known)}.")
    for name in names:
        _label(option, name, known)
    _refuse_twice(option, names)
    return names


def _iterable(option: str, given: Any) -> Iterable[Any]:
    if not isinstance(given, Iterable):
        raise MpcError(f"{option} takes a name or a list of names, not {given!r}.")
    return given


def _label(option: str, name: Any, known: tuple[str, ...], *also: str) -> str:
    if name not in known:
        choices = (*also, *known)
        hint = near_match(name, choices) if isinstance(name, str) else ""
        hint = hint if "mean" in hint else ""
        raise MpcError(f"{option} takes {_listed(choices)}, not {name!r}.{hint}")
    return str(name)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(repr(name) for name in names)


def _refuse_twice(option: str, names: tuple[str, ...]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise MpcError(f"{option} names {name!r} twice; name it once.")


def _grid(epsilon: ArrayLike) -> tuple[float, ...]:
    try:
        grid = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
    except (TypeError, ValueError):
        raise MpcError(f"epsilon takes numbers, not {epsilon!r}.") from None
    if grid.ndim != 1 or not grid.size:
        raise MpcError(f"epsilon takes a list of at least one number, not {epsilon!r}.")
    if not (np.isfinite(grid) & (grid >= 0)).all():
        raise MpcError("epsilon takes finite numbers of at least 0; remove the others.")
    if (np.diff(grid) <= 0).any():
        raise MpcError("epsilon must ascend with no number twice; pass np.unique(epsilon).")
    return tuple(grid.tolist())


def _number(option: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise MpcError(f"{option} takes a number, not {value!r}.")
    return float(value)


def _level(level: Any) -> float:
    if not 0 < _number("level", level) < 1:
        raise MpcError(f"level takes a number between 0 and 1, such as 0.95, not {level!r}.")
    return float(level)


def _seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise MpcError(f"seed takes a whole number of at least 0, not {seed!r}.")
    return int(seed)
