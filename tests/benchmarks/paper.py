"""Our numbers beside the paper's, as the tables of docs/explanation/paper.md.

    MPC_LAB_DATA=folder python tests/benchmarks/paper.py          prints the tables
    MPC_LAB_DATA=folder python tests/benchmarks/paper.py --write  puts them into the page

MovieLens 1M, ranked and audited as the paper describes; ε at the first percentile of each genre's
score differences.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mpc_lab as mpc

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "paper.md"
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
        low, high = float(one["ci_low"]), float(one["ci_high"])
        ours = f"{_sign(float(one['estimate']))} ({_sign(low)} to {_sign(high)})"
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
    lines = [
        "| genre | boosted | baseline | 95 % interval | adjusted | demoted | calibrated | adjacent "
        "| verdict at baseline |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for genre in audit.groups:
        of = {rule: cells.sel(group=genre, scoring_rule=rule) for rule in RULES}
        gap = {rule: _sign(float(one["estimate"])) for rule, one in of.items()}
        own = of["baseline"]
        interval = f"{_sign(float(own['ci_low']))} to {_sign(float(own['ci_high']))}"
        ends = (float(own["ci_low_adjusted"]), float(own["ci_high_adjusted"]))
        adjusted = f"{_sign(ends[0])} to {_sign(ends[1])}"
        beside = _sign(float(near["estimate"].sel(group=genre)))
        lines.append(
            f"| {genre} | {gap['boosted']} | {gap['baseline']} | {interval} | {adjusted} "
            f"| {gap['demoted']} | {gap['calibrated']} | {beside} | {own['verdict'].item()} |"
        )
    return "\n".join(lines)


def _sign(number: float) -> str:
    # A minus sign as wide as a digit, and no minus before a rounded 0.
    text = f"{number:.2f}"
    return ("0.00" if text == "-0.00" else text).replace("-", "−")


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


if __name__ == "__main__":
    main()
