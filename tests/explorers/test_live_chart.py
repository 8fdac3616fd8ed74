"""Charts taken apart into words, drawing and data, so that a page draws only what changed."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from helpers.explorer_audits import example_audit, hostile_audit
from helpers.hostile import HOSTILE
from mpc_lab import charts
from mpc_lab.explorers.live_chart import LiveChart, send_library, structure
from mpc_lab.html import chart_library

audit = pytest.fixture(scope="module")(example_audit)


def test_words_are_beside_the_drawing_unbroken(audit):
    made = structure(charts.epsilon_curve(audit, "1"))
    chart = charts.epsilon_curve(audit, "1")
    assert made.title == " ".join(chart.title.text)
    assert len(made.subtitle) == 3
    assert not {"title", "description", "datasets"} & set(json.loads(made.spec))


def test_the_same_chart_made_twice_is_the_same_drawing(audit):
    one, other = (structure(charts.forest(audit, live=True)) for _ in range(2))
    assert one.spec == other.spec
    assert one.data == other.data


def test_datasets_are_named_by_the_order_of_their_use(audit):
    made = structure(charts.epsilon_curve(audit, "1", live=True))
    assert list(made.data) == [f"d{k}" for k in range(len(made.data))]
    assert all(f'"{name}"' in made.spec for name in made.data)


def test_other_numbers_leave_the_drawing_and_change_their_dataset_alone():
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [0.5, None]})
    one, other = _line(frame), _line(frame.assign(y=[0.5, 0.25]))
    assert structure(one).spec == structure(other).spec
    changed = [n for n, rows in structure(one).data.items() if structure(other).data[n] != rows]
    assert len(changed) == 1


def _line(frame):
    import altair as alt

    from mpc_lab.charts import theme

    line = alt.Chart(frame).mark_line().encode(x="x:Q", y="y:Q")
    return theme.finish(theme.layered(theme.zero_line(), line), "A finding", ["What is drawn"])


def messages(monkeypatch):
    """Return a list that grows by the names of the traits of each message to the page."""
    sent = []

    def send(self, key=None):
        sent.extend([{key} if isinstance(key, str) else set(key)] if key else [])

    monkeypatch.setattr(LiveChart, "send_state", send)
    return sent


def test_show_sends_one_message_with_drawing_and_data(audit, monkeypatch):
    chart = LiveChart()
    sent = messages(monkeypatch)
    chart.show(charts.epsilon_curve(audit, "1"))
    assert sent == [{"spec", "data", "title", "subtitle", "colours"}]


def test_showing_the_same_chart_again_sends_nothing(audit, monkeypatch):
    chart = LiveChart()
    chart.show(charts.forest(audit))
    sent = messages(monkeypatch)
    chart.show(charts.forest(audit))
    assert sent == []


def test_another_drawing_forgets_what_was_picked(audit):
    chart = LiveChart()
    chart.show(charts.forest(audit, live=True))
    chart.picked = {"pick": {"place": [0]}}
    chart.show(charts.forest(audit, live=True))
    assert chart.picked == {"pick": {"place": [0]}}
    chart.show(charts.epsilon_curve(audit, "1", live=True))
    assert chart.picked == {}


def test_rows_that_were_put_stay_for_as_long_as_the_chart_names_them(audit):
    chart = LiveChart()
    chart.put(now=pd.DataFrame({"alpha": [0.5], "gap": [float("nan")]}))
    assert json.loads(chart.data["now"]) == [{"alpha": 0.5, "gap": None}]
    chart.show(charts.forest(audit))
    assert "now" not in chart.data


def test_parameters_are_kept_by_name():
    chart = LiveChart()
    chart.set(at=0.1)
    chart.set(chosen=2)
    assert chart.params == {"at": 0.1, "chosen": 2}


def test_the_library_is_one_for_all_charts():
    LiveChart()
    first = send_library()
    LiveChart()
    assert send_library() is first


def test_the_library_is_made_once_and_kept(tmp_path, monkeypatch):
    made = chart_library("announce()", tmp_path / "new")
    assert "announce()" in made
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda _: pytest.fail("made again"))
    assert chart_library("announce()", tmp_path / "new") == made


def test_a_library_that_was_cut_short_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda _: "whole")
    chart_library("announce()", tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text("who", "utf-8")
    assert chart_library("announce()", tmp_path) == "whole"


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda _: "whole")
    (tmp_path / "file").write_text("", "utf-8")
    assert chart_library("announce()", tmp_path / "file" / "below") == "whole"


def test_names_from_data_are_in_the_data_alone():
    audit = hostile_audit()
    made = structure(charts.forest(audit, live=True))
    for name in HOSTILE:
        assert json.dumps(name, ensure_ascii=False)[1:-1][:30] not in made.spec
    assert "<script>" in "".join(made.data.values())
