"""Rankings from search evaluation: TREC runs, LETOR files, and dicts of dicts as in ranx.

Each becomes a `Ranking` whose outcome is the judged relevance. May import from: errors,
vocabulary, files, ranking.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mpc_lab.errors import MpcError, check_count, near_match
from mpc_lab.files import Roles, find_files
from mpc_lab.ranking import Ranking
from mpc_lab.ranking.columns import open_table, pandas_frame

__all__ = ["JudgedRanking", "from_ranx", "read_letor", "read_run"]

_RUN_LINE = "query Q0 document rank score tag"
_QRELS_LINE = "query 0 document relevance"
_UNJUDGED = ("drop", "zero")
_LETOR_LINE = re.compile(r"\s*(\S+)\s+qid:(\S+)([^#]*)(?:#(.*))?$")
_DOCUMENT = re.compile(r"\bdocid\s*=\s*(\S+)")


class JudgedRanking(Ranking):
    """A ranking made of a run and judgements; it keeps both as they were given.

    Made by :func:`mpc_lab.read_run` and :func:`mpc_lab.from_ranx`. Everything that takes a
    :class:`mpc_lab.Ranking` takes it.

    Attributes
    ----------
    run : pandas.DataFrame
        Every ranked document: ``query``, ``item``, ``score``.
    qrels : pandas.DataFrame
        Every judgement: ``query``, ``item``, ``relevance``.
    unjudged : {"drop", "zero"}
        What was done with documents without a judgement.
    n_unjudged : int
        How many there were.
    """

    run: pd.DataFrame
    qrels: pd.DataFrame
    unjudged: str
    n_unjudged: int
    # Of the run, the judgements and the groups, where all three are files.
    _paths: tuple[str, ...] = ()

    @property
    def origin(self) -> dict[str, Any]:
        """What an audit stores about where its rows come from, and says in its summary."""
        counts = {"n_ranked": len(self.run), "n_unjudged": self.n_unjudged}
        paths = {"paths": self._paths} if self._paths else {}
        return {"kind": "run", "unjudged": self.unjudged, **counts, **paths}

    def __repr__(self) -> str:
        fate = "left out" if self.unjudged == "drop" else "counted as not relevant"
        judged = f"{self.n_unjudged:,} of {len(self.run):,} ranked documents without a judgement"
        return f"{super().__repr__()[:-1]}; {judged}, {fate}>"

    def ndcg_qrels(self, k: int = 10) -> pd.Series[float]:
        """Return the NDCG of each judged query as trec_eval computes it.

        In contrast to :attr:`mpc_lab.Audit.objective`, the ideal list is made of all judged
        documents, ranked or not; lists end at place `k`; a document without a judgement, or with
        one below 0, has gain 0; and documents whose scores are equal in single precision are taken
        in descending order of their ids. A judged query that the run lacks, or without a relevant
        document, has 0.

        Parameters
        ----------
        k : int
            Places that count.

        Returns
        -------
        pandas.Series
            By query.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> run = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}}
        >>> qrels = {"q1": {"a": 0, "b": 1, "d": 1}}
        >>> ranking = mpc.from_ranx(run, qrels, groups={"a": "old", "b": "new"})
        >>> ranking.ndcg_qrels(k=2).round(4).to_dict()
        {'q1': 0.3869}
        """
        k = check_count("k", k)
        judged = self.qrels.assign(gain=self.qrels["relevance"].clip(lower=0))
        ranked = self.run.merge(judged, on=["query", "item"], how="left").fillna({"gain": 0.0})
        ranked["score"] = ranked["score"].astype(np.float32)
        found = _sum_gains(ranked.sort_values(["score", "item"], ascending=False), k)
        ideal = _sum_gains(judged.sort_values("gain", ascending=False), k)
        share = found.reindex(ideal.index).fillna(0.0) / ideal.where(ideal > 0)
        return share.fillna(0.0).rename(f"ndcg@{k}")


def read_run(
    run: str | os.PathLike[str],
    qrels: str | os.PathLike[str],
    groups: Any,
    *,
    unjudged: str = "drop",
) -> JudgedRanking:
    r"""Read a TREC run with its judgements and the groups of its documents.

    Parameters
    ----------
    run : path
        Lines of ``query Q0 document rank score tag``; may end in ``.gz``. Documents are ranked by
        their score; the written rank is not used.
    qrels : path
        Lines of ``query 0 document relevance``; may end in ``.gz``.
    groups : table, dict or path
        The labels of documents: a table with the columns ``item`` and ``group``, or with two
        columns in that order, one row for each label of a document; a dict from document to a
        label or a list of labels; or the path of such a table. A document without a label is in no
        group.
    unjudged : {"drop", "zero"}
        What a document without a judgement is: left out and counted in ``dropped``, or not
        relevant.

    Returns
    -------
    JudgedRanking
        With the columns ``query``, ``item``, ``score``, ``relevance`` and ``group``. Judgements do
        not depend on where a document was shown, so it has no positions.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     run, qrels = Path(folder, "bm25.run"), Path(folder, "qrels.txt")
    ...     _ = run.write_text("1 Q0 a 1 9.5 bm25\n1 Q0 b 2 9.4 bm25\n1 Q0 c 3 2.0 bm25\n")
    ...     _ = qrels.write_text("1 0 a 0\n1 0 b 2\n")
    ...     ranking = mpc.read_run(run, qrels, groups={"a": "old", "b": "new", "c": "new"})
    >>> ranking.n_rows, ranking.dropped, ranking.groups
    (2, 1, ('new', 'old'))
    """
    ranked = _read_lines(run, _RUN_LINE, {"query": 0, "item": 2, "score": 4})
    judged = _read_lines(qrels, _QRELS_LINE, {"query": 0, "item": 2, "relevance": 3})
    ranking = _join(ranked, judged, groups, unjudged)
    if isinstance(groups, str | os.PathLike):
        ranking._paths = tuple(str(os.fspath(path)) for path in (run, qrels, groups))
    return ranking


def from_ranx(
    run: Any,
    qrels: Any,
    groups: Any,
    *,
    unjudged: str = "drop",
) -> JudgedRanking:
    """Make a ranking of dicts of dicts, as ranx, pytrec_eval and ir_measures use them.

    Parameters
    ----------
    run : dict of dict, or ranx.Run
        Query to document to score.
    qrels : dict of dict, or ranx.Qrels
        Query to document to relevance.
    groups : table, dict or path
        As in :func:`mpc_lab.read_run`.
    unjudged : {"drop", "zero"}
        As in :func:`mpc_lab.read_run`.

    Returns
    -------
    JudgedRanking

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> run = {"q1": {"a": 3.0, "b": 2.9, "c": 1.0}}
    >>> qrels = {"q1": {"a": 0, "b": 1}}
    >>> ranking = mpc.from_ranx(run, qrels, {"a": "old", "b": ["new", "short"]}, unjudged="zero")
    >>> ranking.groups, ranking.outcome
    (('new', 'old', 'short'), array([0., 1., 0.]))
    """
    return _join(
        _read_dicts("run", run, "score"), _read_dicts("qrels", qrels, "relevance"), groups, unjudged
    )


def read_letor(path: str | os.PathLike[str], scores: Any, groups: Any) -> Ranking:
    r"""Read relevance and queries from a LETOR (SVMlight with ``qid``) file, to audit given scores.

    Parameters
    ----------
    path : path
        Lines of ``relevance qid:query 1:feature 2:feature … # docid = document``; may end in
        ``.gz``. Features are not used. Where every line names its document, those are the items.
    scores : array
        What a model says of each line, in the order of the file.
    groups : array
        The label, or the list of labels, of each line.

    Returns
    -------
    Ranking
        With the columns ``query``, ``score``, ``relevance``, ``group`` and, where documents are
        named, ``item``.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "test.txt")
    ...     _ = path.write_text("2 qid:7 1:0.5\n0 qid:7 1:0.4\n1 qid:8 1:0.3\n")
    ...     ranking = mpc.read_letor(path, scores=[0.3, 0.2, 0.9], groups=["a", "b", "a"])
    >>> ranking.n_queries, ranking.outcome
    (2, array([2., 0., 1.]))
    """
    rows = [_read_letor_line(path, at, line) for at, line in _lines(path)]
    frame = pd.DataFrame(rows, columns=["query", "relevance", "item"])
    for name, given in (("scores", scores), ("groups", groups)):
        if len(given) != len(frame):
            raise MpcError(
                f"{name} must have one entry for each of the {len(frame):,} lines of {str(path)!r};"
                f" got {len(given):,}."
            )
    frame["score"] = np.asarray(scores)
    frame["group"] = pd.Series(list(groups), dtype=object)
    columns: dict[str, Any] = {
        "query": "query",
        "score": "score",
        "outcome": "relevance",
        "group": "group",
    }
    if frame["item"].notna().all():
        return Ranking(frame, **columns, item="item")
    return Ranking(frame.drop(columns="item"), **columns)


# ---- lines of text


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, counted from 1."""
    if not isinstance(path, str | os.PathLike):
        raise MpcError(
            f"Text files must be given as paths; got {type(path).__name__}. "
            "For dicts of dicts use mpc.from_ranx."
        )
    name = os.fspath(path)
    opener: Any = gzip.open if name.endswith(".gz") else open
    try:
        with opener(name, "rt", encoding="utf-8") as file:
            for at, line in enumerate(file, start=1):
                if line.strip():
                    yield at, line
    except FileNotFoundError as error:
        raise MpcError(f"There is no file {name!r}. Give the path of a text file.") from error
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise MpcError(
            f"{name!r} must be a text file in UTF-8; got {error}. Write it again in UTF-8."
        ) from error


