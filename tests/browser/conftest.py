"""One Jupyter server and one Chromium for the tests of a file; a page for each.

Not for longer: Playwright keeps an event loop running, and tests that start one of their own come
after. Every test ends by looking back: nothing left this machine, and JavaScript caught all its
errors.
"""

from __future__ import annotations

import pytest

import mpc_lab as mpc
from helpers.browser_log import COLUMNS, GROUPS, LOAD, log
from helpers.hostile import HOSTILE
from helpers.lab_server import CHROMIUM, own_jupyter, running_lab
from helpers.notebook_page import NotebookPage, watch, write_notebook


@pytest.fixture(scope="module")
def server(tmp_path_factory, small):
    root = tmp_path_factory.mktemp("notebooks")
    small.save(root / "audit.nc")
    log(GROUPS).to_parquet(root / "log.parquet")
    log(HOSTILE[:6]).to_parquet(root / "hostile.parquet")
    with running_lab(root, own_jupyter(tmp_path_factory.mktemp("jupyter"))) as running:
        yield running


@pytest.fixture(scope="module")
def small():
    """Return an audit in which group alpha is undervalued."""
    return mpc.audit(
        log(GROUPS),
        **COLUMNS,
        scoring_rules=("baseline", mpc.Boosted(0.1)),
        pairing_modes=("matched", "mirrored"),
        progress=False,
    )


@pytest.fixture(scope="module")
def browser(chromium_path):
    # Not at the top: where it is absent, the tests of this folder are skipped.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium_path, args=CHROMIUM)
        yield opened
        opened.close()


class Pages:
    """Pages of one browser, and what they did that no page may do."""

    def __init__(self, browser) -> None:
        self._browser = browser
        self._left: list[str] = []
        self._errors: list[str] = []
        self._contexts = []
        self.known: tuple[str, ...] = ()  # errors of a front end itself, on any page

    def open(self, width=1280, height=1200):
        context = self._browser.new_context(viewport={"width": width, "height": height})
        self._contexts.append(context)
        page = context.new_page()
        watch(page, self._left, self._errors)
        return page

    def look_back(self) -> None:
        """Nothing left this machine, and every error of JavaScript was caught."""
        assert self._left == []
        assert [error for error in self._errors if error not in self.known] == []

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def pages(browser):
    opened = Pages(browser)
    yield opened
    opened.close()
    opened.look_back()


@pytest.fixture
def notebook(pages, server, request):
    """Return a function that opens a notebook in which ``audit`` is loaded, and runs its cells."""

    def open_notebook(*cells, load=LOAD, app="doc"):
        name = "".join(c if c.isalnum() else "_" for c in request.node.name)
        path = write_notebook(server.root / f"{name}.ipynb", load, *cells)
        return NotebookPage(pages.open(), server, path, app).run()

    return open_notebook


@pytest.fixture(scope="module")
def shared_pages(browser):
    opened = Pages(browser)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def shared_panel(shared_pages, server):
    """Return the panel of an audit that the tests of a module use one after the other."""
    cells = (LOAD, "explorer = audit.explore()\nexplorer")
    path = write_notebook(server.root / "panel.ipynb", *cells)
    return NotebookPage(shared_pages.open(), server, path).run().live()


@pytest.fixture
def panel(shared_panel, shared_pages):
    yield shared_panel
    shared_pages.look_back()
