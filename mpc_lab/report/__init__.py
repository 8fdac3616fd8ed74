"""An audit as a document: one self-contained page, its JSON twin, a section of a model card.

Every text that comes from data goes through ``mpc_lab.html.escape`` or
``mpc_lab.report.documents.escape_markdown``. May import from ``errors`` to ``charts``.
"""

from __future__ import annotations

import base64
import hashlib
import os
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_lab import __version__
from mpc_lab.engines.running import Progress
from mpc_lab.errors import check_flag, check_whole
from mpc_lab.html import chart_library, escape, paragraphs
from mpc_lab.report.context import Context, Section
from mpc_lab.report.documents import model_card, schema, to_json
from mpc_lab.report.sections import SECTIONS
from mpc_lab.results.gate import Least, state
from mpc_lab.results.looks import looks_in_words
from mpc_lab.results.wording import check_title, declared, log_in_words
from mpc_lab.text import quoted
from mpc_lab.writing import target_path, write_text

if TYPE_CHECKING:
    from mpc_lab.results import Audit


__all__ = ["model_card", "schema", "to_json", "write"]


PAIRS_AT_MOST = 500
_DRAW = """
const options = {ast: true, renderer: "svg", actions: false, defaultStyle: false};
for (const figure of document.querySelectorAll("figure.chart")) {
  const live = figure.querySelector(".live");
  const spec = JSON.parse(figure.querySelector("script").textContent);
  vegaEmbed(live, spec, options).then(
    () => figure.classList.add("drawn"),
    (error) => { live.remove(); console.error(error); },
  );
}
"""
_NO_ROWS = (
    "This part needs the rows of the log, and this audit holds aggregates only: load it with "
    'mpc.load("a.nc", ranking=ranking) to have it here.'
)

_EXPLORATORY = "Exploratory: this goes beyond what was declared before the run."


def write(
    audit: Audit,
    path: str | os.PathLike[str],
    pairs: int = 0,
    covariates: Any = (),
    progress: bool | None = None,
    planned: int | None = None,
    gate_rule: str | None = None,
    show_ids: bool = False,
    least: Least | None = None,
    title: str | None = None,
) -> Path:
    """Write the report of an audit; see :meth:`mpc_lab.Audit.report`."""
    shown = check_whole(
        "pairs", pairs, at_least=0, at_most=PAIRS_AT_MOST, remedy="audit.pairs() has them all."
    )
    # A hopeless path is refused before the work.
    target_path(path)
    about = check_title(title)
    named = check_flag("show_ids", show_ids)
    made = page(audit, shown, covariates, progress, planned, gate_rule, named, least, about)
    return write_text(path, made)


def page(
    audit: Audit,
    pairs: int = 0,
    covariates: Any = (),
    progress: bool | None = False,
    planned: int | None = None,
    gate_rule: str | None = None,
    show_ids: bool = False,
    least: Least | None = None,
    title: str = "",
) -> str:
    """Return the report of an audit as one HTML text."""
    gate = state(audit, planned, gate_rule, least)
    heading = f"Matched pair audit{f': {title}' if title else ''}"
    context = Context(audit, pairs, covariates, gate, show_ids)
    bodies = []
    with Progress(progress, unit="section") as bar:
        done = bar("writing the report", len(SECTIONS))
        for section in SECTIONS:
            bodies.append(_body(context, section))
            if done:
                done()
    index = "".join(f'<li><a href="#{one.name}">{escape(one.title)}</a></li>' for one in SECTIONS)
    contents = "".join(
        f'<section id="{one.name}"><h2>{k}. {escape(one.title)}</h2>{body}</section>'
        for k, (one, body) in enumerate(zip(SECTIONS, bodies, strict=True), start=1)
    )
    code = _script()
    style = files("mpc_lab.report").joinpath("style.css").read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(code)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{escape(heading)}</title><style>{style}</style></head><body>"
        f"<header><h1>{escape(heading)}</h1>{_subtitle(context)}</header>"
        f'<nav aria-label="Contents"><ol>{index}</ol></nav><main>{contents}</main>'
        f"<script>{code}</script></body></html>\n"
    )


def _body(context: Context, section: Section) -> str:
    if section.needs_rows and not context.has_rows:
        return paragraphs([_NO_ROWS], "note")
    body = context.attempt(section.make, context)
    if section.explores and declared(context.options) is not None:
        return paragraphs([_EXPLORATORY], "note") + body
    return body


def _script() -> str:
    """Return the one script of a page: everything that draws charts, and a loop over them."""
    return chart_library(_DRAW).replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(code: str) -> str:
    """Return the rules of the page: this one script and inline styles, and nothing from outside."""
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _subtitle(context: Context) -> str:
    part = context.part
    rule = "" if part.rule == "baseline" else f", scores of rule {quoted(part.rule)}"
    made = f"Does the ranker undervalue a group of items? {part.mode.capitalize()} pairs{rule}. "
    made += f"Made with mpc_lab {__version__}; opens without a network."
    about = log_in_words(context.options)
    looks = looks_in_words(context.audit.looks)
    return paragraphs([line for line in (about, looks, made) if line], "soft")
