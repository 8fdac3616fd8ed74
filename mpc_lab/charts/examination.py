"""How often each place is looked at, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import pandas as pd
import xarray as xr

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, intervals
from mpc_lab.errors import MpcError
from mpc_lab.text import percent

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_HIGHEST = 1.6
# A place is named in words while the ends of its interval are at most this many times apart.
_KNOWN = 3.0


@chart
def examination(found: xr.Dataset | Audit) -> alt.LayerChart:
    """Draw how often places are looked at, relative to the first.

    Parameters
    ----------
    found : xarray.Dataset or Audit
        What :meth:`mpc_lab.Audit.examination` returned, or an audit with its rows.

    Returns
    -------
    altair.LayerChart
    """
    if not isinstance(found, xr.Dataset):
        found = found.examination()
    if "examined" not in found or "place" not in found.dims:
        raise MpcError(
            "found must be what audit.examination() returned; got another dataset. Call "
            "mpc.charts.examination(audit.examination())."
        )
    names = ("examined", "low", "high", "n_pairs")
    frame = pd.DataFrame({name: found[name].values for name in names})
    frame["place"] = found["place"].values
    frame["interval"] = intervals(frame, "examined", "low", "high")
    frame["low_drawn"] = frame["low"].clip(upper=_HIGHEST)
    frame["high_drawn"] = frame["high"].clip(upper=_HIGHEST)
    frame["drawn"] = frame["examined"].clip(upper=_HIGHEST)
    above = frame["examined"] > _HIGHEST
    frame["inside"], frame["above"] = frame["drawn"].mask(above), frame["drawn"].where(above)
    frame["number"] = [f"{value:.2g}" if value > _HIGHEST else "" for value in frame["examined"]]
    attrs = found.attrs
    lines = [
        f"From neighbours in the list whose scores are at most ε = {attrs['epsilon']:.3g} apart"
        f"{', taken at distance 0' if attrs.get('limit') else ''}; "
        f"{percent(attrs['level'])} intervals at each place"
    ]
    if attrs.get("ended"):
        lines.append(f"It ends at {attrs['ended']}")
    known = _known(frame)
    if 1 < known < len(frame):
        lines.append(
            f"From place {known + 1} on, the ends of an interval are more than {_KNOWN:g} times "
            "apart"
        )
    if above.any():
        lines.append(f"Triangles: above {_HIGHEST:g}, with the number")
    return theme.finish(_layers(frame), _title(frame), lines)


def _known(frame: pd.DataFrame) -> int:
    """Return the last place down to which intervals are narrow enough to be put in words."""
    wide = (frame["high"] > _KNOWN * frame["low"]).to_numpy()
    return int(wide.argmax()) if wide.any() else len(frame)


def _title(frame: pd.DataFrame) -> str:
    if len(frame) < 2:
        return "Too few neighbours have nearly equal scores to see how often places are looked at"
    known = _known(frame)
    if known < 2:
        return "How often places are looked at is hardly known: too few near-tied neighbours"
    second, last = frame.iloc[1], frame.iloc[known - 1]
    first = f"Place 2 is looked at {_share(second)} as often as place 1"
    if known == 2:
        return first
    return f"{first}; place {int(last['place'])}: {_share(last)}"


def _share(row: pd.Series) -> str:
    return percent(float(f"{row['examined']:.2g}"))


def _layers(frame: pd.DataFrame) -> alt.LayerChart:
    title = "times looked at (place 1 = 1)"
    top = min(max(float(frame["high_drawn"].max()), 1.0) * 1.05, _HIGHEST)
    base = alt.Chart(frame).encode(
        x=alt.X("place:O", title="place in the list", axis=alt.Axis(labelAngle=0)),
        tooltip=[
            alt.Tooltip("place:O"),
            alt.Tooltip("interval:N", title="looked at"),
            alt.Tooltip("n_pairs:Q", title="near-tied neighbours", format=","),
        ],
    )
    scale = alt.Scale(domain=[0, top])
    whiskers = base.mark_rule(color=theme.GREY, opacity=0.5, strokeWidth=2.5).encode(
        y=alt.Y("low_drawn:Q", title=title, scale=scale), y2=alt.Y2("high_drawn:Q")
    )
    line = base.mark_line(color=theme.GREY, strokeWidth=2).encode(y=alt.Y("drawn:Q", title=title))
    dots = base.mark_point(color=theme.GREY, filled=True, size=60, opacity=1).encode(
        y=alt.Y("inside:Q")
    )
    layers = [theme.reference_line(1.0, "y", dashed=True), whiskers, line, dots]
    if frame["above"].notna().any():
        cut = base.encode(y=alt.Y("above:Q"))
        arrows = cut.mark_point(
            color=theme.GREY, filled=True, shape="triangle-up", size=60, opacity=1
        )
        words = cut.mark_text(dy=-9, fontSize=10.5).encode(text=alt.Text("number:N"))
        layers += [arrows, words]
    return theme.layered(*layers).properties(width=theme.WIDTH, height=200)
