"""Where is a gap? All slices of some attributes at once, with simultaneous inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np
import xarray as xr

from mpc_lab.engines.memory import MemorySource, are_paths, open_log
from mpc_lab.errors import MpcError, check_count, check_flag, check_level, check_whole, near_match
from mpc_lab.inference.bands import correlation
from mpc_lab.inference.verdicts import LEAST_OVERLAP, MOST_SHOWN_ABOVE, adjust
from mpc_lab.pairing.correlating import covariances
from mpc_lab.pairing.terms import Threshold, terms_of
from mpc_lab.ranking import Ranking, regroup
from mpc_lab.ranking.attributes import (
    Attribute,
    Attributes,
    Slices,
    make_slices,
    open_without_groups,
    read_attributes,
)
from mpc_lab.results import Audit
from mpc_lab.results.base import settings
from mpc_lab.results.discovery import FEWEST_CLUSTERS, Discovery
from mpc_lab.results.schema import AuditBase, text
from mpc_lab.results.wording import outcome_word
from mpc_lab.run import FIRST_PERCENTILE, audit_slices
from mpc_lab.scoring import Baseline
from mpc_lab.text import listing
from mpc_lab.vocabulary import MODES, SYMMETRIC, VARIANCES, Flags

_INFERRED = ("estimate", "std_error", "ci_low", "ci_high", "p_value", "epsilon")
_CELL = (*_INFERRED, "n_pairs", "n_queries", "n_items", "n_effective", "dof")
_ADJUSTED = ("p_adjusted", "ci_low_adjusted", "ci_high_adjusted", "ci_cut")


def discover(
    data: Any,
    attributes: Attributes,
    depth: int = 2,
    honest: bool = False,
    *,
    pairing_mode: str = SYMMETRIC.name,
    quantiles: int = 4,
    threshold: Threshold = FIRST_PERCENTILE,
    cluster: str = "auto",
    level: float = 0.95,
    estimand: str = "pairs",
    contrast: str = "difference",
    outcome_cap: float | None = None,
    seed: int = 0,
    progress: bool | None = None,
    **columns: Any,
) -> Discovery:
    r"""Look for slices of items that a ranker undervalues or overvalues.

    A slice is the rows that satisfy a conjunction, such as ``genre = Drama & year > 1990``; it is
    compared with all other rows of its queries, as :func:`mpc_lab.audit` compares a group. All
    conjunctions of levels of up to `depth` attributes are looked at that have at least 20
    effective clusters, queries as well as items on either side where items are known. One
    correction covers all of them: step-down p-values of Romano and Wolf, from how the slices' gaps
    vary together over queries.

    Parameters
    ----------
    data : Ranking, frame or path
        A :class:`mpc_lab.Ranking`, or what it takes together with its keywords; `group` may be
        left out then. Files must fit into memory, and need a `group`.
    attributes : str, list of str, or mapping of str to array
        Columns of the log that say what an item or a query is, or values by row. Each has at most
        8 levels, cut without a look at outcomes: its values; of more than 8 categories the 7 most
        frequent and one for all others; of numbers with more than 8 values their quantiles. Rows
        without a value are a level of their own. The group column of a log whose groups overlap
        means all its groups.
    depth : int
        How many attributes a slice may combine.
    honest : bool
        Find slices on one half of the queries, or units, drawn by `seed`, and test those found on
        the other half, adjusted over these alone. The search affects estimates on that half only
        through items that occur in both halves.
    pairing_mode : {"symmetric", "matched", "mirrored", "adjacent"}
        As in an audit. ``symmetric`` is the default, because it does not take the slope of the
        outcome in the score for a gap.
    quantiles : int
        Into how many levels numbers with more than 8 values are cut, from 2 to 8.
    threshold, cluster, level, estimand, contrast, outcome_cap, seed, progress
        As in :func:`mpc_lab.audit`; `level` is that of all slices together.
    **columns
        The keywords of :class:`mpc_lab.Ranking`, when `data` is not one.

    Returns
    -------
    Discovery
        Prints sentences; has ``found``, ``to_frame()``, ``minimal()`` and ``summary()``.

    References
    ----------
    Romano & Wolf (2005), Exact and approximate stepdown methods for multiple hypothesis testing.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> log = mpc.datasets.synthetic(queries=2_000)
    >>> found = mpc.discover(log, ["type", "query_type"], threshold=0.1, progress=False)
    >>> found.minimal().index.tolist()
    ['type = 1']
    """
    depth = check_count("depth", depth, remedy="Try depth=2.")
    honest, level = check_flag("honest", honest), check_level(level)
    seed = check_whole("seed", seed)
    progress = None if progress is None else check_flag("progress", progress)
    if not isinstance(cluster, str):
        raise MpcError(f'cluster must be "auto" or one of {", ".join(VARIANCES)}; got {cluster!r}.')
    if not isinstance(pairing_mode, str) or pairing_mode not in MODES:
        raise MpcError(
            f"pairing_mode must be one of the pairing modes; got {pairing_mode!r}."
            f"{near_match(pairing_mode, MODES)}"
        )
    ranking = _open(data, columns)
    if ranking.columns.is_rank_only:
        raise MpcError(
            "discover must have a log with scores; got positions only, which do not say how far "
            "apart two items are. Give score=."
        )
    options = {
        "pairing_mode": pairing_mode,
        "threshold": threshold,
        "cluster": cluster,
        "level": level,
        "estimand": estimand,
        "contrast": contrast,
        "outcome_cap": outcome_cap,
        "seed": seed,
        "progress": progress,
    }
    by_item = ranking.item_code is not None and (
        cluster not in VARIANCES or VARIANCES[cluster].needs_items
    )
    every = read_attributes(ranking, attributes, quantiles)
    _refuse_what_has_no_slices(ranking, every)
    slices = make_slices(ranking, every, depth, FEWEST_CLUSTERS, by_item)
    if not slices.names:
        raise _none_left(slices.n_conjunctions, ranking)
    sliced = regroup(ranking, slices.names, slices.masks)
    about = {
        "attributes": "\n".join(dict.fromkeys(one.name for one in every)),
        "depth": depth,
        "honest": int(honest),
        "n_conjunctions": slices.n_conjunctions,
        "n_same": slices.n_same,
    }
    if not honest:
        found = _sweep(sliced, slices.names, options)
        if not found.sizes["slice"]:
            raise _none_left(slices.n_conjunctions, ranking)
        return _discovery(found, slices, about)
    return _honest(sliced, slices, options, about)


def _honest(
    sliced: Ranking, slices: Slices, options: Mapping[str, Any], about: dict[str, Any]
) -> Discovery:
    """Find slices on one half of the log and test them on the other."""
    first = _half(sliced, int(options["seed"]))
    parts = sliced.subset(first), sliced.subset(~first)
    looked = _sweep(parts[0], slices.names, options)
    if not looked.sizes["slice"]:
        raise _none_left(slices.n_conjunctions, parts[0])
    names = tuple(looked["slice"].values[looked["found"].values].tolist())
    tested = _sweep(parts[1], names, options) if names else looked.isel(slice=slice(0))
    about |= {
        "n_first": len(names),
        "n_slices": looked.sizes["slice"],
        "n_queries_first": parts[0].n_queries,
        "n_queries_second": parts[1].n_queries,
    }
    before = looked.sel(slice=tested["slice"].values)
    tested["first_estimate"] = ("slice", before["estimate"].values)
    tested["first_p_adjusted"] = ("slice", before["p_adjusted"].values)
    return _discovery(tested, slices, about)


def _open(data: Any, columns: Mapping[str, Any]) -> Ranking:
    """Return the rows in memory."""
    if isinstance(data, AuditBase):
        raise MpcError(
            f"data must be a Ranking or a table; got {type(data).__name__}. Pass audit.ranking."
        )
    own = [name for name in signature(discover).parameters if name not in ("data", "columns")]
    known = own + [name for name in signature(Ranking).parameters if name != "frame"]
    for name in columns:
        if name not in known:
            raise MpcError(f"mpc.discover has no option {name!r}.{near_match(name, known)}")
    given = {name: value for name, value in columns.items() if value is not None}
    lazy = type(data).__module__.split(".")[0] in ("dask", "pyspark")
    if "group" not in given and not (isinstance(data, Ranking) or are_paths(data) or lazy):
        return open_without_groups(data, given)
    log = open_log(data, given)
    if log.ranking is None:
        raise MpcError(
            "discover must have the rows in memory; got a log that is read in parts. Pass a frame "
            "with a part of it that fits into memory."
        )
    return log.ranking


def _half(ranking: Ranking, seed: int) -> Flags:
    """Return which rows are in the first half of the units, drawn at random."""
    unit = ranking.query_code if ranking.unit_code is None else ranking.unit_code
    first = np.zeros(ranking.n_units, dtype=np.bool_)
    drawn = np.random.default_rng(seed).permutation(ranking.n_units)
    first[drawn[: (ranking.n_units + 1) // 2]] = True
    return np.asarray(first[unit])


def _refuse_what_has_no_slices(ranking: Ranking, every: Sequence[Attribute]) -> None:
    """Refuse outcomes that are all equal, and attributes that cannot distinguish items."""
    if (ranking.outcome == ranking.outcome[0]).all():
        raise MpcError(
            f"Outcomes must differ between rows; got {ranking.outcome[0]:g} in every row. Name "
            "another outcome."
        )
    first = np.zeros(ranking.n_queries, dtype=np.int64)
    first[ranking.query_code[::-1]] = np.arange(ranking.n_rows)[::-1]
    of_query = first[ranking.query_code]
    alike = [one.name for one in every if (one.code == one.code[of_query]).all()]
    if len(alike) == len(every) and ranking.n_rows > ranking.n_queries:
        names = listing([repr(name) for name in dict.fromkeys(alike)])
        raise MpcError(
            f"At least one attribute must tell the items of a query apart; got {names}, the same "
            "in all rows of each query. Add an attribute of the items, or pass the column as "
            "segment= to mpc.audit and call by_segment()."
        )


def _none_left(n_conjunctions: int, ranking: Ranking) -> MpcError:
    return MpcError(
        f"At least one slice must have {FEWEST_CLUSTERS} or more effective clusters on each side; "
        f"got none among {n_conjunctions:,} in {ranking.n_queries:,} queries. Give a longer log, "
        "other attributes, or fewer levels."
    )


def _sweep(ranking: Ranking, names: tuple[str, ...], options: Mapping[str, Any]) -> xr.Dataset:
    """Audit slices as groups, and adjust those with enough effective clusters together."""
    mode = str(options["pairing_mode"])
    given = {name: value for name, value in options.items() if name != "pairing_mode"}
    made = audit_slices(ranking, names, mode, **given)
    head = made.headline.sel(scoring_rule="baseline", pairing_mode=mode)
    enough = np.isfinite(head["p_value"].values)
    enough &= head["n_effective"].values >= FEWEST_CLUSTERS
    if "place_overlap" in head:
        # Pairs that were not shown in the order that the mode assumes say nothing.
        enough &= ~(head["place_overlap"].values < LEAST_OVERLAP)
        enough &= ~(head["shown_above"].values > MOST_SHOWN_ABOVE)
    kept = np.flatnonzero(enough)
    groups = tuple(made.groups[k] for k in kept)
    cells = {name: head[name].values[kept] for name in _CELL}
    p, estimate, error, dof = (cells[k] for k in ("p_value", "estimate", "std_error", "dof"))
    adjusted = adjust(
        p,
        estimate,
        error,
        dof,
        method="romano_wolf",
        level=float(options["level"]),
        correlation=_together(made, groups, kept, mode),
        seed=int(options["seed"]),
    )
    cells |= {name: getattr(adjusted, name) for name in _ADJUSTED}
    cells["found"] = adjusted.p_adjusted <= 1 - float(options["level"])
    order = np.lexsort((-np.abs(estimate / error), p, adjusted.p_adjusted))
    order = order[np.argsort(~cells["found"][order], kind="stable")]
    found = xr.Dataset(
        {name: ("slice", values[order]) for name, values in cells.items()},
        {"slice": text([groups[k] for k in order])},
    )
    found.attrs["audit"] = made
    return found


def _together(made: Audit, groups: tuple[str, ...], kept: Any, mode: str) -> Any:
    """Return how the gaps of slices vary together over queries, in one sweep of pairs."""
    if not groups:
        return np.empty((0, 0))
    assert made._own is not None
    assert made.ranking is not None
    own = made._own[0].of_modes([mode]).of_groups(kept)
    source = MemorySource(made.ranking, groups, None, terms_of(settings(made)))
    epsilon = made.headline["epsilon"].sel(scoring_rule="baseline", pairing_mode=mode).values
    moving = covariances(source, [Baseline()], own.modes, epsilon[None, kept], [own])
    return correlation(moving[0])


def _discovery(found: xr.Dataset, slices: Slices, about: Mapping[str, Any]) -> Discovery:
    made = found.attrs.pop("audit")
    depth = {name: len(parts) for name, parts in zip(slices.names, slices.conditions, strict=True)}
    found["depth"] = ("slice", np.array([depth[name] for name in found["slice"].values], dtype=int))
    options = settings(made)
    found.attrs = {
        "n_slices": found.sizes["slice"],
        **about,
        "pairing_mode": str(made.headline["pairing_mode"].values[0]),
        "cluster": str(options["cluster"]),
        "level": float(options["level"]),
        "seed": int(options["seed"]),
        "outcome": outcome_word(options),
    }
    return Discovery(found, made)
