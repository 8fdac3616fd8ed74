"""What stays where no kernel is: the finding in words, its table, and two drawings.

The drawings are images with their SVG inside. A notebook that is not trusted shows them, for
there an SVG of the page itself is taken out; no name in one drawing can meet a name in the other;
and nothing in them can run.
"""

from __future__ import annotations

import base64
from html import escape
from typing import TYPE_CHECKING

from mpc_lab.results.reading import slices
from mpc_lab.results.view import html_view

if TYPE_CHECKING:
    from mpc_lab.charts.theme import AnyChart
    from mpc_lab.results import Audit

_GROUPS_DRAWN = 60


def static_html(audit: Audit) -> str:
    """Return an audit as HTML that needs neither a kernel nor a script nor the network.

    Parameters
    ----------
    audit : Audit

    Returns
    -------
    str
        The finding in words and its table, the gap of every group, and the gap of the group with
        the strongest finding over all ε.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> from mpc_lab.explorers.static import static_html
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> static_html(audit)[:24]
    '<div class="mpc-static">'
    """
    return words_html(audit) + pictures_html(audit)


def words_html(audit: Audit) -> str:
    """Return the part of the static form that is there at once: the words and the table."""
    return _static(html_view(audit))


def pictures_html(audit: Audit) -> str:
    """Return the part of the static form that has to be drawn."""
    # Altair takes seconds to load, and the words need not wait for it.
    from mpc_lab.charts.epsilon_curve import epsilon_curve
    from mpc_lab.charts.forest import forest

    drawn = [_image(forest(audit, limit=_GROUPS_DRAWN))]
    group = strongest(audit)
    if group is not None:
        first = slices(audit)[0]
        drawn.append(_image(epsilon_curve(audit, group, first.rule, first.mode)))
    return _static("".join(drawn))


def strongest(audit: Audit) -> str | None:
    """Return the group that the reading names first, None where nothing could be estimated."""
    estimable = (cell for cell in slices(audit)[0].cells if cell.verdict != "not estimable")
    return next((cell.group for cell in estimable), None)


def _static(inside: str) -> str:
    return f'<div class="mpc-static">{inside}</div>'


def _image(chart: AnyChart) -> str:
    from mpc_lab.charts.export import svg

    said = escape(str(chart.description))
    inside = base64.b64encode(svg(chart).encode()).decode()
    style = "display: block; max-width: 100%; height: auto; margin: 0 0 1em;"
    return f'<img alt="{said}" style="{style}" src="data:image/svg+xml;base64,{inside}">'
