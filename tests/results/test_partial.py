"""The question of gaps net of other groups, labelled."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
import partial_coverage
from helpers.drawn import subtitle
from mpc_lab.explorers.why import WhyExplorer
from mpc_lab.inference.partial import fit_partial
from mpc_lab.pairing.close import Design
from mpc_lab.pairing.log import PlainWalk, sort_rows
from mpc_lab.report.context import Context
from mpc_lab.report.sections.why import why
from partial_coverage import planted


def audit_of(frame: pd.DataFrame, **options: object) -> mpc.Audit:
    columns = {"query": "query", "score": "score", "outcome": "y", "group": ["a", "b"]}
    return mpc.audit(frame, **columns, threshold=0.1, progress=False, **options)


@pytest.fixture(scope="module")
def audit() -> mpc.Audit:
    return audit_of(planted(0, 400))


def test_a_proxy_has_a_gap_alone_and_none_net(audit):
    frame = audit.partial().to_frame()
    # E[a | b] − E[a | not b] is 2/3 − 1/4, so that alone b has 0.417 times 0.35.
    assert frame.loc["b", "estimate_alone"] == pytest.approx(0.146, abs=0.03)
    assert frame.loc["b", "ci_low_alone"] > 0
    assert frame.loc["b", "ci_low_net"] < 0 < frame.loc["b", "ci_high_net"]
    assert frame.loc["a", "ci_low_net"] < 0.35 < frame.loc["a", "ci_high_net"]


@pytest.mark.long
def test_intervals_net_cover_in_fifty_logs():
    """The full study is benchmarks/partial_coverage.py."""
    found = partial_coverage.coverage(np.array([partial_coverage.one_log(k) for k in range(50)]))
    covers = {(row[0], row[1]): row[5] for row, _ in found}
    limit = 0.93 - 4 * np.sqrt(0.93 * 0.07 / 50)
    assert min(covers["a", "net"], covers["b", "net"]) >= limit
    assert covers["b", "alone"] < 0.1


@pytest.mark.long
def test_one_group_at_its_own_weights_is_the_symmetric_gap_on_average():
    made = np.array([partial_coverage.from_symmetric(seed) for seed in range(50)])
    assert abs(made.mean()) <= 4 * made.std() / np.sqrt(50)
    # Weights fall with the distance, so the two are not the same number.
    assert made.std() > 0.001


def test_parts_of_groups_and_covariates_add_up(audit):
    found = audit.partial(["age", "kind"])
    parts = found.decomposition()
    assert list(parts.columns) == ["a", "b", "age", "kind=x", "kind=z"]
    alone = found.data["estimate"].sel(kind="alone").values
    np.testing.assert_allclose(parts.sum(axis=1), alone, atol=1e-10)
    assert found.data["left_out"].values.tolist() == ["kind=z"]
    assert found.data["covariate_estimate"].sel(covariate="age").item() == pytest.approx(
        0.2, abs=0.05
    )


def test_the_width_and_the_words(audit):
    found = audit.partial()
    assert found.data.attrs["width"] == 0.2
    assert found.sentence.startswith("With the other groups held fixed, the gap of 'b' is +0.1")
    assert "excludes 0 for 'a'." in repr(found)
    with pytest.raises(mpc.MpcError, match="width must be"):
        audit.partial(width=0)
    with pytest.raises(mpc.MpcError, match="finite number in every row"):
        audit.partial({"x": np.full(4000, np.nan)})


def test_columns_that_cannot_be_in_it_are_named(audit):
    found = audit.partial({"one": np.full(4000, 3.0), "copy": planted(0, 400)["a"]})
    assert found.data["left_out"].values.tolist() == ["one", "copy"]
    assert found.data["left_out_reason"].values.tolist() == ["alike", "collinear"]
    assert "both items of every close pair are alike in them: 'one'." in found.sentence
    assert "the columns before them say the same: 'copy'." in found.sentence
    with pytest.raises(mpc.MpcError, match="must not be a group of the audit; got 'a'"):
        audit.partial("a")
    with pytest.raises(mpc.MpcError, match="no column 'nope'"):
        audit.partial("nope")


def test_the_outcome_is_no_covariate(audit, tmp_path):
    planted(0, 400).to_parquet(tmp_path / "log.parquet")
    walked = audit_of(tmp_path / "log.parquet", memory="1GB")
    for one in (audit, walked):
        with pytest.raises(mpc.MpcError, match="must not be the outcome; got 'y'"):
            one.partial(["age", "y"])


def test_missing_texts_are_a_level_and_missing_numbers_are_refused(audit):
    kind = planted(0, 400)["kind"].to_numpy(dtype=object)
    kind[:400] = None
    found = audit.partial({"kind": kind})
    assert found.data["covariate"].values.tolist() == ["kind=x", "kind=z", "kind is missing"]
    age = planted(0, 400)["age"].to_numpy(dtype=object)
    age[:400] = None
    with pytest.raises(mpc.MpcError, match="finite number in every row; got 400 missing"):
        audit.partial({"age": age})


def parted(audit_groups: list[str]) -> mpc.Audit:
    """Audit a log each of whose items is in one of three groups, of which only a has a gap."""
    frame = planted(0, 400)
    frame["c"] = ~frame["a"] & (frame["age"] > 0)
    frame["b"] = ~frame["a"] & ~frame["c"]
    columns = {"query": "query", "score": "score", "outcome": "y", "group": audit_groups}
    return mpc.audit(frame, **columns, threshold=0.1, progress=False)


def test_gaps_against_a_group_that_is_left_out_say_so():
    found = parted(["a", "b", "c"]).partial()
    assert found.data["against"].values.tolist() == ["c", "c", ""]
    assert found.sentence.endswith("The net gaps of 'a' and 'b' are against the items of 'c'.")
    net = found.data["estimate"].sel(kind="net", group="b").item()
    # Outcomes rise by 0.2 with the age, and c is older than b.
    assert net == pytest.approx(-0.2 * 2 * np.sqrt(2 / np.pi), abs=0.03)
    assert "are against the items of 'c'" in subtitle(mpc.charts.partial(found))


def test_a_group_with_the_rows_of_another_is_no_reference():
    frame = planted(0, 400).assign(again=lambda rows: rows.a)
    columns = {"query": "query", "score": "score", "outcome": "y", "group": ["a", "b", "again"]}
    found = mpc.audit(frame, **columns, threshold=0.1, progress=False).partial()
    assert found.data["left_out"].values.tolist() == ["again"]
    assert found.references == []


def test_one_group_has_no_others_to_hold_fixed():
    one = parted(["a"])
    assert one.partial().sentence.startswith("The gap of 'a' is +0.3")
    assert "no other group and no covariate to hold fixed" in one.partial().sentence
    assert one.partial("age").sentence.startswith("With the covariates held fixed, the gap of 'a'")


def test_pairs_against_one_group_are_refused():
    with pytest.raises(mpc.MpcError, match="without against="):
        audit_of(planted(0, 400), against="b").partial()


def test_the_tab_and_the_section_show_it(audit):
    explorer = WhyExplorer(audit, group="b")
    assert explorer.widget is not None
    assert "held fixed" in explorer.controls["sentence"].text
    assert "b itself (net)" in explorer.controls["table"].value
    page = why(Context(audit))
    assert "Net of others" in page
    assert "<svg" in page


@pytest.mark.needs_data
def test_movielens_gaps_net_of_other_genres():
    ranking = mpc.datasets.movielens_ranking("1m", rank=64, folder=os.environ.get("MPC_LAB_DATA"))
    design = Design(len(ranking.groups), 0.004, uniform=True)
    found = fit_partial(PlainWalk(sort_rows(ranking)), design)
    # These figures are of equal weights; triangular ones give numbers up to 0.0064 away.
    expected = {
        "Adventure": (-0.167, -0.017),
        "Sci-Fi": (-0.157, -0.021),
        "Children's": (-0.108, -0.251),
        "Animation": (0.151, 0.318),
    }
    frame = mpc.audit(ranking, progress=False).partial(width=0.004).to_frame()
    for genre, (alone, net) in expected.items():
        g = ranking.groups.index(genre)
        assert found.alone.estimate[g] == pytest.approx(alone, abs=5e-4)
        assert found.net.estimate[g] == pytest.approx(net, abs=5e-4)
        assert frame.loc[genre, "estimate_alone"] == pytest.approx(alone, abs=0.007)
        assert frame.loc[genre, "estimate_net"] == pytest.approx(net, abs=0.007)
