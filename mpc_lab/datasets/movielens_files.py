"""The two layouts in which GroupLens publishes MovieLens: ``.dat`` and ``.csv``."""

from __future__ import annotations

import csv
import zipfile
import zlib
from importlib.resources.abc import Traversable
from typing import IO, Any

import numpy as np
import pandas as pd

from mpc_lab.errors import MpcError

RATINGS = {"user": "int64", "item": "int64", "rating": "float64", "timestamp": "int64"}
MOVIES = {"item": "int64", "title": "str", "genres": "str"}
NO_GENRES = "(no genres listed)"
# What the first line of a .csv must be, and what a line of a .dat looks like.
FORMS = {
    "ratings.csv": "userId,movieId,rating,timestamp",
    "movies.csv": "movieId,title,genres",
    "ratings.dat": "user::movie::rating::timestamp",
    "movies.dat": "movie::title::genres",
}


def file_names(suffix: str) -> tuple[str, str]:
    """Return the names of the ratings and of the movies in one layout."""
    return f"ratings.{suffix}", f"movies.{suffix}"


def read_ratings(home: Traversable, suffix: str) -> pd.DataFrame:
    """Return user, item, rating and timestamp in the order of the file."""
    frame = _read(home / f"ratings.{suffix}")
    return frame.set_axis(list(RATINGS), axis="columns")


def read_movies(home: Traversable, suffix: str) -> pd.DataFrame:
    """Return item, title and genres, joined by "|"; empty text for a movie without a genre."""
    frame = _read(home / f"movies.{suffix}").set_axis(list(MOVIES), axis="columns")
    return frame.assign(genres=frame["genres"].where(frame["genres"] != NO_GENRES, ""))


def check_together(ratings: pd.DataFrame, movies: pd.DataFrame, home: Traversable) -> None:
    """Raise unless every rated movie is listed, and listed once."""
    repeated = movies["item"].duplicated()
    if repeated.any():
        raise MpcError(
            f"The movies in {home} must each be listed once, but movie "
            f"{movies['item'][repeated].iloc[0]} is listed twice: unpack the files anew."
        )
    unknown = ~ratings["item"].isin(movies["item"])
    if unknown.any():
        raise MpcError(
            f"The movies in {home} must list every rated movie, but movie "
            f"{ratings['item'][unknown].iloc[0]} is rated and not listed: "
            "take both files from one data set."
        )


def _read(path: Traversable) -> pd.DataFrame:
    reader = {
        "ratings.csv": _ratings_csv,
        "movies.csv": _movies_csv,
        "ratings.dat": _ratings_dat,
        "movies.dat": _movies_dat,
    }[path.name]
    try:
        with path.open("rb") as file:
            frame = reader(file)
        _check_rows(frame)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        what = "begin with the line" if path.name.endswith("csv") else "have lines of the form"
        raise MpcError(
            f"{path} must {what} {FORMS[path.name]!r}, but reading it failed "
            f"({_first_line(error)}): unpack it anew from the archive of GroupLens."
        ) from error
    return frame


def _check_rows(frame: pd.DataFrame) -> None:
    # pandas takes the first fields of overlong lines for an index, and fills up short ones.
    if not isinstance(frame.index, pd.RangeIndex):
        raise ValueError("there are more fields than expected")
    if frame.empty:
        raise ValueError("there are no rows")
    if not all(np.isfinite(values).all() for _, values in frame.select_dtypes("number").items()):
        raise ValueError("a number is missing or infinite")


def _ratings_csv(file: IO[bytes]) -> pd.DataFrame:
    return _table(file, "ratings.csv", list(RATINGS.values()))


def _movies_csv(file: IO[bytes]) -> pd.DataFrame:
    # There are movies called "None" and "NaN": no text stands for a missing value.
    return _table(file, "movies.csv", list(MOVIES.values()), keep_default_na=False)


def _table(file: IO[bytes], name: str, dtypes: list[str], **options: Any) -> pd.DataFrame:
    header = FORMS[name].split(",")
    dtype = dict(zip(header, dtypes, strict=True))
    frame: pd.DataFrame = pd.read_csv(file, encoding="utf-8", dtype=dtype, **options)
    if list(frame.columns) != header:
        raise ValueError(f"its columns are {', '.join(map(str, frame.columns))}")
    return frame


def _ratings_dat(file: IO[bytes]) -> pd.DataFrame:
    # A separator of one character lets pandas' fast parser in; "::" leaves an empty field between.
    names = ["user", "gap 1", "item", "gap 2", "rating", "gap 3", "timestamp"]
    frame = pd.read_csv(
        file,
        sep=":",
        header=None,
        names=names,
        dtype=RATINGS,
        encoding="latin-1",
        quoting=csv.QUOTE_NONE,
    )
    gaps = [name for name in names if name not in RATINGS]
    if frame[gaps].notna().any(axis=None):
        raise ValueError("a line has other separators")
    return frame[list(RATINGS)]


def _movies_dat(file: IO[bytes]) -> pd.DataFrame:
    # Not splitlines: it would break lines at the control characters of latin-1.
    lines = [line.rstrip("\r") for line in file.read().decode("latin-1").split("\n")]
    fields = [line.split("::") for line in lines if line]
    for number, line in enumerate(fields, start=1):
        if len(line) != len(MOVIES):
            raise ValueError(f"line {number} has {len(line)} fields")
    return pd.DataFrame(fields, columns=list(MOVIES)).astype(MOVIES)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
