"""Every option of ``mpc-lab audit``, written once for the line, a config file and the help.

An option is absent (None) unless it was given, so that the line can win over a file. Below the
list, what is written on a line or in a file becomes the values that an audit takes.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import shtab

from mpc_lab.errors import MpcError, near_match
from mpc_lab.roles import ROLES
from mpc_lab.vocabulary import CORRECTIONS, MODES, default_modes, public_variances

FILE = {"csv", "json", "card", "report", "save", "config", "run", "qrels"}


@dataclass(frozen=True)
class Command:
    """One command of ``mpc-lab``; `mpc_lab.cli.COMMANDS` lists them all.

    Attributes
    ----------
    name, help : str
    add_arguments : callable
        Gives the parser of the command its arguments.
    run : callable
        Does the work and returns the exit code. The namespace it is given also has ``signals``.
    layout : mapping
        Further settings of the parser: its description, its epilog.
    """

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    layout: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes
    ----------
    name : str
        Its name in a config file; on the line it has dashes.
    kind : str
        ``column``, ``columns``, ``text``, ``texts``, ``number``, ``numbers``, ``whole``,
        ``threshold``, ``rules``, ``primary``, ``pairs``, ``flag`` or ``path``.
    help : str
    metavar : str
    choices : tuple of str
        The words it takes, where these are few.
    section : str
        The heading it is listed under.
    """

    name: str
    kind: str
    help: str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    section: str = ""

    @property
    def flag(self) -> str:
        """The option as it is written on the line."""
        return "--" + self.name.replace("_", "-")

    @property
    def keyword(self) -> str:
        """What :func:`mpc_lab.audit` calls it."""
        return {"rules": "scoring_rules", "modes": "pairing_modes"}.get(self.name, self.name)

    @property
    def is_list(self) -> bool:
        """Whether it may be given several times."""
        return self.kind in ("columns", "texts", "numbers", "rules", "pairs")


COLUMNS, RUN, COMPARED, INFERENCE, LARGE, OUTPUT, GATE = (
    "columns of the log",
    "a TREC run in place of files",
    "what is compared",
    "inference",
    "logs larger than memory",
    "output",
    "gate",
)
_CLUSTERS = ("auto", *public_variances())
_CLOSENESS = ("score", "query_sd", "percentile")
_CONTRASTS = ("difference", "sign")
_ESTIMANDS = ("pairs", "queries", "root")
_ADJUST = ("holm", "romano_wolf", "fdr_bh", "none")


def _under(section: str, *options: Option) -> tuple[Option, ...]:
    return tuple(replace(option, section=section) for option in options)


_ROLES = sorted(ROLES.values(), key=lambda role: not role.is_needed)

