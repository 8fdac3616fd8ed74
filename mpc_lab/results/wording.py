"""The terms of an audit in words, where they are not the default."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

from mpc_lab.errors import MpcError
from mpc_lab.pairing.terms import PAIRS, PERCENTILE, QUERIES, QUERY_SD, ROOT, SIGN, terms_of
from mpc_lab.ranking.examination import FLOOR, Curve, PlaceTable, from_json
from mpc_lab.text import decimals, listing, number, plain, plural, quote

_CLOSENESS = {
    QUERY_SD: "Distances are in standard deviations of the logged scores of the query (closeness "
    "'query_sd'); a query whose scores are all equal has no pairs.",
    PERCENTILE: "Distances are shares of the list, by place in the order of the scores (closeness "
    "'percentile').",
}
_SIGN = (
    "A pair counts by the sign of its difference (contrast 'sign'): the gap is the share of pairs "
    "in which the item of the group has the higher outcome, less the share in which it has the "
    "lower one."
)
_ESTIMANDS = {
    QUERIES: "Every query with a pair counts the same, however many pairs it has (estimand "
    "'queries').",
    ROOT: "A query counts the square root of the number of its pairs (estimand 'root'): between "
    "every pair and every query counting the same.",
}
_WEIGHTS = {
    PAIRS: "A pair counts the weight of its query ({}).",
    QUERIES: "It counts its weight ({}).",
    ROOT: "That is multiplied by the weight of the query ({}).",
}

_RANK_ONLY = (
    "The log has places and no scores: neighbours in the list are compared, however far apart "
    "their scores were."
)


def columns_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return which column had which role, and the options about them."""
    try:
        found = json.loads(str(options.get("columns", "{}")))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def outcome_word(options: Mapping[str, Any]) -> str:
    """Return what the outcome is called in sentences.

    Examples
    --------
    >>> outcome_word({"columns": '{"outcome": "y", "outcome_name": "clicks"}'})
    'clicks'
    """
    columns = columns_of(options)
    return str(columns.get("outcome_name") or columns.get("outcome") or "outcome")


def gap_in_words(estimate: float, size: str, against: str, options: Mapping[str, Any]) -> str:
    """Return what a gap says of the outcome; higher is not always better.

    Parameters
    ----------
    estimate : float
    size : str
        Its size as it is printed.
    against : str
        Whom the items of the group are compared with.
    options : mapping
        What :func:`mpc_lab.results.base.settings` gives.

    Examples
    --------
    >>> gap_in_words(-0.1, "0.1", "the items ranked just above them", {})
    '`outcome` is 0.1 lower than for the items ranked just above them'
    """
    word = f"`{outcome_word(options)}`"
    if estimate == 0 and terms_of(options).contrast != SIGN:
        return f"{word} is the same as for {against}"
    if terms_of(options).contrast == SIGN:
        side = "above" if estimate > 0 else "below"
        return (
            f"compared with {against}, the share of pairs in which {word} is higher is {size} "
            f"{side} the share in which it is lower"
        )
    return f"{word} is {size} {'higher' if estimate > 0 else 'lower'} than for {against}"


def check_title(title: object) -> str:
    """Return what a document is said to be about, empty for None."""
    if title is None:
        return ""
    if not isinstance(title, str) or not plain(title).strip():
        raise MpcError(f'title must be words such as "search, model 7, week 12"; got {title!r}.')
    return plain(title).strip()


def left_out_in_words(options: Mapping[str, Any]) -> str:
    """Return which rows were left out, or counted without a judgement; empty for none."""
    try:
        source = json.loads(str(options.get("source", "{}")))
        unjudged, of = int(source.get("n_unjudged", 0)), int(source.get("n_ranked", 0))
        dropped = source.get("unjudged") == "drop"
    except (AttributeError, TypeError, ValueError):
        unjudged, of, dropped = 0, 0, False
    lines = []
    if unjudged:
        fate = "left out (unjudged='drop')" if dropped else "not relevant (unjudged='zero')"
        lines.append(f"{unjudged:,} of {of:,} ranked documents have no judgement: {fate}.")
    missing = int(options.get("n_dropped", 0)) - (unjudged if dropped else 0)
    if missing > 0:
        lines.append(f"{missing_rows(missing)} left out.")
    return " ".join(lines)


