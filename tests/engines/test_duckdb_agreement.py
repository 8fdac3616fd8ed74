from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers.agreeing import BOOLEANS, COLUMNS, MODES, RULES, assert_agree, random_log
from mpc_lab.engines import running


@pytest.fixture
def small_chunks(monkeypatch):
    """Cut logs into chunks of a few queries, so that small logs have many."""
    monkeypatch.setattr(running, "_FEWEST_ROWS", 64)
    monkeypatch.setattr(running, "_MOST_ROWS", 64)


def both(frame, path, **how):
    """Audit a frame in memory and the same rows in a file."""
    write = {".parquet": frame.to_parquet, ".feather": frame.to_feather}
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        write[path.suffix](path)
    how = {**COLUMNS, "progress": False, **how}
    return mpc.audit(frame, **how), mpc.audit(path, memory="1GB", **how)


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.long) for k in (1, 2, 3))])
def test_every_rule_and_mode_agrees_with_memory(seed, tmp_path, small_chunks):
    adjust = ["holm", "romano_wolf", "fdr_bh"][seed % 3]
    how = {"scoring_rules": RULES, "pairing_modes": MODES, "adjust": adjust}
    assert_agree(*both(random_log(seed), tmp_path / "log.parquet", group=BOOLEANS, **how))


@pytest.mark.parametrize(
    "threshold",
    [0.005, mpc.Quantile(0.3), mpc.Smallest(7), mpc.Powered(0.5), mpc.Enough(9, 5)],
    ids=repr,
)
def test_every_threshold_agrees_with_memory(threshold, tmp_path, small_chunks):
    how = {"group": BOOLEANS, "threshold": threshold}
    assert_agree(*both(random_log(11), tmp_path / "log.parquet", **how))


@pytest.mark.parametrize(
    "suffix", [".csv", *(pytest.param(s, marks=pytest.mark.long) for s in (".parquet", ".feather"))]
)
@pytest.mark.parametrize(
    "group",
    [
        {"group": "label", "group_sep": "|"},
        {"group": "label"},
        {"group": BOOLEANS, "groups": ["g2", "g0"]},
        {"group": "g0"},
    ],
    ids=["split", "labels", "chosen", "boolean as labels"],
)
def test_every_kind_of_file_and_group_agrees_with_memory(suffix, group, tmp_path, small_chunks):
    assert_agree(*both(random_log(3), tmp_path / f"log{suffix}", **group))


def test_a_column_of_lists_agrees_with_memory(tmp_path, small_chunks):
    frame = random_log(4)
    frame["listed"] = [x.split("|") if isinstance(x, str) else None for x in frame["label"]]
    assert_agree(*both(frame, tmp_path / "log.parquet", group="listed"))


def test_more_groups_than_a_word_holds_agree_with_memory(tmp_path, small_chunks):
    rng = np.random.default_rng(0)
    frame = random_log(5)
    many = {f"h{k:02d}": rng.random(len(frame)) < 0.2 for k in range(70)}
    assert_agree(*both(frame.assign(**many), tmp_path / "log.parquet", group=list(many)))


@pytest.mark.parametrize(
    ("kind", "n_groups"),
    [
        *(("bool", 8), ("int8", 9), ("uint8", 17), ("int16", 33)),
        *(("int32", 8), ("int64", 9), ("float32", 17)),
    ],
)
def test_narrow_outcomes_and_masks_agree_with_memory(kind, n_groups, tmp_path, small_chunks):
    rng = np.random.default_rng(n_groups)
    frame = random_log(12)
    top = {"bool": 1, "int8": 127, "uint8": 255}.get(kind, 30_000)
    low = {"bool": 0, "uint8": 0, "int8": -128}.get(kind, -top)
    frame["outcome"] = rng.integers(low, top, len(frame), endpoint=True).astype(kind)
    many = {f"h{k:02d}": rng.random(len(frame)) < 0.3 for k in range(n_groups)}
    how = {"group": list(many), "groups": [f"h{n_groups - 1:02d}", "h00", *list(many)[1:-1]]}
    assert_agree(*both(frame.assign(**many), tmp_path / "log.parquet", **how))


