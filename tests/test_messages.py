"""Every message has one form, and those that once sent people the wrong way now help."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers.messages import messages
from mpc_lab.cli import main

COLUMNS = {"query": "query", "score": "score", "outcome": "outcome", "group": "type"}


# These put a place before a message, or a hint after it, and have no form of their own.
PREFIXES = (
    "--{name}: {error}",
    "{str(path)}: {error}",
    "In partition {number}: {error}",
    "{message}; see %%mpc_audit?",
)
FOUND = tuple(messages())


def test_messages_are_found_in_every_room():
    """The walk over the source would also pass if it found nothing."""
    rooms = {one.file.split("/")[0] for one in FOUND}
    assert {"cli", "engines", "files", "ranking", "pairing", "results"} <= rooms
    assert len(FOUND) > 400


def test_every_message_has_a_form():
    """X must be Y; got Z. Do W. Or: there is no X, X cannot be read, X must be installed."""
    assert [one for one in FOUND if not one.form and one.text not in PREFIXES] == []


def test_messages_end_as_sentences_or_with_a_hint():
    said = [one.text for one in FOUND if one.text not in PREFIXES]
    assert [text for text in said if text[-1] not in ".?}"] == []


def test_messages_have_none_of_the_old_turns_of_phrase():
    old = re.compile(r", but | came\b| takes |; (?!got |\{|see )|\banew\b|\bamiss\b|\breckon")
    said = [re.sub(r"\{.*?\}", "{}", one.text) for one in FOUND]
    assert [text for text in said if old.search(text)] == []


@pytest.fixture(scope="module")
def frame():
    return mpc.datasets.synthetic(queries=200).to_frame()


@pytest.mark.parametrize("answers", [("yes", "no"), ("Y", "N"), ("True", "False")])
def test_answers_are_to_be_made_1_and_0_by_a_call_that_works(frame, answers):
    words = frame.assign(outcome=np.where(frame["outcome"] > 0, *answers))
    with pytest.raises(mpc.MpcError, match="Make them 1 and 0, for example with ") as error:
        mpc.audit(words, **COLUMNS, progress=False)
    advice = str(error.value).split("for example with ")[1].removesuffix(".")
    found = mpc.audit(words.assign(outcome=eval(advice, {"frame": words})), **COLUMNS)
    expected = mpc.audit(frame.assign(outcome=frame["outcome"] > 0), **COLUMNS)
    assert found.headline.identical(expected.headline)


def test_decimals_with_a_comma_are_to_be_replaced_by_a_call_that_works(frame):
    rounded = frame.assign(score=frame["score"].round(2))
    written = rounded.assign(score=[f"{value:.2f}".replace(".", ",") for value in rounded["score"]])
    with pytest.raises(mpc.MpcError, match="Write decimals with a point") as error:
        mpc.audit(written, **COLUMNS, progress=False)
    advice = str(error.value).split("for example with ")[1].removesuffix(".")
    found = mpc.audit(written.assign(score=eval(advice, {"frame": written})), **COLUMNS)
    assert found.headline.identical(mpc.audit(rounded, **COLUMNS).headline)


def test_other_text_gets_the_general_advice(frame):
    words = frame.assign(outcome="liked")
    with pytest.raises(mpc.MpcError, match=r"pandas\.to_numeric"):
        mpc.audit(words, **COLUMNS, progress=False)


@pytest.mark.parametrize(("cell", "said"), [("yes", "1 for yes and 0 for no"), ("0,35", "a point")])
def test_a_message_about_a_file_says_what_to_write(frame, cell, said, tmp_path):
    frame.assign(outcome=cell).to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(mpc.MpcError, match=said):
        mpc.audit(tmp_path / "log.csv", **COLUMNS, progress=False)


def test_segments_are_asked_for_by_the_audit_that_needs_them(frame):
    audit = mpc.audit(frame, **COLUMNS, progress=False)
    with pytest.raises(mpc.MpcError, match='segment="country", and run the audit again'):
        audit.by_segment()


def compas(rows=300):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "sex": rng.choice(["Male", "Female"], rows),
            "race": rng.choice(["African-American", "Caucasian", "Other"], rows),
            "decile_score": rng.integers(1, 11, rows),
            "priors_count": rng.integers(0, 9, rows),
            "two_year_recid": rng.integers(0, 2, rows),
        }
    )


def test_a_guess_knows_re_offending_and_race():
    from mpc_lab.ranking.names import guess_columns

    found = guess_columns(compas())
    assert (found["outcome"], found["group"], found["score"]) == (
        "two_year_recid",
        "race",
        "decile_score",
    )


@pytest.mark.parametrize("guess", [True, False])
def test_a_guess_that_failed_is_not_advised_again(guess, tmp_path, capsys):
    compas().to_csv(tmp_path / "log.csv", index=False)
    assert main(["audit", str(tmp_path / "log.csv"), *(["--guess"] if guess else [])]) >= 3
    said = capsys.readouterr().err
    assert "--query" in said
    assert ("or let --guess choose" in said) is not guess
    assert ("--guess found no column" in said) is guess


def test_a_pool_of_one_is_that_one(frame):
    audit = mpc.audit(frame, **COLUMNS, progress=False)
    assert mpc.pool([audit]) is audit
    with pytest.raises(mpc.MpcError, match="audits must be a list of audits"):
        mpc.pool([])


def test_the_gate_of_the_line_sets_small_groups_aside_and_takes_a_title(frame, tmp_path, capsys):
    frame.to_csv(tmp_path / "log.csv", index=False)
    words = [f"--{name}={column}" for name, column in COLUMNS.items()]
    card = tmp_path / "card.md"
    line = ["audit", str(tmp_path / "log.csv"), *words, "--quiet", "--no-progress", "--tolerance=9"]
    more = ["--card", str(card), "--title", "search, model 7, week 12"]
    assert main([*line, "--gate", "--min-pairs=1", *more]) == 0
    assert main([*line, "--gate", "--min-pairs=100000"]) == 2
    assert "not counted: '1' and '2'" in capsys.readouterr().out
    assert main([*line, "--min-effective=5"]) >= 3
    assert "Add --gate" in capsys.readouterr().err
    text = card.read_text("utf-8")
    assert text.startswith("## Matched pair calibration: search, model 7, week 12")
    assert "Log: 'log.csv', 2,000 rows, 200 queries; score 'score', outcome 'outcome'." in text


@pytest.mark.parametrize("in_file", [False, True])
def test_all_columns_that_are_not_there_are_named_at_once(frame, tmp_path, in_file):
    wrong = {**COLUMNS, "query": "qury", "score": "scor"}
    rows = tmp_path / "log.csv" if in_file else frame
    frame.to_csv(tmp_path / "log.csv", index=False)
    said = (
        "got 'qury' as query and 'scor' as score, which are not there. Did you mean 'query', "
        "'score'?"
    )
    with pytest.raises(mpc.MpcError, match=re.escape(said)):
        mpc.audit(rows, **wrong)
    with pytest.raises(mpc.MpcError, match=r"as score, which are not there\. There are: 'q"):
        mpc.audit(rows, **{**wrong, "score": "zzz"})
