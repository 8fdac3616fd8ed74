"""The difference of gaps: labelled numbers, words, a gate, a file."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from mpc_lab import html
from mpc_lab.errors import AuditFailed, MpcError, check_number
from mpc_lab.inference.difference import (
    HIGHER,
    LOWER,
    NO_DIFFERENCE,
    Differences,
    NoWorse,
    assess_no_worse,
)
from mpc_lab.results.gate import InconclusiveAudit
from mpc_lab.text import entry, listing, minus, quote, with_interval
from mpc_lab.vocabulary import NOT_ESTIMABLE, Flags
from mpc_lab.writing import replacing, target_path

DIMS = ("group", "pairing_mode")
NOTES = {
    "difference": "gap of new less gap of old",
    "std_error": "standard error of the difference, from the stacked contributions",
    "ci_low": "lower end of its interval",
    "ci_high": "upper end of its interval",
    "p_value": "two-sided, against no difference",
    "dof": "degrees of freedom",
    "n_effective": "effective number of clusters",
    "p_adjusted": "adjusted over the groups",
    "ci_low_adjusted": "lower end of the adjusted interval",
    "ci_high_adjusted": "upper end of the adjusted interval",
    "ci_cut": "whether an end was set to 0 because the test rejects",
    "verdict": "higher, lower, inconclusive, no difference or not estimable",
    "verdict_reason": "why it is not estimable",
    "variance_from": "the variance that was used",
    "new": "gap of new",
    "old": "gap of old",
    "std_error_independent": "standard error as if both shared nothing",
    "sum_std_error": "standard error of the sum of both gaps",
    "sum_dof": "degrees of freedom of the sum",
    "n_pairs_new": "pairs of new",
    "n_pairs_old": "pairs of old",
    "n_pairs_shared": "pairs in both; NaN where that is not known",
    "epsilon_new": "threshold of new",
    "epsilon_old": "threshold of old",
    "ndcg_change": "change of NDCG, paired by query",
    "ndcg_change_low": "lower end of its interval",
    "ndcg_change_high": "upper end of its interval",
    "dcg_change": "change of DCG, paired by query",
    "dcg_change_low": "lower end of its interval",
    "dcg_change_high": "upper end of its interval",
    "churn": "share of queries whose top k differ",
    "displacement": "mean number of places that an item moves",
}
_NO_MARGIN = "Give no_worse_by in units of the outcome, such as 0.01."


class Difference:
    """The difference of two gaps for each group, with its inference, in numbers and in words.

    Made by :meth:`mpc_lab.Audit.difference` and :func:`mpc_lab.difference`. What is documented
    here is kept: the dims and variables of ``data``, its attributes, and the methods.

    Parameters
    ----------
    data : xarray.Dataset
        Dims (group, pairing_mode). ``difference`` (new less old), ``std_error``, ``ci_low``,
        ``ci_high``, ``p_value``, ``dof``, ``n_effective``; ``p_adjusted``, ``ci_low_adjusted``,
        ``ci_high_adjusted``, ``ci_cut`` (the groups of one mode are a family); ``verdict``
        (``higher``, ``lower``, ``inconclusive``, ``no difference``, ``not estimable``),
        ``verdict_reason``, ``variance_from``; ``new``, ``old`` (the two gaps), ``n_pairs_new``,
        ``n_pairs_old``, ``n_pairs_shared``, ``epsilon_new``, ``epsilon_old``;
        ``std_error_independent`` (as if both shared nothing), ``sum_std_error``, ``sum_dof`` (of
        the sum of both, for :meth:`check`). Where the rows are known, by group: ``ndcg_change``,
        ``dcg_change`` with ``_low`` and ``_high``, ``churn``, ``displacement``. Attributes:
        ``new``, ``old`` (what is compared, in words), ``cluster``, ``level``, ``adjust``,
        ``correction``, ``outcome``, ``from`` (``rows``, ``sums`` or ``queries``), ``notes``
        (sentences that qualify it) and ``assumes`` (``distinct queries`` or empty).

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> days = [mpc.audit(mpc.datasets.synthetic(2000, seed=k), progress=False) for k in (1, 2)]
    >>> found = mpc.difference(days[1], days[0])
    >>> found.groups
    ('1', '2')
    >>> mpc.difference(days[0], days[0]).data["verdict"].values.ravel().tolist()
    ['no difference', 'no difference']
    """

    def __init__(self, data: xr.Dataset) -> None:
        missing = [name for name in ("difference", "std_error", "verdict") if name not in data]
        if missing:
            raise MpcError(
                f"A difference must have the variables {', '.join(missing)}; got a dataset "
                "without them. Make one with mpc.difference(new, old)."
            )
        self.data = data

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return tuple(self.data["group"].values.tolist())

    @property
    def pairing_modes(self) -> tuple[str, ...]:
        """The pairing modes; the first one decides a gate."""
        return tuple(self.data["pairing_mode"].values.tolist())

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes that say what is compared, and how."""
        return {str(name): value for name, value in self.data.attrs.items()}

    def to_frame(self) -> pd.DataFrame:
        """Return a tidy frame, one row for each group and pairing mode.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(2000), progress=False)
        >>> mpc.difference(audit, audit).to_frame()[["group", "difference", "verdict"]]
          group  difference        verdict
        0     1         0.0  no difference
        1     2         0.0  no difference
        """
        return self.data.to_dataframe(dim_order=list(DIMS)).reset_index()

    def no_worse(self, no_worse_by: float = 0.0, level: float | None = None) -> pd.DataFrame:
        r"""Test whether each new gap is no further from 0 than the old one, up to a margin.

        :math:`|\theta_{new}| \le |\theta_{old}| + m` by two one-sided tests at a/2 each, from the
        stacked contributions; a = 1 − level.

        Parameters
        ----------
        no_worse_by : float
            The margin m, in units of the outcome.
        level : float, optional
            By default that of the difference.

        Returns
        -------
        pandas.DataFrame
            By group, for the first pairing mode: ``p_value`` (the larger of the two),
            ``no_worse``, and of the opposite ``worse_p_adjusted`` (Holm over groups), ``worse``.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(2000), progress=False)
        >>> bool(mpc.difference(audit, audit).no_worse()["no_worse"].all())
        True
        """
        margin = check_number("no_worse_by", no_worse_by, at_least=0, remedy=_NO_MARGIN)
        found = self._no_worse(float(margin), level)
        return pd.DataFrame(
            {
                "group": list(self.groups),
                "p_value": found.p_value,
                "no_worse": found.no_worse,
                "worse_p_adjusted": found.worse_p_adjusted,
                "worse": found.worse,
            }
        )

    def _no_worse(self, margin: float, level: float | None) -> NoWorse:
        cells = self.data.isel(pairing_mode=0)
        values = {name: cells[name].values for name in cells.data_vars}
        found = Differences(
            **{
                name: values[name]
                for name in ("difference", "std_error", "ci_low", "ci_high", "p_value", "dof")
            },
            n_effective=values["n_effective"],
            same=np.asarray(values["verdict"] == NO_DIFFERENCE),
            reason=values["verdict_reason"],
            variance_from=values["variance_from"],
            sum=values["new"] + values["old"],
            sum_std_error=values["sum_std_error"],
            sum_dof=values["sum_dof"],
        )
        level = float(self.data.attrs["level"]) if level is None else level
        return assess_no_worse(found, values["new"], values["old"], margin=margin, level=level)

    def gate(
        self, no_worse_by: float = 0.0, level: float | None = None
    ) -> tuple[int, str, tuple[str, ...]]:
        """Return 0, 1 or 2 with a sentence and the groups it is about.

        0 where every group is shown to be no worse by more than the margin; 1 where some group is
        shown to be worse by more; else 2.

        Parameters
        ----------
        no_worse_by, level
            As in :meth:`no_worse`.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(2000), progress=False)
        >>> mpc.difference(audit, audit).gate()[0]
        0
        """
        found = self.no_worse(no_worse_by, level)
        if found["worse"].any():
            groups = self._names_of(found["worse"].to_numpy())
            what = "The new gap is further from 0 than the old one"
            answer = 1
        elif found["no_worse"].all():
            groups = ()
            what = "No new gap is further from 0 than the old one"
            answer = 0
        else:
            groups = self._names_of(~found["no_worse"].to_numpy())
            what = "The difference cannot tell whether the new gap is further from 0"
            answer = 2
        by = f" by more than {no_worse_by:g}" if no_worse_by else ""
        named = f": {listing([quote(group) for group in groups])}" if groups else ""
        return answer, f"{what}{by}{named}.", groups

    def _names_of(self, chosen: Flags) -> tuple[str, ...]:
        return tuple(group for group, flag in zip(self.groups, chosen, strict=True) if flag)

    def check(
        self, no_worse_by: float = 0.0, level: float | None = None, inconclusive: str = "warn"
    ) -> None:
        """Raise :class:`mpc_lab.AuditFailed` where a new gap is further from 0 than the old one.

        Parameters
        ----------
        no_worse_by : float
            How much further it may be, in units of the outcome.
        level : float, optional
            By default that of the difference.
        inconclusive : {"warn", "raise", "pass"}
            What to do where the data cannot tell.

        Returns
        -------
        None
            Where every group is no worse, or it is inconclusive and that is not ``"raise"``.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(2000), progress=False)
        >>> mpc.difference(audit, audit).check(no_worse_by=0.01)
        """
        if inconclusive not in ("warn", "raise", "pass"):
            raise MpcError(f"inconclusive must be 'warn', 'raise' or 'pass'; got {inconclusive!r}.")
        answer, message, groups = self.gate(no_worse_by, level)
        if answer == 1 or (answer == 2 and inconclusive == "raise"):
            raise AuditFailed(message, groups)
        if answer == 2 and inconclusive == "warn":
            warnings.warn(message, InconclusiveAudit, stacklevel=2)

    def summary(self) -> str:
        """Say in plain words what differs, by group.

        Returns
        -------
        str
            One sentence a line.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(2000), progress=False)
        >>> print(mpc.difference(audit, audit).summary().splitlines()[1])
        Group '1': no difference: both gaps are made of the same pairs.
        """
        attrs = self.data.attrs
        lines = [f"Gap of {attrs['new']} less gap of {attrs['old']}."]
        modes = self.pairing_modes
        for mode in modes:
            cells = self.data.sel(pairing_mode=mode)
            for group in self.groups:
                where = f", {mode} pairs" if len(modes) > 1 else ""
                said = self.sentence(cells.sel(group=group))
                lines.append(f"Group {quote(group)}{where}: {said}")
        return "\n".join(
            [*lines, *(note for note in str(attrs.get("notes", "")).split("\n") if note)]
        )

    def sentence(self, of_cell: xr.Dataset) -> str:
        """Say in plain words what differs in one cell.

        Parameters
        ----------
        of_cell : xarray.Dataset
            One group and pairing mode of ``data``.
        """
        cell = {str(name): of_cell[name].item() for name in of_cell.data_vars}
        if cell["verdict"] == NO_DIFFERENCE:
            return "no difference: both gaps are made of the same pairs."
        if cell["verdict"] == NOT_ESTIMABLE:
            return f"not estimable: {cell['verdict_reason'] or 'a gap has no pairs'}."
        ends = (cell["ci_low_adjusted"], cell["ci_high_adjusted"])
        size = with_interval(cell["difference"], *ends)
        attrs = self.data.attrs
        gaps = ", ".join(
            f"{entry(cell[side], 3)} for {attrs.get(side, side)}" for side in ("old", "new")
        )
        word = f"the gap in `{attrs.get('outcome', 'outcome')}`"
        if cell["verdict"] in (HIGHER, LOWER):
            return f"{word} is {cell['verdict']}: difference {size}; {gaps}."
        return f"{word} may be lower or higher: difference {size}; {gaps}."

    def __str__(self) -> str:
        return self.summary()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = ["group", "pairs", "old", "new", "difference", "adjusted interval", "p", "verdict"]
        rows = []
        for cell in self.to_frame().to_dict("records"):
            ends = (cell["ci_low_adjusted"], cell["ci_high_adjusted"])
            known = np.isfinite(ends).all()
            size = with_interval(cell["difference"], *ends) if known else "–"
            value, _, interval = size.partition(" (")
            rows.append(
                [
                    str(cell["group"]),
                    str(cell["pairing_mode"]),
                    entry(cell["old"], 3),
                    entry(cell["new"], 3),
                    value,
                    interval.rstrip(")") or "–",
                    entry(cell["p_adjusted"], ".3f"),
                    str(cell["verdict"]),
                ]
            )
        cells = "".join(
            "<tr>" + "".join(f"<td>{html.escape(minus(one))}</td>" for one in row) + "</tr>"
            for row in rows
        )
        heads = "".join(f"<th>{html.escape(one)}</th>" for one in head)
        caption = html.escape(self.summary().splitlines()[0])
        table = f"<thead><tr>{heads}</tr></thead><tbody>{cells}</tbody>"
        notes = [note for note in str(self.data.attrs.get("notes", "")).split("\n") if note]
        return f"<table><caption>{caption}</caption>{table}</table>{html.paragraphs(notes)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain objects that JSON can hold; what is not a number is None.

        Returns
        -------
        dict
            ``attrs`` and ``cells``, one for each group and pairing mode.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(2000), progress=False)
        >>> mpc.difference(audit, audit).to_dict()["cells"][0]["verdict"]
        'no difference'
        """

        def plain(value: Any) -> Any:
            value = value.item() if isinstance(value, np.generic) else value
            return None if isinstance(value, float) and not np.isfinite(value) else value

        cells = [
            {str(name): plain(value) for name, value in cell.items()}
            for cell in self.to_frame().to_dict("records")
        ]
        return {"attrs": {name: plain(value) for name, value in self.attrs.items()}, "cells": cells}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the difference to a netCDF file.

        Parameters
        ----------
        path : path
            The file; its folder must exist.

        Examples
        --------
        >>> import tempfile
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(2000), progress=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mpc.difference(audit, audit).save(f"{folder}/d.nc")
        ...     mpc.Difference.load(f"{folder}/d.nc").groups
        ('1', '2')
        """
        target_path(path)
        # To a path, never to a buffer: if there is a Dask client, xarray locks by the target's
        # name.
        with replacing(path) as part:
            self.data.to_netcdf(part, engine="h5netcdf")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Difference:
        """Read a difference that was saved.

        Parameters
        ----------
        path : path
            A file written by :meth:`save`.
        """
        try:
            data = Path(path).expanduser().read_bytes()
            with xr.open_dataset(io.BytesIO(data), engine="h5netcdf") as file:
                found = file.load()
        except (OSError, ValueError, KeyError) as error:
            raise MpcError(
                f"{str(path)!r} cannot be read as a difference: {error}. Give a file written by "
                "Difference.save()."
            ) from error
        for name in found.variables:
            if found[name].dtype.kind in "OTU":
                found[name] = found[name].astype(np.str_)
        return cls(found)
