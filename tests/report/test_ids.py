"""Ids of queries stay on the screen, and so does how few queries a cell has."""

from __future__ import annotations

import json
import re

import h5py
import jsonschema
import numpy as np
import pytest

import mpc_lab as mpc
from helpers.drawn import CHARTS
from mpc_lab.charts.theme import specification
from mpc_lab.cli import main
from mpc_lab.cli.show import to_csv
from mpc_lab.report import schema

QUERIES, FEW = 40, 7
COLUMNS = {"query": "who", "item": "movie", "score": "s", "outcome": "y", "group": "g"}
# As a person's id looks, and as nothing else in a page does.
ID = re.compile(r"reader[-_ ]?\d{4}")


def log():
    rng = np.random.default_rng(0)
    frame = {
        "who": np.repeat([f"reader-{7000 + k}" for k in range(QUERIES)], 12),
        "movie": np.tile([f"film {k}" for k in range(12)], QUERIES),
        "s": rng.random(12 * QUERIES),
        "y": rng.random(12 * QUERIES),
        "g": rng.choice(["a", "b"], 12 * QUERIES).astype("<U4"),
    }
    # Two rows in each of the first few queries: a group that few people have met.
    frame["g"][np.arange(FEW)[:, None] * 12 + [0, 1]] = "rare"
    return frame


@pytest.fixture(scope="module")
def audit():
    modes = ("matched", "mirrored")
    how = {"threshold": 0.5, "epsilon": [0.1, 0.5], "pairing_modes": modes, "progress": False}
    return mpc.audit(log(), **COLUMNS, **how)


@pytest.fixture(scope="module")
def page(audit, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "a.html"
    with pytest.MonkeyPatch.context() as patch:
        # The data of a chart is in the page beside its drawing.
        patch.setattr("mpc_lab.report.context.svg_of", lambda _: "<svg></svg>")
        for module in ("context", "sections.checks"):
            patch.setattr(f"mpc_lab.report.{module}.PLACEBOS", 10)
        return audit.report(path, pairs=20, progress=False).read_text("utf-8")


def test_the_screen_has_ids(audit):
    assert ID.fullmatch(audit.pairs("a", limit=1)["query"].item())


def test_a_report_numbers_the_queries_of_its_pairs(page, audit):
    assert not ID.search(page)
    numbers = {int(k) for k in re.findall(r"query (\d+) of 40", page)}
    assert numbers <= set(range(1, QUERIES + 1))
    assert len(numbers) > 1
    assert "film 3" in page


def test_a_number_belongs_to_one_query(audit):
    from mpc_lab.results.questions.pairs import pairs

    named = audit.pairs("a")["query"]
    numbered = pairs(audit, "a", "baseline", "matched", show_ids=False)["query"]
    assert len(set(zip(named, numbered, strict=True))) == named.nunique() == numbered.nunique()


def test_a_report_has_ids_where_they_are_asked_for(audit, tmp_path, no_charts):
    path = audit.report(tmp_path / "a.html", pairs=5, progress=False, show_ids=True)
    assert ID.search(path.read_text("utf-8"))
    with pytest.raises(mpc.MpcError, match="show_ids"):
        audit.report(tmp_path / "b.html", show_ids="yes")


@pytest.mark.parametrize("make", [mpc.Audit.to_json, mpc.Audit.model_card, to_csv])
def test_no_text_that_is_written_has_ids(audit, make):
    assert not ID.search(make(audit))


@pytest.mark.parametrize("name", CHARTS)
def test_no_chart_has_ids(audit, name):
    # A picture is drawn from this alone.
    assert not ID.search(json.dumps(specification(CHARTS[name](audit, "a"))))


def everything_in(path):
    """Return every name, attribute and value of a file as one text, whatever its compression."""
    parts = []

    def visit(name, node):
        parts.append(f"{name} {dict(node.attrs)}")
        if isinstance(node, h5py.Dataset):
            parts.append(" ".join(map(repr, np.asarray(node[()]).ravel().tolist())))

    with h5py.File(path) as file:
        parts.append(str(dict(file.attrs)))
        file.visititems(visit)
    return " ".join(parts)


def test_no_saved_file_has_ids(audit, tmp_path):
    audit.save(tmp_path / "a.nc", items=True, ids=True, key="k")
    text = everything_in(tmp_path / "a.nc")
    assert "fingerprint" in text
    assert not ID.search(text)
    assert not ID.search((tmp_path / "a.nc").read_bytes().decode("latin-1"))


def test_the_command_line_writes_no_ids_unless_asked(tmp_path, no_charts):
    import pandas as pd

    pd.DataFrame(log()).to_csv(tmp_path / "log.csv", index=False)
    line = ["audit", str(tmp_path / "log.csv"), "--threshold", "0.5", "--quiet", "--no-progress"]
    line += [word for role, name in COLUMNS.items() for word in (f"--{role}", name)]
    outputs = {kind: tmp_path / f"out.{kind}" for kind in ("report", "json", "csv", "card", "save")}
    line += [word for kind, path in outputs.items() for word in (f"--{kind}", str(path))]
    assert main([*line, "--pairs", "5"]) == 0
    for path in outputs.values():
        assert not ID.search(path.read_bytes().decode("latin-1")), path
    assert main([*line, "--pairs", "5", "--show-ids"]) == 0
    assert ID.search(outputs["report"].read_text("utf-8"))


# ---- few queries


def few(audit):
    found = audit.headline["n_queries"].sel(group="rare").values.ravel().tolist()
    assert all(0 < count < 10 for count in found)
    return found[0]


def test_a_report_does_not_count_few_queries(audit, page):
    cells = re.findall(r"<td[^>]*>\s*&lt; 10\s*</td>", page)
    assert len(cells) == 2  # one for each pairing mode
    assert "in &lt; 10 to 40 queries" in page
    # Nor do the charts that it carries.
    assert f'"queries": {few(audit)}' not in page
    assert not re.search(r'"queries": ?"?[1-9]"?[,}]', page)


def test_json_has_null_and_a_text_for_few_queries(audit):
    found = json.loads(audit.to_json())
    jsonschema.validate(found, schema())
    by_group = {c["group"]: c for c in found["cells"] if c["pairing_mode"] == "matched"}
    few(audit)
    assert (by_group["rare"]["n_queries"], by_group["rare"]["n_queries_text"]) == (None, "< 10")
    assert (by_group["a"]["n_queries"], by_group["a"]["n_queries_text"]) == (40, "40")
    points = next(cell for cell in found["curve"]["cells"] if cell["group"] == "rare")
    own = audit.curve["n_queries"].sel(group="rare", pairing_mode="matched").values.ravel().tolist()
    assert points["n_queries"] == [None if 0 < count < 10 else count for count in own]
    assert any("< 10 to 40 queries" in line for line in found["reading"]["compared"])


def test_card_and_csv_do_not_count_few_queries(audit):
    assert "in &lt; 10 to 40 queries" in audit.model_card()
    line = next(row for row in to_csv(audit).splitlines() if row.startswith("rare"))
    assert "< 10" in line.split(",")


def test_the_screen_counts_them(audit):
    assert f"in {few(audit)} to 40 queries" in audit.summary()