FAR = 30_000  # rows; DuckDB looks at 20,480 of a CSV to tell what its columns hold


def long_csv(path, last):
    """Write a log of whole numbers whose last query is given as text."""
    rows = [f"{k // 4},{k % 4},{k % 2},{k % 2},{1 - k % 2}" for k in range(FAR)]
    path.write_text("\n".join(["query,score,outcome,in_a,in_b", *rows, *last]) + "\n")
    return path


def test_ids_of_csv_are_their_text_in_every_row(tmp_path):
    path = long_csv(tmp_path / "log.csv", ["007,0.25,1,1,0", "007,0.5,0.5,0,1"])
    how = {**COLUMNS, "item": None, "group": ["in_a", "in_b"], "threshold": 0.3, "progress": False}
    found = mpc.audit(path, **how)
    assert found.attrs["n_queries"] == FAR // 4 + 1
    assert found.headline.sel(group="in_a").n_pairs.item() == 1


def test_a_number_that_does_not_parse_is_named(tmp_path):
    path = long_csv(tmp_path / "log.csv", ["8,much,1,1,0"])
    how = {**COLUMNS, "item": None, "group": ["in_a", "in_b"], "progress": False}
    with pytest.raises(
        mpc.MpcError, match=r"'score' of .* must hold numbers; got 'much' in line [0-9,]+"
    ):
        mpc.audit(path, **how)


@pytest.mark.long  # the matrix of all engines has these
@pytest.mark.parametrize("query", ["name", ["user", "name"], "query"], ids=repr)
def test_text_and_several_query_columns_agree_with_memory(query, tmp_path, small_chunks):
    assert_agree(*both(random_log(6), tmp_path / "log.parquet", query=query, group=BOOLEANS))


@pytest.mark.long  # the matrix of all engines has units
@pytest.mark.parametrize("unit", ["user", "city"])
def test_units_agree_with_memory(unit, tmp_path, small_chunks):
    frame = random_log(7).assign(city=lambda rows: "c" + rows["user"].astype(str))
    how = {"unit": unit, "group": BOOLEANS, "adjust": "romano_wolf"}
    assert_agree(*both(frame, tmp_path / "log.parquet", **how))


@pytest.mark.long  # the matrix of all engines has some of these
@pytest.mark.parametrize("cluster", ["union", "item", "query"])
@pytest.mark.parametrize("item", ["item", "title"])
def test_items_agree_with_memory(cluster, item, tmp_path, small_chunks):
    how = {"item": item, "group": BOOLEANS, "cluster": cluster, "pairing_modes": MODES}
    assert_agree(*both(random_log(13), tmp_path / "log.parquet", **how))


@pytest.mark.parametrize("unit", [pytest.param(None, marks=pytest.mark.long), "user"])
def test_items_in_several_shares_agree_with_memory(unit, tmp_path, small_chunks, monkeypatch):
    monkeypatch.setattr(running.Limits, "pairs_at_once", 200)
    how = {"item": "item", "unit": unit, "group": BOOLEANS, "scoring_rules": RULES}
    assert_agree(*both(random_log(17), tmp_path / "log.parquet", **how))


@pytest.mark.long
def test_logged_positions_and_segments_agree_with_memory(tmp_path, small_chunks):
    how = {"position": "position", "segment": "country", "group": BOOLEANS}
    how |= {"pairing_modes": MODES, "scoring_rules": RULES}
    assert_agree(*both(random_log(8), tmp_path / "log.parquet", **how))


def test_left_out_rows_are_counted_as_in_memory(tmp_path, small_chunks):
    frame = random_log(9)
    frame["score"] = frame["score"].where(frame.index % 11 != 0)
    frame["name"] = frame["name"].where(frame.index % 13 != 0, None)
    one, other = both(frame, tmp_path / "log.parquet", query="name", group="label", missing="drop")
    assert other.attrs["n_dropped"] > 0
    assert_agree(one, other)


def test_files_of_a_pattern_a_list_and_a_folder_are_one_log(tmp_path):
    frame = random_log(10)
    frame[::2].to_parquet(tmp_path / "a.parquet")
    frame[1::2].to_parquet(tmp_path / "b.parquet")
    how = {**COLUMNS, "group": BOOLEANS, "progress": False}
    whole = mpc.audit(frame, **how)
    for given in (
        str(tmp_path / "*.parquet"),
        [tmp_path / "a.parquet", str(tmp_path / "b.parquet")],
        tmp_path,
    ):
        assert_agree(whole, mpc.audit(given, **how))


