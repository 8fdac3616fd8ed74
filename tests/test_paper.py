"""MovieLens 1M by our code, beside what the paper reports of its larger MovieLens.

ε is at the first percentile of each group's gaps, as in the paper. The numbers come from one audit
that is run here. Source of the claims: Korevaar et al. (2023), section 5.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import xarray as xr

import mpc_lab as mpc

pytestmark = [pytest.mark.needs_data, pytest.mark.xdist_group("paper")]

RULES = ("baseline", "boosted", "demoted", "calibrated")


@pytest.fixture(scope="module")
def audit(data_folder):
    ranking = mpc.datasets.movielens_ranking("1m", folder=data_folder)
    return mpc.audit(
        ranking, scoring_rules=RULES, threshold=mpc.Quantile(0.01), cluster="query", progress=False
    )


@pytest.fixture(scope="module")
def gaps(audit):
    """Return the gaps as a table, a row for each genre and a column for each rule."""
    return audit.headline["estimate"].sel(pairing_mode="matched").to_pandas()


def test_the_ranker_has_the_quality_of_the_paper(audit):
    ndcg = audit.objective["ndcg"].sel(scoring_rule="baseline")
    assert ndcg.values == pytest.approx(0.957, abs=0.001)


def test_a_boost_lowers_the_gap_of_every_genre_and_a_demotion_raises_it(gaps):
    assert len(gaps) == 18
    assert (gaps["boosted"] < gaps["baseline"]).all()
    assert (gaps["baseline"] < gaps["demoted"]).all()


@pytest.mark.parametrize("genre", ["Action", "Adventure", "Comedy"])
def test_popular_genres_are_rated_lower_than_what_is_ranked_just_above_them(gaps, genre):
    assert gaps.loc[genre, "baseline"] < 0


def test_drama_is_rated_higher_than_what_is_ranked_just_above_it(gaps):
    assert gaps.loc["Drama", "baseline"] > 0


@pytest.mark.parametrize(
    ("rule", "gap"), [("boosted", 0.10), ("baseline", 0.34), ("demoted", 0.42)]
)
def test_documentaries_have_the_gaps_that_were_published(gaps, rule, gap):
    assert gaps.loc["Documentary", rule] == pytest.approx(gap, abs=0.02)


def test_calibration_shrinks_most_gaps_and_does_not_remove_them(gaps):
    shrunk = gaps["calibrated"].abs() < gaps["baseline"].abs()
    assert shrunk.sum() > len(gaps) / 2
    assert (gaps["calibrated"].abs() > 0.1).any()


def test_other_rules_change_no_verdict_at_baseline(audit):
    alone = mpc.audit(
        audit.ranking, threshold=mpc.Quantile(0.01), cluster="query", progress=False
    ).headline
    among = audit.headline.sel(scoring_rule=["baseline"])
    assert among["verdict"].equals(alone["verdict"])
    assert among["bracket_p_adjusted"].equals(alone["bracket_p_adjusted"])


@pytest.fixture(scope="module")
def script(data_folder):
    """Return the script behind the page, and its audit."""
    file = Path(__file__).parent / "benchmarks" / "paper.py"
    found = importlib.util.spec_from_file_location("benchmark_paper", file)
    paper = importlib.util.module_from_spec(found)
    found.loader.exec_module(paper)
    return paper, paper.run(data_folder)


def test_the_page_that_compares_us_with_the_paper_shows_what_a_run_gives(script):
    paper, audit = script
    assert paper.of_page() == paper.tables(audit)


def test_the_notebook_stores_what_a_run_gives(script):
    paper, audit = script
    stored = mpc.load(paper.NOTEBOOK)
    for name in ("estimate", "std_error", "bracket_low", "bracket_high"):
        xr.testing.assert_allclose(stored.headline[name], audit.headline[name], rtol=1e-9)
    assert stored.headline["verdict"].equals(audit.headline["verdict"])
    xr.testing.assert_allclose(stored.objective["ndcg"], audit.objective["ndcg"], rtol=1e-9)
