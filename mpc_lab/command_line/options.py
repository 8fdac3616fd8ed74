"""Every option of ``mpc-lab audit``, written once: for the line, for a config file, for the help.

An option is absent (None) unless it was given, so that the line can win over a file.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import shtab

FILE = {"csv", "json", "card", "report", "save", "config"}


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes
    ----------
    name : str
        As it stands in a config file; on the line with dashes.
    kind : str
        ``column``, ``columns``, ``text``, ``texts``, ``number``, ``numbers``, ``whole``,
        ``threshold``, ``rules``, ``flag`` or ``path``.
    section : str
        The heading it stands under.
    help : str
    metavar : str
    choices : tuple of str
        The words it takes, where these are few.
    """

    name: str
    kind: str
    section: str
    help: str
    metavar: str = ""
    choices: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """The option as it is written on the line."""
        return "--" + self.name.replace("_", "-")

    @property
    def is_list(self) -> bool:
        """Whether it may be given several times."""
        return self.kind in ("columns", "texts", "numbers", "rules")


COLUMNS, COMPARED, INFERENCE, LARGE, OUTPUT, GATE = (
    "columns of the log",
    "what is compared",
    "inference",
    "logs larger than memory",
    "output",
    "gate",
)
_MODES = ("matched", "mirrored", "adjacent")
_CLUSTERS = ("auto", "union", "query", "item", "naive")
_ADJUST = ("holm", "romano_wolf", "fdr_bh", "none")

OPTIONS = (
    Option(
        "query",
        "columns",
        COLUMNS,
        "what a ranked list belongs to; several columns together if given as a comma list or "
        "more than once",
        "COLUMN",
    ),
    Option("score", "column", COLUMNS, "the score that items were ranked by", "COLUMN"),
    Option("outcome", "column", COLUMNS, "what came of showing the item", "COLUMN"),
    Option(
        "group",
        "columns",
        COLUMNS,
        "a column of labels, or several columns of true/false",
        "COLUMN",
    ),
    Option("item", "column", COLUMNS, "what was ranked; intervals then allow for it", "COLUMN"),
    Option("unit", "column", COLUMNS, "a coarser cluster of queries, such as the user", "COLUMN"),
    Option("position", "column", COLUMNS, "logged position, 1 = top", "COLUMN"),
    Option("segment", "column", COLUMNS, "a label of the query, such as a country", "COLUMN"),
    Option(
        "group_sep", "text", COLUMNS, 'split the labels of --group by this, such as "|"', "TEXT"
    ),
    Option(
        "missing",
        "text",
        COLUMNS,
        "what to do with a row that lacks a value",
        "",
        ("raise", "drop"),
    ),
    Option(
        "guess",
        "flag",
        COLUMNS,
        "guess the columns that are not given, and print the guess; check it",
    ),
    Option("sep", "text", COLUMNS, "what separates cells of text files (found)", "CHARACTER"),
    Option(
        "encoding", "text", COLUMNS, "how letters of text files are written (found)", "ENCODING"
    ),
    Option("groups", "texts", COMPARED, "audit these groups only (all)", "NAME,…"),
    Option(
        "rules",
        "rules",
        COMPARED,
        "scoring rules: baseline, boosted, boosted:ALPHA, demoted, demoted:ALPHA, calibrated, "
        "column:NAME (baseline)",
        "RULE,…",
    ),
    Option("modes", "texts", COMPARED, f"pairing modes: {', '.join(_MODES)} (matched)", "MODE,…"),
    Option(
        "threshold",
        "threshold",
        COMPARED,
        "largest score gap of a pair: a number, quantile:0.01, smallest:1000, powered:0.02 or "
        "powered:0.02:0.9 (quantile:0.01)",
        "RULE",
    ),
    Option(
        "epsilon", "numbers", COMPARED, "thresholds of the curve (chosen around it)", "NUMBER,…"
    ),
    Option("cluster", "text", INFERENCE, "what may make pairs alike (auto)", "", _CLUSTERS),
    Option("level", "number", INFERENCE, "confidence level (0.95)", "NUMBER"),
    Option(
        "adjust", "text", INFERENCE, "correction for looking at several groups (holm)", "", _ADJUST
    ),
    Option(
        "tolerance",
        "number",
        INFERENCE,
        "a gap inside ± this, in units of the outcome, is within tolerance",
        "NUMBER",
    ),
    Option("bootstrap", "whole", INFERENCE, "also resample queries so many times (0)", "N"),
    Option("seed", "whole", INFERENCE, "seed of whatever is drawn at random (0)", "N"),
    Option(
        "memory",
        "text",
        LARGE,
        "read the log out of core, through DuckDB, in at most this much memory",
        "SIZE",
    ),
    Option(
        "spill",
        "path",
        LARGE,
        "the folder for what does not fit; emptied at the end (the system's temporary folder)",
        "FOLDER",
    ),
    Option("report", "path", OUTPUT, "write a self-contained page", "OUT.html"),
    Option(
        "pairs", "whole", OUTPUT, "show so many pairs of each flagged group in the report (0)", "N"
    ),
    Option("save", "path", OUTPUT, "save the audit, sums and never rows", "OUT.nc"),
    Option("json", "path", OUTPUT, "write the numbers as JSON; - for standard output", "OUT.json"),
    Option("csv", "path", OUTPUT, "write the table as CSV; - for standard output", "OUT.csv"),
    Option("card", "path", OUTPUT, "write a model-card section in Markdown; - prints it", "OUT.md"),
    Option("quiet", "flag", OUTPUT, "print no summary and no table"),
    Option("progress", "flag", OUTPUT, "show a progress bar (in a terminal)"),
    Option(
        "gate",
        "flag",
        GATE,
        "exit with 0: nothing found, or all within tolerance; 1: a group outside tolerance; "
        "2: inconclusive; 3 and above: an error",
    ),
    Option(
        "anytime",
        "flag",
        GATE,
        "decide by intervals that stay valid however often a growing log is looked at; needs a "
        "number as --threshold",
    ),
    Option(
        "planned",
        "whole",
        GATE,
        "queries at which the intervals of --anytime are tightest, fixed before the first look "
        "(1000)",
        "N",
    ),
)
BY_NAME = {option.name: option for option in OPTIONS}
COLUMN_OPTIONS = tuple(
    option.name
    for option in OPTIONS
    if option.section == COLUMNS and option.kind not in ("flag",) and not option.choices
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give a parser every option, under its heading."""
    sections: dict[str, Any] = {}
    for option in OPTIONS:
        if option.section not in sections:
            sections[option.section] = parser.add_argument_group(option.section)
        _add(sections[option.section], option)


def _add(group: Any, option: Option) -> None:
    # argparse reads % in a help as the start of a format.
    settings: dict[str, Any] = {"dest": option.name, "help": option.help.replace("%", "%%")}
    if option.kind == "flag":
        group.add_argument(option.flag, action=argparse.BooleanOptionalAction, **settings)
        return
    if option.choices:
        settings["choices"] = option.choices
    else:
        settings["metavar"] = option.metavar
    if option.is_list:
        settings["action"] = "append"
    made = group.add_argument(option.flag, **settings)
    if option.name in FILE:
        made.complete = shtab.FILE
    elif option.name == "spill":
        made.complete = shtab.DIRECTORY
