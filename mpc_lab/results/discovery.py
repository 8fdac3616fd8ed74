"""What a search for slices found: their gaps, adjusted together, and the few that matter."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from mpc_lab.errors import MpcError
from mpc_lab.html import Head, label, paragraphs, table
from mpc_lab.pairing.terms import terms_of
from mpc_lab.results.base import has_tied_pairs, inference_options, need_rows, settings
from mpc_lab.results.questions.partial import MOST_PAIRS
from mpc_lab.results.schema import AuditBase
from mpc_lab.results.wording import gap_in_words
from mpc_lab.text import entry, listing, percent, plural, quote, with_ends
from mpc_lab.vocabulary import ITEM, MODES

if TYPE_CHECKING:
    from mpc_lab.inference.discovery import NetSlices

FEWEST_CLUSTERS = 20
_NET = ("estimate", "std_error", "ci_low", "ci_high", "p_value")
_SENTENCES = 3
_ROWS = 20


class Discovery:
    """The gaps of all slices that were looked at, with simultaneous inference.

    Made by :func:`mpc_lab.discover`.

    Parameters
    ----------
    data : xarray.Dataset
        Over ``slice``, those found first: ``estimate``, ``std_error``, ``ci_low``, ``ci_high``,
        ``p_value``; adjusted over all slices by Romano and Wolf ``p_adjusted``,
        ``ci_low_adjusted``, ``ci_high_adjusted``, ``ci_cut``; ``found`` (the adjusted interval
        excludes 0), ``depth``, ``epsilon``, ``n_pairs``, ``n_queries``, ``n_items``,
        ``n_effective``, ``dof``. Attributes: how many conjunctions there were and why some were
        left out, the options, and with ``honest`` how many were found on the first half.
    audit : Audit
        The audit of the slices as groups.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> log = mpc.datasets.synthetic(queries=2_000)
    >>> found = mpc.discover(log, ["type", "query_type"], threshold=0.1, progress=False)
    >>> found.data.sizes["slice"], found.found[0]
    (6, 'type = 1')
    """

    def __init__(self, data: xr.Dataset, audit: AuditBase) -> None:
        self.data = data
        self._audit = audit
        self._few: pd.DataFrame | None = None

    @property
    def found(self) -> tuple[str, ...]:
        """The slices whose adjusted interval excludes 0, the most significant first."""
        return tuple(np.asarray(self.data["slice"].values)[self.data["found"].values].tolist())

    def to_frame(self) -> pd.DataFrame:
        """Return one row a slice, those found first."""
        return self.data.to_dataframe()

    def minimal(self) -> pd.DataFrame:
        r"""Return the few slices that explain the others.

        Net of these, in the regression of :meth:`mpc_lab.Audit.partial`, no other slice that was
        looked at is significant by Holm. The most significant slice is taken first, then the most
        significant one net of those taken, and so on; at the end those are left out without which
        it still holds. So no slice can be spared, though another set might be as small. Net of the
        others a slice keeps the share :math:`1 - R^2` of its effective clusters; with fewer than 20
        it is not tested.

        Returns
        -------
        pandas.DataFrame
            By slice: ``estimate``, ``ci_low_adjusted`` and ``ci_high_adjusted`` of the sweep, and
            of the joint fit, where the others are held fixed, ``net_estimate``,
            ``net_std_error``, ``net_ci_low``, ``net_ci_high``, ``net_p_value``. Empty where
            nothing was found.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> log = mpc.datasets.synthetic(queries=2_000)
        >>> found = mpc.discover(log, ["type", "query_type"], threshold=0.1, progress=False)
        >>> found.minimal().index.tolist()
        ['type = 1']
        """
        if self._few is None:
            self._few = self._minimal()
        return self._few.copy()

    def _minimal(self) -> pd.DataFrame:
        from mpc_lab.inference.discovery import choose_few

        names = self.data["slice"].values.tolist()
        chosen: list[int] = []
        if self.found:
            found = list(range(len(self.found)))
            level = float(self.data.attrs["level"])
            chosen = choose_few(self._net.test, found, len(names), level)
        index = pd.Index([names[k] for k in chosen], name="slice")
        columns: dict[str, Any] = {
            name: self.data[name].values[chosen]
            for name in ("estimate", "ci_low_adjusted", "ci_high_adjusted")
        }
        columns |= self._joint(chosen)
        return pd.DataFrame(columns, index=index)

    def _joint(self, chosen: list[int]) -> dict[str, Any]:
        """Return the joint fit of some slices."""
        from dataclasses import replace

        from mpc_lab.inference.partial import fit_partial
        from mpc_lab.pairing.close import Design
        from mpc_lab.pairing.log import PlainWalk, select_groups

        if not chosen:
            return {f"net_{name}": np.empty(0) for name in _NET}
        net = self._net
        masks = select_groups(net.log.masks, np.array(chosen, dtype=np.int64))
        walk = PlainWalk(replace(net.log, masks=masks))
        design = Design(len(chosen), net.width, net.by_place)
        how = {"cluster": net.cluster, "level": net.level, "owner": net.owner}
        found = fit_partial(walk, design, **how).net  # type: ignore[arg-type]
        return {f"net_{name}": getattr(found, name)[: len(chosen)] for name in _NET}

    @cached_property
    def _net(self) -> NetSlices:
        from mpc_lab.inference.discovery import NetSlices
        from mpc_lab.inference.partial import choose_width, count_close
        from mpc_lab.pairing.log import PlainWalk, apply_terms, select_groups, sort_rows

        audit, options = self._audit, settings(self._audit)
        ranking = need_rows(audit, "minimal")
        names = self.data["slice"].values.tolist()
        chosen = np.array([ranking.group_index(name) for name in names], dtype=np.int64)
        log = sort_rows(ranking, masks=select_groups(ranking.masks, chosen))
        log = apply_terms(terms_of(options), log, log)
        width = choose_width(PlainWalk(log), float(self.data["epsilon"].max()), 3)
        n_pairs = count_close(PlainWalk(log), width)
        if n_pairs > MOST_PAIRS:
            raise MpcError(
                f"There must be at most {MOST_PAIRS:,} close pairs for minimal(); got {n_pairs:,} "
                f"within {width:.3g}. Give a smaller threshold= to mpc.discover."
            )
        cluster, level, _ = inference_options(audit)
        return NetSlices(
            log,
            len(names),
            width,
            ranking.columns.sides_by_place,
            cluster,
            level,
            str(options.get("owner", ITEM)),
            FEWEST_CLUSTERS,
        )

    def summary(self) -> str:
        """Say in plain words what was looked at, what was found, and which few slices explain it.

        Computes :meth:`minimal` if that was not done before.
        """
        self.minimal()
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        return [*self._looked_at(), *self._findings(), *self._explain()]

    def _looked_at(self) -> list[str]:
        attrs = self.data.attrs
        whole = int(attrs["n_slices"])
        named = listing([quote(name) for name in str(attrs["attributes"]).splitlines()])
        left = int(attrs["n_conjunctions"]) - whole - int(attrs["n_same"])
        few = (
            f" {left:,} more could not be compared: fewer than {FEWEST_CLUSTERS} effective "
            "clusters on a side, or too few pairs shown in both orders."
        )
        were = "was" if whole == 1 else "were"
        lines = [
            f"{plural(whole, 'slice')} of {named} up to depth {attrs['depth']} {were} looked at, "
            "each compared with all other items, at a simultaneous level of "
            f"{percent(float(attrs['level']))}.{few if left else ''}"
        ]
        if attrs["honest"]:
            first, second = (f"{attrs[f'n_queries_{half}']:,}" for half in ("first", "second"))
            n = self.data.sizes["slice"]
            lines.append(
                f"On {first} queries {plural(int(attrs['n_first']), 'slice')} had a gap; {n:,} "
                f"{'was' if n == 1 else 'were'} tested on the other {second}."
                if attrs["n_first"]
                else f"On {first} queries no slice had a gap, so nothing was tested on the other "
                f"{second}."
            )
        return lines

    def _findings(self) -> list[str]:
        found = self.found
        if not found:
            return ["No slice has a gap whose adjusted interval excludes 0."]
        start = f"{plural(len(found), 'slice')} {'has' if len(found) == 1 else 'have'} a gap."
        options, mode = settings(self._audit), str(self.data.attrs["pairing_mode"])
        tied = has_tied_pairs(self._audit, "baseline")
        lines = [start]
        for name in found[:_SENTENCES]:
            one = self.data.sel(slice=name)
            low, high = (float(one[f"ci_{end}_adjusted"]) for end in ("low", "high"))
            value, ends = with_ends(float(one["estimate"]), low, high)
            size = value.lstrip("+−-")
            against = MODES[mode].compared_with(float(one["epsilon"]), tied)
            said = gap_in_words(float(one["estimate"]), size, against, options)
            lines.append(f"{quote(name)}: {said} (gap {ends}, adjusted).")
        if len(found) > _SENTENCES:
            lines.append(f"And {len(found) - _SENTENCES:,} more.")
        return lines

    def _explain(self) -> list[str]:
        if not self.found:
            return []
        if self._few is None:
            return ["Call minimal() for the few slices that explain the others."]
        few = [quote(name) for name in self._few.index]
        net = "it" if len(few) == 1 else "them"
        lines = [
            f"{'One slice explains' if len(few) == 1 else f'{len(few)} slices explain'} what was "
            f"found: net of {net}, no other slice has a significant gap. {listing(few)}."
        ]
        hidden = [quote(name) for name in self._few.index if name not in self.found]
        if hidden:
            are = "is" if len(hidden) == 1 else "are"
            lines.append(f"{listing(hidden)} {are} not significant without the others held fixed.")
        return lines

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        heads = [Head("Slice", True), Head("Gap"), Head("Adjusted interval"), Head("p, adjusted")]
        heads += [Head("Effective clusters"), Head("Found", True)]
        few = set() if self._few is None else set(self._few.index)
        rows = []
        for name in self.data["slice"].values[:_ROWS].tolist():
            one = self.data.sel(slice=name)
            low, high = (float(one[f"ci_{end}_adjusted"]) for end in ("low", "high"))
            said = ("explains others" if name in few else "yes") if bool(one["found"]) else ""
            rows.append(
                [
                    label(name),
                    entry(float(one["estimate"]), 3),
                    f"{entry(low, 3)} to {entry(high, 3)}",
                    entry(float(one["p_adjusted"]), ".3g"),
                    entry(float(one["n_effective"]), 0),
                    label(said),
                ]
            )
        shown = self.data.sizes["slice"] - len(rows)
        more = [f"And {shown:,} more: see to_frame()."] if shown > 0 else []
        return paragraphs(self._lines(), "") + table(heads, rows) + paragraphs(more, "")
