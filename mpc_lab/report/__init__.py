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
from mpc_lab.charts import alive
from mpc_lab.charts.overview import NARROW, WIDE, mark_of, overview
from mpc_lab.charts.theme import drop_line
from mpc_lab.engines.running import Progress
from mpc_lab.errors import MpcError, check_flag, check_whole
from mpc_lab.html import (
    CHART_SERVER,
    can_draw,
    escape,
    fetched_library,
    paragraphs,
)
from mpc_lab.report.context import Context, Section
from mpc_lab.report.documents import model_card, schema, to_json
from mpc_lab.report.sections import SECTIONS
from mpc_lab.report.sections.finding import poor_checks
from mpc_lab.report.story import story
from mpc_lab.results.gate import Least, state
from mpc_lab.results.wording import check_title, declared, log_in_words, looks_in_words
from mpc_lab.text import quote
from mpc_lab.vocabulary import VERDICTS
from mpc_lab.writing import target_path, write_text

if TYPE_CHECKING:
    from mpc_lab.results import Audit


__all__ = ["model_card", "schema", "to_json", "write"]


PAIRS_AT_MOST = 500
_NO_ROWS = (
    "This part must have the rows of the log; got an audit that holds aggregates only. Load it "
    'with mpc.load("a.nc", ranking=ranking).'
)

_FETCHES = (
    "Written where vl-convert-python is not installed: the charts of this page are drawn by "
    "scripts that the browser fetches. With the package the page needs no network and prints."
)
_OTHER_KINDS = {
    ".pdf": ", and print that page from a browser.",
    ".md": ", or write audit.model_card() to a file.",
    ".json": ", or write audit.to_json() to a file.",
}
_EXPLORATORY = "Exploratory: this goes beyond what was declared before the run."


def _check_kind(target: Path) -> None:
    """Refuse the name of another kind of file: what is written is a page."""
    kind = target.suffix.lower()
    if kind in _OTHER_KINDS:
        raise MpcError(
            f"path must be that of an HTML page; got one that ends in {kind!r}. Write it as .html"
            f"{_OTHER_KINDS[kind]}"
        )


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
    _check_kind(target_path(path))
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
    sections = [one for one in SECTIONS if one.is_for is None or one.is_for(context)]
    with Progress(progress, unit="section") as bar, context.asking_ahead():
        done = bar("writing the report", len(sections))
        # The overview needs no other answer, so that it is drawn while the others are worked out.
        head = [context.attempt(make, context) for make in (_chips, poor_checks, _overview)]
        for section in sections:
            bodies.append(_body(context, section))
            if done:
                done()
        head.append(context.attempt(story, context))
    index = "".join(f'<li><a href="#{one.name}">{escape(one.title)}</a></li>' for one in sections)
    contents = "".join(
        f'<section id="{one.name}"><h2>{k}. {escape(one.title)}</h2>{body}</section>'
        for k, (one, body) in enumerate(zip(sections, bodies, strict=True), start=1)
    )
    scripts, policy = _scripts()
    own = files("mpc_lab.report").joinpath("style.css").read_text("utf-8")
    style = own + alive.style()
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{escape(heading)}</title><style>{style}</style></head><body data-address>"
        f"<header><h1>{escape(heading)}</h1>{_subtitle(context)}</header>"
        f'{"".join(head)}<nav aria-label="Contents"><ol>{index}</ol></nav><main>{contents}</main>'
        f"{scripts}</body></html>\n"
    )


def _chips(context: Context) -> str:
    """Return how many groups have each verdict."""
    found = [(name, len(context.part.having(name))) for name in VERDICTS]
    items = "".join(
        f'<li class="{name.split()[0]}">{mark_of(name)} {count:,} {escape(name)}</li>'
        for name, count in found
        if count
    )
    return f'<ul class="chips" aria-label="Groups by verdict">{items}</ul>'


def _overview(context: Context) -> str:
    """Return the picture of the whole audit, once for wide pages and once for narrow ones."""
    context.make_curves()
    rail = alive.rail_of(context.audit, "overview")
    pictures = (
        # The chips of the page say its second line already.
        drop_line(overview(context.audit, narrow=is_narrow, live=True), width)
        for is_narrow, width in ((False, WIDE), (True, NARROW))
    )
    wide, narrow = (context.figure(picture, rail=rail) for picture in pictures)
    return f'<div class="only-wide">{wide}</div><div class="only-narrow">{narrow}</div>'


def _body(context: Context, section: Section) -> str:
    if section.needs_rows and not context.has_rows:
        return paragraphs([_NO_ROWS], "note")
    body = context.attempt(section.make, context)
    if section.explores and declared(context.options) is not None:
        return paragraphs([_EXPLORATORY], "note") + body
    return body


def _scripts() -> tuple[str, str]:
    """Return everything that draws charts with a loop over them, and the rules of the page.

    One script and inline styles, and nothing from outside; but where the chart library is not
    here, the page fetches it from one server.
    """
    if can_draw():
        code = alive.script()
        return f"<script>{code}</script>", _policy(code)
    code = f'document.body.classList.add("fetches");\n{alive.code()}'
    fetched = "".join(f'<script src="{address}"></script>' for address in fetched_library())
    note = paragraphs([_FETCHES], "note")
    return f"{note}{fetched}<script>{code}</script>", _policy(code, CHART_SERVER)


def _policy(code: str, server: str = "") -> str:
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'{server and ' ' + server}; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _subtitle(context: Context) -> str:
    part = context.part
    rule = "" if part.rule == "baseline" else f", scores of rule {quote(part.rule)}"
    made = f"Does the ranker undervalue a group of items? {part.mode.capitalize()} pairs{rule}. "
    made += f"Made with mpc_lab {__version__}; opens without a network."
    about = log_in_words(context.options)
    looks = looks_in_words(context.audit.looks, context.audit.attrs.get("source"))
    return paragraphs([line for line in (about, looks, made) if line], "soft")
