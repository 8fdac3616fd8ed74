"""An Altair chart that stays on the page while its numbers change, drawn without a network."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import pandas as pd
import traitlets

from mpc_lab.html import can_draw, chart_library

if TYPE_CHECKING:
    from mpc_lab.charts.theme import AnyChart


# The width in pixels that two drawings beside each other need.
_NARROW_BELOW = 1000


class LiveChart(anywidget.AnyWidget):
    """A chart of `mpc_lab.charts` on the page.

    ``show`` draws a chart. If it differs from the one on the page in its numbers alone, only the
    changed datasets are drawn again; the view, its brush and its listeners stay.

    Attributes
    ----------
    titled : bool
        Whether the title is shown above the drawing; it always names the chart for a screen reader.
    picked : dict
        The last value of each selection parameter of the chart, by its name: a dict from field to
        the list of chosen values, or to the two ends of a brush. Empty where nothing is chosen.
    spec : str
        JSON of the drawing. Two equal texts need no new drawing.
    data : dict of str
        Dataset name to JSON of its rows.
    params : dict
        Values of the chart's parameters, by name.
    link : str
        Charts and rails with the same one follow each other in the page.
    rests : bool
        Whether the chart marks no threshold while the rail is at the headline.
    narrow, narrow_subtitle, narrow_below : str, list of str, int
        The drawing for columns of fewer pixels with its words, if there is one.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> from mpc_lab.explorers import LiveChart
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> chart = LiveChart()
    >>> chart.show(mpc.charts.forest(audit))
    >>> chart.title
    'No group is found undervalued or overvalued'
    """

    _esm = Path(__file__).parent / "live_chart.js"

    title = traitlets.Unicode().tag(sync=True)
    titled = traitlets.Bool(True).tag(sync=True)
    subtitle = traitlets.List(traitlets.Unicode()).tag(sync=True)
    picked = traitlets.Dict().tag(sync=True)
    spec = traitlets.Unicode().tag(sync=True)
    data = traitlets.Dict().tag(sync=True)
    params = traitlets.Dict().tag(sync=True)
    link = traitlets.Unicode().tag(sync=True)
    rests = traitlets.Bool(False).tag(sync=True)
    narrow = traitlets.Unicode().tag(sync=True)
    narrow_subtitle = traitlets.List(traitlets.Unicode()).tag(sync=True)
    narrow_below = traitlets.Int(_NARROW_BELOW).tag(sync=True)
    colours = traitlets.Dict().tag(sync=True)

    def __init__(self, **options: Any) -> None:
        send_library()
        super().__init__(**options)

    def show(self, chart: AnyChart, narrow: AnyChart | None = None) -> None:
        """Draw a chart, or bring the one on the page up to date with it.

        Parameters
        ----------
        chart : altair chart
        narrow : altair chart, optional
            The same from the same data, for narrow columns.
        """
        # With Altair, which takes seconds to load.
        from mpc_lab.charts.theme import ON_DARK, ON_LIGHT

        made = structure(chart)
        with self.hold_sync():
            self.colours = {"light": ON_LIGHT, "dark": ON_DARK}
            self.title, self.subtitle = made.title, made.subtitle
            other = None if narrow is None else structure(narrow)
            self.narrow = "" if other is None else other.spec
            self.narrow_subtitle = [] if other is None else other.subtitle
            if made.spec != self.spec:
                self.spec, self.picked = made.spec, {}
            self.data = {**self._named(made.spec), **made.data}

    def put(self, **datasets: pd.DataFrame | list[dict[str, Any]]) -> None:
        """Give rows to datasets that the chart only names (``alt.NamedData``)."""
        rows = {name: _text(_rows(given)) for name, given in datasets.items()}
        self.data = {**self.data, **rows}

    def set(self, **params: Any) -> None:
        """Set parameters (``alt.param``) of the chart by their names."""
        self.params = {**self.params, **params}

    def _named(self, spec: str) -> dict[str, str]:
        # Rows that were put stay for as long as the chart still names them.
        return {name: rows for name, rows in self.data.items() if f'"{name}"' in spec}


class Structure:
    """A chart taken apart: words, drawing and data.

    Attributes
    ----------
    title : str
    subtitle : list of str
    spec : str
        JSON of the drawing with all names counted from 0, so that charts of the same make are
        equal.
    data : dict of str
        Dataset name to JSON of its rows.
    """

    def __init__(self, title: str, subtitle: list[str], spec: str, data: dict[str, str]) -> None:
        self.title, self.subtitle, self.spec, self.data = title, subtitle, spec, data


def structure(chart: AnyChart) -> Structure:
    """Take a chart apart into words, drawing and data."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    datasets = spec.pop("datasets", {})
    heading = spec.pop("title", {})
    words = spec.pop("usermeta", {}).get("mpc", {})
    title = words.get("title") or _join(heading, "text")
    subtitle = words.get("subtitle") or [_join(heading, "subtitle")]
    # The page reads these words above the drawing.
    spec.pop("description", None)
    names: dict[str, str] = {}
    spec = _number(spec, datasets, names)
    data = {new: _text(datasets[old]) for old, new in names.items() if old in datasets}
    return Structure(title, [line for line in subtitle if line], _text(spec), data)


