"""Odd arguments of the methods of an audit are refused in one sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from mpc_lab.errors import as_number, as_whole, check_flag

HUGE = 10**400


@pytest.fixture(scope="module")
def audit():
    return mpc.audit(mpc.datasets.synthetic(queries=30), threshold=0.3, progress=False)


@pytest.mark.parametrize(
    ("method", "arguments", "match"),
    [
        ("pairs", {"group": pd.NA}, "group must be a text; got NAType. There are: '1', '2'"),
        ("pairs", {"group": np.array(["1"])}, "group must be a text; got ndarray"),
        ("pairs", {"group": "1", "epsilon": 1j}, "epsilon must be a number of at least 0"),
        ("pairs", {"group": "1", "limit": True}, "limit must be a whole number of at least 0"),
        ("by_position", {"group": "1", "epsilon": "x"}, "epsilon must be a number of at least 0"),
        ("balance", {"permutations": None}, "permutations must be a whole number from 0"),
        ("balance", {"permutations": 10**12}, "permutations must be a whole number from 0"),
        ("balance", {"epsilon": pd.NaT}, "epsilon must be a number of at least 0"),
        ("balance", {"group": ()}, "at least one group"),
        ("balance", {"group": ["1", "1"]}, "each group once"),
        ("balance", {"covariates": np.zeros((2, 2))}, "There is no column"),
        ("balance", {"covariates": np.array(3)}, "There is no column"),
        ("compare", {"groups": 3}, "group must be a text; got int"),
        ("compare", {"k": HUGE}, "k must be a whole number from 1"),
        ("calibration", {"group": "1", "scoring_rule": "baselin"}, "Did you mean 'baseline'"),
        ("calibration", {"group": "1", "segment": np.zeros(2)}, "There is no segment"),
        ("calibration", {"group": "1", "bins": True}, "bins must be a whole number"),
        ("limit", {"group": "1", "pairing_mode": 3}, "pairing mode must be a text; got int"),
        (
            "limit",
            {"group": "1", "bandwidth": HUGE},
            "bandwidth must be a finite number of at least 0",
        ),
        ("bootstrap", {"draws": 19, "seed": "x"}, "seed must be a whole number"),
        ("boost_curve", {"group": "1", "alphas": HUGE}, "alphas must be numbers"),
        ("boost_curve", {"group": "1", "epsilon": HUGE}, "epsilon must be a finite number"),
        ("power", {"effect": HUGE}, "effect must be a finite number"),
        ("power", {"power": None}, "power must be a finite number"),
        ("check", {"tolerance": HUGE}, "tolerance must be a finite number"),
        ("check", {"inconclusive": pd.NA}, "inconclusive must be"),
        ("check", {"anytime": np.zeros(2)}, "anytime must be True or False"),
        ("confidence_sequence", {"planned": HUGE}, "planned must be a whole number from 1"),
        ("to_json", {"curve": np.zeros(2)}, "curve must be True or False"),
        ("save", {"path": "\ud800"}, "cannot be written"),
        ("save", {"path": "a.nc", "items": pd.NA}, "items must be True or False"),
        ("save", {"path": "a.nc", "ids": True, "key": 3}, "must have a secret"),
    ],
)
def test_an_odd_argument_is_refused_in_one_sentence(
    audit, tmp_path, monkeypatch, method, arguments, match
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mpc.MpcError, match=match):
        getattr(audit, method)(**arguments)


@pytest.mark.parametrize("epsilon", ["0.1", ["0.1", "0.2"], np.array(["0.1"]), "small"])
def test_thresholds_are_numbers_and_no_text(audit, epsilon):
    with pytest.raises(mpc.MpcError, match="epsilon must be numbers; got"):
        mpc.audit(audit.ranking, epsilon=epsilon)


def test_a_cell_of_a_dataset_is_a_number(audit):
    epsilon = audit.headline["epsilon"].sel(group="1").squeeze()
    assert audit.pairs("1", epsilon=epsilon).equals(audit.pairs("1"))


def test_a_gap_beyond_all_squares_needs_the_fewest_queries(audit):
    assert (audit.power(effect=1e300)["queries_needed"] == 2).all()


def test_any_text_may_be_the_key_of_ids(audit, tmp_path):
    audit.save(tmp_path / "a.nc", ids=True, key="\ud800")
    assert mpc.load(tmp_path / "a.nc")._saved["ids"].sizes["query"] == 30


def test_a_title_is_sent_to_what_shows_the_audit(audit):
    with pytest.raises(
        mpc.MpcError, match=r"has no option 'title'\. Give it .* audit\.report"
    ) as no:
        mpc.audit(audit.ranking, title="Monthly")
    assert "Did you mean" not in str(no.value)


def test_rows_that_are_no_ranking_are_refused(audit, tmp_path):
    audit.save(tmp_path / "a.nc")
    with pytest.raises(mpc.MpcError, match=r"ranking must be an mpc.Ranking; got str"):
        mpc.load(tmp_path / "a.nc", ranking="rows")


def test_an_odd_power_or_number_of_placebos_is_refused(audit):
    with pytest.raises(mpc.MpcError, match="power must be a finite number of at least"):
        mpc.charts.power(audit, "1", power=np.zeros(2))
    with pytest.raises(mpc.MpcError, match="permutations must be a whole number of at least 1"):
        mpc.charts.placebo(audit, "1", permutations="x")


def test_a_log_of_more_queries_than_fit_is_refused():
    with pytest.raises(mpc.MpcError, match="queries must be a whole number from 1 to 100,000,000"):
        mpc.datasets.synthetic(queries=10**12)


def test_a_pool_of_no_list_is_refused():
    with pytest.raises(mpc.MpcError, match="audits must be a list of audits"):
        mpc.pool(np.array(3))


@pytest.mark.parametrize("limit", ["x", 2.5, True, 0])
@pytest.mark.parametrize("chart", [mpc.charts.forest, mpc.charts.ladder])
def test_a_chart_shows_a_whole_number_of_groups(audit, chart, limit):
    with pytest.raises(mpc.MpcError, match="limit must be a whole number of at least 1"):
        chart(audit, limit=limit)


@pytest.mark.parametrize(
    ("path", "options", "match"),
    [
        (True, {}, "path must be the path of a file; got True"),
        ("a.png", {"scale": 1e300}, "scale must be a finite number above 0 and at most 20"),
        ("a.png", {"background": 3}, "background must be a colour"),
        ("a.png", {"background": "\0"}, "background must be a colour"),
    ],
)
def test_an_odd_place_for_a_chart_is_refused(audit, path, options, match):
    with pytest.raises(mpc.MpcError, match=match):
        mpc.charts.save(mpc.charts.forest(audit), path, **options)


@pytest.mark.parametrize("rule", [mpc.Boosted, mpc.Demoted])
def test_a_boost_that_no_float_holds_is_refused(rule):
    with pytest.raises(mpc.MpcError, match="must be a finite number"):
        rule(HUGE)


def test_only_numbers_are_read_as_numbers():
    assert all(np.isnan(as_number(value)) for value in (True, "3", None, 1j, pd.NA, np.zeros(1)))
    assert (as_number(np.array(3)), as_number(HUGE), as_number(-HUGE)) == (3.0, np.inf, -np.inf)


def test_whole_numbers_and_truth_values_are_distinguished():
    assert (as_whole(np.int8(3)), as_whole(True), as_whole(3.0)) == (3, None, None)
    assert check_flag("curve", np.True_) is True
    with pytest.raises(mpc.MpcError, match="curve must be True or False; got 1"):
        check_flag("curve", 1)


def test_an_audit_of_no_groups_says_how_to_have_all():
    with pytest.raises(mpc.MpcError, match=r"got none\. Leave groups out for all of them"):
        mpc.audit(mpc.datasets.synthetic(queries=30), groups=[], progress=False)