def missing_rows(count: int) -> str:
    """Return how many rows lack a value, with the verb for what was done with them.

    Examples
    --------
    >>> missing_rows(1), missing_rows(1200)
    ('1 row with a missing value was', '1,200 rows with a missing value were')
    """
    return f"{plural(count, 'row')} with a missing value {'was' if count == 1 else 'were'}"


def log_in_words(options: Mapping[str, Any]) -> str:
    """Return which log, score and outcome an audit is about; empty if nothing is known about it."""
    columns = columns_of(options)
    try:
        files = json.loads(str(options.get("source", "{}"))).get("files", [])
        names = [quote(PurePath(str(one["path"])).name) for one in files]
    except (AttributeError, KeyError, TypeError, ValueError):
        names = []
    sizes = [
        plural(int(options[name]), word)
        for name, word in (("n_rows", "row"), ("n_queries", "query"))
        if options.get(name)
    ]
    if not sizes:
        return ""
    log = f"Log: {', '.join([*([listing(names, 4)] if names else []), *sizes])}"
    score = columns.get("score")
    scored = f"; score {quote(score)}" if score is not None else ""
    return f"{log}{scored}, outcome {quote(outcome_word(options))}."


def range_in_words(low: float, high: float) -> str:
    """Return an interval of gaps as how far the outcome may be lower and higher.

    Examples
    --------
    >>> range_in_words(-0.02, 0.05), range_in_words(0.012, 0.05)
    ('0.020 lower and 0.050 higher', '0.0120 and 0.0500 higher')
    """
    places = decimals(low, high)
    ends = [number(abs(end), places) for end in (low, high)]
    if low < 0 < high:
        return f"{ends[0]} lower and {ends[1]} higher"
    side = "higher" if high > 0 else "lower"
    first, second = ends if high > 0 else ends[::-1]
    return f"{first} and {second} {side}"


def _say_examined(columns: Mapping[str, Any], options: Mapping[str, Any]) -> Iterator[str]:
    """Say that outcomes were divided by how likely a row is looked at."""
    if columns.get("examined") is None:
        return
    given = from_json(columns["examined"])
    by = str(given) if isinstance(given, Curve) else f"column {quote(str(given))}"
    floored, floor = int(options.get("n_floored", 0)), columns.get("examined_floor") or FLOOR
    raised = "1 row was" if floored == 1 else f"{floored:,} rows were"
    more = f"; {raised} below {floor:g} and raised to it" if floored else ""
    yield (
        "Outcomes are divided by the probability that their row is looked at (examined: "
        f"{by}{more}), so the two sides of a tie go by score, whatever the place."
    )
    if isinstance(given, PlaceTable) and given.estimated:
        yield "That curve is an estimate; the intervals here do not allow for its uncertainty."