def _read_lines(path: str | os.PathLike[str], form: str, places: dict[str, int]) -> pd.DataFrame:
    """Return some cells of each line; the last of them is a number."""
    width, rows = len(form.split()), []
    for at, line in _lines(path):
        cells = line.split()
        if len(cells) != width:
            raise _refuse_line(path, at, form, line)
        rows.append([cells[place] for place in places.values()])
    frame = pd.DataFrame(rows, columns=list(places))
    number = list(places)[-1]
    read = pd.to_numeric(frame[number], errors="coerce").astype("float64")
    if read.isna().any():
        bad = str(frame[number][read.isna()].iloc[0])
        raise MpcError(
            f"Lines of {str(path)!r} must be '{form}' with a number as {number}; got {bad!r}."
        )
    return frame.assign(**{number: read})


def _read_letor_line(path: str | os.PathLike[str], at: int, line: str) -> tuple[str, float, Any]:
    found = _LETOR_LINE.match(line)
    try:
        relevance = float(found[1]) if found else np.nan
    except ValueError:
        relevance = np.nan
    if found is None or not np.isfinite(relevance):
        raise _refuse_line(path, at, "relevance qid:query 1:feature …", line)
    document = _DOCUMENT.search(found[4] or "")
    return found[2], relevance, document[1] if document else None


