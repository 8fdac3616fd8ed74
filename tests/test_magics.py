"""The door from a notebook: what a cell with ``%%mpc_audit`` does, and what it says when wrong."""

from __future__ import annotations

import altair as alt
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import mpc_lab as mpc

COLUMNS = "--query query --item item --score score --outcome outcome --group type"


@pytest.fixture(scope="module")
def frame():
    return mpc.datasets.synthetic(queries=300).to_frame()


@pytest.fixture
def shell(frame):
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "mpc_lab")
    shell.push({"log": frame})
    yield shell
    shell.run_line_magic("unload_ext", "mpc_lab")


def test_charts_are_drawn_as_svg_inside_the_notebook(shell):
    chart = alt.Chart({"values": [{"a": 1}]}).mark_point().encode(x="a:Q")
    bundle = chart._repr_mimebundle_()
    assert list(bundle) == ["image/svg+xml"]
    assert alt.theme.active == "mpc_lab"
    assert chart.to_dict()["config"]["axis"]["labelColor"] == "#7a7a7a"


def test_unloading_gives_back_renderer_theme_and_magic(frame):
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "mpc_lab")
    shell.run_line_magic("unload_ext", "mpc_lab")
    assert (alt.renderers.active, alt.theme.active) == ("default", "default")
    assert shell.find_cell_magic("mpc_audit") is None


def test_a_cell_makes_the_frame_that_the_line_names(shell, frame):
    shell.push({"rows": frame})
    found = shell.run_cell_magic("mpc_audit", f"made {COLUMNS}", "made = rows.iloc[:5000]")
    assert isinstance(found, mpc.Audit)
    assert shell.user_ns["audit"] is found
    assert found.ranking.n_rows == len(shell.user_ns["made"])


def test_the_last_line_of_a_cell_may_be_the_frame(shell):
    line = f"{COLUMNS} --name first --threshold smallest:200"
    found = shell.run_cell_magic("mpc_audit", line, "part = log\npart.head(900)")
    assert shell.user_ns["first"] is found
    assert found.ranking.n_rows == 900


def test_a_line_alone_audits_what_is_there(shell):
    line = f"log {COLUMNS} --rules baseline,boosted:0.1 --modes matched,mirrored --level 0.9"
    headline = shell.run_line_magic("mpc_audit", line).headline
    assert headline.sizes["scoring_rule"] == headline.sizes["pairing_mode"] == 2


def test_a_separator_splits_labels(shell):
    shell.user_ns["log"] = shell.user_ns["log"].assign(type=lambda rows: rows["type"] + "|all")
    found = shell.run_line_magic("mpc_audit", f'log {COLUMNS} --group-sep "|" --groups 1,2')
    assert found.groups == ("1", "2")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"log {COLUMNS} --score scroe", "no column 'scroe' to use as score. Did you mean 'score'"),
        (f"lgo {COLUMNS}", "There is no 'lgo' in this notebook to audit. Did you mean 'log'"),
        (f"log.head.body {COLUMNS}", "it has no 'body'"),
        ("log --query query", "got none for score, outcome, group"),
        (f"log {COLUMNS} --quarry x", "unrecognized arguments: --quarry x; see %%mpc_audit"),
        (f"log {COLUMNS} --adjust no", "invalid choice: 'no'"),
        (f"log {COLUMNS} --name 3x", "--name must be a name that Python allows; got '3x'"),
        (f"log {COLUMNS} --threshold few", "threshold must be a number"),
        ('log --query "query', "cannot be read: No closing quotation"),
        ("--help", "see %%mpc_audit"),
        (COLUMNS, "must have a frame; got none. Name it on the line"),
    ],
)
def test_a_wrong_line_is_answered_in_one_sentence(shell, line, says):
    with pytest.raises(UsageError, match=says) as caught:
        shell.run_line_magic("mpc_audit", line)
    assert "\n" not in str(caught.value)


def test_a_wrong_line_shows_no_traceback(shell, capsys):
    assert not shell.run_cell(f"%mpc_audit lgo {COLUMNS}").success
    shown = capsys.readouterr()
    assert "UsageError: There is no 'lgo'" in shown.err
    assert "Traceback" not in shown.out + shown.err


def test_an_error_of_the_cell_is_shown_without_our_code(shell, capsys):
    assert not shell.run_cell(f"%%mpc_audit log {COLUMNS}\nnumber = 1\nnumber / 0\n").success
    shown = capsys.readouterr().out
    assert "ZeroDivisionError" in shown
    assert "magics.py" not in shown


def test_the_help_of_the_magic_lists_its_options(shell):
    words = shell.find_cell_magic("mpc_audit").__doc__
    assert all(option in words for option in ("--group-sep", "--tolerance", "--name", "--explore"))
    assert "--gate" not in words
