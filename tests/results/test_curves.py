"""The curve of one cell on its own: the numbers of the whole curve, without the work for it."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc

COLUMNS = {name: name for name in ("query", "item", "score", "outcome", "group")}


def frame(queries=150, items=14, seed=3):
    """Return a log with ties, several labels a row, items that recur, and a second score."""
    draw = np.random.default_rng(seed)
    n = queries * items
    score = draw.uniform(size=n).round(2)
    labels = np.array(["a", "b", "a|c", "", "c"], dtype=object)
    return pd.DataFrame(
        {
            "query": np.repeat(np.arange(queries), items),
            "item": np.concatenate([draw.permutation(60)[:items] for _ in range(queries)]),
            "score": score,
            "other": score + draw.normal(scale=0.1, size=n),
            "outcome": draw.normal(size=n) + score,
            "group": labels[draw.integers(0, len(labels), n)],
        }
    )


def audited(**options):
    """Return an audit of which no curve is made yet."""
    rules = ["baseline", "boosted", "calibrated", mpc.Column("other")]
    modes = ["mirrored", "adjacent", "matched"]
    ranking = mpc.Ranking(frame(), **COLUMNS, group_sep="|")
    given = {"scoring_rules": rules, "pairing_modes": modes, "progress": False, **options}
    return mpc.audit(ranking, **given)


@pytest.mark.parametrize("cluster", ["union", "query"])
def test_the_curve_of_a_cell_has_the_numbers_of_the_whole_curve(cluster):
    audit = audited(cluster=cluster)
    dims = ("group", "scoring_rule", "pairing_mode")
    cells = list(itertools.product(*(audit.headline[dim].values.tolist() for dim in dims)))
    alone = [audit.curve_of(*cell) for cell in cells]
    assert "curve" not in vars(audit)
    for cell, found in zip(cells, alone, strict=True):
        expected = audit.curve.sel(dict(zip(dims, cell, strict=True)))
        assert set(found.data_vars) == set(expected.data_vars)
        assert found["epsilon"].values.tolist() == expected["epsilon"].values.tolist()
        for name in set(found.data_vars) - {"band_low", "band_high"}:
            # Sums over items are added in another order where all groups are walked at once.
            np.testing.assert_allclose(
                found[name], expected[name], rtol=1e-12, atol=1e-15, err_msg=f"{cell} {name}"
            )
        for name in ("band_low", "band_high"):
            # How thresholds move together is added in another order for several groups at once.
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-12)


def test_the_curves_of_a_group_and_rule_are_made_once():
    audit = audited()
    assert audit._curve_part("a", "boosted") is audit._curve_part("a", "boosted")


@pytest.mark.long
def test_a_report_makes_the_curves_it_shows_and_no_others(tmp_path):
    audit = audited(scoring_rules=["baseline", "boosted"], pairing_modes=["matched"])
    asked, make = set(), audit._curve_part
    audit._curve_part = lambda *cell: asked.add(cell) or make(*cell)
    audit.report(tmp_path / "report.html")
    assert {rule for _, rule in asked} == {"baseline"}
    assert "curve" not in vars(audit)


def test_a_curve_that_is_made_is_asked_for_its_cells():
    audit = audited()
    whole = audit.curve
    audit._curve_part = None
    found = audit.curve_of("c", "boosted", "mirrored")
    assert found.identical(whole.sel(group="c", scoring_rule="boosted", pairing_mode="mirrored"))


def test_the_grid_is_known_before_the_curve():
    audit = audited()
    grid = audit.grid
    assert "curve" not in vars(audit)
    assert grid.tolist() == audit.curve["epsilon"].values.tolist()


def test_a_loaded_audit_has_grid_and_cells_of_its_curve(tmp_path):
    audit = audited(scoring_rules=["baseline"], pairing_modes=["matched"])
    audit.save(tmp_path / "a.nc")
    loaded = mpc.load(tmp_path / "a.nc")
    assert loaded.grid.tolist() == audit.grid.tolist()
    assert loaded.curve_of("a").equals(audit.curve_of("a"))


def test_a_log_in_a_file_is_read_once_for_all_cells(tmp_path):
    frame().to_parquet(tmp_path / "log.parquet")
    how = {"group_sep": "|", "memory": "1GB", "progress": False}
    audit = mpc.audit(tmp_path / "log.parquet", **COLUMNS, **how)
    assert audit.grid.tolist() == audit.curve_of("a")["epsilon"].values.tolist()
    assert "curve" in vars(audit)
    expected = audited(scoring_rules=["baseline"]).curve_of("a")
    np.testing.assert_array_equal(audit.curve_of("a")["n_pairs"], expected["n_pairs"])


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (("aa",), "no group 'aa'"),
        (("a", "boost"), "no scoring rule 'boost'"),
        (("a", "baseline", "adjacent"), "no pairing mode 'adjacent'"),
    ],
)
def test_a_cell_that_the_audit_lacks_is_refused(cell, words):
    audit = audited(pairing_modes=["matched"])
    with pytest.raises(mpc.MpcError, match=words):
        audit.curve_of(*cell)


def test_curves_that_are_made_together_are_those_made_alone():
    audit, apart = audited(), audited()
    for rule in audit.headline["scoring_rule"].values.tolist():
        audit._make_curves(audit.groups[::-1], rule)
    dims = ("group", "scoring_rule", "pairing_mode")
    for cell in itertools.product(*(audit.headline[dim].values.tolist() for dim in dims)):
        found, expected = audit.curve_of(*cell), apart.curve_of(*cell)
        assert set(found.data_vars) == set(expected.data_vars)
        for name in expected.data_vars:
            np.testing.assert_allclose(
                found[name], expected[name], rtol=1e-12, atol=1e-12, err_msg=f"{cell} {name}"
            )
    assert "curve" not in vars(audit)


@pytest.mark.parametrize("positions", [False, True])
def test_curves_of_two_sides_that_are_made_together_are_those_made_alone(positions):
    table = frame().assign(place=lambda one: one.groupby("query").cumcount() + 1)
    columns = {**COLUMNS, "position": "place"} if positions else COLUMNS
    ranking = mpc.Ranking(table, **columns, group_sep="|")
    together, apart = (
        mpc.audit(ranking, pairing_modes=["symmetric", "matched"], progress=False) for _ in range(2)
    )
    together._make_curves(["b", "c"], "baseline")
    together._make_curves(["a", "b", "c"], "baseline")
    for group, mode in itertools.product("abc", ("symmetric", "matched")):
        found, expected = (one.curve_of(group, "baseline", mode) for one in (together, apart))
        for name in expected.data_vars:
            np.testing.assert_allclose(
                found[name], expected[name], rtol=1e-12, atol=1e-12, err_msg=f"{group} {name}"
            )


def test_curves_that_are_made_are_not_made_again():
    audit = audited(scoring_rules=["baseline"], pairing_modes=["matched"])
    audit._make_curves(["a", "b"], "baseline")
    first = audit._curve_part("a", "baseline")
    audit._make_curves(["a", "b", "c"], "baseline")
    assert audit._curve_part("a", "baseline") is first
