import copy

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.datasets import synthetic
from mpc_lab.errors import MpcError
from mpc_lab.ranking import Ranking
from mpc_lab.results.questions.bootstrap import bootstrap


@pytest.fixture(scope="module")
def audit():
    return mpc.audit(
        synthetic(queries=400),
        pairing_modes=["matched", "mirrored"],
        threshold=0.2,
        epsilon=[0.1],
        progress=False,
    )


def test_every_cell_is_resampled_from_its_query_sums(audit):
    found = bootstrap(audit, draws=101, seed=7).sel(group="1", pairing_mode="mirrored").squeeze()
    pairs = audit.pairs("1", pairing_mode="mirrored", epsilon=0.2)
    by_query = pairs.groupby("query").difference.agg(["count", "sum"])
    sums = by_query.reindex(range(400), fill_value=0).to_numpy()
    rng = np.random.default_rng(7)
    drawn = [sums[rng.integers(400, size=400)].sum(axis=0) for _ in range(101)]
    low, high = np.quantile([d / c for c, d in drawn], [0.025, 0.975])
    assert found.percentile_low.item() == pytest.approx(low)
    assert found.percentile_high.item() == pytest.approx(high)


def test_the_seed_decides_and_is_recorded(audit):
    one, other = bootstrap(audit, draws=21), bootstrap(audit, draws=21, seed=9)
    assert one.identical(bootstrap(audit, draws=21))
    assert (one.percentile_low != other.percentile_low).all()
    assert (one.attrs["seed"], other.attrs["seed"]) == (0, 9)


def test_a_cell_without_pairs_has_no_interval():
    table = {"q": np.arange(300) // 3, "s": np.arange(300) % 3, "y": np.arange(300) % 7}
    table["g"] = np.where(np.arange(300) < 3, "alone", np.where(np.arange(300) % 3, "", "low"))
    ranking = Ranking(table, query="q", score="s", outcome="y", group="g")
    found = bootstrap(mpc.audit(ranking, progress=False), draws=19).squeeze()
    assert np.isnan(found.percentile_low.sel(group="alone"))
    assert found.draws_used.sel(group="alone") == 0
    assert np.isfinite(found.percentile_low.sel(group="low"))


def test_without_rows_it_says_how_to_give_them(audit):
    bare = copy.copy(audit)
    bare.ranking = None
    with pytest.raises(MpcError, match=r"audit\.bootstrap\(\) must have the rows"):
        bootstrap(bare)