def test_names_that_differ_only_in_case_are_two_columns(tmp_path):
    frame = random_log(12).rename(columns={"new": "Score"})
    path = tmp_path / "log.parquet"
    assert_agree(*both(frame, path, group=BOOLEANS))
    assert_agree(*both(frame, path, group=BOOLEANS, score="Score"))


def test_the_number_of_threads_does_not_change_a_bit(tmp_path, small_chunks, monkeypatch):
    path = tmp_path / "log.parquet"
    random_log(14).to_parquet(path)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("MPC_LAB_THREADS", threads)
        how = {**COLUMNS, "group": BOOLEANS, "memory": "1GB", "progress": False}
        found.append(mpc.audit(path, **how))
    assert found[0].headline.identical(found[1].headline)


def test_a_saved_audit_of_files_is_the_same_when_loaded(tmp_path):
    path = tmp_path / "log.parquet"
    random_log(15).to_parquet(path)
    audit = mpc.audit(path, **COLUMNS, group=BOOLEANS, memory="1GB", progress=False)
    audit.save(tmp_path / "a.nc")
    assert mpc.load(tmp_path / "a.nc").curve.identical(audit.curve)


def test_rows_given_to_a_loaded_audit_of_files_are_the_ones_it_was_made_from(tmp_path):
    frame, columns = random_log(16), {**COLUMNS, "group": BOOLEANS}
    frame.to_parquet(tmp_path / "log.parquet")
    audit = mpc.audit(tmp_path / "log.parquet", **columns, memory="1GB", progress=False)
    audit.save(tmp_path / "a.nc")
    loaded = mpc.load(tmp_path / "a.nc", ranking=mpc.Ranking(frame, **columns))
    cell = loaded.headline.sel(group="g0", scoring_rule="baseline", pairing_mode="matched")
    assert len(loaded.pairs("g0")) == int(cell["n_pairs"])
    with pytest.raises(mpc.MpcError, match=r"must be the one .* with n_rows of"):
        mpc.load(tmp_path / "a.nc", ranking=mpc.Ranking(frame[1:], **columns))


def two_files(folder, suffix, first, second):
    """Write two files of a log and return their pattern, and the log in one piece."""
    for name, part in (("1", first), ("2", second)):
        part = part.reset_index(drop=True)
        path = folder / f"{name}{suffix}"
        part.to_parquet(path) if suffix == ".parquet" else part.to_feather(path)
    return f"{folder}/*{suffix}"


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
@pytest.mark.parametrize(
    ("column", "kind"), [("outcome", "int64"), ("score", "float32"), ("query", "float64")]
)
def test_files_of_different_widths_agree_with_memory(column, kind, suffix, tmp_path):
    frame = random_log(13)
    frame["outcome"] = frame["outcome"].round()
    half = len(frame) // 2
    first, second = frame[:half].copy(), frame[half:].copy()
    first[column] = first[column].astype(kind)
    if column == "outcome":
        second["outcome"] += 0.3  # would be lost if the first file told the type of all
    how = {**COLUMNS, "group": BOOLEANS, "progress": False}
    whole = pd.concat([first, second], ignore_index=True)
    pattern = two_files(tmp_path, suffix, first, second)
    assert_agree(mpc.audit(whole, **how), mpc.audit(pattern, memory="1GB", **how))


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
@pytest.mark.parametrize(
    ("column", "kind"), [("query", "str"), ("query", "bool"), ("score", "str")]
)
def test_files_of_different_kinds_are_refused(column, kind, suffix, tmp_path):
    frame = random_log(14)
    half = len(frame) // 2
    second = frame[half:].copy()
    second[column] = second[column].astype(kind)
    pattern = two_files(tmp_path, suffix, frame[:half], second)
    with pytest.raises(
        mpc.MpcError,
        match=f"Column '{column}' must be of one kind in all files; got .*Write it",
    ):
        mpc.audit(pattern, **COLUMNS, group=BOOLEANS, progress=False)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_folder_named_like_a_column_does_not_replace_it(suffix, tmp_path):
    folder = tmp_path / "score=1"
    folder.mkdir()
    assert_agree(*both(random_log(15), folder / f"log{suffix}", group=BOOLEANS))


