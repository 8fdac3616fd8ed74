"""`FairOffsets`: fit, choose and report on three parts of the queries, then score any table."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from decimal import Decimal
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mpc_lab import __version__
from mpc_lab.engines.running import Progress
from mpc_lab.errors import MpcError, check_flag, check_number, check_whole, near_match
from mpc_lab.objective.offsets import shift_scores
from mpc_lab.offsets.fitting import Asked, find_offsets, make_guarantee
from mpc_lab.offsets.guarantee import Guarantee
from mpc_lab.pairing.kernels import announce_compilation
from mpc_lab.pairing.log import select_groups
from mpc_lab.ranking import Ranking
from mpc_lab.ranking.columns import get_column, numbers, open_table, read_groups
from mpc_lab.results.schema import AuditBase
from mpc_lab.roles import ROLES
from mpc_lab.vocabulary import Floats

if TYPE_CHECKING:
    from typing import Self

_FORMAT = "mpc_lab.FairOffsets"


class FairOffsets:
    r"""Offsets of groups, added to the score, that bring their gaps within a tolerance.

    A row's new score is its score plus the offsets of all groups it is in. Queries (or units) are
    divided at random: a half to fit, a quarter to choose, a quarter to report on.

    *Fit.* :math:`\beta \leftarrow \beta + \hat\theta/\hat\kappa`, :math:`\hat\theta` the gaps net
    of each other in the regression of :meth:`mpc_lab.Audit.partial` on the scores
    :math:`s + M\beta`, over pairs at most half a standard deviation σ of the scores apart, with a
    ridge of 0.001; :math:`\hat\kappa` its slope on s, fitted once. A step is at most σ/4; there are
    at most 10, and none once no :math:`|\hat\theta|` exceeds half its standard error. Where the
    interval of κ is not above 0 there are no offsets.

    *Choose.* Along β·t, t = 1, ¾, ½, ¼, 0, going down as long as every group's ``symmetric`` gap
    is inside ± ``tolerance`` and NDCG falls by at most ``ndcg_drop``, one-sided at 1 − level at
    each end; the last t that passed is taken. The order is fixed and all conditions must hold, so
    the level needs no further correction. Where t = 1 fails, nothing is promised and
    `transform` leaves scores as they are.

    *Report.* Gaps and NDCG on the part that was not used before are in ``guarantee_``.

    Gaps are means over pairs under the estimand ``root``, clustered by query: what is promised is
    promised for new queries on the catalogue as it is. Thresholds are the first percentiles of
    distances in the half that fits.

    Scoring by group may be unlawful, in hiring and lending above all. Offsets are a measure of what
    scores leave out as much as a remedy.

    It has ``get_params`` and ``set_params``, works with ``sklearn.base.clone``, and does not need
    scikit-learn.

    Parameters
    ----------
    tolerance : float, optional
        In units of the outcome; by default 0.2 standard deviations of the outcome.
    ndcg_drop : float, optional
        The most that NDCG may fall; None: NDCG does not count.
    min_effective : float
        Groups with fewer effective queries, in the half that fits, get no offset, are not judged
        and are listed.
    level : float
        Confidence level of what is promised.
    seed : int
        Seed of the division into parts.

    Attributes
    ----------
    offsets_ : pandas.Series
        What is added to the score of each group's items; 0 throughout where nothing is promised.
        With ``ascending=True`` an offset below 0 ranks higher.
    unproven_offsets_ : pandas.Series
        The fitted β, whether or not it passed.
    guarantee_ : Guarantee
        Prints what is promised and what was measured; has ``holds``, ``sentence``,
        ``to_frame()`` and ``tried``.
    n_steps_ : int
        Steps of the fit.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> ranking = mpc.datasets.synthetic(queries=4000)
    >>> fair = mpc.FairOffsets(tolerance=0.2, ndcg_drop=0.01).fit(ranking)
    >>> fair.guarantee_.holds
    True
    >>> bool((fair.transform(ranking.to_frame()) >= ranking.score).all())
    True
    """

    def __init__(
        self,
        tolerance: float | None = None,
        ndcg_drop: float | None = 0.001,
        min_effective: float = 20,
        *,
        level: float = 0.95,
        seed: int = 0,
    ) -> None:
        # Kept as given, so that a clone has the same; checked when fitted.
        self.tolerance = tolerance
        self.ndcg_drop = ndcg_drop
        self.min_effective = min_effective
        self.level = level
        self.seed = seed

    # ---- what scikit-learn expects

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        named = signature(cls).parameters
        return {name: parameter.default for name, parameter in named.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool
            Makes no difference: no parameter is an estimator.
        """
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; they are checked when `fit` is called."""
        known = self._defaults()
        for name, value in params.items():
            if name not in known:
                raise MpcError(f"FairOffsets has no parameter {name!r}.{near_match(name, known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = self._defaults()
        changed = (
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if repr(value) != repr(defaults[name])
        )
        return f"FairOffsets({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "guarantee_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            # For a ranking and a table: an array of numbers says nothing about queries and groups.
            input_tags=InputTags(two_d_array=False, allow_nan=True),
            no_validation=True,
        )

    # ---- fit

    def fit(self, ranking: Ranking, y: None = None) -> Self:
        """Fit, choose and report offsets of all groups of a ranking.

        Parameters
        ----------
        ranking : Ranking
            With scores. Where it has positions and no ``examined=``, outcomes are taken as logged,
            and ``guarantee_.caution`` says what that means.
        y : None
            Not used; pipelines pass it.

        Returns
        -------
        FairOffsets
            Itself.
        """
        asked = self._check()
        _check_ranking(ranking, asked.ndcg_drop)
        with Progress(None) as bar, announce_compilation(bar.wanted):
            found = find_offsets(ranking, asked)
        sign = -1.0 if ranking.columns.ascending else 1.0
        names = pd.Index(ranking.groups, name="group")
        self.columns_ = ScoreColumns.of(ranking)
        self.offsets_ = pd.Series(sign * found.chosen + 0.0, index=names, name="offset")
        self.unproven_offsets_ = pd.Series(sign * found.fitted + 0.0, index=names, name="offset")
        self.n_steps_ = found.n_steps
        tested = self.unproven_offsets_ if np.isnan(found.share) else self.offsets_
        self.guarantee_ = make_guarantee(found, asked, ranking, tested)
        return self

    def _check(self) -> Asked:
        tolerance, drop = self.tolerance, self.ndcg_drop
        return Asked(
            None if tolerance is None else check_number("tolerance", tolerance, above=0),
            None if drop is None else check_number("ndcg_drop", drop, at_least=0, at_most=1),
            check_number("min_effective", self.min_effective, at_least=3),
            check_number("level", self.level, above=0.5, below=1, remedy="Try level=0.95."),
            check_whole("seed", self.seed),
        )

    # ---- use

    def transform(self, frame: Any, unproven: bool = False) -> Floats:
        """Return the score of each row with the offsets of its groups added.

        Groups are read as the ranking's were: from labels, lists, split text or boolean columns.
        A row without a label is in no group, and a label that was not there before has no offset.
        Offsets are added in the order of the groups' names.

        Parameters
        ----------
        frame : table or dict of arrays
            With the columns of score and group that the ranking had; any table that
            :class:`mpc_lab.Ranking` takes.
        unproven : bool
            Add the fitted offsets whether or not they passed.

        Returns
        -------
        float64 array
            NaN where a score is missing.
        """
        if isinstance(frame, Ranking):
            raise MpcError(
                "frame must be a table; got a Ranking. Give ranking.to_frame(), which has the "
                "columns that the ranking was made from."
            )
        return self.columns_of_fit.shift(frame, self._offsets(unproven))

    def to_sql(self, score: str | None = None, *, unproven: bool = False) -> str:
        """Return the same as `transform` as an expression in SQL, in the dialect of DuckDB.

        Run in DuckDB on the same rows it gives the same bits.

        Parameters
        ----------
        score : str, optional
            The column of the score; by default the ranking's.
        unproven : bool
            As in `transform`.

        Returns
        -------
        str
        """
        columns = self.columns_of_fit
        if score is not None and not isinstance(score, str):
            raise MpcError(f"score must be the name of a column; got {score!r}.")
        return columns.to_sql(
            str(columns.score) if score is None else score, self._offsets(unproven)
        )

    def to_json(self) -> str:
        """Return parameters, columns, offsets and guarantee as one JSON text."""
        columns = self.columns_of_fit.to_dict()
        made = {
            "format": _FORMAT,
            "version": __version__,
            "params": self.get_params(),
            "columns": columns,
            "offsets": self.offsets_.to_dict(),
            "unproven_offsets": self.unproven_offsets_.to_dict(),
            "n_steps": self.n_steps_,
            "guarantee": self.guarantee_.to_dict(),
        }
        return json.dumps(made, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> FairOffsets:
        """Return the fitted estimator that `to_json` wrote; its scores have the same bits.

        Parameters
        ----------
        text : str

        Returns
        -------
        FairOffsets
        """
        try:
            given = json.loads(text)
            if given["format"] != _FORMAT:
                raise ValueError("another format")
            made = cls(**given["params"])
            made.columns_ = ScoreColumns.from_dict(given["columns"])
            made.offsets_ = _series(given["offsets"])
            made.unproven_offsets_ = _series(given["unproven_offsets"])
            made.n_steps_ = int(given["n_steps"])
            made.guarantee_ = Guarantee.from_dict(given["guarantee"])
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise MpcError(
                "The text must be JSON that FairOffsets.to_json returned; got other text. "
                "Pass the JSON itself, not the path of a file."
            ) from error
        return made

    @property
    def columns_of_fit(self) -> ScoreColumns:
        """The columns that the ranking had; an error before `fit`."""
        if not self.__sklearn_is_fitted__():
            raise MpcError(
                "FairOffsets must be fitted before it is used; got it unfitted. Call fit(ranking)."
            )
        return self.columns_

    def _offsets(self, unproven: bool) -> pd.Series[float]:
        return self.unproven_offsets_ if check_flag("unproven", unproven) else self.offsets_


def _series(values: dict[str, float]) -> pd.Series[float]:
    index = pd.Index(list(values), name="group", dtype="str")
    return pd.Series(list(values.values()), index=index, name="offset", dtype=np.float64)


def _check_ranking(ranking: Any, drop: float | None) -> None:
    if not isinstance(ranking, Ranking):
        remedy = "Make one with mpc.Ranking(frame, query=…, score=…, outcome=…, group=…)."
        if isinstance(ranking, AuditBase):
            remedy = "Pass audit.ranking."
        raise MpcError(f"ranking must be an mpc.Ranking; got {type(ranking).__name__}. {remedy}")
    if ranking.columns.is_rank_only:
        raise MpcError(
            "FairOffsets must have scores to add offsets to; got a log with positions only. Name "
            "the score column of the ranking."
        )
    if drop is not None and (ranking.outcome < 0).any():
        raise MpcError(
            "outcomes must be at least 0 for an NDCG; got some below 0. Pass ndcg_drop=None to "
            "judge offsets by the gaps alone."
        )


# What Python strips from the ends of a label, as a class of characters for RE2.
_SPACE = r"[\x09-\x0D\x1C-\x20\x{85}\p{Z}]+"
_AS_NUMBERS = ("number", "number lists")
# The largest whole number that SQL writes as one.
_LARGEST_WHOLE = 2**63 - 1


@dataclass(frozen=True)
class ScoreColumns:
    """The columns that offsets depend on, as they were named for the ranking.

    Attributes
    ----------
    score : column
    group : column, or tuple of boolean columns
    group_sep : str or None
    ascending : bool
        Whether a smaller score is better: offsets are then subtracted.
    kind : str
        As in `mpc_lab.ranking.columns.label_kind`.
    """

    score: Hashable
    group: Hashable
    group_sep: str | None
    ascending: bool
    kind: str

    @classmethod
    def of(cls, ranking: Ranking) -> ScoreColumns:
        """Return the columns of a ranking."""
        names = ranking.columns
        return cls(
            names.score, names.group, names.group_sep, bool(names.ascending), ranking.group_kind
        )

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> ScoreColumns:
        """Return the columns that `to_dict` described."""
        group = given["group"]
        return cls(**given | {"group": tuple(group) if isinstance(group, list) else group})

    def to_dict(self) -> dict[str, Any]:
        """Return names and choices, ready for JSON."""
        names = [self.score, *(self.group if isinstance(self.group, tuple) else [self.group])]
        for name in names:
            if not isinstance(name, str | int):
                raise MpcError(
                    f"Column names must be texts or whole numbers to be written as JSON; got "
                    f"{name!r}. Rename the column and fit again."
                )
        return asdict(self)

    def shift(self, frame: Any, added: pd.Series[float]) -> Floats:
        """Return the scores of a table with what groups are given added, by name of the group.

        They are added in the order of names, those that are 0 left out.
        """
        table = open_table(frame)
        score = numbers(get_column(table, self.score, "score"), ROLES["score"].describe(self.score))
        chosen = added[added != 0].sort_index()
        # Read even where no offset is added, so that a table without the column is refused at once.
        found = read_groups(table, self.group, self.group_sep)
        place = {self._key(name): k for k, name in enumerate(found.groups)}
        kept = [name for name in chosen.index if self._key(name) in place]
        places = np.array([place[self._key(name)] for name in kept], dtype=np.int64)
        masks = select_groups(found.masks, places)
        return shift_scores(score, masks, np.asarray(chosen.loc[kept], np.float64))

    def _key(self, name: str) -> Any:
        """Return the key of a group: a whole number and the same number as a float are one."""
        if self.kind not in _AS_NUMBERS:
            return name
        try:
            return Decimal(name)
        except ArithmeticError:
            return name

    def to_sql(self, score: str, added: pd.Series[float]) -> str:
        """Return the scores with what groups are given added, as an expression in SQL."""
        made = f"CAST({_identifier(score)} AS DOUBLE)"
        for name, value in added[added != 0].sort_index().items():
            # Written with an exponent, a number is a double, not a decimal.
            made = f"({made} + CASE WHEN {self._is_in(str(name))} THEN {value:.16e} ELSE 0e0 END)"
        return made

    def _is_in(self, name: str) -> str:
        if isinstance(self.group, tuple):
            named = {str(column): column for column in self.group}
            return _identifier(named[name])
        column = _identifier(self.group)
        if self.kind == "split":
            parts = f"string_split({column}, {_text(str(self.group_sep))})"
            strip = f"regexp_replace(label, '^{_SPACE}|{_SPACE}$', '', 'g')"
            return f"list_contains([{strip} FOR label IN {parts}], {_text(name)})"
        if self.kind == "lists":
            return f"list_contains({column}, {_text(name)})"
        if self.kind == "number lists":
            return f"list_contains({column}, {_number(name)})"
        if self.kind == "number":
            return f"{column} = {_number(name)}"
        if self.kind == "flag":
            return f"{column} = {name.upper()}"
        if self.kind == "text":
            return f"{column} = {_text(name)}"
        return f"CAST({column} AS VARCHAR) = {_text(name)}"


def _identifier(name: Hashable) -> str:
    return '"' + str(name).replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _number(name: str) -> str:
    value = Decimal(name)
    if value == value.to_integral_value() and abs(value) <= _LARGEST_WHOLE:
        return str(int(value))
    return f"{float(name):.16e}"