def terms_in_words(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each term of an audit that is not the default.

    Parameters
    ----------
    options : mapping
        What :func:`mpc_lab.results.base.settings` gives.

    Examples
    --------
    >>> list(terms_in_words({"against": "b", "contrast": "difference"}))
    ["Items of a group are compared with items of 'b' only (against)."]
    """
    columns = columns_of(options)
    if "score" in columns and columns["score"] is None:
        yield _RANK_ONLY
    if columns.get("ascending"):
        yield "A smaller score is better (ascending)."
    terms = terms_of(options)
    if terms.against is not None:
        yield f"Items of a group are compared with items of {quote(terms.against)} only (against)."
    if terms.closeness in _CLOSENESS:
        yield _CLOSENESS[terms.closeness]
    if terms.contrast == SIGN:
        yield _SIGN
    if terms.estimand in _ESTIMANDS:
        yield _ESTIMANDS[terms.estimand]
    if columns.get("weight") is not None:
        yield _WEIGHTS[terms.estimand].format(quote(columns["weight"]))
    yield from _say_examined(columns, options)
    cap = options.get("outcome_cap")
    if cap is not None:
        capped = int(options.get("n_capped", 0))
        rows = "1 row" if capped == 1 else f"{capped:,} rows"
        yield f"Outcomes above {cap:g} were set to {cap:g} (outcome_cap): {rows}."


PRIMARY_PARTS = ("scoring_rule", "pairing_mode", "threshold")


@dataclass(frozen=True)
class Primary:
    """The declared cells; the threshold is kept as it is written."""

    scoring_rule: str
    pairing_mode: str
    threshold: str

    @property
    def cell(self) -> tuple[str, str]:
        """Rule and mode."""
        return self.scoring_rule, self.pairing_mode

    def to_dict(self) -> dict[str, str]:
        """Return the three parts by name."""
        return asdict(self)

    def sentence(self) -> str:
        """Return what was declared, and what follows for everything else."""
        return (
            f"Declared before the run: scoring rule {quote(self.scoring_rule)}, "
            f"{self.pairing_mode} pairs, threshold {self.threshold}. Everything else is "
            "exploratory."
        )


def declared(options: Mapping[str, Any]) -> Primary | None:
    """Return what was declared, according to the options of an audit.

    Parameters
    ----------
    options : mapping
        What :func:`mpc_lab.results.base.settings` gives.
    """
    found = options.get("primary")
    if found is None:
        return None
    if not isinstance(found, dict) or set(found) != set(PRIMARY_PARTS):
        raise MpcError(f"its primary must have {', '.join(PRIMARY_PARTS)}; got {found!r}.")
    return Primary(**{name: str(found[name]) for name in PRIMARY_PARTS})


# ---- how many audits of the log there were

_LOOKS_SHOWN = 6
_ON_A_CLUSTER = ('{"kind": "dask"', '{"kind": "spark"')


def looks_in_words(looks: Sequence[Mapping[str, Any]], source: object = None) -> str:
    """Say which audit of its log this is, and how those before it differ; empty for the first.

    Parameters
    ----------
    looks : sequence of mappings
        As `audit.looks`.
    source : str, optional
        The attribute of an audit that says where its rows are from: audits of a frame on a
        cluster are not counted, and the sentence says so.

    Examples
    --------
    >>> looks_in_words([{"level": 0.9}, {"level": 0.95}])
    '2nd audit of this log in one process; before it: level=0.9.'
    """
    if not looks and str(source).startswith(_ON_A_CLUSTER):
        return "Audits of a frame on a cluster are not counted: there may be others of this log."
    if len(looks) < 2:
        return ""
    last = looks[-1]
    before = [_difference(one, last) for one in looks[:-1]]
    return (
        f"{_ordinal(len(looks))} audit of this log in one process; before it: "
        f"{listing(list(dict.fromkeys(before)), _LOOKS_SHOWN)}."
    )


def _difference(one: Mapping[str, Any], last: Mapping[str, Any]) -> str:
    """Return the options of an audit that differ from those of the last one."""
    names = [name for name in dict.fromkeys([*one, *last]) if one.get(name) != last.get(name)]
    shown = [f"{name}={one.get(name)}" for name in names]
    return " ".join(shown) if shown else "the same options"


def _ordinal(count: int) -> str:
    """Return a count as a place in a row.

    Examples
    --------
    >>> _ordinal(2), _ordinal(11), _ordinal(23)
    ('2nd', '11th', '23rd')
    """
    last = (
        "th" if count % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    )
    return f"{count:,}{last}"
