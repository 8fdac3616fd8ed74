"""Charts of an audit: each a pure function of an ``Audit`` that gives an Altair chart.

A title states the finding, a subtitle what is drawn. A chart holds aggregates only, and names from
data occur in its data and titles alone, never in fields or expressions. ``save`` writes it without
any network. May import from ``errors`` to ``run``; loads Altair, and is itself loaded when
``mpc_lab.charts`` is first used.
"""

from typing import TYPE_CHECKING

# One line for each chart, whose function has registered itself under its name.
from mpc_lab.charts.boost import boost as boost
from mpc_lab.charts.bracket import bracket as bracket
from mpc_lab.charts.calibration import calibration as calibration
from mpc_lab.charts.difference import difference as difference
from mpc_lab.charts.discover import discover as discover
from mpc_lab.charts.distance_density import distance_density as distance_density
from mpc_lab.charts.distance_density import gap_density as gap_density
from mpc_lab.charts.drivers import drivers as drivers
from mpc_lab.charts.epsilon_curve import epsilon_curve as epsilon_curve
from mpc_lab.charts.examination import examination as examination
from mpc_lab.charts.forest import forest as forest
from mpc_lab.charts.ladder import ladder as ladder
from mpc_lab.charts.love import love as love
from mpc_lab.charts.mpc_ndcg import mpc_ndcg as mpc_ndcg
from mpc_lab.charts.overview import overview as overview
from mpc_lab.charts.partial import partial as partial
from mpc_lab.charts.placebo import placebo as placebo
from mpc_lab.charts.power import power as power
from mpc_lab.charts.rivals import rivals as rivals
from mpc_lab.charts.theme import CHARTS, chart, draw, save
from mpc_lab.charts.tie import tie as tie
from mpc_lab.charts.trend import trend as trend

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpc_lab.charts.theme import AnyChart

__all__ = ["CHARTS", "chart", "draw", "save", *CHARTS]


def __getattr__(name: str) -> "Callable[..., AnyChart]":
    """Return a chart that was registered elsewhere."""
    if name in CHARTS:
        return CHARTS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
