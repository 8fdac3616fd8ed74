"""The data, the method with its equations, and every setting."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from mpc_lab.html import definitions, escape, paragraphs
from mpc_lab.report.context import Context
from mpc_lab.report.documents import LIMITS
from mpc_lab.results.recipe import Recipe, columns, fingerprint, options_of, recipe, versions
from mpc_lab.results.wording import left_out_in_words, terms_in_words
from mpc_lab.vocabulary import ITEM, MODES, VARIANCES

_SETTING_AT_MOST = 600
_ADJUST = {
    "holm": "Holm's step-down test over the family; intervals at 1 − a/m (Bonferroni), cut at 0 "
    "where Holm rejects and they still reach across it.",
    "romano_wolf": "Romano and Wolf's step-down test, which uses how the cells move together; "
    "intervals from its first step, cut at 0 where it rejects.",
    "fdr_bh": "Benjamini and Hochberg's false discovery rate; intervals at 1 − R·a/m, R the number "
    "of rejections.",
    "none": "No adjustment: each interval is for one group on its own.",
}


def data_and_method(context: Context) -> str:
    """Return what was measured on what, and how."""
    return "".join(
        [
            "<h3>Data</h3>",
            _data(context),
            "<h3>Pairs and the gap</h3>",
            _pairs(context),
            "<h3>Intervals</h3>",
            _intervals(context),
            "<h3>Limit, certificate, power</h3>",
            _further(),
            "<h3>What an audit cannot show</h3>",
            "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in LIMITS) + "</ul>",
            "<h3>Reference</h3>",
            paragraphs([_REFERENCE], "soft"),
        ]
    )


_REFERENCE = (
    "Korevaar, McConnell, Tong, Brinkman, Shine, Abbas, Metevier, Corbett-Davies and El-Arini "
    "(2023), Matched Pair Calibration for Ranking Fairness. Item variance: Aronow, Samii and "
    "Assenova (2015). Band: Montiel Olea and Plagborg-Møller (2019). Limit: Calonico, Cattaneo and "
    "Titiunik (2014)."
)


def _data(context: Context) -> str:
    options = context.options
    sizes = (("n_rows", "rows"), ("n_queries", "queries"), ("n_items", "different items"))
    counted = [f"{int(options[key]):,} {noun}" for key, noun in sizes if options.get(key)]
    lines = [f"{', '.join(counted)}."] if counted else []
    if options.get("n_units") and options["n_units"] != options.get("n_queries"):
        lines.append(
            f"Queries belong to {int(options['n_units']):,} units, which are the clusters."
        )
    if not options.get("n_items"):
        lines.append("Items are not known: intervals allow for shared queries, not for items.")
    if left_out := left_out_in_words(options):
        lines.append(left_out)
    named = [(role, value) for role, value in columns(context.audit).items()]
    return paragraphs(lines) + definitions([(role, _shown(value)) for role, value in named])


def _pairs(context: Context) -> str:
    options = context.options
    modes = context.audit.headline["pairing_mode"].values.tolist()
    lines = [
        "For a group g, in each query, i ranges over items in g and j over items not in g; s is "
        "the score, y the outcome, P the number of pairs of all queries together.",
    ]
    after = [
        *terms_in_words(options),
        f"Threshold ε: {options.get('threshold', 'not recorded')}, for each group and scoring rule "
        "on its own; ties at ε are all taken in. "
        + "; ".join(f"{mode}: {MODES[mode].method}" for mode in modes)
        + ".",
        "A verdict needs matched and mirrored pairs to say the same: where outcomes rise with the "
        "score, and where a higher place helps, the gap at a tie is between the two. Two tests "
        "that must both reject need no further correction.",
    ]
    return paragraphs(lines) + _formula("gap") + paragraphs(after)


def _of_producers(owner: str) -> list[str]:
    """Say what takes the place of items where producers are clusters."""
    if owner == ITEM:
        return []
    return [
        "Here the producers of items take the place of items: a pair of two items of one producer "
        "is in S once, and in no U."
    ]


def _intervals(context: Context) -> str:
    options = context.options
    cluster = str(options.get("cluster", ""))
    adjust = str(options.get("adjust", "none"))
    owner = str(options.get("owner", ITEM))
    pieces = [
        paragraphs(
            [
                "With θ the gap and u = d − θ for the difference d of a pair: pairs are dependent "
                "where they share a query or an item. S sums u over the pairs of an item, U over "
                "the pairs of the same two items, and “both” is the item variance within queries.",
                *_of_producers(owner),
            ]
        ),
        _formula("variance"),
        paragraphs(["The number of clusters is an effective one, of clusters with c pairs each:"]),
        _formula("effective"),
        _formula("interval"),
    ]
    lines = (
        [f"Here pairs are clustered {VARIANCES[cluster].clustered_by(owner)}."]
        if cluster in VARIANCES
        else []
    )
    if options.get("correction"):
        lines.append(f"Small samples: {options['correction']}.")
    lines.append(f"{_ADJUST.get(adjust, '')} a = 1 − level; m is the number of estimable cells.")
    return "".join(pieces) + paragraphs(lines)


def _further() -> str:
    return (
        paragraphs(
            [
                "The limit is β₀ of a local quadratic regression of d on the score distance Δ with "
                "triangular weights (robust bias-corrected local linear):"
            ]
        )
        + _formula("limit")
        + paragraphs(
            [
                "The certificate takes the mean of d in bins of Δ with a band over all of them, "
                "and gives the right end of the last bin up to which every lower end is above 0; "
                "fewer than 4 bins certify nothing. "
                "The smallest gap that could be found is"
            ]
        )
        + _formula("mde")
        + paragraphs(
            [
                "p is the power; where a verdict rests on a bracket, the square root of the power, "
                "and SE is the larger of the standard errors of its two sides."
            ]
        )
    )


def _formula(name: str) -> str:
    """Return a formula as MathML, which docs/_ext/formulas.py has made."""
    text = files("mpc_lab.report").joinpath("formulas.json").read_text("utf-8")
    lines = json.loads(text)["formulas"][name]["mathml"]
    return "".join(f'<div class="equation">{line}</div>' for line in lines)


def everything(context: Context) -> str:
    """Return every setting, the versions and the fingerprint."""
    audit = context.audit
    mark = fingerprint(audit)
    options = [(key, _shown(value)) for key, value in options_of(audit).items()]
    facts = [
        (key, _shown(_open(value))) for key, value in audit.attrs.items() if key not in _ELSEWHERE
    ]
    return "".join(
        [
            "<h3>The same numbers again</h3>",
            _recipe(recipe(audit)),
            "<h3>Settings</h3>",
            definitions(options),
            "<h3>Versions</h3>",
            definitions(versions(audit).items()),
            "<h3>Fingerprint of the rows (SHA-256)</h3>",
            f"<p><code>{escape(mark)}</code></p>" if mark else paragraphs(["not known"], "note"),
            "<h3>Other attributes</h3>",
            definitions(facts),
        ]
    )


def _recipe(found: Recipe) -> str:
    """Return the call and the command that make the same numbers, and what they need."""
    files = [
        f"{one['path']}: {one['bytes']:,} bytes, SHA-256 {one['sha256']}" for one in found.files
    ]
    lines = [found.call, *([found.command] if found.command else [])]
    blocks = [
        f'<div class="recipe"><code>{escape(line, lines=True)}</code></div>' for line in lines
    ]
    return paragraphs([*found.needs, *files], "soft") + "".join(blocks)


_ELSEWHERE = {"options", "versions", "columns", "fingerprint", "source", "rule_kinds"}


def _open(value: Any) -> Any:
    """Return an attribute that was written as JSON as what it means."""
    if not (isinstance(value, str) and value[:1] in ("{", "[")):
        return value
    try:
        return json.loads(value)
    except ValueError:  # a text of its own that begins like one
        return value


def _shown(value: Any) -> str:
    text = _spelt(value)
    return text if len(text) <= _SETTING_AT_MOST else text[:_SETTING_AT_MOST] + " …"


def _together(value: Any) -> str:
    """Return an entry of a list, the parts of a list in it together."""
    return " and ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _spelt(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_spelt(one)}" for key, one in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_together, value)) or "none"
    return str(value)
