"""Clicks with a known gap: what is drawn, and that its stated truth is what many lists show."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.pairing import places

CASES = [
    {"bias": 0.05, "eta": 0.7},
    {"bias": 0.0, "eta": 1.0},
    {"bias": 0.05, "eta": 0.7, "lifted": 0.5},
    {"bias": -0.05, "eta": 1.0, "lifted": 0.5, "swapped": 0.3},
    {"bias": 0.05, "eta": 0.7, "swapped": 0.5},
]
MANY = 30_000


def expected(options, seed=0):
    """Return a log whose outcomes are the chances of a click, which leaves less to chance."""
    frame = mpc.datasets.clicks(MANY, seed, **options).to_frame()
    worth = frame["score"] + options["bias"] * (frame["group"] == "a")
    frame["chance"] = frame["place"] ** -options["eta"] * worth
    return mpc.Ranking(
        frame, query="query", score="score", outcome="chance", group="group", position="place"
    )


@pytest.mark.parametrize(
    "options", [CASES[-1], *(pytest.param(case, marks=pytest.mark.long) for case in CASES[:-1])]
)
def test_the_truth_is_what_many_lists_show(options):
    epsilon = 0.02
    truth = mpc.datasets.clicks_truth(**options, epsilon=epsilon)
    modes = ("symmetric", "matched", "mirrored")
    audit = mpc.audit(
        expected(options), threshold=epsilon, epsilon=[epsilon], pairing_modes=modes, progress=False
    )
    cells = audit.headline.isel(group=0, scoring_rule=0)
    for mode in modes:
        cell = cells.sel(pairing_mode=mode)
        assert getattr(truth, mode) == pytest.approx(float(cell.estimate), abs=4 * cell.std_error)
    first, second = cells.isel(pairing_mode=0), cells.isel(pairing_mode=1)
    half_width = float(first.place_effect_high - first.place_effect)
    assert truth.place_effect == pytest.approx(float(first.place_effect), abs=2 * half_width)
    assert half_width < 0.002
    assert truth.place_overlap == pytest.approx(float(first.place_overlap), abs=0.01)
    assert truth.shown_above == pytest.approx(float(second.shown_above), abs=0.01)


def test_one_list_in_closed_form():
    truth = mpc.datasets.clicks_truth(bias=0.05, eta=1.0, epsilon=0)
    k = np.arange(1, 20)
    # Tied items are neighbours, at every place equally often.
    assert truth.gap_at_tie == pytest.approx(0.05 * np.mean((1 / k + 1 / (k + 1)) / 2), abs=1e-12)
    assert truth.symmetric == pytest.approx(truth.gap_at_tie, abs=1e-12)
    score = 0.1 + 0.5 * (20 - k) / 20
    jump = (1 / k - 1 / (k + 1)) * (score + 0.025)
    assert truth.place_effect == pytest.approx(np.mean(jump), abs=1e-12)


def test_the_limit_is_reached_by_small_thresholds():
    near, at = (mpc.datasets.clicks_truth(lifted=0.5, epsilon=e) for e in (1e-7, 0))
    assert near.symmetric == pytest.approx(at.gap_at_tie, abs=1e-6)
    assert near.place_effect == pytest.approx(at.place_effect, abs=1e-6)


def test_the_default_threshold_is_the_first_percentile():
    audit = mpc.audit(mpc.datasets.clicks(2000), epsilon=[0.01], progress=False)
    truth = mpc.datasets.clicks_truth()
    assert float(audit.headline.epsilon[0, 0, 0]) == pytest.approx(truth.epsilon, rel=0.05)


def test_cells_are_those_of_the_audit():
    own = sys.modules["mpc_lab.datasets.clicks"]
    assert (own.PLACES, own.APART) == (places.PLACES, places.APART)


def test_a_later_rule_lifts_the_share_that_was_asked_for():
    frame = mpc.datasets.clicks(3000, lifted=0.5).to_frame()
    by_score = frame.groupby("query")["score"].rank(ascending=False)
    up = (by_score - frame["place"])[frame["group"] == "a"]
    # An item that is lifted past nobody cannot be seen to be lifted.
    assert 0.4 < (up > 0).mean() < 0.55
    assert (frame.loc[frame["group"] == "", "place"] >= by_score[frame["group"] == ""]).all()


def test_swaps_flip_the_share_of_blocks_that_was_asked_for():
    frame = mpc.datasets.clicks(3000, swapped=0.3).to_frame()
    by_score = frame.groupby("query")["score"].rank(ascending=False).astype(int)
    inside = frame["block"] > 0
    assert ((by_score != frame["place"])[inside]).mean() == pytest.approx(0.3, abs=0.02)
    assert (by_score == frame["place"])[~inside].all()
    sizes = frame[inside].groupby(["query", "block"])["place"].agg(["size", "min", "max"])
    assert (sizes["size"] == 2).all()
    assert (sizes["max"] - sizes["min"] == 1).all()
    # From place 1 on in one half of the lists, from place 2 on in the other.
    assert frame.loc[frame["place"] == 1, "block"].gt(0).mean() == pytest.approx(0.5, abs=0.04)
    assert frame.groupby("query")["place"].apply(lambda p: sorted(p) == list(range(1, 21))).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [("bias", 0.5), ("bias", -0.2), ("eta", -1), ("lifted", 1.5), ("swapped", "half")],
)
def test_options_that_make_no_probability_are_refused(name, value):
    with pytest.raises(mpc.MpcError, match=f"{name} must be a finite number"):
        mpc.datasets.clicks(10, **{name: value})
    with pytest.raises(mpc.MpcError, match=f"{name} must be a finite number"):
        mpc.datasets.clicks_truth(**{name: value})


def test_the_same_seed_gives_the_same_log():
    one, two, other = (mpc.datasets.clicks(50, seed).fingerprint() for seed in (1, 1, 2))
    assert one == two != other
