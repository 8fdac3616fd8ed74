"""Runs, judgements and LETOR files become rankings, and NDCG over judgements is trec_eval's."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc

RUN = """\
1 Q0 a 1 9.5 bm25
1 Q0 b 2 9.4 bm25
1 Q0 c 3 2.0 bm25

2 Q0 a 1 1.0 bm25
2 Q0 d 2 0.5 bm25
"""
QRELS = "1 0 a 0\n1 0 b 2\n2 0 a 1\n2 0 d 0\n2 0 z 3\n"
GROUPS = {"a": "old", "b": ["new", "short"], "d": "new"}


@pytest.fixture
def files(tmp_path):
    run, qrels = tmp_path / "bm25.run", tmp_path / "qrels.txt"
    run.write_text(RUN)
    qrels.write_text(QRELS)
    return run, qrels


def test_a_run_and_its_judgements_become_a_ranking(files):
    ranking = mpc.read_run(*files, groups=GROUPS)
    assert (ranking.n_rows, ranking.n_queries, ranking.dropped) == (4, 2, 1)
    assert ranking.groups == ("new", "old", "short")
    assert ranking.outcome.tolist() == [0, 2, 1, 0]
    assert ranking.score.tolist() == [9.5, 9.4, 1.0, 0.5]
    assert ranking.position is None


def test_unjudged_documents_can_count_as_not_relevant(files):
    ranking = mpc.read_run(*files, groups=GROUPS, unjudged="zero")
    assert (ranking.n_rows, ranking.dropped) == (5, 0)
    assert ranking.outcome.tolist() == [0, 2, 0, 1, 0]


def test_groups_come_as_a_table_or_a_file_too(files, tmp_path):
    rows = [("a", "old"), ("b", "new"), ("b", "short"), ("d", "new"), ("c", None)]
    table = pd.DataFrame(rows, columns=["docno", "label"])
    table.to_csv(tmp_path / "groups.csv", index=False)
    asked = mpc.read_run(*files, groups=GROUPS)
    for groups in (table, table.assign(more=1).rename(columns={"docno": "item", "label": "group"}),
                   tmp_path / "groups.csv"):  # fmt: skip
        ranking = mpc.read_run(*files, groups=groups)
        assert ranking.groups == asked.groups
        assert (ranking.masks == asked.masks).all()


def test_a_table_of_groups_without_a_header_is_refused(files, tmp_path):
    (tmp_path / "groups.csv").write_text("a,old\nb,new\n")
    for groups in (tmp_path / "groups.csv", pd.DataFrame({"a": ["b"], "old": ["new"]})):
        with pytest.raises(
            mpc.MpcError, match=r"must begin with the names of its columns; got.*'a'"
        ):
            mpc.read_run(*files, groups=groups)


def test_packed_files_are_read(files, tmp_path):
    packed = tmp_path / "bm25.run.gz"
    packed.write_bytes(gzip.compress(RUN.encode()))
    assert mpc.read_run(packed, files[1], GROUPS).n_rows == 4


def test_dicts_of_dicts_give_the_same_as_files(files):
    run = {"1": {"a": 9.5, "b": 9.4, "c": 2.0}, "2": {"a": 1.0, "d": 0.5}}
    qrels = {"1": {"a": 0, "b": 2}, "2": {"a": 1, "d": 0, "z": 3}}
    asked, ranking = mpc.read_run(*files, groups=GROUPS), mpc.from_ranx(run, qrels, GROUPS)
    assert ranking.fingerprint() == asked.fingerprint()
    assert ranking.ndcg_qrels(3).equals(asked.ndcg_qrels(3))


def judged_run(seed, *, ties):
    """Return a run and judgements of 30 queries: graded, partly unjudged, some never retrieved."""
    rng = np.random.default_rng(seed)
    run, qrels = {}, {}
    for query in range(30):
        documents = [f"d{n}" for n in rng.permutation(60)]
        scores = rng.integers(0, 8, 40) / 4 if ties else rng.permutation(40) / 7
        run[f"q{query}"] = {d: float(s) for d, s in zip(documents, scores, strict=False)}
        judged = rng.choice(documents, 25, replace=False).tolist()
        qrels[f"q{query}"] = dict(zip(judged, rng.integers(-1, 4, 25).tolist(), strict=True))
    qrels["q0"] = {"d1": 0, "d2": 0}  # nothing to find
    del run["q1"]  # nothing retrieved
    return run, qrels


@pytest.mark.parametrize(
    ("unjudged", "said"),
    [
        ("drop", "1 of 5 ranked documents have no judgement: left out (unjudged='drop')."),
        ("zero", "1 of 5 ranked documents have no judgement: not relevant (unjudged='zero')."),
    ],
)
def test_what_became_of_unjudged_documents_is_printed_and_kept(files, unjudged, said, tmp_path):
    ranking = mpc.read_run(*files, groups=GROUPS, unjudged=unjudged)
    assert "1 of 5 ranked documents without a judgement" in repr(ranking)
    audit = mpc.audit(ranking, threshold=1.0, progress=False)
    assert said in audit.summary()
    assert "missing value" not in audit.summary()
    audit.save(tmp_path / "audit.nc")
    assert said in mpc.load(tmp_path / "audit.nc").summary()


def write_run(folder, run, qrels, groups):
    """Write the three files of a run as TREC has them, and return their paths."""
    paths = folder / "a.run", folder / "qrels.txt", folder / "groups.csv"
    lines = [f"{q} Q0 {d} 1 {s!r} tag" for q, docs in run.items() for d, s in docs.items()]
    judged = [f"{q} 0 {d} {r}" for q, docs in qrels.items() for d, r in docs.items()]
    labels = ["item,group", *(f"{d},{g}" for d, g in groups.items())]
    for path, text in zip(paths, (lines, judged, labels), strict=True):
        path.write_text("\n".join(text) + "\n")
    return paths


def test_ndcg_of_files_is_that_of_ir_measures_on_the_same_files(tmp_path):
    ir_measures = pytest.importorskip("ir_measures")
    groups = {f"d{n}": "ab"[n % 2] for n in range(60)}
    run, qrels, labels = write_run(tmp_path, *judged_run(11, ties=True), groups)
    found = mpc.read_run(run, qrels, labels).ndcg_qrels(10)
    read = ir_measures.read_trec_qrels(str(qrels)), ir_measures.read_trec_run(str(run))
    asked = {
        one.query_id: one.value for one in ir_measures.iter_calc([ir_measures.nDCG @ 10], *read)
    }
    assert len(asked) == 30
    assert found.to_dict() == pytest.approx(asked, abs=1e-12)


def audit_on_the_line(*arguments):
    from mpc_lab import cli

    return cli.main(["audit", *map(str, arguments)])


def test_a_run_is_audited_on_the_command_line(tmp_path, capsys):
    groups = {f"d{n}": "ab"[n % 2] for n in range(60)}
    run, qrels = judged_run(5, ties=True)
    files = write_run(tmp_path, run, qrels, groups)
    named = [
        word for pair in zip(("--run", "--qrels", "--groups"), files, strict=True) for word in pair
    ]
    saved = tmp_path / "audit.nc"
    assert (
        audit_on_the_line(*named, "--unjudged", "zero", "--threshold", "0.25", "--save", saved) == 0
    )
    assert "have no judgement: not relevant (unjudged='zero')" in capsys.readouterr().out
    asked = mpc.audit(
        mpc.from_ranx(run, qrels, groups, unjudged="zero"), threshold=0.25, progress=False
    )
    assert mpc.load(saved).headline.identical(asked.headline)
    config = tmp_path / "audit.toml"
    config.write_text('run = "a.run"\nqrels = "qrels.txt"\ngroups = "groups.csv"\nquiet = true\n')
    assert audit_on_the_line("--config", config) == 0


@pytest.mark.parametrize("unjudged", ["drop", "zero"])
def test_what_is_said_of_a_run_can_be_pasted(tmp_path, unjudged):
    """The audit is made again from its files, and so is what a remedy changes."""
    groups = {f"d{n}": "ab"[n % 2] for n in range(60)}
    run, qrels = judged_run(5, ties=True)
    upside_down = {
        query: {d: s / 100 - qrels.get(query, {}).get(d, 0) for d, s in of.items()}
        for query, of in run.items()
    }
    files = write_run(tmp_path, upside_down, qrels, groups)
    made = mpc.audit(mpc.read_run(*files, unjudged=unjudged), threshold=0.25, progress=False)
    recipe = made.recipe()
    assert recipe.needs == ()
    again, remedied = {}, {}
    exec(recipe.call, again)
    assert again["audit"].headline.identical(made.headline)
    remedy = made.preflight.set_index("check").loc["score direction", "remedy"]
    assert remedy.endswith("ascending=True)")
    exec(f"import mpc_lab as mpc\n{remedy}", remedied)
    assert remedied["audit"].ranking.score.tolist() == (-made.ranking.score).tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--run", "a.run"], "got none for --qrels, --groups."),
        (["--unjudged", "zero", "log.csv"], "got none for --run, --qrels, --groups."),
        (["--run", "a", "--qrels", "b", "--groups", "c", "log.csv"], "got files too."),
        (["--run", "a", "--qrels", "b", "--groups", "c", "--score", "s"], "got --score too."),
        (["--run", "a", "--qrels", "b", "--groups", "c", "--groups", "d"], "one file beside --run"),
    ],
)
def test_a_run_on_the_line_needs_its_three_files_and_no_columns(arguments, message, capsys):
    assert audit_on_the_line(*arguments) == 3
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [1, 5, 10, 100])
def test_ndcg_over_judgements_is_that_of_trec_eval(k, ties):
    ir_measures = pytest.importorskip("ir_measures")
    run, qrels = judged_run(k, ties=ties)
    ranking = mpc.from_ranx(run, qrels, {f"d{n}": "abc"[n % 3] for n in range(60)})
    found = ranking.ndcg_qrels(k)
    asked = {
        one.query_id: one.value for one in ir_measures.iter_calc([ir_measures.nDCG @ k], qrels, run)
    }
    assert set(found.index) == set(asked)
    for query, value in asked.items():
        assert found[query] == pytest.approx(value, abs=1e-12)


@pytest.mark.long
def test_ndcg_over_judgements_is_that_of_ranx_without_ties():
    ranx = pytest.importorskip("ranx")
    run, qrels = judged_run(3, ties=False)
    qrels = {q: {d: max(r, 0) for d, r in docs.items()} for q, docs in qrels.items() if q in run}
    groups = {f"d{n}": "abc"[n % 3] for n in range(60)}
    found = mpc.from_ranx(ranx.Run(run), ranx.Qrels(qrels), groups).ndcg_qrels(10)
    asked = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), "ndcg@10")
    assert found.mean() == pytest.approx(asked, abs=1e-12)


def test_an_audit_takes_a_judged_ranking():
    run, qrels = judged_run(5, ties=True)
    ranking = mpc.from_ranx(run, qrels, {f"d{n}": "ab"[n % 2] for n in range(60)}, unjudged="zero")
    audit = mpc.audit(ranking, threshold=0.25, progress=False)
    assert audit.headline["n_pairs"].values.min() > 100
    assert "relevance" in audit.summary()


def test_a_letor_file_is_audited_with_given_scores(tmp_path):
    path = tmp_path / "test.txt"
    path.write_text(
        "2 qid:7 1:0.5 2:1 # docid = GX-1\n0 qid:7 1:0.4 #docid = GX-2 inc = 1\n1 qid:8\n"
    )
    without = mpc.read_letor(path, scores=[0.3, 0.2, 0.9], groups=["a", "b", "a"])
    assert (without.n_items, without.query_labels([0, 1]).tolist()) == (0, ["7", "8"])
    path.write_text(path.read_text().replace("qid:8", "qid:8 # docid = GX-1"))
    ranking = mpc.read_letor(path, scores=np.array([0.3, 0.2, 0.9]), groups=[["a", "x"], [], ["a"]])
    assert ranking.outcome.tolist() == [2, 0, 1]
    assert ranking.item_labels(ranking.item_code).tolist() == ["GX-1", "GX-2", "GX-1"]
    assert ranking.groups == ("a", "x")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run": "1 Q0 a 1 9.5\n"}, r"Line 1 of .* must be 'query Q0 document rank score tag'"),
        ({"run": "1 Q0 a 1 high bm25\n"}, "with a number as score; got 'high'"),
        ({"run": "1 Q0 a 1 2 t\n1 Q0 a 2 1 t\n"}, "once for a query in run; got 'a' twice for '1'"),
        ({"qrels": "1 0 a x\n"}, "with a number as relevance; got 'x'"),
        ({"qrels": "9 0 y 1\n"}, "run and qrels must share documents"),
        ({"groups": {"y": "old"}}, "groups must name documents of the run"),
        ({"groups": pd.DataFrame({"x": [1], "y": [1], "z": [1]})}, "columns 'item' and 'group'"),
        ({"unjudged": "zeros"}, 'unjudged must be "drop" or "zero"; got \'zeros\'. Did you mean'),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(files, change, message):
    for path, name in zip(files, ("run", "qrels"), strict=True):
        if name in change:
            path.write_text(change.pop(name))
    options = {"groups": GROUPS, "unjudged": "drop", **change}
    with pytest.raises(mpc.MpcError, match=message):
        mpc.read_run(*files, **options)


def test_a_file_that_is_not_there_or_no_text_is_refused(files, tmp_path):
    with pytest.raises(mpc.MpcError, match=r"There is no file '.*absent.run'"):
        mpc.read_run(tmp_path / "absent.run", files[1], GROUPS)
    files[0].write_bytes(b"\xff\xfe\x00")
    with pytest.raises(mpc.MpcError, match="must be a text file in UTF-8"):
        mpc.read_run(*files, groups=GROUPS)


def test_dicts_of_another_shape_are_refused():
    with pytest.raises(mpc.MpcError, match="run must be a dict from query to a dict"):
        mpc.from_ranx({"q": [1]}, {"q": {"a": 1}}, {"a": "x"})
    with pytest.raises(mpc.MpcError, match="qrels must have a number for each document"):
        mpc.from_ranx({"q": {"a": 1}}, {"q": {"a": "high"}}, {"a": "x"})


@pytest.mark.parametrize("line", ["x qid:7 1:0\n", "1 7 1:0\n", "nan qid:7\n"])
def test_a_line_that_is_not_letor_is_named(tmp_path, line):
    path = tmp_path / "test.txt"
    path.write_text("1 qid:7 1:0\n" + line)
    with pytest.raises(mpc.MpcError, match=r"Line 2 of .* must be 'relevance qid:query"):
        mpc.read_letor(path, [1, 2], ["a", "b"])


@pytest.mark.parametrize(("scores", "groups"), [([1.0], ["a", "b"]), ([1.0, 2.0], ["a"])])
def test_scores_and_groups_have_an_entry_for_each_line(tmp_path, scores, groups):
    path = tmp_path / "test.txt"
    path.write_text("1 qid:7 1:0\n0 qid:7 1:0\n")
    with pytest.raises(mpc.MpcError, match="must have one entry for each of the 2 lines"):
        mpc.read_letor(path, scores, groups)


def test_a_run_that_is_no_path_is_refused():
    with pytest.raises(mpc.MpcError, match="must be given as paths; got dict"):
        mpc.read_run({}, "qrels.txt", groups={})
