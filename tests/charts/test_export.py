"""Charts as files."""

from __future__ import annotations

import errno
import os
import pathlib

import altair as alt
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers.hostile import HOSTILE
from mpc_lab import charts


def test_png_and_svg_are_written(audit, tmp_path):
    chart = charts.forest(audit)
    png = charts.save(chart, tmp_path / "a.png", scale=1)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert charts.save(chart, str(tmp_path / "a.SVG")).read_text("utf-8").startswith("<svg")


def test_a_page_has_its_scripts_inside_and_no_name_ends_them(hostile, tmp_path):
    text = charts.save(charts.forest(hostile), tmp_path / "a.html").read_text("utf-8")
    assert len(text) > 500_000
    assert "<script src" not in text
    assert HOSTILE[0] not in text
    assert "\\u003c/script\\u003e\\u003cscript\\u003ewindow.obeyed=1" in text


def test_a_background_can_be_given(audit, tmp_path):
    path = charts.save(charts.ladder(audit), tmp_path / "a.svg", background="#123456")
    assert "#123456" in path.read_text("utf-8")


def test_another_ending_is_refused(audit, tmp_path):
    with pytest.raises(mpc.MpcError, match=r"\.png, \.svg, \.pdf, \.html; got 'a\.bmp'"):
        charts.save(charts.forest(audit), tmp_path / "a.bmp")


@pytest.mark.parametrize("chart", [None, {"mark": "bar"}, alt.Chart])
@pytest.mark.parametrize("name", ["a.svg", "a.png", "a.html"])
def test_anything_but_a_chart_is_refused(tmp_path, chart, name):
    with pytest.raises(mpc.MpcError, match="must be a chart of mpc"):
        charts.save(chart, tmp_path / name)


@pytest.mark.parametrize("name", ["a.svg", "a.png", "a.html"])
def test_a_custom_chart_that_cannot_be_drawn_is_refused(tmp_path, name):
    unfinished = alt.Chart(pd.DataFrame({"a": [1]}))
    with pytest.raises(mpc.MpcError, match=r"The chart cannot be drawn: .*mark"):
        charts.save(unfinished, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_sentence_and_leaves_nothing(audit, tmp_path, monkeypatch):
    def full(*_given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pathlib.Path, "write_bytes", full)
    with pytest.raises(mpc.MpcError, match=r"cannot be written: .*No space left"):
        charts.save(charts.forest(audit), tmp_path / "a.svg")
    assert not list(tmp_path.iterdir())


def test_a_pdf_is_one_page_of_vectors(audit, tmp_path):
    path = mpc.charts.save(mpc.charts.forest(audit), tmp_path / "a.pdf")
    content = path.read_bytes()
    assert content.startswith(b"%PDF-")
    assert content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") <= 1
    assert b"/Subtype /Image" not in content


@pytest.mark.parametrize("name", ["forest", "ladder", "power"])
def test_a_chart_says_what_it_is_about(audit, name):
    given = (audit,) if name != "power" else (audit, "1")
    plain = mpc.charts.draw(name, *given).to_dict()
    titled = mpc.charts.draw(name, *given, title="search, week 12").to_dict()
    assert titled["title"]["text"] == ["search, week 12", *plain["title"]["text"]]
    assert titled["description"].startswith("search, week 12. ")
    assert mpc.charts.draw(name, *given).to_dict() == plain


@pytest.mark.parametrize("bad", ["", "  ", 3])
def test_a_title_is_words(audit, bad):
    with pytest.raises(mpc.MpcError, match="title must be words"):
        mpc.charts.forest(audit, title=bad)
