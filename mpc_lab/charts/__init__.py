"""Charts of an audit: each a pure function of an ``Audit`` that gives an Altair chart.

A title states the finding, a subtitle what is drawn. A chart holds aggregates only, and names from
data occur in its data and titles alone, never in fields or expressions. ``save`` writes it without
any network. May import from ``errors`` to ``run``; loads Altair, and is itself loaded when
``mpc_lab.charts`` is first used.
"""

from mpc_lab.charts.boost import boost
from mpc_lab.charts.bracket import bracket
from mpc_lab.charts.calibration import calibration
from mpc_lab.charts.epsilon_curve import epsilon_curve
from mpc_lab.charts.export import save
from mpc_lab.charts.forest import forest
from mpc_lab.charts.gap_density import gap_density
from mpc_lab.charts.ladder import ladder
from mpc_lab.charts.love import love
from mpc_lab.charts.mpc_ndcg import mpc_ndcg
from mpc_lab.charts.placebo import placebo
from mpc_lab.charts.power import power
from mpc_lab.charts.rivals import rivals

__all__ = [
    "boost",
    "bracket",
    "calibration",
    "epsilon_curve",
    "forest",
    "gap_density",
    "ladder",
    "love",
    "mpc_ndcg",
    "placebo",
    "power",
    "rivals",
    "save",
]
