"""From what stands on a line or in a config file to the values that an audit takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mpc_lab.command_line.options import BY_NAME, Option
from mpc_lab.errors import MpcError

_THRESHOLDS = "a number, quantile:0.01, smallest:1000 or powered:0.02"
_RULES = "baseline, boosted, boosted:0.1, demoted, demoted:0.1, calibrated or column:NAME"


def from_line(option: Option, given: Any) -> Any:
    """Return the value of an option that was written on the command line."""
    if option.kind in ("numbers", "rules"):
        words = [word for text in given for word in split(text)]
        return _CHECKED[option.kind](option, words)
    # Names of columns and groups may hold a comma: they are split once the names are known.
    return given if option.is_list else _CHECKED[option.kind](option, given)


def from_file(name: str, value: Any) -> Any:
    """Return the value of an option that was written in a config file."""
    option = BY_NAME[name]
    if option.is_list:
        listed = value if isinstance(value, list) else [value]
        if option.kind in ("columns", "texts"):
            return [_text(option, one) for one in listed]
        return _CHECKED[option.kind](option, listed)
    checked = _CHECKED[option.kind](option, value)
    if option.choices and checked not in option.choices:
        raise MpcError(f"{name} takes {', '.join(option.choices)}, not {value!r}.")
    return checked


def split(text: str) -> list[str]:
    """Return the parts of a comma list, without the space around them.

    Examples
    --------
    >>> split("user, day")
    ['user', 'day']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def names(given: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return names that may stand in comma lists; one that is known as a whole is not split.

    Examples
    --------
    >>> names(["user,day", "a, b"], ["user", "day", "a, b"])
    ['user', 'day', 'a, b']
    """
    whole = set(known)
    return [part for text in given for part in ([text] if text in whole else split(text))]


def threshold(text: Any) -> Any:
    """Return the threshold that a text or a number stands for.

    Examples
    --------
    >>> threshold("smallest:1000")
    Smallest(k=1000)
    """
    from mpc_lab.pairing.thresholds import Powered, Quantile, Smallest, as_threshold

    if not isinstance(text, str):
        return as_threshold(text)
    word, *arguments = [part.strip() for part in text.split(":")]
    try:
        if not arguments:
            return as_threshold(float(word))
        if word == "quantile" and len(arguments) == 1:
            return Quantile(float(arguments[0]))
        if word == "smallest" and len(arguments) == 1:
            return Smallest(int(arguments[0]))
        if word == "powered" and len(arguments) <= 2:
            return Powered(*map(float, arguments))
    except MpcError:
        raise
    except ValueError:
        pass
    raise MpcError(f"threshold takes {_THRESHOLDS}, not {text!r}.")


def rule(text: Any) -> Any:
    """Return the scoring rule that a text stands for.

    Examples
    --------
    >>> rule("boosted:0.1")
    Boosted(alpha=0.1)
    """
    from mpc_lab.scoring import SCORING_RULES, Boosted, Column, Demoted

    word, colon, argument = str(text).partition(":")
    if not colon and word in SCORING_RULES:
        return word
    if colon and word == "column" and argument:
        return Column(argument)
    if colon and word in ("boosted", "demoted"):
        try:
            alpha = float(argument)
        except ValueError:
            raise MpcError(f"{word} takes a number behind its colon, not {argument!r}.") from None
        return Boosted(alpha) if word == "boosted" else Demoted(alpha)
    raise MpcError(f"rules takes {_RULES}, not {text!r}.")


# What an error asks for in Python, as it is written on the line.
_TYPED = {
    'pass missing="drop"': "give --missing drop",
    'missing="drop"': "--missing drop",
    "audit.summary()": "the summary",
    "mpc.Column": "--rules column:NAME",
    "group_sep must": "--group-sep must",
    "memory=": "--memory",
    "spill=": "--spill",
    ", as a Ranking": "",
}


def as_typed(message: str) -> str:
    """Return a message with the options of the line in it.

    Examples
    --------
    >>> as_typed('fill in what is missing, or pass missing="drop" to leave such rows out')
    'fill in what is missing, or give --missing drop to leave such rows out'
    """
    return re.sub("|".join(map(re.escape, _TYPED)), lambda found: _TYPED[found[0]], message)


def _text(option: Option, value: Any) -> str:
    if not isinstance(value, str):
        raise MpcError(f"{option.name} takes text, not {value!r}; write it in quotes.")
    return value


def _number(option: Option, value: Any) -> float:
    if not isinstance(value, bool) and isinstance(value, str | int | float):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise MpcError(f"{option.name} takes a number, not {value!r}.")


def _whole(option: Option, value: Any) -> int:
    if not isinstance(value, bool) and isinstance(value, str | int):
        try:
            return int(value)
        except ValueError:
            pass
    raise MpcError(f"{option.name} takes a whole number, not {value!r}.")


def _flag(option: Option, value: Any) -> bool:
    if not isinstance(value, bool):
        raise MpcError(f"{option.name} takes true or false, not {value!r}.")
    return value


_CHECKED: dict[str, Callable[[Option, Any], Any]] = {
    "column": _text,
    "text": _text,
    "number": _number,
    "whole": _whole,
    "flag": _flag,
    "path": lambda option, value: Path(_text(option, value)),
    "threshold": lambda option, value: threshold(value),
    "numbers": lambda option, values: [_number(option, value) for value in values],
    "rules": lambda option, values: [rule(value) for value in values],
}
