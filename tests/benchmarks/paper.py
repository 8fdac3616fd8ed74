"""Our numbers beside the paper's, as the tables of docs/explanation/paper.md.

    MPC_LAB_DATA=folder python tests/benchmarks/paper.py          prints the tables
    MPC_LAB_DATA=folder python tests/benchmarks/paper.py --write  puts them into the page

MovieLens 1M, ranked and audited as the paper describes; ε at the first percentile of each genre's
score differences.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

import mpc_lab as mpc
from mpc_lab.charts.theme import adapting, finish, svg_of
from mpc_lab.datasets.synthetic import ITEM_TYPES, QUERY_TYPES, SLOPES

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "paper.md"
PICTURE = PAGE.parents[1] / "_static" / "paper-truth.svg"
START, END = "<!-- made by tests/benchmarks/paper.py -->", "<!-- end -->"
RULES = ("boosted", "baseline", "demoted", "calibrated")
PAPER = {"boosted": "0.006", "baseline": "0.278", "demoted": "0.507", "calibrated": "0.066"}


def run(folder: str | None = None) -> mpc.Audit:
    """Audit MovieLens 1M under the four rules of the paper."""
    ranking = mpc.datasets.movielens_ranking("1m", folder=folder)
    return mpc.audit(
        ranking, scoring_rules=RULES, pairing_modes=["matched", "adjacent"], progress=False
    )


def tables(audit: mpc.Audit) -> str:
    """Return both tables as Markdown."""
    return f"{_beside(audit)}\n\n{_genres(audit)}"


def _beside(audit: mpc.Audit) -> str:
    cells = audit.headline.sel(pairing_mode="matched")
    gaps = cells["estimate"].to_pandas()
    rises = (gaps["boosted"] < gaps["baseline"]) & (gaps["baseline"] < gaps["demoted"])
    shrunk = gaps["calibrated"].abs() < gaps["baseline"].abs()
    ndcg = float(audit.objective["ndcg"].sel(scoring_rule="baseline")[0])
    lines = [
        "| | paper | mpc_lab, MovieLens 1M |",
        "|---|---|---|",
        f"| NDCG | 0.959 | {ndcg:.3f} |",
    ]
    for rule in RULES:
        one = cells.sel(group="Documentary", scoring_rule=rule)
        ours = f"{_sign(one['estimate'])} ({_interval(one)})"
        lines.append(f"| Documentary, {rule} | {PAPER[rule]} | {ours} |")
    lines.append(f"| boosted < baseline < demoted | every genre | {rises.sum()} of {len(gaps)} |")
    for name, said in {
        "Action": "negative",
        "Adventure": "negative",
        "Comedy": "negative",
        "Drama": "positive",
    }.items():
        lines.append(f"| {name}, baseline | {said} | {_sign(gaps.loc[name, 'baseline'])} |")
    lines.append(f"| calibrated shrinks the gap | most | {shrunk.sum()} of {len(gaps)} |")
    return "\n".join(lines)


def _genres(audit: mpc.Audit) -> str:
    cells = audit.headline.sel(pairing_mode="matched")
    near = audit.headline.sel(pairing_mode="adjacent", scoring_rule="baseline")
    head = ("genre", "verdict at baseline", *RULES, "adjacent", "95 % interval", "bracket")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for genre in audit.groups:
        own = cells.sel(group=genre, scoring_rule="baseline")
        row = [genre, own["verdict"].item()]
        row += [_sign(cells["estimate"].sel(group=genre, scoring_rule=rule)) for rule in RULES]
        row += [_sign(near["estimate"].sel(group=genre)), _interval(own)]
        row += [_interval(own, "bracket")]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _interval(cell: xr.Dataset, kind: str = "ci") -> str:
    # No line break inside it.
    return f"{_sign(cell[f'{kind}_low'])}\u00a0to\u00a0{_sign(cell[f'{kind}_high'])}"


def _sign(number: float | xr.DataArray) -> str:
    # A minus sign as wide as a digit, and no minus before a rounded 0.
    text = f"{float(number):.2f}"
    return ("0.00" if text == "-0.00" else text).replace("-", "−")


def draw_truth() -> Any:
    """Draw the true mean outcomes of the synthetic example, as figure 1a of the paper."""
    score = np.array([0.0, 0.5, 1.0])
    rows = [
        {"query": f"queries of type {query}", "item": f"type {item}", "score": s, "outcome": y}
        for q, query in enumerate(QUERY_TYPES)
        for k, item in enumerate(ITEM_TYPES)
        for s, y in zip(score, [0.0, SLOPES[q, k] / 2, 1.0], strict=True)
    ]
    chart = (
        alt.Chart(pd.DataFrame(rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("score:Q", title="score"),
            y=alt.Y("outcome:Q", title="true mean outcome"),
            color=alt.Color("item:N", title="items", scale=alt.Scale(range=["#1f6fb2", "#b2491f"])),
            strokeDash=alt.StrokeDash("item:N", title="items"),
        )
        .properties(width=250, height=210)
        .facet(column=alt.Column("query:N", title=None))
    )
    words = "In every query an item of type 1 has the higher mean outcome at the same score"
    return finish(chart, words, ["The design itself, without noise"], 2 * 250 + 100)


def of_page() -> str:
    """Return the tables that stand on the page."""
    return PAGE.read_text("utf-8").partition(START)[2].partition(END)[0].strip()


def main() -> None:
    """Print the tables, or put them into the page."""
    made = tables(run())
    if "--write" not in sys.argv:
        print(made)
        return
    before, _, rest = PAGE.read_text("utf-8").partition(START)
    PAGE.write_text(f"{before}{START}\n\n{made}\n\n{END}{rest.partition(END)[2]}", "utf-8")
    PICTURE.write_text(adapting(svg_of(draw_truth().to_dict())) + "\n", "utf-8")


if __name__ == "__main__":
    main()
