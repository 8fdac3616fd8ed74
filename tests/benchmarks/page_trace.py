"""What a page does between key presses, from the browser's own trace."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline", "v8"]
# As DevTools sorts them; what is drawn after them happens in other threads too.
SCRIPTING = {"EventDispatch", "FunctionCall", "EvaluateScript", "TimerFire", "FireAnimationFrame"}
SCRIPTING |= {"RunMicrotasks", "MajorGC", "MinorGC", "V8.GCScavenger", "v8.callFunction"}
RENDERING = {"UpdateLayoutTree", "Layout", "PrePaint", "UpdateLayerTree", "HitTest"}
_MICROSECONDS = 1000.0


def steps(trace: bytes) -> list[float]:
    """Return the milliseconds of scripting and rendering after each key press of a trace.

    Counted is the time that the main thread of the page was at work, from one key press to the
    next: on a busy machine it waits besides.
    """
    events = [one for one in json.loads(trace)["traceEvents"] if one.get("ph") == "X"]
    presses = [one for one in events if _is_press(one)]
    if not presses:
        raise ValueError("the trace has no key press")
    thread = (presses[0]["pid"], presses[0]["tid"])
    mine = [one for one in events if (one["pid"], one["tid"]) == thread]
    starts = [one["ts"] for one in presses]
    ends = [*starts[1:], float("inf")]
    work = list(_outermost(one for one in mine if one["name"] in SCRIPTING | RENDERING))
    return [
        sum(_spent(one) for one in work if start <= one["ts"] < end)
        for start, end in zip(starts, ends, strict=True)
    ]


def _is_press(event: dict[str, Any]) -> bool:
    data = event.get("args", {}).get("data", {})
    return event["name"] == "EventDispatch" and data.get("type") == "keydown"


def _spent(event: dict[str, Any]) -> float:
    return float(event.get("tdur", event.get("dur", 0.0))) / _MICROSECONDS


def _outermost(events: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yield the events that are not inside another one."""
    until = 0.0
    for event in sorted(events, key=lambda one: (one["ts"], -one.get("dur", 0.0))):
        if event["ts"] >= until:
            until = event["ts"] + event.get("dur", 0.0)
            yield event