OPTIONS = (
    *_under(
        COLUMNS,
        *(
            Option(role.name, "columns" if role.takes_several else "column", role.help, "COLUMN")
            for role in _ROLES
        ),
        Option("group_sep", "text", 'split the labels of --group by this, such as "|"', "TEXT"),
        Option("missing", "text", "what to do with rows that lack a value", "", ("raise", "drop")),
        Option("ascending", "flag", "a smaller score is better: a distance, a rank"),
        Option(
            "examined_floor",
            "number",
            "raise smaller values of --examined to this (0.05)",
            "NUMBER",
        ),
        Option("outcome_name", "text", "what to call the outcome (its column)", "WORD"),
        Option("guess", "flag", "guess the columns that are not given; check what it prints"),
        Option("sep", "text", "separator of text files (detected)", "CHARACTER"),
        Option("encoding", "text", "character encoding of text files (detected)", "ENCODING"),
    ),
    *_under(
        RUN,
        Option("run", "path", "lines of: query Q0 document rank score tag", "RUN"),
        Option("qrels", "path", "its judgements, lines of: query 0 document relevance", "QRELS"),
        Option(
            "unjudged",
            "text",
            "what to do with documents without a judgement (drop)",
            "",
            ("drop", "zero"),
        ),
    ),
    *_under(
        COMPARED,
        Option("groups", "texts", "audit only these (all); with --run: its group table", "NAME,…"),
        Option(
            "rules",
            "rules",
            "scoring rules: baseline, boosted, boosted:ALPHA, demoted, demoted:ALPHA, calibrated, "
            "column:NAME (baseline)",
            "RULE,…",
        ),
        Option(
            "modes",
            "texts",
            f"pairing modes: {', '.join(MODES)} (matched; where --position is given, "
            f"{','.join(default_modes(True))})",
            "MODE,…",
        ),
        Option(
            "threshold",
            "threshold",
            "largest distance between the scores of a pair: a number, quantile:0.01, "
            "smallest:1000, powered:0.02 or powered:0.02:0.9, or for small logs enough or "
            "enough:200:50, pairs and effective queries (quantile:0.01)",
            "RULE",
        ),
        Option("epsilon", "numbers", "thresholds of the curve (chosen around it)", "NUMBER,…"),
        Option(
            "against",
            "text",
            "pair items of a group with members of this group only (all others)",
            "NAME",
        ),
        Option(
            "closeness",
            "text",
            "the scale of distances: scores as they are, divided by the standard deviation of "
            "their query, or places in the list (score)",
            "",
            _CLOSENESS,
        ),
        Option(
            "contrast",
            "text",
            "what a pair counts: the difference of its outcomes, or its sign (difference)",
            "",
            _CONTRASTS,
        ),
        Option(
            "estimand",
            "text",
            "what counts the same: pairs; queries, however many pairs they have; or root, between "
            "the two (pairs)",
            "",
            _ESTIMANDS,
        ),
        Option("outcome_cap", "number", "set outcomes above this to it (no cap)", "NUMBER"),
    ),
    *_under(
        INFERENCE,
        Option(
            "cluster",
            "text",
            "what pairs may share, so that they are not independent (auto)",
            "",
            _CLUSTERS,
        ),
        Option(
            "correction",
            "text",
            "correction for few or unequal clusters (cr3)",
            "",
            CORRECTIONS,
        ),
        Option("level", "number", "confidence level (0.95)", "NUMBER"),
        Option("adjust", "text", "correction for looking at several groups (holm)", "", _ADJUST),
        Option(
            "tolerance",
            "number",
            "a gap inside ± this, in units of the outcome, is within tolerance",
            "NUMBER",
        ),
        Option(
            "primary",
            "primary",
            "the rule, mode and threshold declared before the run, such as "
            "baseline,matched,quantile:0.01; everything else is marked exploratory",
            "RULE,MODE,THRESHOLD",
        ),
        Option(
            "bounds",
            "numbers",
            "the lowest and the highest outcome that can occur, such as 0,5, for --anytime (0,1 "
            "where every outcome is 0 or 1)",
            "LOW,HIGH",
        ),
        Option(
            "pairs_cap",
            "whole",
            "the most pairs of a query, the closest ones, that --anytime looks at (10)",
            "N",
        ),
        Option("bootstrap", "whole", "also resample queries this many times (0)", "N"),
        Option("seed", "whole", "seed of whatever is drawn at random (0)", "N"),
    ),
    *_under(
        LARGE,
        Option(
            "memory",
            "text",
            "read the log out of core, through DuckDB, in at most this much memory",
            "SIZE",
        ),
        Option(
            "spill",
            "path",
            "where to make a folder for temporary files, removed at the end (the system's own)",
            "FOLDER",
        ),
    ),
    *_under(
        OUTPUT,
        Option("report", "path", "write a self-contained page", "OUT.html"),
        Option(
            "pairs",
            "pairs",
            "pairs to show of each flagged group in the report (0); with words, same as --modes",
            "N|MODE,…",
        ),
        Option(
            "show_ids",
            "flag",
            "name the queries of these pairs by their ids; else they are numbered",
        ),
        Option("save", "path", "save the audit, sums and never rows", "OUT.nc"),
        Option("json", "path", "write the numbers as JSON; - for standard output", "OUT.json"),
        Option("csv", "path", "write the table as CSV; - for standard output", "OUT.csv"),
        Option("card", "path", "write a model-card section in Markdown; - prints it", "OUT.md"),
        Option("preflight", "flag", "print every check of the log, also those that are ok"),
        Option(
            "title",
            "text",
            'what table, report and card are about, such as "search, model 7, week 12"',
            "WORDS",
        ),
        Option("quiet", "flag", "print no summary and no table"),
        Option("progress", "flag", "show a progress bar (in a terminal)"),
    ),
    *_under(
        GATE,
        Option(
            "gate",
            "flag",
            "exit with 0: nothing found, or all within tolerance; 1: a group outside tolerance; "
            "2: inconclusive; 3 and above: an error",
        ),
        Option(
            "gate_rule",
            "text",
            "the scoring rule that the gate goes by (baseline, or the first of --rules)",
            "RULE",
        ),
        Option("min_pairs", "whole", "groups with fewer pairs do not decide (0)", "N"),
        Option(
            "min_effective",
            "number",
            "groups with fewer effective queries or items do not decide (0)",
            "NUMBER",
        ),
        Option(
            "anytime",
            "flag",
            "decide by intervals that stay valid however often a growing log is looked at; needs a "
            "number as --threshold, and --bounds",
        ),
        Option(
            "planned",
            "whole",
            "queries at which the intervals of --anytime are tightest, fixed before the first look "
            "(1000)",
            "N",
        ),
    ),
)
# The options that say how to audit, whatever the log.
AUDITED = tuple(option for option in OPTIONS if option.section in (COMPARED, INFERENCE))
BY_NAME = {option.name: option for option in OPTIONS}
COLUMN_OPTIONS = tuple(
    option.name
    for option in OPTIONS
    if option.section == COLUMNS
    and option.kind != "flag"
    and not option.choices
    # The panel asks for columns only, and calls the outcome by the name of its column.
    and option.name not in ("outcome_name", "examined_floor")
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give a parser every option, under its heading."""
    sections: dict[str, Any] = {}
    for option in OPTIONS:
        if option.section not in sections:
            sections[option.section] = parser.add_argument_group(option.section)
        add_option(sections[option.section], option)


def add_option(parser: Any, option: Option) -> None:
    """Give a parser, or a group of its options, one option."""
    # argparse reads % in a help as the start of a format.
    settings: dict[str, Any] = {"dest": option.name, "help": option.help.replace("%", "%%")}
    if option.kind == "flag":
        parser.add_argument(option.flag, action=argparse.BooleanOptionalAction, **settings)
        return
    if option.choices:
        settings["choices"] = option.choices
    else:
        settings["metavar"] = option.metavar
    if option.is_list:
        settings["action"] = "append"
    made = parser.add_argument(option.flag, **settings)
    if option.name in FILE:
        made.complete = shtab.FILE
    elif option.name == "spill":
        made.complete = shtab.DIRECTORY


def add_path(parser: Any, *names: str, is_folder: bool = False, **settings: Any) -> None:
    """Give a parser an argument that a shell completes with the names of files or folders."""
    made = parser.add_argument(*names, **settings)
    made.complete = shtab.DIRECTORY if is_folder else shtab.FILE


# ---- the settings of a run: a config file under the options of the line, which win

_FILES = "files"


def read_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the value of every option that was given, on the line or in the config file.

    Parameters
    ----------
    options : argparse.Namespace
        With ``files``, ``config`` and every one of `OPTIONS`.

    Returns
    -------
    dict
        By the names of options, and ``files``.
    """
    found = {} if options.config is None else read_config(options.config)
    if options.files:
        found[_FILES] = list(options.files)
    for option in OPTIONS:
        given = getattr(options, option.name)
        if given is not None:
            found[option.name] = from_line(option, given)
    return found


def read_config(path: Path) -> dict[str, Any]:
    """Return the settings of a TOML file; its paths are taken from the folder that it is in."""
    known = [_FILES, *BY_NAME]
    found: dict[str, Any] = {}
    for key, value in _toml(path).items():
        name = key.replace("-", "_")
        if name not in known:
            raise MpcError(f"{str(path)!r} has an unknown key {key!r}.{near_match(name, known)}")
        try:
            found[name] = _files(value) if name == _FILES else from_file(name, value)
        except MpcError as error:
            raise MpcError(f"{str(path)!r}: {error}") from error
        if name == _FILES:
            found[name] = [str(path.parent / file) for file in found[name]]
        elif BY_NAME[name].kind == "path" and str(found[name]) != "-":
            found[name] = path.parent / found[name]
    if "run" in found and "groups" in found:
        found["groups"] = [str(path.parent / name) for name in found["groups"]]
    return found


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise MpcError(
            f"The config file {str(path)!r} cannot be read: {error.strerror}."
        ) from error
    except (ValueError, RecursionError) as error:
        raise MpcError(f"The config file {str(path)!r} must be valid TOML; got {error}.") from error


def _files(value: Any) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(file, str) and file for file in listed):
        raise MpcError(f"files must be the name of a file, or a list of them; got {value!r}.")
    return listed


