"""How many audits of one log this process has made, and with which options.

Whoever tries six thresholds and shows one of them should show that there were six. The count stands
beside an audit, not in it: nothing that compares, hashes or pools audits sees it.
"""

from __future__ import annotations

import json
import threading
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_lab.text import listing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpc_lab.ranking import Ranking

_ROWS_LOOKED_AT = 1 << 16
_KEPT_AT_MOST = 1_000
_SHOWN = 6
_LOCK = threading.Lock()
_MADE: dict[str, list[dict[str, Any]]] = {}


def key_of(ranking: Ranking | None, origin: Mapping[str, Any]) -> str | None:
    """Return what tells logs from each other, None where nothing does.

    Queries and outcomes of rows in memory, the checksums of files that are walked: other scores,
    groups or directions are other looks at the same log. Of many rows a part is looked at.
    """
    if ranking is None:
        stamps = [one.get("sha256") for one in origin.get("files", []) if isinstance(one, dict)]
        return json.dumps(stamps) if stamps and all(stamps) else None
    step = 1 + ranking.n_rows // _ROWS_LOOKED_AT
    parts = (ranking.query_code[::step], ranking.outcome_given[::step])
    sums = [zlib.crc32(np.ascontiguousarray(part).data) for part in parts]
    return json.dumps([ranking.n_rows, ranking.n_queries, *sums])


def count_look(key: str | None, options: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Note an audit, and return the options of all of this log so far, this one last."""
    if key is None:
        return ()
    with _LOCK:
        made = _MADE.setdefault(key, [])
        made.append(dict(options))
        if len(made) > _KEPT_AT_MOST:
            del made[1]
        if len(_MADE) > _KEPT_AT_MOST:
            _MADE.pop(next(iter(_MADE)))
        return tuple(dict(one) for one in made)


def looks_in_words(looks: Sequence[Mapping[str, Any]]) -> str:
    """Say which audit of its log this is, and how those before it differ; empty for the first.

    Examples
    --------
    >>> looks_in_words([{"level": 0.9}, {"level": 0.95}])
    '2nd audit of this log in one process; before it: level=0.9.'
    """
    if len(looks) < 2:
        return ""
    last = looks[-1]
    before = [_difference(one, last) for one in looks[:-1]]
    return (
        f"{_ordinal(len(looks))} audit of this log in one process; before it: "
        f"{listing(list(dict.fromkeys(before)), _SHOWN)}."
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