def _refuse_line(path: str | os.PathLike[str], at: int, form: str, line: str) -> MpcError:
    cut = line.strip()
    shown = cut if len(cut) <= 60 else f"{cut[:60]}…"
    return MpcError(f"Line {at:,} of {str(path)!r} must be '{form}'; got {shown!r}.")


# ---- dicts and tables


def _read_dicts(name: str, given: Any, value: str) -> pd.DataFrame:
    table = given.to_dict() if hasattr(given, "to_dict") else given
    if not isinstance(table, Mapping) or not all(isinstance(x, Mapping) for x in table.values()):
        raise MpcError(
            f"{name} must be a dict from query to a dict from document to {value}; "
            f"got {type(given).__name__}."
        )
    rows = [
        (str(query), str(item), number)
        for query, documents in table.items()
        for item, number in documents.items()
    ]
    frame = pd.DataFrame(rows, columns=["query", "item", value])
    try:
        return frame.astype({value: "float64"})
    except (TypeError, ValueError) as error:
        raise MpcError(f"{name} must have a number for each document; got {error}.") from error


def _join(run: pd.DataFrame, qrels: pd.DataFrame, groups: Any, unjudged: str) -> JudgedRanking:
    if unjudged not in _UNJUDGED:
        hint = near_match(unjudged, _UNJUDGED)
        raise MpcError(f'unjudged must be "drop" or "zero"; got {unjudged!r}.{hint}')
    for name, frame in (("run", run), ("qrels", qrels)):
        twice = frame.duplicated(["query", "item"])
        if twice.any():
            query, item = frame.loc[twice, ["query", "item"]].iloc[0]
            raise MpcError(
                f"A document must occur once for a query in {name}; got {item!r} twice for "
                f"{query!r}. Keep one of them."
            )
    rows = run.merge(qrels, on=["query", "item"], how="left")
    if not rows["relevance"].notna().any():
        raise MpcError(
            "run and qrels must share documents; got no document of the run that is judged. Check "
            "that both come from one collection and spell their ids alike."
        )
    n_unjudged = int(rows["relevance"].isna().sum())
    if unjudged == "zero":
        rows["relevance"] = rows["relevance"].fillna(0.0)
    rows["group"] = _labels_of(rows["item"], groups)
    ranking = JudgedRanking(
        rows,
        query="query",
        item="item",
        score="score",
        outcome="relevance",
        group="group",
        missing="drop",
    )
    ranking.run, ranking.qrels = run, qrels
    ranking.unjudged, ranking.n_unjudged = unjudged, n_unjudged
    return ranking


