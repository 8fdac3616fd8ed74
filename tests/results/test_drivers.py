"""Drivers: what the gap would be without each query, item or producer."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers.params import combined

COLUMNS = {name: name for name in ("query", "item", "score", "outcome", "group")}
IDS = {"query": "query", "unit": "user", "item": "item", "producer": "maker"}


def log_of(seed=0, queries=60):
    rng = np.random.default_rng(seed)
    size = rng.integers(2, 16, queries)
    query = np.repeat(np.arange(queries), size)
    n = len(query)
    item = np.concatenate([rng.permutation(40)[:k] for k in size])
    return pd.DataFrame(
        {
            "query": query,
            "user": query // 3,
            "item": item,
            "maker": item // 4,
            "score": rng.integers(0, 60, n) / 256,
            "outcome": rng.normal(size=n).round(3) + 0.3 * (item % 2),
            "group": np.where(item % 2 == 1, "a", "b"),
            "w": rng.uniform(0.5, 3, queries)[query],
            "place": np.concatenate([rng.permutation(k) + 1 for k in size]),
        }
    )


def run(frame, **options):
    options = {"threshold": 0.05, "epsilon": [0.05], "progress": False, "groups": ["a"]} | options
    return mpc.audit(frame, **COLUMNS, **options)


DESIGNS = {
    "plain": {},
    "weighted": {"weight": "w"},
    "queries": {"weight": "w", "estimand": "queries"},
    "root": {"estimand": "root"},
    "sign": {"contrast": "sign"},
    "units": {"unit": "user"},
    "producers": {"producer": "maker"},
    "by place": {"position": "place"},
    "by place, queries": {"position": "place", "estimand": "queries", "weight": "w"},
    "by query": {"cluster": "query", "correction": "plain", "tolerance": 0.5},
}


@pytest.mark.parametrize(
    ("design", "mode"), combined(DESIGNS, ["matched", "mirrored", "symmetric"])
)
def test_leaving_out_is_dropping_the_rows_and_auditing_again(design, mode):
    options = DESIGNS[design] | {"pairing_modes": (mode,)}
    frame = log_of()
    audit = run(frame, **options)
    kinds = ["query", "item"] + [by for by in ("unit", "producer") if by in options]
    for by in kinds:
        found = audit.drivers("a", by=by, limit=2)
        for one in (found.isel(driver=k) for k in range(2)):
            rest = frame[frame[IDS[by]].astype(str) != one.driver.item()]
            again = run(rest, **options).headline.sel(group="a").squeeze()
            for name, cell in (("without", "estimate"), ("without_ci_low", "ci_low")):
                assert one[name].item() == pytest.approx(again[cell].item(), abs=1e-10)
            assert one.without_ci_high.item() == pytest.approx(again.ci_high.item(), abs=1e-10)
            assert one.without_verdict.item() == again.verdict.item()
            assert one.change.item() == pytest.approx(
                again.estimate.item() - audit.headline.estimate.item(), abs=1e-10
            )


@pytest.mark.parametrize(
    ("design", "by"),
    combined(["plain", "queries", "by place", "by place, queries"], ["query", "item"]),
)
def test_every_cluster_is_left_out_and_the_largest_comes_first(design, by):
    frame = log_of(1, queries=25)
    options = DESIGNS[design] | {"pairing_modes": ("symmetric", "matched")}
    audit = run(frame, **options)
    found = audit.drivers("a", by=by, limit=None)
    assert len(found.driver) == found.attrs["n_drivers"]
    changes = np.abs(found.change.values)
    assert (np.diff(changes[np.isfinite(changes)]) <= 0).all()
    pairs = audit.pairs("a", pairing_mode="symmetric")
    columns = ["query"] if by == "query" else ["item", "other_item"]
    counted = pd.concat([pairs[name] for name in columns]).astype(str).value_counts()
    assert found.n_pairs.to_series().to_dict() == counted.to_dict()
    for key in found.driver.values[:: 1 if os.environ.get("CI") else 3]:
        rest = run(frame[frame[by].astype(str) != key], **options).headline
        alone = rest.estimate.sel(pairing_mode="symmetric").item()
        assert found.without.sel(driver=key).item() == pytest.approx(alone, abs=1e-10, nan_ok=True)


def test_share_and_mean_are_those_of_the_pairs_of_the_cluster():
    audit = run(log_of())
    pairs = audit.pairs("a")
    found = audit.drivers("a", limit=4)
    for key in found.driver.values:
        own = pairs[pairs["query"].astype(str) == key]
        one = found.sel(driver=key)
        assert one.share.item() == pytest.approx(len(own) / len(pairs))
        assert one.mean_difference.item() == pytest.approx(own["difference"].mean())
        assert audit.ranking.query_labels([one.number.item() - 1])[0] == int(key)


def test_a_query_that_makes_the_finding_is_named_with_the_verdict_without_it():
    frame = log_of(2, queries=80)
    frame["outcome"] = np.random.default_rng(0).normal(size=len(frame))
    quiet = run(frame, threshold=0.2)
    key = quiet.pairs("a")["query"].value_counts().index[0]
    heavy = frame["query"] == key
    frame.loc[heavy, "outcome"] += np.where(frame.loc[heavy, "group"] == "a", 400.0, 0.0)
    found = run(frame, threshold=0.2).drivers("a", limit=1)
    assert found.driver.item() == str(key)
    without = run(frame[~heavy], threshold=0.2).headline.estimate.item()
    assert found.without.item() == pytest.approx(without, abs=1e-10)


def test_the_others_of_a_family_stay_as_they_are():
    frame = log_of()
    frame["group"] = np.random.default_rng(3).choice(["a", "b", "c"], len(frame))
    audit = run(frame, groups=None)
    found = audit.drivers("a", limit=2)
    assert found.attrs["verdict"] == audit.headline.verdict.sel(group="a").item()
    rest = run(frame[frame["query"].astype(str) != found.driver.values[0]], groups=None)
    again = rest.headline.sel(group="a").squeeze()
    assert found.without_ci_low.values[0] == pytest.approx(again.ci_low.item(), abs=1e-10)


def test_a_walked_log_reads_its_rows_again(tmp_path):
    frame = log_of()
    frame.to_parquet(tmp_path / "log.parquet")
    names = {name: name for name in COLUMNS}
    walked = mpc.audit(
        tmp_path / "log.parquet", **names, threshold=0.05, progress=False, memory="1GB"
    )
    expected = mpc.audit(frame, **names, threshold=0.05, progress=False)
    for by in ("query", "item"):
        assert walked.drivers("a", by=by).identical(expected.drivers("a", by=by))


def test_a_question_that_a_log_cannot_answer_is_refused():
    audit = run(log_of())
    with pytest.raises(mpc.MpcError, match=r"by must be a kind of cluster of this log; got 'it"):
        audit.drivers("a", by="items")
    with pytest.raises(mpc.MpcError, match="limit must be"):
        audit.drivers("a", limit=0)
    with pytest.raises(mpc.MpcError, match="no group 'z'"):
        audit.drivers("z")
