"""A notebook in a real browser: open it, run it, ask its kernel, wait for what it draws."""

from __future__ import annotations

import json
from pathlib import Path

from helpers.lab_server import HOME

SLOW = 180_000

_CONNECTED = """() => {
  const shown = window.jupyterapp?.shell?.currentWidget;
  return shown?.sessionContext?.session?.kernel?.connectionStatus === "connected";
}"""
# Texts of the charts in sight that stick out of their drawing, or drawings out of their column.
_CLIPPED = """() => {
  const found = [];
  for (const svg of document.querySelectorAll(".mpc-chart svg")) {
    const frame = svg.getBoundingClientRect();
    const column = svg.closest(".mpc-chart").getBoundingClientRect();
    if (!frame.width) continue;
    if (frame.right > column.right + 2) found.push(`drawing: ${frame.right} > ${column.right}`);
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      const out = box.left < frame.left - 2 || box.right > frame.right + 2
        || box.top < frame.top - 2 || box.bottom > frame.bottom + 2;
      if (box.width && out) found.push(text.textContent);
    }
  }
  return found;
}"""
_ASK = """async (code) => {
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const asked = kernel.requestExecute(
    { code: "", user_expressions: { answer: code }, store_history: false });
  const reply = await asked.done;
  const answer = reply.content.user_expressions.answer;
  return answer.status === "ok" ? answer.data["text/plain"] : `${answer.ename}: ${answer.evalue}`;
}"""


def write_notebook(path: Path, *cells: str) -> Path:
    """Write a notebook of code cells."""
    made = [
        {
            "cell_type": "code",
            "id": f"cell-{place}",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": source.strip(),
        }
        for place, source in enumerate(cells)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4}
    path.write_text(json.dumps({**notebook, "nbformat_minor": 5}), "utf-8")
    return path


def watch(page, left, errors):
    """Note what leaves this machine and what JavaScript does not catch."""

    def request(asked):
        place = asked.url.split("/")[2] if "://" in asked.url else ""
        if asked.url.split(":")[0] not in ("data", "blob", "file") and place.split(":")[0] != HOME:
            left.append(asked.url)

    page.on("request", request)
    page.on("websocket", request)
    page.on("pageerror", lambda error: errors.append(f"{error.name}: {error.message}"))


class NotebookPage:
    """One notebook, opened in JupyterLab or Notebook 7."""

    def __init__(self, page, server, path: Path, app: str = "doc") -> None:
        self.page, self.path = page, path
        place = {"doc": "doc/tree", "lab": "lab/tree", "notebook": "notebooks"}[app]
        page.goto(f"{server.address}/{place}/{path.name}?token={server.token}")

    def connected(self) -> NotebookPage:
        """Wait for the kernel: before it is connected, running a cell does nothing."""
        self.page.set_default_timeout(SLOW)
        self.page.wait_for_function(_CONNECTED)
        return self

    def run(self) -> NotebookPage:
        """Run all cells, and wait for the last."""
        self.connected()
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
        return self

    def live(self) -> NotebookPage:
        """Wait until an explorer is drawn and has taken the place of its static form."""
        self.page.wait_for_selector(".mpc-beacon[data-live]", state="attached", timeout=SLOW)
        return self

    def ask(self, code: str) -> str:
        """Return the repr of an expression in the kernel."""
        return self.page.evaluate(_ASK, code)

    def until(self, code: str, wanted: object, seconds: float = 20) -> None:
        """Poll the kernel until an expression has a value; a brush read early is mid-drag."""
        said = self.ask(code)
        for _ in range(int(seconds / 0.1)):
            if said == repr(wanted):
                return
            self.page.wait_for_timeout(100)
            said = self.ask(code)
        raise AssertionError(f"{code} is {said}, not {wanted!r}")

    def drawn(self, place: int = 0) -> int:
        """Return how often a visible chart was drawn."""
        chart = self.charts.nth(place)
        chart.wait_for(timeout=SLOW)
        return int(chart.get_attribute("data-drawn"))

    def redrawn(self, since: int, place: int = 0) -> int:
        """Wait until a visible chart was drawn again, and return how often it is now."""
        for _ in range(300):
            if self.drawn(place) > since:
                return self.drawn(place)
            self.page.wait_for_timeout(50)
        raise AssertionError(f"chart {place} was not drawn again")

    def clipped(self) -> list[str]:
        """Return what of the charts in sight is cut off."""
        return self.page.evaluate(_CLIPPED)

    @property
    def charts(self):
        """The charts that are drawn and visible."""
        return self.page.locator(".mpc-chart[data-drawn]:visible")