def _labels_of(items: pd.Series[str], groups: Any) -> pd.Series[Any]:
    """Return the list of labels of each item."""
    labels: dict[Any, list[str]]
    if isinstance(groups, Mapping):
        labels = {str(item): _as_list(label) for item, label in groups.items()}
    else:
        table = _read_label_table(groups, set(items))
        labels = table.groupby("item", sort=False)["group"].agg(list).to_dict()
    known = items.isin(list(labels))
    if not known.any():
        raise MpcError(
            "groups must name documents of the run; got none of them. Check that both spell their "
            "ids alike."
        )
    return pd.Series([labels.get(item, []) for item in items], index=items.index, dtype=object)


def _as_list(label: Any) -> list[str]:
    if label is None:
        return []
    if isinstance(label, Sequence | set | frozenset | np.ndarray) and not isinstance(label, str):
        return [str(one) for one in label]
    return [str(label)]


def _read_label_table(groups: Any, items: set[str]) -> pd.DataFrame:
    """Return the rows of documents and labels; a first line that is a document is no header."""
    if isinstance(groups, str | Path | os.PathLike):
        files = find_files(groups)
        names = _name_label_columns(files.names)
        frame = pandas_frame(open_table(files.read(Roles(labels=names))))
    else:
        table = open_table(groups)
        names = _name_label_columns([str(name) for name in table.columns])
        frame = pandas_frame(table)
    if names[0] != "item" and names[0] in items:
        raise MpcError(
            "The table of groups must begin with the names of its columns; got the document "
            f"{names[0]!r}. Write item and group above the first row."
        )
    frame = frame[list(names)].set_axis(["item", "group"], axis="columns")
    frame = frame[frame["group"].notna()]
    return frame.astype({"item": str, "group": str}).drop_duplicates()


def _name_label_columns(names: Sequence[str]) -> tuple[str, str]:
    if {"item", "group"} <= set(names):
        return "item", "group"
    if len(names) == 2:
        return names[0], names[1]
    raise MpcError(
        "The table of groups must have the columns 'item' and 'group', or two columns in that "
        f"order; got {', '.join(map(repr, names))}. Rename or leave out columns."
    )


def _sum_gains(ordered: pd.DataFrame, k: int) -> pd.Series[float]:
    """Return the discounted gains of each query over its first k rows."""
    place = ordered.groupby("query", sort=False).cumcount().to_numpy()
    gains = np.where(place < k, ordered["gain"] / np.log2(place + 2.0), 0.0)
    return pd.Series(gains, index=ordered["query"]).groupby(level=0).sum()