def _number(part: Any, datasets: dict[str, Any], names: dict[str, str]) -> Any:
    """Return a spec whose datasets and views are named by the order in which they occur."""
    if isinstance(part, list):
        return [_number(inner, datasets, names) for inner in part]
    if not isinstance(part, dict):
        return part
    made: dict[str, Any] = {}
    for key, value in part.items():
        if key == "name" and isinstance(value, str) and _is_counted(value, datasets):
            made[key] = _count(value, datasets, names)
        elif key == "views":
            made[key] = [
                _count(view, datasets, names) if _is_counted(view, datasets) else view
                for view in value
            ]
        else:
            made[key] = _number(value, datasets, names)
    return made


def _is_counted(name: str, datasets: dict[str, Any]) -> bool:
    return name in datasets or name.startswith("view_")


def _count(name: str, datasets: dict[str, Any], names: dict[str, str]) -> str:
    kind = "d" if name in datasets else "v"
    if name not in names:
        names[name] = f"{kind}{sum(new.startswith(kind) for new in names.values())}"
    return names[name]


def _join(heading: Any, key: str) -> str:
    if isinstance(heading, str):
        return heading if key == "text" else ""
    words = heading.get(key, "") if isinstance(heading, dict) else ""
    return words if isinstance(words, str) else " ".join(words)


def _rows(given: pd.DataFrame | list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = given.to_dict("records") if isinstance(given, pd.DataFrame) else given
    return [{str(key): _known(value) for key, value in row.items()} for row in rows]


def _known(value: Any) -> Any:
    """Return a value that JSON has a word for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return None if value is pd.NA or value is pd.NaT else value


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    return value.item()


# ---- the chart library, sent to a page once a kernel

# The library announces itself to every chart of the page, those made before it too.
_ANNOUNCE = """
globalThis.__mpcLabVega ??= {};
globalThis.__mpcLabVega.embed ??= vegaEmbed;
globalThis.__mpcLabVega.arrived?.();
export default { render() {} };
"""


# What is imported where the library is not here, from the place that Altair takes it from.
_FETCH = (
    'import vegaEmbed from "https://esm.sh/vega-embed@{embed}?deps=vega@{vega}&'
    'deps=vega-lite@{vega_lite}";\n'
)


class _Library(anywidget.AnyWidget):
    """Vega, Vega-Lite and Vega-Embed; hidden, and one for all charts of a kernel."""

    def __init__(self, code: str) -> None:
        self._esm = code
        super().__init__()


_sent: list[_Library] = []


def send_library() -> anywidget.AnyWidget:
    """Send the chart library to the page, unless it is there."""
    if not _sent or _sent[0].comm is None:
        _sent[:] = [_Library(chart_library(_ANNOUNCE) if can_draw() else _fetching())]
    return _sent[0]


def _fetching() -> str:
    import altair as alt

    embed, vega, vega_lite = alt.VEGAEMBED_VERSION, alt.VEGA_VERSION, alt.VEGALITE_VERSION
    return _FETCH.format(embed=embed, vega=vega, vega_lite=vega_lite) + _ANNOUNCE
