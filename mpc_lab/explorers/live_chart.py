"""An Altair chart that stays on the page while its numbers change, drawn without a network."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import pandas as pd
import traitlets

from mpc_lab.html import chart_library

if TYPE_CHECKING:
    from mpc_lab.charts.theme import AnyChart


class LiveChart(anywidget.AnyWidget):
    """A chart of `mpc_lab.charts` on the page.

    ``show`` draws a chart. If it differs from the one on the page in its numbers alone, only the
    changed datasets are drawn anew; the view, its brush and its listeners stay.

    Attributes
    ----------
    titled : bool
        Whether the title stands above the drawing; it always names the chart for a screen reader.
    picked : dict
        The last value of each selection parameter of the chart, by its name: a dict from field to
        the list of chosen values, or to the two ends of a brush. Empty where nothing is chosen.

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
    # JSON texts: two texts are equal when there is nothing to draw anew.
    _spec = traitlets.Unicode().tag(sync=True)
    _data = traitlets.Dict().tag(sync=True)
    _params = traitlets.Dict().tag(sync=True)

    def __init__(self, **options: Any) -> None:
        send_library()
        super().__init__(**options)

    def show(self, chart: AnyChart) -> None:
        """Draw a chart, or bring the one on the page up to date with it.

        Parameters
        ----------
        chart : altair chart
        """
        made = structure(chart)
        with self.hold_sync():
            self.title, self.subtitle = made.title, made.subtitle
            if made.spec != self._spec:
                self._spec, self.picked = made.spec, {}
            self._data = {**self._named(made.spec), **made.data}

    def put(self, **datasets: pd.DataFrame | list[dict[str, Any]]) -> None:
        """Give rows to datasets that the chart only names (``alt.NamedData``)."""
        rows = {name: _text(_rows(given)) for name, given in datasets.items()}
        self._data = {**self._data, **rows}

    def set(self, **params: Any) -> None:
        """Set parameters (``alt.param``) of the chart by their names."""
        self._params = {**self._params, **params}

    def _named(self, spec: str) -> dict[str, str]:
        # Rows that were put stay for as long as the chart still names them.
        return {name: rows for name, rows in self._data.items() if f'"{name}"' in spec}


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
    title = words.get("title") or _joined(heading, "text")
    subtitle = words.get("subtitle") or [_joined(heading, "subtitle")]
    # The page reads these words above the drawing.
    spec.pop("description", None)
    names: dict[str, str] = {}
    spec = _counted(spec, datasets, names)
    data = {new: _text(datasets[old]) for old, new in names.items() if old in datasets}
    return Structure(title, [line for line in subtitle if line], _text(spec), data)


def _counted(part: Any, datasets: dict[str, Any], names: dict[str, str]) -> Any:
    """Return a spec whose datasets and views are named by the order in which they occur."""
    if isinstance(part, list):
        return [_counted(inner, datasets, names) for inner in part]
    if not isinstance(part, dict):
        return part
    made: dict[str, Any] = {}
    for key, value in part.items():
        if key == "name" and isinstance(value, str) and _is_counted(value, datasets):
            made[key] = _count(value, datasets, names)
        elif key == "views":
            made[key] = [_count(view, datasets, names) for view in value]
        else:
            made[key] = _counted(value, datasets, names)
    return made


def _is_counted(name: str, datasets: dict[str, Any]) -> bool:
    return name in datasets or name.startswith("view_")


def _count(name: str, datasets: dict[str, Any], names: dict[str, str]) -> str:
    kind = "d" if name in datasets else "v"
    if name not in names:
        names[name] = f"{kind}{sum(new.startswith(kind) for new in names.values())}"
    return names[name]


def _joined(heading: Any, key: str) -> str:
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

# The library announces itself to every chart of the page, those that came before it too.
_ANNOUNCE = """
globalThis.__mpcLabVega ??= {};
globalThis.__mpcLabVega.embed ??= vegaEmbed;
globalThis.__mpcLabVega.arrived?.();
export default { render() {} };
"""


class _Library(anywidget.AnyWidget):
    """Vega, Vega-Lite and Vega-Embed; hidden, and one for all charts of a kernel."""

    def __init__(self, code: str) -> None:
        self._esm = code
        super().__init__()


_sent: list[_Library] = []


def send_library() -> anywidget.AnyWidget:
    """Send the chart library to the page, unless it is there."""
    if not _sent or _sent[0].comm is None:
        _sent[:] = [_Library(chart_library(_ANNOUNCE))]
    return _sent[0]
