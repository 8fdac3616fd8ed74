"""The result of an audit: labelled numbers and the questions one may ask of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from mpc_lab.errors import check_flag
from mpc_lab.results import gate as _gate
from mpc_lab.results import preflight as _preflight
from mpc_lab.results import recipe as _recipe
from mpc_lab.results import storage as _storage
from mpc_lab.results import summary as _summary
from mpc_lab.results import view as _view
from mpc_lab.results.base import check_label
from mpc_lab.results.preflight.look import Finding
from mpc_lab.results.questions import Questions
from mpc_lab.results.recipe import Recipe
from mpc_lab.results.schema import HEADLINE_DIMS


class Audit(Questions):
    """The gap of each group, with its inference, in numbers and in words.

    Made by :func:`mpc_lab.audit` and :func:`mpc_lab.load`.

    Parameters
    ----------
    headline : xarray.Dataset
        Dims (group, scoring_rule, pairing_mode), each cell at its own threshold.
    curve : xarray.Dataset or callable
        Dims (group, epsilon, scoring_rule, pairing_mode), or a function of no argument that makes
        it when it is first asked for.
    moments : xarray.Dataset or callable, optional
        The sums behind both; they are saved along.
    attrs : mapping, optional
        Numbers and texts that make the audit reproducible; ``options``, ``versions`` and
        ``family`` are one JSON text each.
    ranking : Ranking, optional
        The rows, for the methods that need them. Never saved.
    scores : callable, optional
        (rule label, group) to the float64 scores of that rule, or None for the scores as logged.
    cross : callable, optional
        From the number of a rule to how its thresholds move together over queries.
    saved : mapping of xarray.Dataset, optional
        What was saved beside the audit: ``objective``, and for pooling ``items``, ``dyads``,
        ``cross``, ``ids``.
    own : sequence of Moments, optional
        The plain sums behind the headline, for each rule; otherwise taken from `moments`.
    grid : array, optional
        The thresholds of the curve, known before it is made.
    curve_part : callable, optional
        (group, rule label) to the curve of these two alone, in the form of `curve`.
    curve_parts : callable, optional
        Makes these for (groups, rule label) in one walk of the log, for `curve_part` to return.
    reread : callable, optional
        Reads the rows again, for the first method that needs them.
    walk : Rewalk, optional
        Walks the log again, wherever it is, for what can be had without all its rows.

    Attributes
    ----------
    headline, attrs, ranking
        As given.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=20_000), progress=False)
    >>> audit.groups
    ('1', '2')
    >>> audit.headline["verdict"].sel(group="1").item()
    'undervalued'
    >>> audit.pairs("1", limit=2).columns[:3].tolist()
    ['query', 'item', 'other_item']
    """

    @property
    def tree(self) -> xr.DataTree:
        """Headline, curve, objective and moments in one tree, with the attributes at its root."""
        attrs = dict(self.attrs)
        if self.ranking is not None:
            attrs["fingerprint"] = self.ranking.fingerprint()
            attrs[_preflight.SAVED] = _preflight.to_json(self._checked)
        parts = {"/": xr.Dataset(attrs=attrs), "headline": self.headline, "curve": self.curve}
        if self.ranking is not None or "objective" in self._saved:
            parts["objective"] = self.objective
        if self.moments is not None:
            parts["moments"] = self.moments
        return xr.DataTree.from_dict(parts)

    @cached_property
    def preflight(self) -> pd.DataFrame:
        """What would make the findings say something else, one row a check.

        Columns ``check``, ``state`` (``"ok"``, ``"caution"`` or ``"stop"``), ``sentence`` and
        ``remedy``, a call to paste or a sentence. What is not ok is printed above the findings.
        For a log that stays in files or on a cluster, checks that need its rows are left out.
        """
        return _preflight.to_frame(self._checked)

    @cached_property
    def _checked(self) -> list[Finding]:
        return _preflight.find(self)

    def curve_of(
        self, group: str, scoring_rule: str = "baseline", pairing_mode: str = "matched"
    ) -> xr.Dataset:
        """Return the curve of one cell, without waiting for those of all others.

        The numbers are those of ``curve`` at this cell. On a log in memory they take as long as
        one group under one scoring rule does, and are kept.

        Parameters
        ----------
        group, scoring_rule, pairing_mode : str
            The cell.

        Returns
        -------
        xarray.Dataset
            Along ``epsilon``, with the variables of ``curve``.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> ranking = mpc.datasets.synthetic(queries=2_000)
        >>> audit = mpc.audit(ranking, epsilon=[0.01, 0.02, 0.05], progress=False)
        >>> audit.curve_of("1").n_pairs.values
        array([ 306,  585, 1471])
        """
        cell = {"group": group, "scoring_rule": scoring_rule, "pairing_mode": pairing_mode}
        for dim, label in cell.items():
            check_label(dim.replace("_", " "), label, self.headline[dim].values.tolist())
        part, is_made = self._curve_part, "curve" in vars(self)
        found = self.curve if part is None or is_made else part(group, scoring_rule)
        return found.sel(cell)

    def _make_curves(self, groups: Sequence[str], scoring_rule: str) -> None:
        """Make the curves of some groups at once, where :meth:`curve_of` would make each alone."""
        if self._curve_parts is not None and "curve" not in vars(self):
            self._curve_parts(groups, scoring_rule)

    def to_frame(self) -> pd.DataFrame:
        """Return the headline as a tidy frame.

        Returns
        -------
        pandas.DataFrame
            One row for each cell; standard errors by variance become ``std_error_<variance>``.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> audit.to_frame()[["group", "n_pairs", "verdict"]]
          group  n_pairs       verdict
        0     1      151  inconclusive
        1     2      150  inconclusive
        """
        flat = self.headline.drop_vars(["std_error_by", "variance"])
        for family in self.headline["variance"].values.tolist():
            one = self.headline["std_error_by"].sel(variance=family, drop=True)
            flat[f"std_error_{family}"] = one
        return flat.to_dataframe(dim_order=list(HEADLINE_DIMS)).reset_index()

    def to_metrics(self) -> dict[str, float]:
        """Return the headline as a flat dict of numbers, for an experiment tracker.

        Returns
        -------
        dict of str to float
            Keys ``<rule>.<mode>.<group>.<variable>``, and ``<rule>.<mode>.n_flagged``, made of
            letters, digits, ``_``, ``.``, ``-`` and spaces; other characters become ``_``, and a
            number is added where two names would be one. ``flagged`` is 1 where the verdict is
            undervalued or overvalued, ``gate`` is what :meth:`check` goes by (0 passes, 1 fails,
            2 cannot tell). What is not a finite number is left out.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> found = audit.to_metrics()
        >>> found["baseline.matched.1.n_pairs"], found["gate"]
        (151.0, 0.0)
        """
        return _gate.metrics(self)

    def summary(self) -> str:
        """Say in plain words what was found, what was not, and how it was compared.

        Returns
        -------
        str
            One sentence a line; ``print(audit)`` and a notebook show the same.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=20_000), progress=False)
        >>> audit.summary().split(":")[0]
        "Group '1' is undervalued"
        """
        return _summary.summary(self)

    def check(
        self,
        tolerance: float | None = None,
        level: float | None = None,
        inconclusive: str = "warn",
        *,
        anytime: bool = False,
        planned: int = 1000,
        scoring_rule: str | None = None,
        min_pairs: int = 0,
        min_effective: float = 0,
    ) -> None:
        """Raise :class:`mpc_lab.AuditFailed` where a group is outside the tolerance.

        With a tolerance, the audit passes if every bracket is inside ± the tolerance, and fails
        if one is wholly outside it with a direction verdict; otherwise it is inconclusive.
        Without a tolerance it fails on any direction verdict, is inconclusive where no group could
        be estimated, and else passes. One scoring rule and the first pairing mode asked for decide;
        what-if rules and further modes do not.

        Parameters
        ----------
        tolerance, level : float, optional
            By default those of the audit.
        inconclusive : {"warn", "raise", "pass"}
            What to do where the audit cannot tell.
        anytime : bool
            Decide by :meth:`confidence_sequence` instead, for an audit that is run again as its log
            grows: over all runs together the gate fails without a reason at most as often as the
            level says. Needs the bounds of the outcome (``bounds=(0, 5)`` of
            :func:`mpc_lab.audit`) and a number as threshold, fixed before the first run.
        planned : int
            The number of queries at which those intervals should be tightest.
        scoring_rule : str, optional
            The rule to decide by; by default the one of ``primary``, else ``baseline``, or the
            first of an audit without it.
        min_pairs : int
            Groups with fewer pairs are named and do not decide.
        min_effective : float
            Nor do groups with fewer effective clusters (``n_effective``).

        Returns
        -------
        None
            Where the audit passes, or is inconclusive and `inconclusive` is not ``"raise"``.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> audit.check(tolerance=0.2)
        >>> try:
        ...     audit.check(tolerance=0.001, inconclusive="raise")
        ... except mpc.AuditFailed as failed:
        ...     failed.groups
        ('1', '2')
        """
        sequence = planned if check_flag("anytime", anytime) else None
        least = _gate.Least(min_pairs, min_effective)
        _gate.check(self, tolerance, level, inconclusive, sequence, scoring_rule, least)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        items: bool = False,
        ids: bool = False,
        queries: bool = False,
        key: str | None = None,
    ) -> None:
        """Write the audit, aggregates only and never rows, to a netCDF file.

        Parameters
        ----------
        path : path
            The file; its folder must exist.
        items : bool
            Also write the sums of every item, so that :func:`mpc_lab.pool` can add up item and
            union variance and the band.
        ids : bool
            Also write a hash of every query id, so that a pool can tell whether a query occurs in
            two audits.
        queries : bool
            Also write the pairs and the sum of every query at the headline, under a hash of its
            id, so that :meth:`difference` works without rows, and :func:`mpc_lab.difference` can
            compare audits of the same queries.
        key : str
            The secret that the hashes of `ids` and `queries` are made with; the same for all
            audits that are pooled or compared.

        Returns
        -------
        None
            The file is replaced only once the new one is complete.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     audit.save(Path(folder, "audit.nc"))
        ...     mpc.load(Path(folder, "audit.nc")).groups
        ('1', '2')
        """
        _storage.save(self, path, items=items, ids=ids, queries=queries, key=key)

    def report(
        self,
        path: str | os.PathLike[str],
        pairs: int = 0,
        covariates: Any = (),
        progress: bool | None = None,
        *,
        planned: int | None = None,
        gate_rule: str | None = None,
        show_ids: bool = False,
        min_pairs: int = 0,
        min_effective: float = 0,
        title: str | None = None,
    ) -> Path:
        """Write one self-contained page, which needs no network and can be printed.

        The finding in words, every group with its verdict, curves of flagged groups with their
        limit and certificate, what the inference rests on, the rivals and why they disagree, the
        boost that would close a gap and its cost, the method with its equations, and every setting.
        What needs the rows of the log is left out, and named, where the audit has none.

        Parameters
        ----------
        path : path
            The file; its folder must exist.
        pairs : int
            How many pairs of each flagged group to show, with the ids of items as in the log;
            queries are numbered. By default the page holds aggregates only.
        covariates
            Columns whose balance is shown, as in :meth:`balance`.
        progress : bool, optional
            Whether to show a progress bar; by default in a terminal or notebook when the work is
            long.
        planned : int, optional
            Also say how the gate decides by :meth:`confidence_sequence`, tightest at this many
            queries, as :meth:`check` does with ``anytime=True``. The verdicts stay as they are.
        gate_rule : str, optional
            The scoring rule that this gate goes by, as in :meth:`check`.
        show_ids : bool
            Name the queries of these pairs by their ids: ask first who may read them.
        min_pairs, min_effective
            What a group needs to decide this gate, as in :meth:`check`.
        title : str, optional
            What the audit is about, such as "search, model 7, week 12"; shown after the heading.

        Returns
        -------
        pathlib.Path
            The file.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     audit.report(Path(folder, "report.html"), progress=False).name
        'report.html'
        """
        from mpc_lab.report import write

        least = _gate.Least(min_pairs, min_effective)
        shown = (pairs, covariates, progress)
        return write(self, path, *shown, planned, gate_rule, show_ids, least, title)

    def to_json(
        self,
        curve: bool = True,
        *,
        planned: int | None = None,
        gate_rule: str | None = None,
        min_pairs: int = 0,
        min_effective: float = 0,
    ) -> str:
        """Return the numbers of the audit as one JSON text.

        ``mpc_lab.report.schema()`` is the JSON Schema that it keeps to.

        Parameters
        ----------
        curve : bool
            Whether to include the curve over ε.
        planned : int, optional
            Decide ``gate`` by :meth:`confidence_sequence`, tightest at this many queries, as
            :meth:`check` does with ``anytime=True``. The cells stay as they are.
        gate_rule : str, optional
            The scoring rule that ``gate`` goes by, as in :meth:`check`.
        min_pairs, min_effective
            What a group needs to decide ``gate``, as in :meth:`check`.

        Returns
        -------
        str

        Examples
        --------
        >>> import json
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> json.loads(audit.to_json(curve=False))["data"]["n_queries"]
        2000
        """
        from mpc_lab.report import to_json

        least = _gate.Least(min_pairs, min_effective)
        return to_json(self, check_flag("curve", curve), planned, gate_rule, least)

    def recipe(self) -> Recipe:
        """Return what it takes to make the same numbers again.

        Versions, options, checksums of the rows and files, the seed, and one call, or one command
        line for a log in files, to paste. A report, a model card and the JSON have it too.

        Returns
        -------
        mpc_lab.results.Recipe
            It prints; ``call``, ``command`` and ``to_json()`` give its parts.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> ranking = mpc.datasets.synthetic(queries=200)
        >>> audit = mpc.audit(ranking, threshold=0.05, progress=False)
        >>> space = {"frame": ranking.to_frame()}
        >>> exec(audit.recipe().call, space)
        >>> space["audit"].headline.identical(audit.headline)
        True
        """
        return _recipe.recipe(self)

    def model_card(
        self,
        *,
        planned: int | None = None,
        gate_rule: str | None = None,
        min_pairs: int = 0,
        min_effective: float = 0,
        title: str | None = None,
    ) -> str:
        """Return a section for a model card, in Markdown.

        Parameters
        ----------
        planned : int, optional
            Also say how the gate decides by :meth:`confidence_sequence`, tightest at this many
            queries, as :meth:`check` does with ``anytime=True``. The verdicts stay as they are.
        gate_rule : str, optional
            The scoring rule that this gate goes by, as in :meth:`check`.
        min_pairs, min_effective
            What a group needs to decide this gate, as in :meth:`check`.
        title : str, optional
            What the audit is about, such as "search, model 7, week 12"; shown after the heading.

        Returns
        -------
        str

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> audit.model_card().splitlines()[0]
        '## Matched pair calibration'
        """
        from mpc_lab.report import model_card

        least = _gate.Least(min_pairs, min_effective)
        return model_card(self, planned, gate_rule, least, title)

    def explore(self, **start: Any) -> Any:
        """Explore the audit in a notebook: sliders, charts and the pairs themselves.

        Parameters
        ----------
        **start
            Where to start: ``group``, ``scoring_rule``, ``pairing_mode``, ``epsilon``, ``tab``.
            ``label=`` is the column of the log with the titles of items, for the tab *Pairs*.
            ``old=`` is another audit to compare this one with, in the tab *Compare*, which is
            also there where the audit has two scoring rules. ``live=True`` lets ε be moved in the
            picture that stays when the notebook is exported to HTML; the notebook grows by the
            chart library, some 1 MB for each such output.

        Returns
        -------
        mpc_lab.explorers.AuditExplorer

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> audit.explore(group="1").state.group
        '1'
        """
        from mpc_lab.explorers import AuditExplorer

        return AuditExplorer(self, **start)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return _view.html_view(self)
