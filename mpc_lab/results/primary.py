"""What was declared before the run: one rule, one mode, one threshold. All else is exploratory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mpc_lab.errors import MpcError
from mpc_lab.pairing.thresholds import Threshold, as_threshold
from mpc_lab.scoring import as_rule
from mpc_lab.text import quoted

_PARTS = ("scoring_rule", "pairing_mode", "threshold")
_WRITE = 'Write primary=("baseline", "matched", mpc.Quantile(0.01)).'


@dataclass(frozen=True)
class Primary:
    """The declared cells; the threshold is kept as it is written."""

    scoring_rule: str
    pairing_mode: str
    threshold: str

    @property
    def cell(self) -> tuple[str, str]:
        """Rule and mode."""
        return self.scoring_rule, self.pairing_mode

    def to_dict(self) -> dict[str, str]:
        """Return the three parts by name."""
        return asdict(self)

    def sentence(self) -> str:
        """Return what was declared, and what that makes of the rest."""
        return (
            f"Declared before the run: scoring rule {quoted(self.scoring_rule)}, "
            f"{self.pairing_mode} pairs, threshold {self.threshold}. Everything else is "
            "exploratory."
        )


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
        That of the run.
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
        if set(given) != set(_PARTS):
            named = ", ".join(map(repr, given)) or "nothing"
            raise MpcError(f"primary must name {', '.join(_PARTS)}; got {named}. {_WRITE}")
        return given["scoring_rule"], given["pairing_mode"], given["threshold"]
    if not isinstance(given, list | tuple) or len(given) != len(_PARTS):
        raise MpcError(f"primary must be a rule, a mode and a threshold; got {given!r}. {_WRITE}")
    return given[0], given[1], given[2]


def _check_one(what: str, label: Any, known: Sequence[str], option: str) -> None:
    if label not in known:
        raise MpcError(
            f"primary must name a {what} of this run ({', '.join(map(repr, known))}); got "
            f"{label!r}. Add it to {option}=, or declare another one."
        )


def declared(options: Mapping[str, Any]) -> Primary | None:
    """Return what the options of an audit say was declared.

    Parameters
    ----------
    options : mapping
        Of :func:`mpc_lab.results.base.settings`.
    """
    found = options.get("primary")
    if found is None:
        return None
    if not isinstance(found, dict) or set(found) != set(_PARTS):
        raise MpcError(f"its primary must have {', '.join(_PARTS)}; got {found!r}.")
    return Primary(**{name: str(found[name]) for name in _PARTS})
