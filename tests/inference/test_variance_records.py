"""A variance is one record: defined here alone, it is seen wherever variances are."""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.vocabulary import VARIANCES, Variance, listed_variances, public_variances

# Pairs of the same two items move together, and no others.
DYADIC = Variance(
    "dyadic",
    {"dyad": 1},
    clusters="items",
    correction="G/(G − 1), G effective items",
    clustered="by the two items of a pair (cluster 'dyadic')",
    label="by both items",
    colour="#123456",
    shape="triangle-up",
)


@pytest.fixture
def ranking():
    rng = np.random.default_rng(4)
    n = 400
    return mpc.Ranking(
        {
            "query": np.repeat(np.arange(n // 8), 8),
            "item": np.concatenate([rng.permutation(12)[:8] for _ in range(n // 8)]),
            "score": rng.random(n).round(2),
            "outcome": rng.random(n),
            "group": rng.choice(["a", "b"], n),
        },
        query="query",
        item="item",
        score="score",
        outcome="outcome",
        group="group",
    )


@pytest.fixture
def dyadic(monkeypatch):
    monkeypatch.setitem(VARIANCES, DYADIC.name, DYADIC)


def run(ranking, cluster="auto"):
    how = {"cluster": cluster, "correction": "plain"}
    return mpc.audit(ranking, threshold=0.2, progress=False, **how)


def test_a_variance_registered_here_is_listed_with_the_others(ranking, dyadic, tmp_path):
    audit = run(ranking)
    assert audit.headline["variance"].values.tolist() == [*listed_variances()]
    assert public_variances()[-1] == "dyadic"
    pairs = audit.pairs("a")
    dyads = pairs.assign(u=pairs["difference"] - pairs["difference"].mean())
    ends = np.sort(np.stack([pairs["item"], pairs["other_item"]]), axis=0)
    sums = dyads.groupby([ends[0], ends[1]])["u"].sum()
    found = audit.headline.sel(group="a").squeeze()["std_error_by"]
    counts = [pairs.groupby(side).size() for side in ("item", "other_item")]
    items = min(len(pairs) ** 2 / (count**2).sum() for count in counts)
    expected = (sums**2).sum() / len(pairs) ** 2 * items / (items - 1)
    assert float(found.sel(variance="dyadic")) ** 2 == pytest.approx(expected, rel=1e-9)
    assert "std_error_dyadic" in audit.to_frame()
    audit.save(tmp_path / "a.nc")
    assert mpc.load(tmp_path / "a.nc").headline.identical(audit.headline)


def test_it_can_decide_and_is_named_in_words_and_on_charts(ranking, dyadic):
    audit = run(ranking, "dyadic")
    cell = audit.headline.sel(group="a").squeeze()
    assert cell["std_error"] == cell["std_error_by"].sel(variance="dyadic")
    assert cell["variance_from"] == "dyadic"
    assert DYADIC.clustered in audit.summary()
    assert audit.attrs["correction"] == DYADIC.correction
    drawn = mpc.charts.ladder(audit).to_json()
    assert DYADIC.label in drawn
    assert DYADIC.colour in drawn


def test_without_its_record_it_is_refused(ranking):
    with pytest.raises(mpc.MpcError, match="'dyadic'"):
        run(ranking, "dyadic")