# ---- from words to values

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
        raise MpcError(f"{name} must be one of {', '.join(option.choices)}; got {value!r}.")
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
    """Return names that may be given in comma lists; one that is known as a whole is not split.

    Examples
    --------
    >>> names(["user,day", "a, b"], ["user", "day", "a, b"])
    ['user', 'day', 'a, b']
    """
    whole = set(known)
    return [part for text in given for part in ([text] if text in whole else split(text))]


def threshold(text: Any) -> Any:
    """Return the threshold that a text or a number means.

    Examples
    --------
    >>> threshold("smallest:1000")
    Smallest(k=1000)
    """
    from mpc_lab.pairing.terms import threshold_in_words

    return threshold_in_words(text)


def rule(text: Any) -> Any:
    """Return the scoring rule that a text names.

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
            raise MpcError(
                f"{word} must have a number after its colon; got {argument!r}."
            ) from None
        return Boosted(alpha) if word == "boosted" else Demoted(alpha)
    raise MpcError(f"rules must be {_RULES}; got {text!r}.")


def primary(given: Any) -> tuple[Any, str, Any]:
    """Return the rule, mode and threshold that a text or a list of three means.

    Examples
    --------
    >>> primary("baseline,matched,quantile:0.01")
    ('baseline', 'matched', Quantile(p=0.01))
    """
    # A rule may be a column whose name has a comma in it; modes and thresholds have none.
    parts = given.rsplit(",", 2) if isinstance(given, str) else given
    if not isinstance(parts, list) or len(parts) != 3:
        raise MpcError(
            "primary must be a rule, a mode and a threshold, such as "
            f"baseline,matched,quantile:0.01; got {given!r}."
        )
    written, mode, distance = parts
    named = rule(written.strip() if isinstance(written, str) else written)
    at = threshold(distance.strip() if isinstance(distance, str) else distance)
    return named, str(mode).strip(), at


# What an error asks for in Python, as it is written on the line.
_TYPED = {
    'pass missing="drop"': "give --missing drop",
    'missing="drop"': "--missing drop",
    "audit.summary()": "the summary",
    "audit.to_frame()": "--csv",
    "audit.power(effect=…)": "--tolerance",
    "threshold=mpc.Enough()": "--threshold enough",
    'pairing_modes=["symmetric", "matched"]': "--modes symmetric,matched",
    "ascending=True": "--ascending",
    "ascending=False": "no --ascending",
    'cluster="query"': "--cluster query",
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
        raise MpcError(f"{option.name} must be text; got {value!r}. Write it in quotes.")
    return value


def _number(option: Option, value: Any, kind: type = float) -> Any:
    if not isinstance(value, bool) and isinstance(value, str | int | kind):
        try:
            return kind(value)
        except (ValueError, OverflowError):
            pass
    what = "a whole number" if kind is int else "a number"
    raise MpcError(f"{option.name} must be {what}; got {value!r}.")


def _flag(option: Option, value: Any) -> bool:
    if not isinstance(value, bool):
        raise MpcError(f"{option.name} must be true or false; got {value!r}.")
    return value


_CHECKED: dict[str, Callable[[Option, Any], Any]] = {
    "column": _text,
    "text": _text,
    "number": _number,
    "whole": partial(_number, kind=int),
    "flag": _flag,
    "path": lambda option, value: Path(_text(option, value)),
    "threshold": lambda option, value: threshold(value),
    "primary": lambda option, value: primary(value),
    "numbers": lambda option, values: [_number(option, value) for value in values],
    "rules": lambda option, values: [rule(value) for value in values],
    "pairs": lambda option, values: [
        value if isinstance(value, str) else str(_number(option, value, int)) for value in values
    ],
}
