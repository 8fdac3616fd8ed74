"""Serving a file: what is refused, who is let in, and that a file name is never code."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from pathlib import Path

import pytest

import mpc_lab as mpc
from mpc_lab import cli
from mpc_lab.explorers import app as explorer_app
from mpc_lab.explorers.app import serve, show

COLUMNS = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}
COLUMNS |= {"group": "type"}
NASTY = "a'); print('obeyed') #\".csv"


@pytest.fixture(scope="module")
def ranking():
    return mpc.datasets.synthetic(queries=300)


@pytest.fixture(scope="module")
def text(ranking):
    return ranking.to_frame().to_csv(index=False)


@pytest.fixture
def log(text, tmp_path):
    path = tmp_path / NASTY
    path.write_text(text, "utf-8")
    return path


@pytest.fixture
def started(monkeypatch):
    """Return what Voila would have started with, which it does not do here."""
    voila = pytest.importorskip("voila.app")
    from tornado.ioloop import IOLoop

    found = {}

    def start(self):
        found["app"] = self
        found["notebook"] = json.loads(Path(self.notebook_path).read_text("utf-8"))
        found["given"] = os.environ["MPC_LAB_EXPLORE"]
        IOLoop.current().run_sync(lambda: asyncio.sleep(0))

    monkeypatch.setattr(voila.Voila, "start", start)
    yield found
    voila.Voila.clear_instance()


def test_a_file_name_never_becomes_code(log, started):
    assert serve(log, columns=COLUMNS, open_browser=False) == 0
    (cell,) = started["notebook"]["cells"]
    assert cell["source"] == "from mpc_lab.explorers.app import show\nshow()"
    assert json.loads(started["given"])["log"] == str(log)


def test_only_this_machine_is_served_and_only_with_a_token(log, started):
    serve(log, columns=COLUMNS, open_browser=False)
    app = started["app"]
    assert app.ip == "127.0.0.1"
    assert len(app.token) >= 24
    assert app.tornado_settings["allow_remote_access"] is False
    assert "default-src 'self'" in app.tornado_settings["headers"]["Content-Security-Policy"]
    assert app.voila_configuration.file_allowlist == []


def test_the_address_is_printed_once_it_answers(log, started, capsys):
    serve(log, columns=COLUMNS, open_browser=False)
    app = started["app"]
    assert f"http://127.0.0.1:{app.port}/?token={app.token}" in capsys.readouterr().out


def test_voila_does_not_keep_the_signal_to_end(log, started):
    before = signal.getsignal(signal.SIGTERM)
    serve(log, columns=COLUMNS, open_browser=False)
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_was_prepared_is_left_neither_on_the_disk_nor_in_the_environment(log, started):
    serve(log, columns=COLUMNS, open_browser=False)
    assert not Path(started["app"].notebook_path).exists()
    assert "MPC_LAB_EXPLORE" not in os.environ


@pytest.mark.parametrize("is_saved", [False, True])
def test_the_page_shows_the_audit_of_the_file(log, tmp_path, monkeypatch, is_saved):
    saved = tmp_path / "audit.nc"
    mpc.audit(log, **COLUMNS, progress=False).save(saved)
    given = {"audit": str(saved), "log": None if is_saved else str(log), "columns": COLUMNS}
    given["how"] = {}
    shown = []
    monkeypatch.setenv("MPC_LAB_EXPLORE", json.dumps(given))
    monkeypatch.setattr("IPython.display.display", shown.append)
    show()
    assert shown[-1].groups == ("1", "2")
    assert (shown[-1].audit.ranking is None) == is_saved


def test_the_page_is_headed_by_its_file_and_code_taken_along_reads_it(log, tmp_path, monkeypatch):
    saved = tmp_path / "<b>audit.nc"
    mpc.audit(log, **COLUMNS, progress=False).save(saved)
    given = {"audit": str(saved), "log": None, "columns": {}, "how": {}}
    shown = []
    monkeypatch.setenv("MPC_LAB_EXPLORE", json.dumps(given))
    monkeypatch.setattr("IPython.display.display", shown.append)
    show()
    address, head, explorer = shown
    assert address.title == "<b>audit.nc · mpc_lab"
    assert "<h1" in head.data
    assert "&lt;b&gt;audit.nc" in head.data
    assert explorer.state.origin.endswith(f"audit = mpc.load({str(saved)!r})")


def test_columns_that_are_not_given_are_asked_for_on_the_page(log, started, monkeypatch):
    assert serve(log, columns={"outcome": "score"}, open_browser=False) == 0
    shown = []
    monkeypatch.setenv("MPC_LAB_EXPLORE", started["given"])
    monkeypatch.setattr("IPython.display.display", shown.append)
    show()
    chosen = shown[-1].state.columns
    assert (chosen["outcome"], chosen["query"], chosen["group"]) == ("score", "query", "type")


@pytest.mark.parametrize("columns", [COLUMNS, {}])
def test_a_folder_of_text_in_another_form_is_served(
    ranking, tmp_path, started, monkeypatch, columns
):
    (tmp_path / "logs").mkdir()
    text = ranking.to_frame().to_csv(index=False, sep="^", encoding="latin-1")
    (tmp_path / "logs" / "a.csv").write_text(text, "latin-1")
    how = {"sep": "^", "encoding": "latin-1"}
    assert serve(tmp_path / "logs", columns=columns, how=how, open_browser=False) == 0
    assert json.loads(started["given"])["how"] == how
    if not columns:
        shown = []
        monkeypatch.setenv("MPC_LAB_EXPLORE", started["given"])
        monkeypatch.setattr("IPython.display.display", shown.append)
        show()
        assert shown[-1].state.source == "logs"
        assert shown[-1].run().groups == ("1", "2")


def test_the_line_names_a_folder_and_how_its_text_is_read(log, monkeypatch):
    given = {}
    monkeypatch.setattr(explorer_app, "serve", lambda path, **how: given.update(how, path=path))
    cli.main(["explore", str(log.parent), "--sep", ",", "--query", "query", "--no-open"])
    assert given["path"] == log.parent
    assert given["how"] == {"sep": ","}
    assert given["columns"] == {"query": "query"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["none.csv"], "There is no file 'none.csv'"),
        (["none.nc"], "There is no file 'none.nc'"),
        (["log.csv", "--sep", ";;"], "The separator must be one character"),
    ],
)
def test_a_line_that_cannot_be_served_is_one_sentence(log, capsys, monkeypatch, words, says):
    monkeypatch.chdir(log.parent)
    log.rename("log.csv")
    assert cli.main(["explore", *words, "--no-open"]) == 3
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("name", "columns", "says"),
    [
        ("audit.nc", COLUMNS, "columns must go with a log; got the saved audit"),
        ("none.nc", {}, "none.nc"),
        ("log.csv", {"score": "scroe"}, "'scroe'.*Did you mean 'score'"),
        ("log.csv", {**COLUMNS, "score": "scroe"}, "'scroe'.*Did you mean 'score'"),
        ("none.csv", COLUMNS, "There is no file"),
        ("log.xyz", COLUMNS, "A file of a log must be CSV"),
    ],
)
def test_what_cannot_be_served_is_said_before_anything_starts(
    ranking, tmp_path, started, name, columns, says
):
    mpc.audit(ranking, progress=False).save(tmp_path / "audit.nc")
    for kind in ("csv", "xyz"):
        ranking.to_frame().to_csv(tmp_path / f"log.{kind}", index=False)
    with pytest.raises((mpc.MpcError, OSError), match=says):
        serve(tmp_path / name, columns=columns, open_browser=False)
    assert started == {}


def test_a_port_that_is_taken_is_refused(log, started):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        with pytest.raises(mpc.MpcError, match=f"Port {taken} cannot be used"):
            serve(log, columns=COLUMNS, port=taken, open_browser=False)
    with pytest.raises(mpc.MpcError, match="from 0 to 65535; got 70000"):
        serve(log, columns=COLUMNS, port=70_000, open_browser=False)


def test_voila_is_asked_for_where_it_is_absent(log, monkeypatch):
    monkeypatch.setattr(explorer_app.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(mpc.MpcError, match="Voila must be installed"):
        serve(log, columns=COLUMNS, open_browser=False)
