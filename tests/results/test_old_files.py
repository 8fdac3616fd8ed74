"""What 0.1 saved is read as before: the file and the numbers beside it were made by 0.1."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import mpc_lab as mpc
from helpers.saved_files import same
from mpc_lab.results.gate import InconclusiveAudit

OLD = Path(__file__).with_name("audit_0_1.nc")
EXPECTED = json.loads(OLD.with_suffix(".json").read_text("utf-8"))


@pytest.fixture(scope="module")
def old():
    return mpc.load(OLD)


@pytest.fixture(scope="module")
def fresh():
    log = mpc.datasets.synthetic(queries=80)
    return mpc.audit(log, progress=False, epsilon=[0.01, 0.1])


@pytest.mark.parametrize("producer", [None, "item"])
@pytest.mark.parametrize("part", ["headline", "curve"])
def test_the_plain_correction_and_one_item_a_producer_give_the_numbers_of_0_1(old, producer, part):
    """The least findable gap is another: it is that of a bracket now."""
    rows = mpc.datasets.synthetic(queries=80)
    roles = {name: name for name in ("query", "item", "score", "outcome")} | {"group": "type"}
    how = {"correction": "plain", "epsilon": [0.01, 0.1], "cluster": "union", "progress": False}
    audit = mpc.audit(rows.to_frame(), **roles, producer=producer, **how)
    now, then = getattr(audit, part), getattr(old, part)
    changed = {"mde", "mde_adjusted", "share_items", "std_error_by"}
    names = set(EXPECTED[part]) | {name for name in then.data_vars if then[name].dtype.kind == "f"}
    names = {name for name in names - changed if not name.startswith("bracket")}
    assert {"estimate", "std_error", "ci_low", "p_value", "dof", "n_pairs"} <= names
    for name in sorted(names):
        if then[name].dtype.kind == "f":
            # Quantiles and tails of t differ a little from one version of scipy to another.
            rtol = 1e-10 if name.startswith(("ci_", "band_", "p_")) else 1e-12
            np.testing.assert_allclose(now[name], then[name], rtol=rtol, err_msg=name)
        elif producer is None or name != "variance_from":
            np.testing.assert_array_equal(now[name], then[name], err_msg=name)
    if part == "headline":
        families = {"naive": "naive", "query": "query", "union": "union"}
        families["item"] = "producer" if producer else "item"
        for family, ours in families.items():
            np.testing.assert_allclose(
                now.std_error_by.sel(variance=ours),
                then.std_error_by.sel(variance=family),
                rtol=1e-12,
                err_msg=family,
            )


@pytest.mark.parametrize("part", ["headline", "curve", "moments", "objective"])
def test_the_numbers_are_those_that_0_1_read(old, part):
    ds = old._saved[part] if part == "objective" else getattr(old, part)
    for name, values in EXPECTED[part].items():
        assert ds[name].values.ravel().tolist() == values, name


def test_the_tables_for_pooling_are_those_that_0_1_read(old):
    items, ids = old._saved["items"], old._saved["ids"]
    assert items.sizes["row"] == EXPECTED["items"]["rows"]
    assert items["sums"].values.sum() == EXPECTED["items"]["sums"]
    assert items["pairs"].values.sum() == EXPECTED["items"]["pairs"]
    assert str(items["name"].values[0]) == EXPECTED["items"]["name"]
    assert old._saved["dyads"].sizes["row"] == EXPECTED["dyads"]["rows"]
    assert old._saved["cross"]["uu"].values.ravel().tolist() == EXPECTED["cross"]
    assert ids.attrs["key"] == EXPECTED["ids"]["key"]
    assert str(ids["id"].values[0]) == EXPECTED["ids"]["first"]
    assert ids.sizes["query"] == EXPECTED["ids"]["queries"]


def test_the_attributes_are_kept_and_the_schema_is_todays(old):
    assert EXPECTED["schema_version"] == 1
    assert old.attrs["schema_version"] == 2
    for name, value in EXPECTED["attrs"].items():
        assert old.attrs[name] == value
        assert type(old.attrs[name]) is type(value)
    assert old.attrs["rules"] == "0.1"


def test_its_verdicts_rest_on_the_interval_of_0_1(old):
    for end in ("low", "high"):
        np.testing.assert_array_equal(
            old.headline[f"bracket_{end}"], old.headline[f"ci_{end}_adjusted"]
        )
    np.testing.assert_array_equal(old.headline["bracket_p_adjusted"], old.headline["p_adjusted"])


def test_the_gate_goes_by_the_rules_of_today_and_says_so(old, fresh):
    with pytest.warns(UserWarning, match="by the rules of today, the verdicts of this file by tho"):
        old.check(tolerance=10.0)
    with pytest.warns(InconclusiveAudit, match="by the rules of today"):
        old.check(tolerance=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fresh.check(tolerance=10.0)


def test_the_form_in_memory_is_that_of_a_new_audit(old, fresh):
    for part in ("headline", "curve", "moments"):
        ours, theirs = getattr(old, part), getattr(fresh, part)
        # What one query makes up is not known from sums.
        weights = ["heavy_share", "largest_query_share", "query_powers", "query_heavy"]
        weights += ["query_cr3", "item_cr3"]
        theirs = theirs.drop_vars(weights, errors="ignore")
        assert list(ours.variables) == list(theirs.variables)
        for name, variable in ours.variables.items():
            other = theirs.variables[name]
            assert (variable.dims, variable.dtype.kind) == (other.dims, other.dtype.kind), name
            assert variable.attrs == other.attrs, name


def test_the_summary_reads_as_before_but_for_its_rules(old):
    before = EXPECTED["summary"].replace("over 2 cells", "over all groups and rules")
    before = before.replace(
        "few queries or items carry the finding", "the gap rests on few queries or items"
    )
    word = json.loads(old.attrs["columns"])["outcome"]
    sides = {"better": "higher", "worse": "lower"}
    before = re.sub(
        r"its items do (\S+) (better|worse) than",
        lambda said: f"`{word}` is {said[1]} {sides[said[2]]} than for",
        before,
    )
    mark = "The verdicts follow the rules of 0.1; audit.check() follows those of today."
    assert str(old) == old.summary() == f"{before}\n{mark}"


def test_a_pool_is_judged_by_the_rules_of_today(old):
    log = mpc.datasets.synthetic(queries=80, seed=1)
    pooled = mpc.pool([old, mpc.audit(log, progress=False, epsilon=[0.01, 0.1])])
    assert "rules" not in pooled.attrs


def test_the_rows_are_taken_back(fresh):
    loaded = mpc.load(OLD, ranking=fresh.ranking)
    assert len(loaded.pairs("1", limit=2)) == 2


def test_it_can_be_pooled_with_an_audit_of_today(old, fresh):
    log = mpc.datasets.synthetic(queries=80, seed=1)
    other = mpc.audit(log, progress=False, epsilon=[0.01, 0.1])
    with pytest.warns(UserWarning, match="the correction cr3: not all audits have it; plain"):
        pooled = mpc.pool([old, other])
    plain = {"epsilon": [0.01, 0.1], "correction": "plain", "progress": False}
    wanted = mpc.pool([mpc.audit(one, **plain) for one in (fresh.ranking, log)])
    assert json.loads(pooled.attrs["options"])["correction"] == "plain"
    assert pooled.attrs["cluster"] == "union"
    for name in ("estimate", "std_error", "n_pairs", "band_low"):
        np.testing.assert_allclose(pooled.curve[name], wanted.curve[name], rtol=1e-9)


def test_its_ids_are_compared_with_those_of_today(old, tmp_path):
    log = mpc.datasets.synthetic(queries=90, seed=1)
    other = mpc.audit(log, progress=False, epsilon=[0.01, 0.1])
    other.save(tmp_path / "a.nc", items=True, ids=True, key="k")
    with pytest.raises(mpc.MpcError, match="one of the audits; got 80"):
        mpc.pool([old, mpc.load(tmp_path / "a.nc")])


def test_it_can_be_saved_again_in_the_new_form(old, tmp_path):
    old.save(tmp_path / "a.nc")
    again = mpc.load(tmp_path / "a.nc")
    same(old.tree, again.tree)
    with xr.open_dataset(tmp_path / "a.nc", group="moments", engine="h5netcdf") as moments:
        assert "squares" in moments
