"""Our numbers beside the paper's, as the tables of docs/explanation/paper.md.

    MPC_LAB_DATA=folder python tests/benchmarks/paper.py                  prints the tables
    MPC_LAB_DATA=folder python tests/benchmarks/paper.py --write          puts them into the page
    MPC_LAB_DATA=folder python tests/benchmarks/paper.py --save-notebook  keeps the sums that the
                                                     third notebook shows where there is no data

MovieLens 1M, ranked and audited as the paper describes; ε at the first percentile of each genre's
score differences.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import stdtrit

import mpc_lab as mpc
from mpc_lab.charts.theme import (
    GREY,
    OVERVALUED,
    SERIES,
    UNDERVALUED,
    adapting,
    finish,
    layered,
    svg_of,
    zero_line,
)
from mpc_lab.datasets.synthetic import ITEM_TYPES, QUERY_TYPES, SLOPES

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "paper.md"
PICTURES = PAGE.parents[1] / "_static"
NOTEBOOK = PAGE.parents[2] / "notebooks" / "movielens_1m.nc"
NOTEBOOK_GRID = [0.001]  # one, so that the file is small
START, END = "<!-- made by tests/benchmarks/paper.py: {} -->", "<!-- end -->"
MARKED = re.compile(START.format(r"(\w+)") + "(.*?)" + END, re.DOTALL)
RULES = ("boosted", "baseline", "demoted", "calibrated")
PAPER = {"boosted": "0.006", "baseline": "0.278", "demoted": "0.507", "calibrated": "0.066"}


def run(folder: str | None = None, epsilon: list[float] | None = None) -> mpc.Audit:
    """Audit MovieLens 1M under the four rules of the paper."""
    ranking = mpc.datasets.movielens_ranking("1m", folder=folder)
    modes = ["matched", "adjacent"]
    return mpc.audit(
        ranking, scoring_rules=RULES, pairing_modes=modes, epsilon=epsilon, progress=False
    )


def tables(audit: mpc.Audit) -> dict[str, str]:
    """Return the tables as Markdown, by the name that is in the page above each."""
    return {
        "documentary": _beside(audit),
        "genres": _genres(audit),
        "ndcg": _ndcg(audit),
        "claims": _claims(audit),
    }


def _beside(audit: mpc.Audit) -> str:
    cells = audit.headline.sel(pairing_mode="matched")
    gaps = cells["estimate"].to_pandas()
    rises = (gaps["boosted"] < gaps["baseline"]) & (gaps["baseline"] < gaps["demoted"])
    shrunk = gaps["calibrated"].abs() < gaps["baseline"].abs()
    lines = ["| | paper | mpc_lab, MovieLens 1M |", "|---|---|---|"]
    for rule in RULES:
        worth = audit.objective.sel(group="Documentary", scoring_rule=rule)
        low, high = _ndcg_ends(worth)
        ours = f"{float(worth['ndcg']):.4f} ({low:.4f}\u00a0to\u00a0{high:.4f})"
        known = "0.959" if rule == "baseline" else "–"
        lines.append(f"| NDCG, Documentary {rule} | {known} | {ours} |")
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


def _ndcg(audit: mpc.Audit) -> str:
    worth = audit.objective
    lines = [
        "| change of NDCG, in thousandths | boosted | demoted | calibrated |",
        "|---|---|---|---|",
    ]
    for genre in audit.groups:
        row = [genre]
        for rule in ("boosted", "demoted", "calibrated"):
            cell = 1000 * worth.sel(group=genre, scoring_rule=rule)
            row.append(f"{_sign(cell['ndcg_change'])} ({_interval(cell, 'ndcg_change')})")
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _ndcg_ends(cell: xr.Dataset) -> tuple[float, float]:
    """Return the interval of an NDCG itself, query by query, as that of its change is made."""
    n = int(cell.attrs["n_queries"])
    level = float(cell.attrs["level"])
    reach = float(stdtrit(n - 1, (1 + level) / 2)) * float(cell["ndcg_std_error"])
    return float(cell["ndcg"]) - reach, float(cell["ndcg"]) + reach


def _claims(audit: mpc.Audit) -> str:
    matched = audit.headline["estimate"].sel(pairing_mode="matched").to_pandas()
    near = audit.headline.sel(pairing_mode="adjacent")
    gaps = near["estimate"].to_pandas()
    rises = (gaps["boosted"] < gaps["baseline"]) & (gaps["baseline"] < gaps["demoted"])
    apart = near.sel(scoring_rule="calibrated")
    clear = apart["p_value"].to_series() <= 0.05
    larger = matched["calibrated"].abs() > matched["baseline"].abs()
    ndcg = audit.objective["ndcg"].sel(scoring_rule=list(matched.columns)).to_pandas()
    together = np.corrcoef(ndcg.to_numpy().ravel(), matched.abs().to_numpy().ravel())[0, 1]
    rows = (
        ("A boost that lowers NDCG has a negative gap, such a demotion a positive one",
         "every significant drop", _moves(audit, matched, "drop")),
        ("A boost or demotion that raises NDCG", "none", _moves(audit, matched, "rise")),
        ("Calibration that raises NDCG", "none", _names(_moved(audit, "calibrated", "rise"))),
        ("Calibration makes the gap larger", "Musical, Thriller", _names(larger)),
        ("Adjacent pairs, calibrated: significant", "four genres", _names(clear)),
        ("Adjacent pairs: boosted < baseline < demoted", "every genre",
         f"{rises.sum()} of {len(gaps)}"),
        ("NDCG against the size of the gap, over genres and rules", "loosely negative",
         f"correlation {_sign(together)}"),
    )  # fmt: skip
    head = ["| claim of sections 5 and B | paper | mpc_lab |", "|---|---|---|"]
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows)])


def _moved(audit: mpc.Audit, rule: str, way: str) -> pd.Series:
    """Return for each genre whether a rule changes NDCG that way, its interval without 0."""
    change = audit.objective.sel(scoring_rule=rule)
    low, high = (change[f"ndcg_change_{end}"].to_series() for end in ("low", "high"))
    return high < 0 if way == "drop" else low > 0


def _moves(audit: mpc.Audit, gaps: pd.DataFrame, way: str) -> str:
    """Say how many boosts and demotions move NDCG that way, and which against the theorem."""
    found, against, listed = 0, [], []
    for rule in ("boosted", "demoted"):
        moved = _moved(audit, rule, way)
        # A boost of an undervalued group helps the list; the opposite of it does not.
        helps = (gaps["baseline"] > 0) == (rule == "boosted")
        wrong = moved & (helps == (way == "drop"))
        found += int(moved.sum())
        against += [f"{name} ({rule})" for name in moved.index[wrong]]
        listed += [f"{_names(moved)} ({rule})"] if moved.any() else []
    if way == "drop":
        return f"{found - len(against)} of {found}" + _but(against)
    return f"{found}: {'; '.join(listed)}, with the sign that the theorem asks for" + _but(against)


def _but(names: list[str]) -> str:
    return f"; not {', '.join(names)}" if names else ""


def _names(chosen: pd.Series) -> str:
    return ", ".join(chosen.index[chosen]) or "none"


def draw_ndcg(audit: mpc.Audit) -> Any:
    """Draw NDCG of every genre and rule, and beside it the change, as figure 3 of the paper."""
    worth = audit.objective
    rows = []
    for genre in audit.groups:
        for rule in RULES:
            cell = worth.sel(group=genre, scoring_rule=rule)
            low, high = _ndcg_ends(cell)
            row = {"genre": genre, "rule": rule}
            rows.append(row | {"at": "itself", "x": float(cell["ndcg"]), "low": low, "high": high})
            if rule != "baseline":
                change = {
                    name: float(cell[f"ndcg_change{end}"])
                    for name, end in {"x": "", "low": "_low", "high": "_high"}.items()
                }
                rows.append(row | {"at": "change"} | change)
    frame = pd.DataFrame(rows)
    panels = alt.hconcat(
        _ndcg_panel(frame[frame["at"] == "itself"], "NDCG", True),
        _ndcg_panel(frame[frame["at"] == "change"], "change of NDCG against baseline", False),
        spacing=20,
    )
    words = "NDCG hardly tells the rules apart; compared user by user, some changes are clear"
    users = int(worth.attrs["n_queries"])
    lines = [f"95 % intervals: left of each mean over {users:,} users, right of the mean change"]
    return finish(panels, words, lines, 760)


def _ndcg_panel(frame: pd.DataFrame, title: str, named: bool) -> alt.LayerChart:
    axis = alt.Axis(ticks=False, domain=False, grid=True, labels=named)
    y = alt.Y("genre:N", title=None, axis=axis, scale=alt.Scale(paddingInner=0.25))
    dodge = alt.YOffset("rule:N", sort=list(RULES))
    of_rule = {"domain": list(RULES), "range": [SERIES[3], GREY, SERIES[1], SERIES[4]]}
    colour = alt.Color("rule:N", title=None, sort=list(RULES), scale=alt.Scale(**of_rule))
    shape = alt.Shape(
        "rule:N",
        title=None,
        scale=alt.Scale(
            domain=list(RULES), range=["triangle-up", "circle", "triangle-down", "diamond"]
        ),
    )
    x = alt.X("x:Q", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4))
    base = alt.Chart(frame).encode(y=y, yOffset=dodge, color=colour)
    rules = base.mark_rule(strokeWidth=1.6).encode(x=alt.X("low:Q", title=title), x2="high:Q")
    points = base.mark_point(filled=True, size=34, opacity=1).encode(x=x, shape=shape)
    marks = [rules, points] if named else [zero_line("x"), rules, points]
    return layered(*marks).properties(width=300, height=alt.Step(8))


def draw_truth() -> Any:
    """Draw the true mean outcomes of the synthetic example, as figure 1a of the paper."""
    score = np.array([0.0, 0.5, 1.0])
    rows = [
        {"query": f"queries of type {query}", "item": f"type {item}", "score": s, "outcome": y}
        for q, query in enumerate(QUERY_TYPES)
        for k, item in enumerate(ITEM_TYPES)
        for s, y in zip(score, [0.0, SLOPES[q, k] / 2, 1.0], strict=True)
    ]
    # An audit finds type 1 undervalued and type 2 overvalued.
    of_verdicts = alt.Scale(range=[UNDERVALUED, OVERVALUED])
    chart = (
        alt.Chart(pd.DataFrame(rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("score:Q", title="score"),
            y=alt.Y("outcome:Q", title="true mean outcome"),
            color=alt.Color("item:N", title="items", scale=of_verdicts),
            strokeDash=alt.StrokeDash("item:N", title="items"),
        )
        .properties(width=250, height=210)
        .facet(column=alt.Column("query:N", title=None))
    )
    words = "In every query an item of type 1 has the higher mean outcome at the same score"
    return finish(chart, words, ["The design itself, without noise"], 2 * 250 + 100)


def of_page() -> dict[str, str]:
    """Return the tables that stand on the page, by name."""
    return {name: text.strip() for name, text in MARKED.findall(PAGE.read_text("utf-8"))}


def main() -> None:
    """Print the tables, put them into the page, or keep the sums for the notebook."""
    if "--save-notebook" in sys.argv:
        audit = run(epsilon=NOTEBOOK_GRID)
        audit.objective  # noqa: B018  the file holds what was asked for
        audit.save(NOTEBOOK)
        return
    audit = run()
    made = tables(audit)
    if "--write" not in sys.argv:
        print("\n\n".join(made.values()))
        return
    page = MARKED.sub(
        lambda found: f"{START.format(found[1])}\n\n{made[found[1]]}\n\n{END}",
        PAGE.read_text("utf-8"),
    )
    PAGE.write_text(page, "utf-8")
    for name, chart in {"paper-truth": draw_truth(), "paper-ndcg": draw_ndcg(audit)}.items():
        (PICTURES / f"{name}.svg").write_text(adapting(svg_of(chart.to_dict())) + "\n", "utf-8")


if __name__ == "__main__":
    main()