def test_a_folder_may_stand_for_a_column_that_the_files_lack(tmp_path):
    frame = random_log(15)
    whole = pd.concat([frame.assign(day=day) for day in (1, 2)], ignore_index=True)
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        frame.to_parquet(tmp_path / f"day={day}" / "log.parquet")
    how = {**COLUMNS, "query": ["query", "day"], "group": BOOLEANS, "progress": False}
    assert_agree(mpc.audit(whole, **how), mpc.audit(tmp_path, **how))


def test_hidden_and_unfinished_files_of_a_folder_are_no_part_of_the_log(tmp_path):
    frame = random_log(16)
    (tmp_path / "_temporary").mkdir()
    for name in ("log.parquet", "_temporary/log.parquet", ".log.parquet"):
        frame.to_parquet(tmp_path / name)
    how = {**COLUMNS, "group": BOOLEANS, "progress": False}
    assert_agree(mpc.audit(frame, **how), mpc.audit(tmp_path, **how))


def test_a_star_in_a_name_is_not_a_pattern(tmp_path):
    random_log(18).to_parquet(tmp_path / "lo_g.parquet")
    assert_agree(*both(random_log(17), tmp_path / "lo*g.parquet", group=BOOLEANS))


HEAD = "query,score,outcome,group"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["1,0.1,True,'a'", "1,0.2,False,b"], "{'a'}"),
        (['1,0.1,1,"a""b"', '1,0.2,0,"a,b"'], 'a"b'),
        (["1,NA,1,NA", "1,0.1,1,NA", "1,0.2,0,b"], "NA"),
        (["1,0.1,1,# a", "1,0.2,0,b"], "# a"),
    ],
    ids=["truth", "quotes", "no number", "hash"],
)
def test_csv_is_read_by_fixed_rules(rows, words, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    how = {"query": "query", "score": "score", "outcome": "outcome", "group": "group"}
    found = mpc.audit(path, **how, missing="drop", threshold=0.2, progress=False)
    assert words.strip("{}") in found.groups
    assert found.headline.n_pairs.values.sum() == 1


@pytest.mark.parametrize("first", ["made by x", "query;score;outcome;group"])
def test_csv_is_not_guessed_at(first, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(f"{first}\n{HEAD}\n1,0.1,1,a\n1,0.2,0,b\n")
    how = {"query": "query", "score": "score", "outcome": "outcome", "group": "group"}
    with pytest.raises(mpc.MpcError, match=r"no column|cannot be read: line 2 must"):
        mpc.audit(path, **how, progress=False)


@pytest.mark.parametrize(
    ("value", "said"), [("1_000", "must hold numbers"), ("much", "must hold numbers")]
)
def test_a_number_of_a_csv_is_a_number(value, said, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(f"{HEAD}\n1,0.1,1,a\n1,{value},0,b\n")
    how = {"query": "query", "score": "score", "outcome": "outcome", "group": "group"}
    with pytest.raises(mpc.MpcError, match=f"{said}.*{value}"):
        mpc.audit(path, **how, progress=False)


@pytest.mark.parametrize("role", ["query", "item"])
def test_lists_and_records_are_no_ids(role, tmp_path):
    frame = random_log(19)
    frame[role] = [[value] for value in frame[role]]
    frame.to_parquet(tmp_path / "log.parquet")
    with pytest.raises(mpc.MpcError, match=f"The {role} column .* Convert them to text"):
        mpc.audit(tmp_path / "log.parquet", **{**COLUMNS, role: role}, group=BOOLEANS)


def test_spill_must_be_a_folder(tmp_path):
    random_log(20).to_parquet(tmp_path / "log.parquet")
    how = {**COLUMNS, "group": BOOLEANS, "memory": "1GB"}
    with pytest.raises(mpc.MpcError, match="spill must be a folder"):
        mpc.audit(tmp_path / "log.parquet", **how, spill=123)
