"""An audit as a document beside its page: JSON by a published schema, a section of a model card."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mpc_lab.errors import MpcError
from mpc_lab.results.base import settings
from mpc_lab.results.gate import Least, decide, state
from mpc_lab.results.preflight import every_line
from mpc_lab.results.preflight.look import as_rows
from mpc_lab.results.recipe import Recipe, describe_data, options_of, recipe, versions
from mpc_lab.results.summary import Cell, interval_word, reading, slices
from mpc_lab.results.wording import check_title, log_in_words, looks_in_words
from mpc_lab.text import guard_count, is_few, minus, name, percent, plain, with_ends

if TYPE_CHECKING:
    from mpc_lab.results import Audit

# ---- the section of a model card, in Markdown

_ROWS = 40
# Marks of Markdown and of its common extensions; the last three begin links and mentions.
_OBEYED = re.compile(r"([\\`*_{}\[\]#|~$^@]|:(?=//)|(?<=www)\.)")
LIMITS = (
    "The audit compares items at the margin, where the ranker is nearly indifferent; a gap far "
    "from the margin is not seen.",
    "It takes the outcome as it is: where the outcome is itself biased, or depends on the position "
    "at which the item was shown, the gap carries that along.",
    "Inconclusive is not the same as no gap: few pairs give wide intervals.",
    "A gap says that the scores leave something out about the group; it does not say what or why.",
    "An audit without a finding certifies nothing: it speaks of one log, one outcome and the "
    "groups that were given.",
)


def model_card(
    audit: Audit,
    planned: int | None = None,
    gate_rule: str | None = None,
    least: Least | None = None,
    title: str | None = None,
) -> str:
    """Return the section; see :meth:`mpc_lab.Audit.model_card`."""
    found, part, options = reading(audit, leaves=True), slices(audit)[0], options_of(audit)
    gate = state(audit, planned, gate_rule, least)
    about, looks = check_title(title), looks_in_words(audit.looks, audit.attrs.get("source"))
    level = percent(float(options.get("level", 0.95)))
    adjusted = "" if options.get("adjust") == "none" else "adjusted "
    shown = part.cells[:_ROWS]
    more = len(part.cells) - len(shown)
    interval = f"{adjusted}{level} {interval_word(part.mode, settings(audit))}"
    heads = ["Group", "Verdict", "Gap", interval.capitalize(), "Pairs"]
    lines = [
        f"## Matched pair calibration{f': {escape_markdown(about)}' if about else ''}",
        "",
        *([f"{escape_markdown(log)}", ""] if (log := log_in_words(settings(audit))) else []),
        "Inside each query, items of a group were paired with items outside it that had nearly the "
        "same score. The gap is the mean difference of their outcomes: above 0, items of the group "
        f"had higher outcomes than {part.against or 'the items they were paired with'}.",
        "",
        *_bullets([*found.preflight, *found.findings, *([gate] if gate else [])]),
        "",
        _rows(heads, [_row(cell) for cell in shown]),
        "",
        *([f"and {more:,} more groups.", ""] if more else []),
        "### How it was measured",
        "",
        *_bullets([*found.compared, *found.more, *([looks] if looks else [])]),
        *_bullets(islice(every_line(audit._checked), 1 if audit._checked else 0)),
        "",
        *_bullets(_data(audit)),
        "",
        "### The same numbers again",
        "",
        *_recipe(recipe(audit)),
        "",
        "### Limits",
        "",
        *_bullets([*found.cautions, *LIMITS]),
    ]
    return "\n".join(lines) + "\n"


def escape_markdown(text: object) -> str:
    r"""Return a text that Markdown shows as it is, inside a line or a cell of a table.

    Examples
    --------
    >>> escape_markdown("a|b <i>")
    'a\\|b &lt;i&gt;'
    """
    # First Markdown's own marks, so that the entities of HTML stay whole.
    return escape(_OBEYED.sub(r"\\\1", plain(text)), quote=False)


def _bullets(lines: Iterable[str]) -> list[str]:
    return [f"- {escape_markdown(minus(line))}" for line in lines]


def _rows(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _row(cell: Cell) -> list[str]:
    gap, ends = with_ends(cell.estimate, cell.low, cell.high)
    return [escape_markdown(name(cell.group)), cell.verdict, gap, ends, f"{cell.pairs:,}"]


def _recipe(found: Recipe) -> list[str]:
    """Return the call as a block of code; in its literals no character means anything elsewhere."""
    call = found.call.translate({ord(mark): f"\\x{ord(mark):02x}" for mark in "<>&`~"})
    lines = [*_bullets(found.needs), "", "```python", call, "```"]
    # A shell has no literals of that kind: what could end the block is left to audit.recipe().
    if found.command and not set("<>&`~") & set(found.command):
        lines += ["", "```sh", found.command, "```"]
    return lines


def _data(audit: Audit) -> list[str]:
    known = describe_data(audit)
    sizes = [
        f"{known[size]:,} {noun}"
        for size, noun in (("n_rows", "rows"), ("n_queries", "queries"), ("n_items", "items"))
        if known.get(size)
    ]
    lines = [f"Data: {', '.join(sizes)}."] if sizes else []
    if known["fingerprint"]:
        lines.append(f"Fingerprint of the rows (SHA-256): {known['fingerprint']}.")
    made = versions(audit).get("mpc_lab")
    return [*lines, f"Made with mpc_lab {made}."] if made else lines


# ---- JSON

FORMAT_VERSION = 3
_DIMS = ("group", "scoring_rule", "pairing_mode")


def schema() -> dict[str, Any]:
    """Return the JSON Schema that :meth:`mpc_lab.Audit.to_json` keeps to."""
    text = files("mpc_lab.report").joinpath("audit.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def to_json(
    audit: Audit,
    curve: bool = True,
    planned: int | None = None,
    gate_rule: str | None = None,
    least: Least | None = None,
) -> str:
    """Return the numbers of an audit as one JSON text; see :meth:`mpc_lab.Audit.to_json`."""
    words = reading(audit, leaves=True)
    whole: dict[str, Any] = {
        "format": "mpc_lab audit",
        "format_version": FORMAT_VERSION,
        "reading": {
            "findings": words.findings,
            "others": [*words.others, *words.more],
            "compared": words.compared,
            "cautions": words.cautions,
        },
        "preflight": as_rows([one.to_leave() for one in audit._checked]),
        "gate": _gate(audit, planned, gate_rule, least),
        "settings": options_of(audit),
        "data": describe_data(audit),
        "versions": versions(audit),
        "recipe": _recipe_parts(recipe(audit)),
        "cells": list(_cells(audit.headline)),
    }
    if curve:
        whole["curve"] = {
            "epsilon": _plain(audit.curve["epsilon"].values),
            "cells": list(_cells(audit.curve)),
        }
    return json.dumps(_safe(whole), allow_nan=False)


def _recipe_parts(found: Recipe) -> dict[str, Any]:
    """Return what the other members do not say."""
    return {
        "call": found.call,
        "command": found.command,
        "needs": list(found.needs),
        "files": list(found.files),
    }


def _gate(
    audit: Audit, planned: int | None, rule: str | None, least: Least | None
) -> dict[str, Any] | None:
    """Return what the gate says; nothing for an audit that holds no sums to ask."""
    try:
        found = decide(audit, planned=planned, scoring_rule=rule, least=least)
    except MpcError:
        # If a confidence sequence, or a rule, was asked for, say why there is none.
        if planned is not None or rule is not None:
            raise
        return None
    return {
        "answer": found.answer,
        "failed": list(found.failed),
        "undecided": list(found.undecided),
        "tolerance": found.tolerance,
        "scoring_rule": found.scoring_rule,
        "pairing_mode": found.pairing_mode,
        "intervals": "fixed" if found.planned is None else "anytime",
        "planned": found.planned,
        "set_aside": list(found.set_aside),
        "contradicting": list(found.contradicting),
    }


def _cells(dataset: xr.Dataset) -> Iterator[dict[str, Any]]:
    """Yield one object for each cell: numbers for a headline, arrays over ε for a curve."""
    ordered = dataset.transpose(*_DIMS, ...)
    labels = [ordered[dim].values.tolist() for dim in _DIMS]
    families = ordered["variance"].values.tolist() if "variance" in ordered.coords else []
    values = {str(key): ordered[key].values for key in ordered.data_vars}
    for at in np.ndindex(*(len(names) for names in labels)):
        cell = {dim: names[k] for dim, names, k in zip(_DIMS, labels, at, strict=True)}
        for key, array in values.items():
            if key == "std_error_by":
                cell[key] = dict(zip(families, _plain(array[at]), strict=True))
            elif key == "n_queries":
                cell |= _queries(_plain(array[at]))
            else:
                cell[key] = _plain(array[at])
        yield cell


def _queries(counts: int | list[int]) -> dict[str, Any]:
    """Return counts of queries: null, and "< 10" as text, where they are few."""
    several = [counts] if isinstance(counts, int) else counts
    numbers = [None if is_few(count) else count for count in several]
    texts = [guard_count(count) for count in several]
    if isinstance(counts, int):
        return {"n_queries": numbers[0], "n_queries_text": texts[0]}
    return {"n_queries": numbers, "n_queries_text": texts}


def _plain(values: Any) -> Any:
    return np.asarray(values).tolist()


def _safe(value: Any) -> Any:
    """Return null for what JSON has no number for."""
    if isinstance(value, dict):
        return {str(key): _safe(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_safe(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
