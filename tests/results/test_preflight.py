"""Every check of the preflight: it speaks beyond its threshold, is silent before it, and heals."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers.picture_logs import picture_log
from mpc_lab.cli import main
from mpc_lab.results.preflight import (
    NEED_ROWS,
    NOT_ASKED,
    OUTCOME_CHECKS,
    ROW_CHECKS,
    SUM_CHECKS,
    every_line,
)
from mpc_lab.results.preflight.look import Finding

COLUMNS = {"query": "q", "item": "i", "score": "s", "outcome": "y", "group": "g"}


def log(queries=400, rows=10, seed=0, *, items=None):
    """Return a log without any trouble: lists of equal length, continuous scores, one scale."""
    rng = np.random.default_rng(seed)
    n = queries * rows
    score = rng.random(n)
    item = np.arange(n) if items is None else np.arange(n) % items
    return pd.DataFrame(
        {
            "q": np.repeat(np.arange(queries), rows),
            "i": item,
            "s": score,
            "y": (rng.random(n) < score).astype(float),
            "g": np.where(rng.random(n) < 0.5, "a", ""),
        }
    )


def audit_of(frame, **options):
    given = {**COLUMNS, "threshold": 0.05, "progress": False, **options}
    return mpc.audit(frame, **{name: value for name, value in given.items() if value is not None})


def state_of(audit, check):
    found = audit.preflight.set_index("check")
    return found.loc[check, "state"]


def heal(audit, check, frame):
    """Paste the remedy of a check, run it, and return the new state of the check."""
    remedy = audit.preflight.set_index("check").loc[check, "remedy"]
    space = {"mpc": mpc, "pd": pd, "frame": frame}
    exec(remedy, space)
    return state_of(space["audit"], check)


# ---- what each log has too much of; the share is above or below the threshold of the check


def joined_labels(share):
    frame = log()
    rng = np.random.default_rng(1)
    names = np.array([f"l{k}" for k in range(10)])
    alone = names[rng.integers(0, 10, len(frame))]
    # Ten single labels, and so many that are joined that they are the given share of all.
    count = round(share * 10 / (1 - share))
    frame["g"] = np.where(
        rng.random(len(frame)) < 0.5,
        alone,
        np.array([f"l0|m{k + 1}" for k in range(count)])[rng.integers(0, count, len(frame))],
    )
    return frame, {}


def numeric_labels(share):
    frame = log(queries=100)
    n_numbers = round(20 * share)
    labels = [f"{k}.5" for k in range(n_numbers)] + [f"l{k}" for k in range(20 - n_numbers)]
    frame["g"] = np.array(labels)[np.arange(len(frame)) % 20]
    if share == 1:
        frame["g"] = frame["g"].astype(float)
    return frame, {}


def quarters(step):
    """Texts such as 0.25, 0.5 and 1: numbers, of which those between whole ones have decimals."""
    frame = log(queries=100)
    frame["g"] = [f"{k % 40 * step:g}" for k in range(len(frame))]
    return frame, {}


def spelt_labels(_):
    frame = log()
    frame["g"] = np.where(frame["g"] == "a", np.where(frame.index % 2, "Shoes ", "shoes"), "bags")
    return frame, {}


def tidy_labels(_):
    frame = log()
    frame["g"] = np.where(frame["g"] == "a", "shoes", "bags")
    return frame, {}


def repeated(share):
    frame = log()
    copies = frame[frame["q"] < round(400 * share / (1 - share))].copy()
    copies["q"] += 1000
    return pd.concat([frame, copies], ignore_index=True), {}


def cut(share):
    """Lists of 2 to 11 rows, and a share of exactly 12."""
    rng = np.random.default_rng(2)
    frame = log(queries=1000, rows=12)
    length = np.where(rng.random(1000) < share, 12, rng.integers(2, 12, 1000))
    return frame[np.arange(12_000) % 12 < np.repeat(length, 12)], {}


def without_item(_):
    frame = log().rename(columns={"i": "item_id"})
    return frame, {"item": None}


def owned(constant):
    frame = log(items=200)
    frame["seller"] = [f"s{k}" for k in frame["i"] % 40]
    frame["g"] = np.where(frame["i"] % 40 % 2, "a", "")
    if not constant:  # one item of the other group each: no owner of its group
        frame.loc[frame["i"] >= 160, "g"] = np.where(frame["i"] % 2 == 0, "a", "")[
            frame["i"] >= 160
        ]
    return frame, {}


def owned_by_few(owners):
    """A group whose items belong to so many sellers; with fewer than 3 there is no variance."""
    frame = log(items=200)
    frame["seller"] = [f"s{k}" for k in frame["i"] % 40]
    frame["g"] = np.where(frame["i"] % 40 < owners, "a", "")
    return frame, {}


def owned_items(per_seller):
    """Forty sellers of so many items each."""
    frame = log(items=40 * per_seller)
    frame["seller"] = [f"s{k}" for k in frame["i"] % 40]
    frame["g"] = np.where(frame["i"] % 40 % 2, "a", "")
    return frame, {}


def many_sellers(count):
    frame = log(items=200)
    frame["seller"] = [f"s{k}" for k in frame["i"] % count]
    frame["g"] = np.where(frame["i"] % count % 2, "a", "")
    return frame, {}


def two_scales(narrow):
    frame = log(queries=800)
    frame["s"] *= np.where(frame["q"] % 2, 1.0, narrow)
    return frame, {"threshold": None}


def rounded(digits):
    frame = log()
    frame["s"] = (frame["s"] * digits).round() / digits
    return frame, {}


def finely_rounded(digits):
    return rounded(digits)[0], {"threshold": 0.01}


def in_hundredths(epsilon):
    return rounded(100)[0], {"threshold": epsilon}


def places(moved):
    """Lists in the order of their scores, of which a share of neighbours is flipped."""
    frame = log(queries=1000).sort_values(["q", "s"], ascending=[True, False], ignore_index=True)
    frame["place"] = np.tile(np.arange(1, 11), 1000)
    flipped = np.random.default_rng(3).random(5000) < moved
    pairs = frame["place"].to_numpy(copy=True).reshape(-1, 2)
    pairs[flipped] = pairs[flipped][:, ::-1]
    frame["place"] = pairs.ravel()
    return frame, {"position": "place", "pairing_modes": ["matched"]}


def unrelated(moved):
    frame, given = places(moved)
    return frame, {**given, "pairing_modes": None}


def unused_place(_):
    frame, _ = places(0.0)
    return frame.rename(columns={"place": "position"}), {}


def no_place(_):
    return log(), {}


def ids_as_labels(rows):
    """Labels that so many rows share each."""
    frame = log(queries=10)
    frame["g"] = [f"l{k // rows}" for k in range(len(frame))]
    return frame, {}


def lost(points):
    frame = log(queries=2000)
    rng = np.random.default_rng(4)
    share = np.where(frame["g"] == "a", 0.02 + points, 0.02)
    frame.loc[rng.random(len(frame)) < share, "y"] = np.nan
    return frame, {"missing": "drop"}


def upside_down(slope):
    frame = log()
    rng = np.random.default_rng(5)
    frame["y"] = slope * frame["s"] + 0.3 * rng.standard_normal(len(frame))
    return frame, {}


def tied_grades(rise):
    """Grades, whose ties are broken by what runs against the outcome."""
    frame = log()
    rng = np.random.default_rng(5)
    grade, part = rng.integers(0, 5, len(frame)), rng.random(len(frame))
    frame["s"] = grade + 0.1 * part
    frame["y"] = rise * grade - part + 0.3 * rng.standard_normal(len(frame))
    return frame, {}


def young(level):
    frame = log(queries=2000)
    frame["when"] = frame["q"] // 20
    frame.loc[frame["when"] >= 90, "y"] *= np.random.default_rng(6).random(2000) < level
    return frame, {"time": "when"}


def heavy_query(share):
    """One list that is so long that it has about this share of the pairs."""
    usual = 300 * 10**2
    rows = round(np.sqrt(share / (1 - share) * usual))
    frame, long = log(queries=300), log(queries=1, rows=rows, seed=9)
    return pd.concat([frame, long.assign(q=999, i=long["i"] + 10_000)], ignore_index=True), {}


def heavy_unit(queries):
    """One user with so many of 300 queries, each like those of the others."""
    frame = log(queries=300)
    frame["user"] = np.where(frame["q"] < queries, 0, frame["q"])
    return frame, {"unit": "user", "threshold": 0.05}


def heavy_item(share):
    """One item of the group a list; in a share of the lists it is the same one."""
    frame = log(queries=600, rows=6)
    frame["i"] += 1
    tops = frame.groupby("q").head(1).index
    frame["g"] = np.where(frame.index.isin(tops), "a", "")
    frame.loc[tops[: round(len(tops) * share)], "i"] = 0
    return frame, {"threshold": 1.0}


def heavy_seller(share):
    """One item of the group a list; in a share of the lists it is of one seller."""
    frame = log(queries=600, rows=6)
    tops = frame.groupby("q").head(1).index
    frame["g"] = np.where(frame.index.isin(tops), "a", "")
    frame["seller"] = "s" + frame["i"].astype(str)
    frame.loc[tops[: round(len(tops) * share)], "seller"] = "BIG"
    return frame, {"producer": "seller", "threshold": 1.0}


def too_few(queries):
    frame = log(queries=queries)
    return frame, {"threshold": None}


def far(epsilon):
    frame = log()
    return frame, {"threshold": epsilon * float(np.std(frame["s"]))}


def clicked(effect):
    """Clicks that become rarer with the place, by a power of it."""
    frame, given = places(0.0)
    rng = np.random.default_rng(7)
    chance = 0.8 * frame["place"] ** -float(effect)
    frame["y"] = (rng.random(len(frame)) < chance).astype(float)
    return frame, given


def long_tail(largest):
    frame = log()
    frame["y"] = np.random.default_rng(8).standard_normal(len(frame))
    member = frame.index[(frame["g"] == "a") & (frame["s"] < 0.9)][0]
    frame.loc[member, "y"] = largest
    return frame, {}


CASES = [
    # check, log, where it must speak, where it must not, whether the remedy is a call
    ("labels", joined_labels, 0.25, 0.15, True),
    ("labels", numeric_labels, 1.0, 0.8, True),
    ("labels", quarters, 0.25, 0.5, True),
    ("repeated lists", repeated, 0.03, 0.015, False),
    ("list lengths", cut, 0.3, 0.12, False),
    ("labels", ids_as_labels, 2, 4, False),
    ("producers", owned, True, False, True),
    ("producers", owned_by_few, 4, 2, True),
    ("producers", owned_items, 2, 1, True),
    ("producers", many_sellers, 10, 8, True),
    ("score scale", two_scales, 0.2, 0.8, True),
    ("score steps", rounded, 15, 25, False),
    ("score steps", finely_rounded, 40, 60, False),
    ("score steps", in_hundredths, 0.03, 0.035, True),
    ("places", places, 0.14, 0.06, True),
    ("places", unrelated, 0.95, 0.7, False),
    ("rows left out", lost, 0.035, 0.012, False),
    ("score direction", upside_down, -0.1, -0.06, True),
    ("young outcomes", young, 0.6, 0.88, True),
    ("largest query", heavy_query, 0.3, 0.12, True),
    ("largest query", heavy_unit, 200, 20, True),
    ("largest item", heavy_item, 0.4, 0.2, True),
    ("largest producer", heavy_seller, 0.4, 0.2, True),
    ("enough pairs", too_few, 1500, 3000, True),
    ("enough pairs", too_few, 400, 3000, True),  # by symmetric pairs
    ("threshold", far, 0.15, 0.08, True),
    ("effect of place", clicked, 0.5, 0.4, True),
    ("outcome tails", long_tail, 20.0, 15.0, True),
]


@pytest.mark.parametrize(("check", "make", "loud", "quiet", "is_call"), CASES)
def test_a_check_reports_beyond_its_threshold_and_its_remedy_works(
    check, make, loud, quiet, is_call
):
    frame, options = make(loud)
    audit = audit_of(frame, **options)
    assert state_of(audit, check) != "ok"
    assert any(line.startswith(("Caution, " + check, "Stop, " + check)) for line in lines_of(audit))
    if is_call:
        assert heal(audit, check, frame) == "ok"
    else:
        assert "mpc." not in audit.preflight.set_index("check").loc[check, "remedy"]
    frame, options = make(quiet)
    assert state_of(audit_of(frame, **options), check) == "ok"


def lines_of(audit):
    return audit.summary().splitlines()


@pytest.mark.parametrize(
    ("check", "loud", "quiet"),
    [
        ("labels", spelt_labels, tidy_labels),
        ("items", without_item, no_place),
        ("places", unused_place, no_place),
    ],
)
def test_a_check_of_names_reports_and_its_remedy_works(check, loud, quiet):
    frame, options = loud(None)
    audit = audit_of(frame, **options)
    assert state_of(audit, check) == "caution"
    assert heal(audit, check, frame) == "ok"
    frame, options = quiet(None)
    assert state_of(audit_of(frame, **options), check) == "ok"


@pytest.mark.parametrize("rows", [3, 5, 8])
def test_short_lists_on_one_scale_are_not_taken_for_several(rows):
    found = mpc.preflight(mpc.Ranking(log(queries=800, rows=rows), **COLUMNS))
    assert found.set_index("check").loc["score scale", "state"] == "ok"


def test_one_long_list_does_not_hide_a_score_that_is_upside_down():
    frame = log(queries=400, rows=8)
    frame["s"] = -frame["s"]
    frame.loc[frame["q"] < 20, "q"] = 0
    assert state_of(audit_of(frame), "score direction") == "stop"


def test_close_items_that_run_against_the_outcome_turn_a_score_that_is_unrelated_to_it():
    frame, options = tied_grades(0.04)
    audit = audit_of(frame, **options)
    assert state_of(audit, "score direction") == "stop"
    assert heal(audit, "score direction", frame) == "ok"


def test_close_items_that_run_against_the_outcome_are_noted_of_a_score_that_is_right():
    frame, options = tied_grades(1.0)
    audit = audit_of(frame, **options)
    found = audit.preflight.set_index("check").loc["score direction"]
    assert found["state"] == "caution"
    assert "between close items of group 'a' and others the outcome falls" in found["sentence"]
    assert "ascending" not in found["remedy"]
    assert "Next: the remedy of 'score direction' in the preflight" in audit.summary()
    frame["s"] = 2 * frame["s"].round() - frame["s"]  # ties broken the other way round
    assert state_of(audit_of(frame, **options), "score direction") == "ok"


def test_lists_that_were_not_ranked_by_the_score_are_noted():
    frame, options = places(0.0)
    frame["place"] = 11 - frame["place"]
    assert state_of(audit_of(frame, **options), "places") == "caution"


def test_only_columns_of_places_are_suggested():
    for wrong in (0, 7.5, 3):
        assert state_of(audit_of(log().assign(position=wrong)), "places") == "ok"


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_a_remedy_that_picks_rows_of_another_frame_is_given_in_words(kind):
    frame, options = young(0.6)
    if kind == "polars":
        table = pytest.importorskip("polars").from_pandas(frame)
    else:
        table = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    found = audit_of(table, **options).preflight.set_index("check")
    assert found.loc["young outcomes", "remedy"].startswith("Audit again the rows whose when is")


def test_two_outcomes_have_no_tail():
    frame = log(queries=12)
    audit = audit_of(frame, threshold=0.02)
    assert state_of(audit, "outcome tails") == "ok"


def test_other_rules_of_a_log_with_places_are_noted_and_the_remedy_works():
    frame, _ = clicked(0.7)
    audit = audit_of(frame, position="place", scoring_rules=["baseline", "boosted"])
    assert state_of(audit, "other rules") == "caution"
    remedy = audit.preflight.set_index("check").loc["other rules", "remedy"]
    space = {"mpc": mpc, "frame": frame}
    exec(remedy, space)
    assert "other rules" not in space["audit"].preflight["check"].tolist()


def test_the_preflight_of_a_ranking_never_looks_at_outcomes():
    frame, options = joined_labels(0.4)
    blind = frame.assign(y=-frame["y"] + 7)
    found = [mpc.preflight(mpc.Ranking(one, **COLUMNS, **options)) for one in (frame, blind)]
    pd.testing.assert_frame_equal(*found)
    space = {"mpc": mpc, "frame": frame}
    exec(found[0].set_index("check").loc["labels", "remedy"], space)
    single, others = (f"l{k}" for k in range(10)), (f"m{k}" for k in range(1, 8))
    assert space["ranking"].groups == (*single, *others)


def test_a_preflight_of_something_else_is_refused():
    with pytest.raises(mpc.MpcError, match=r"mpc\.preflight must have a Ranking; got dict"):
        mpc.preflight({})


def test_a_sound_log_gets_one_line():
    audit = mpc.audit(mpc.datasets.synthetic(queries=20_000), progress=False)
    assert set(audit.preflight["state"]) == {"ok"}
    assert [*every_line(audit._checked)] == ["Preflight: 15 checks, nothing to note."]
    assert lines_of(audit)[0].startswith("Group '1' is undervalued")
    assert "- Preflight: 15 checks, nothing to note." in audit.model_card().splitlines()


# Queries, rows of each, groups, outcome, whether items have ids, share lost, steps of scores.
SOUND = {
    "a handful of pairs": (100, 10, 2, "uniform", False, 0.0, None),
    "rare groups": (600, 10, 20, "normal", False, 0.0, None),
    "short lists": (2000, 3, 2, "grades", False, 0.0, None),
    "short lists, few scores, no ids": (2000, 3, 2, "grades", False, 0.0, 5),
    "rows lost by chance": (600, 10, 20, "clicks", True, 0.05, None),
    "many rare groups, rows lost": (2000, 10, 30, "normal", True, 0.05, None),
    "long lists": (100, 100, 3, "normal", True, 0.0, None),
}
OUTCOMES = {
    "uniform": lambda s, rng: 0.5 * s + rng.random(len(s)),
    "normal": lambda s, rng: s + rng.normal(size=len(s)),
    "clicks": lambda s, rng: (rng.random(len(s)) < 0.05 + 0.1 * s).astype(float),
    "grades": lambda s, rng: np.clip(np.round(1 + 3 * s + rng.normal(size=len(s))), 1, 5),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("design", SOUND.values(), ids=SOUND)
def test_a_sound_log_of_any_size_has_no_trouble_but_its_size_and_its_steps(design, seed):
    queries, rows, groups, outcome, has_items, lost, steps = design
    rng = np.random.default_rng(300 + seed)
    frame = log(queries, rows, seed, items=queries * rows // 5 if has_items else None)
    if steps:
        frame["s"] = np.floor(frame["s"] * steps) / steps
    frame["g"] = rng.choice([f"g{k}" for k in range(groups)], len(frame))
    frame["y"] = OUTCOMES[outcome](frame["s"].to_numpy(), rng)
    frame.loc[rng.random(len(frame)) < lost, "y"] = np.nan
    options = {"item": "i" if has_items else None, "threshold": None}
    audit = audit_of(frame, **options, missing="drop" if lost else "raise")
    found = audit.preflight
    noted = set(found["check"][found["state"] != "ok"])
    assert noted <= {"enough pairs"} | ({"score steps"} if steps else set())


def test_a_rule_that_reached_too_far_is_replaced_where_enough_pairs_are_near():
    frame = log(queries=600)
    for wide in (mpc.Smallest(10**7), mpc.Powered(0.001), mpc.Quantile(0.5)):
        audit = audit_of(frame, threshold=wide)
        assert state_of(audit, "threshold") == "caution"
        assert heal(audit, "threshold", frame) == "ok"
    few = audit_of(log(queries=40), threshold=mpc.Smallest(1000)).preflight.set_index("check")
    remedy = few.loc["threshold", "remedy"]
    assert remedy.startswith("Log more queries: there are too few close pairs.")
    assert remedy.endswith("Fewer are asked for by a smaller k.")


def test_a_rule_that_reached_too_far_is_replaced_on_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log(queries=600).to_csv("log.csv", index=False)
    line = "audit log.csv --query q --item i --score s --outcome y --group g"
    assert main([*line.split(), "--threshold", "smallest:1000000"]) == 0
    (said,) = [one for one in capsys.readouterr().out.splitlines() if "Caution, threshold" in one]
    command = shlex.split(said.split("Remedy: ")[1])
    assert main([*command[1:], "--preflight"]) == 0
    assert "✓ Ok, threshold" in capsys.readouterr().out


def test_a_place_given_as_the_score_of_the_messy_log_is_turned():
    frame = mpc.datasets.messy(seed=0).dropna()
    audit = mpc.audit(
        frame, query="user", score="place", outcome="clicks", group="labels", progress=False
    )
    assert state_of(audit, "score direction") == "stop"
    remedy = audit.preflight.set_index("check").loc["score direction", "remedy"]
    assert remedy.endswith("ascending=True)")
    assert heal(audit, "score direction", frame) == "ok"


def test_ids_of_queries_stay_on_the_screen(tmp_path, no_charts):
    frame, options = heavy_query(0.5)
    frame["q"] = "user-" + frame["q"].astype(str)
    audit = audit_of(frame, **options)
    assert any("Query 'user-999' has" in line for line in lines_of(audit))
    numbered = "Query 301 of 301 has"
    assert numbered in audit.to_json()
    assert numbered in audit.model_card()
    page = audit.report(tmp_path / "report.html", progress=False).read_text("utf-8")
    assert numbered in page
    audit.save(tmp_path / "audit.nc")
    saved = mpc.load(tmp_path / "audit.nc")
    assert numbered in saved.summary()
    for text in (audit.to_json(), audit.model_card(), page, saved.summary()):
        assert "user-999" not in text
    assert saved.preflight["state"].tolist() == audit.preflight["state"].tolist()


def test_a_log_that_is_walked_has_the_checks_of_sums(tmp_path):
    frame, options = heavy_query(0.5)
    frame.to_parquet(tmp_path / "log.parquet")
    walked = audit_of(tmp_path / "log.parquet", memory="1GB", **options)
    held = audit_of(frame, **options)
    unknown = {*NEED_ROWS.values(), "largest item", "score direction", "score steps"}
    asked = set(held.preflight["check"]) - unknown
    assert set(walked.preflight["check"]) == asked | {NOT_ASKED}
    asked.discard("threshold")  # only rows show how far scores spread
    states = [one.preflight.set_index("check")["state"][sorted(asked)] for one in (held, walked)]
    pd.testing.assert_series_equal(*states)
    assert state_of(walked, "largest query") == "caution"
    left = [line for line in every_line(walked._checked) if "these checks were not run" in line]
    assert len(left) == 1
    assert all(name in left[0] for name in unknown)


@pytest.mark.parametrize(
    ("check", "make", "loud", "quiet"),
    [
        ("labels", joined_labels, 0.25, 0.15),
        pytest.param("enough pairs", too_few, 2500, 4500, marks=pytest.mark.long),
        pytest.param("effect of place", clicked, 0.5, 0.4, marks=pytest.mark.long),
        ("outcome tails", long_tail, 20.0, 15.0),
        pytest.param("score steps", rounded, 40, 60, marks=pytest.mark.long),
    ],
)
def test_a_walked_log_gets_the_checks_of_one_in_memory(check, make, loud, quiet, tmp_path):
    for given, is_ok in ((loud, False), (quiet, True)):
        frame, options = make(given)
        frame.to_parquet(tmp_path / "log.parquet")
        if check == "score steps":
            options = {"threshold": mpc.Quantile(0.02)}
        walked = audit_of(tmp_path / "log.parquet", memory="1GB", **options)
        assert (state_of(walked, check) == "ok") == is_ok
        remedy = walked.preflight.set_index("check").loc[check, "remedy"]
        if remedy.startswith("audit = "):
            space = {"mpc": mpc}
            exec(remedy, space)
            assert state_of(space["audit"], check) == "ok"


def test_a_walked_log_whose_close_pairs_show_that_the_score_is_upside_down_stops(tmp_path):
    for slope, found in ((-8.0, True), (8.0, False)):
        frame, options = upside_down(slope)
        frame.to_parquet(tmp_path / "log.parquet")
        walked = audit_of(tmp_path / "log.parquet", memory="1GB", **options)
        assert ("score direction" in walked.preflight["check"].tolist()) == found
        if found:
            assert state_of(walked, "score direction") == "stop"
            assert "ascending=True" in walked.preflight["remedy"].iloc[0]


def test_a_walked_log_says_how_many_rows_were_left_out(tmp_path):
    frame, options = lost(0.035)
    frame.to_parquet(tmp_path / "log.parquet")
    walked = audit_of(tmp_path / "log.parquet", memory="1GB", **options)
    sentence = walked.preflight.set_index("check").loc["rows left out", "sentence"]
    assert sentence.startswith(f"{frame['y'].isna().sum():,} rows with a missing value")


def test_every_problem_of_labels_is_reported_and_one_remedy_mends_all():
    frame, _ = joined_labels(0.25)
    frame.loc[frame.index % 3 == 0, "g"] = frame["g"].str.upper()
    found = mpc.preflight(mpc.Ranking(frame, **COLUMNS)).set_index("check").loc["labels"]
    assert "are probably several labels each" in found["sentence"]
    assert "differ only in case or in blanks" in found["sentence"]
    assert heal(audit_of(frame), "labels", frame) == "ok"


def test_columns_of_a_file_that_were_not_read_are_suggested_too(tmp_path):
    frame, _ = unused_place(None)
    frame.rename(columns={"i": "item_id"}).to_csv(tmp_path / "log.csv", index=False)
    audit = audit_of(tmp_path / "log.csv", item=None)
    assert (state_of(audit, "items"), state_of(audit, "places")) == ("caution", "caution")
    assert heal(audit, "places", None) == "ok"


def test_hostile_names_are_shown_as_they_are():
    frame = log()
    rest = np.where(frame.index % 2, "<script>|y", "z")
    frame["g"] = np.where(frame["g"] == "a", "<script>|x", rest)
    audit = audit_of(frame)
    assert state_of(audit, "labels") == "caution"
    assert "<script>" not in audit._repr_html_()


def test_the_largest_query_of_a_handful_of_pairs_is_not_reported():
    frame, _ = heavy_query(0.5)
    frame.loc[(frame["q"] < 6) & (frame["g"] == "a"), "g"] = "rare"
    audit = audit_of(frame)
    shares = audit.headline["largest_query_share"].squeeze().to_series()
    pairs = audit.headline["n_pairs"].squeeze().to_series()
    assert shares["rare"] > 0.2
    assert pairs["rare"] < 30
    assert "'rare'" not in audit.preflight.set_index("check").loc["largest query", "sentence"]


def test_rows_of_a_heavy_query_are_named_on_the_screen_alone():
    frame, _ = heavy_query(0.99)
    frame["q"] = "user-" + frame["q"].astype(str)
    audit = audit_of(frame, estimand="root")
    found = audit.preflight.set_index("check").loc["largest query"]
    assert found["state"] == "caution"
    rows = found["remedy"].split(": ")[1].removesuffix(".")
    assert set(eval(rows, {"frame": frame})["q"]) == {"user-999"}
    assert "user-999" not in audit.to_json()
    assert "user-999" not in audit.model_card()


def test_logs_in_which_nothing_can_be_compared_say_why():
    whole = audit_of(log().assign(g="a"))
    assert state_of(whole, "labels") == "stop"
    assert "Group 'a' has every row" in whole.summary()
    assert "enough pairs" not in whole.preflight["check"].tolist()
    two = log(queries=100).assign(g=lambda f: np.where(f["g"] == "a", "a|all", "all"))
    part = audit_of(two, group_sep="|")
    assert heal(part, "labels", two) == "ok"
    one_query = log(queries=20).assign(q=1)
    assert state_of(audit_of(one_query), "largest query") == "stop"
    assert "got query='q'" in audit_of(one_query).summary()
    assert state_of(audit_of(log().assign(y=3.5)), "enough pairs") == "stop"
    assert "y is 3.5 in every row" in audit_of(log().assign(y=3.5)).summary()
    tied = audit_of(log().assign(s=0.5))
    assert "All scores are the same" in tied.summary()
    assert "Next: the remedy of 'score steps'" in tied.summary()
    apart = log().assign(g=lambda f: np.where(f["q"] % 2, "a", "b"))
    assert "No query has items inside and outside a group" in audit_of(apart).summary()


def test_the_next_step_is_the_first_remedy_that_leads_on():
    frame, options = upside_down(-0.1)
    audit = audit_of(frame, **options)
    assert "Next: the remedy of 'score direction' in the preflight" in audit.summary()
    assert "pairing_modes" not in audit.summary()
    frame, options = lost(0.035)  # what can only be said in the report is no step
    assert "Next: the remedy of 'rows left out'" not in audit_of(frame, **options).summary()


def test_what_would_be_found_is_said_of_the_weakest_group_too():
    frame = picture_log(("common", "rare", "rarer"), 60)
    kept = np.random.default_rng(0).uniform(size=len(frame))
    shares = frame["group"].map({"common": 1.0, "rare": 0.7, "rarer": 0.4})
    columns = {"query": "query", "score": "score", "outcome": "clicks", "group": "group"}
    audit = mpc.audit(frame[kept < shares], **columns, threshold=0.02, progress=False)
    least = audit.headline["mde_adjusted"].sel(pairing_mode="matched").values.ravel()
    said = audit.preflight.set_index("check").loc["enough pairs", "sentence"]
    assert f"gaps from {least.min():.3f} to {least.max():.3f} on, by group, would be found" in said


def test_a_heavy_query_comes_before_the_advice_to_collect_more():
    frame, options = heavy_query(0.99)
    audit = audit_of(frame, **options)
    found = audit.preflight.set_index("check")
    assert "a gap of any size would be missed" in found.loc["enough pairs", "sentence"]
    assert "the remedy of 'largest query' first" in found.loc["enough pairs", "remedy"]
    assert state_of(audit_of(frame, estimand="queries"), "largest query") == "ok"


def test_pairs_that_are_never_turned_do_not_get_the_advice_to_log_more():
    audit = mpc.audit(mpc.datasets.clicks(queries=1000, bias=0, lifted=1.0, seed=1), progress=False)
    remedy = audit.preflight.set_index("check").loc["enough pairs", "remedy"]
    assert "the log never shows such pairs the other way round" in audit.summary()
    assert "audit a log that shows such pairs in both orders" in remedy
    assert "Log more queries" not in remedy


def test_more_queries_are_more_than_the_log_has(monkeypatch):
    frame, options = log(queries=300), {"closeness": "percentile", "threshold": 0.12}
    cell = audit_of(frame, **options).headline.squeeze()
    findable = 0.995 * float(cell["mde_adjusted"]) / float(frame["y"].std(ddof=0))
    monkeypatch.setattr("mpc_lab.results.preflight.reach.FINDABLE", findable)
    found = audit_of(frame, **options).preflight.set_index("check").loc["enough pairs"]
    assert "it takes about 310, and this log has 300" in found["remedy"]


def test_a_remedy_is_not_that_of_a_check_that_was_not_asked():
    frame = log(queries=300).assign(
        g=[f"g{k}" for k in np.random.default_rng(0).integers(0, 200, 3000)]
    )
    audit = audit_of(frame, threshold=None)
    found = audit.preflight.set_index("check")
    assert (audit.headline["largest_query_share"] > 0.2).any()
    assert "largest query" not in found.index
    assert "'largest query'" not in found.loc["enough pairs", "remedy"]


def test_a_threshold_that_stopped_before_it_had_the_pairs_is_noted():
    audit = audit_of(log(queries=100), threshold=mpc.Enough(pairs=5000))
    found = audit.preflight.set_index("check").loc["threshold"]
    assert found["state"] == "caution"
    assert "has the pairs asked for in 'a'" in found["sentence"]
    assert state_of(audit_of(log(), threshold=mpc.Enough(pairs=100)), "threshold") == "ok"


def test_ranks_are_called_ranks_and_not_too_few_pairs():
    frame = log()
    frame["s"] = frame.groupby("q")["s"].rank()
    audit = audit_of(frame, threshold=None)
    found = audit.preflight.set_index("check").loc["threshold"]
    assert found["state"] == "caution"
    assert found["remedy"].startswith("Give the score as it was before it was rounded")


def test_a_part_that_every_name_has_joins_no_labels():
    names = [f"size, {k}" for k in range(4)]
    frame = log().assign(g=lambda f: np.array(names)[f.index % 4])
    assert state_of(audit_of(frame), "labels") == "ok"


@pytest.mark.parametrize("mark", ["|", ";"])
def test_names_whose_parts_are_groups_are_several_labels_however_few(mark):
    names = [f"Action{mark}Comedy", "Action", "Comedy", "Drama", "Horror", "War", "Western"]
    frame = log().assign(g=lambda f: np.array(names)[f.index % 7])
    audit = audit_of(frame)
    assert state_of(audit, "labels") == "caution"
    assert f"group_sep='{mark}'" in audit.preflight.set_index("check").loc["labels", "remedy"]


def test_a_comma_inside_names_does_not_make_them_several_labels():
    names = [f"{shop}: {what}" for shop in ("North", "South") for what in ("hats, plain", "shoes")]
    frame = log().assign(g=lambda f: np.array(names)[f.index % 4])
    assert state_of(audit_of(frame), "labels") == "ok"


def test_remedies_for_files_are_commands_that_work(tmp_path, capsys, monkeypatch):
    frame, _ = joined_labels(0.25)
    monkeypatch.chdir(tmp_path)
    frame.to_csv("log.csv", index=False)
    line = "audit log.csv --query q --item i --score s --outcome y --group g --threshold 0.05"
    assert main([*line.split(), "--preflight"]) == 0
    out = capsys.readouterr().out
    (said,) = [one for one in out.splitlines() if "Caution, labels" in one]
    command = shlex.split(said.split("Remedy: ")[1])
    assert command[:3] == ["mpc-lab", "audit", "log.csv"]
    assert "mpc.audit(" not in out
    assert main([*command[1:], "--preflight"]) == 0
    assert "✓ Ok, labels" in capsys.readouterr().out


def test_every_check_is_in_one_list_and_tried_here():
    every = [*ROW_CHECKS, *OUTCOME_CHECKS]
    assert len(set(every)) == len(every)
    assert {*SUM_CHECKS, *NEED_ROWS} == set(every)
    tried = {case[0] for case in CASES} - {"largest producer"} | {"items", "complements"}
    frame, _ = places(0.0)
    frame["when"], frame["seller"] = frame["q"], [f"s{k}" for k in frame["i"] % 40]
    frame.loc[0, "y"] = np.nan
    audit = audit_of(frame, position="place", time="when", missing="drop")
    assert set(audit.preflight["check"]) == tried


def test_a_file_with_a_broken_preflight_is_refused():
    audit = mpc.audit(mpc.datasets.synthetic(queries=200), progress=False)
    audit.ranking, audit.attrs["preflight"] = None, json.dumps([{"state": 1}])
    with pytest.raises(mpc.MpcError, match="The preflight of a saved audit must be a list"):
        _ = audit.preflight


def test_a_line_has_its_remedy():
    assert Finding("a", "stop", "B.", "c()").line == "Stop, a: B. Remedy: c()"


@pytest.mark.long  # the kernel is compiled for long lists with weights and places
@pytest.mark.parametrize("seed", range(3))
def test_the_remedies_of_a_messy_log_lead_to_the_truth(seed):
    truth, frame = mpc.datasets.messy_truth(), mpc.datasets.messy(seed)
    call = (
        "audit = mpc.audit(frame, query='user', score='score', outcome='clicks', group='labels', "
        "missing='drop')"
    )
    seen = []
    for _ in range(10):
        space = {"mpc": mpc, "frame": frame}
        exec(call, space)
        audit = space["audit"]
        poor = audit.preflight[audit.preflight["state"] != "ok"]
        calls = poor[poor["remedy"].str.contains("mpc.audit", regex=False)]
        calls = calls[calls["check"] != "enough pairs"]
        if not len(calls):
            break
        seen.append(calls["check"].iloc[0])
        call = calls["remedy"].iloc[0]
    assert {"labels", "items", "producers", "score scale", "places", "largest query"} == set(seen)
    assert "rows left out" in poor["check"].tolist()
    cells = audit.headline.sel(scoring_rule="baseline", pairing_mode="symmetric")
    local = cells.sel(group=truth.undervalued)
    assert local["verdict"].item() == "undervalued"
    assert abs(float(local["estimate"]) - truth.gap_at_tie) < 4 * float(local["std_error"])
    others = cells.drop_sel(group=truth.undervalued)
    assert not set(others["verdict"].values) & {"undervalued", "overvalued"}
