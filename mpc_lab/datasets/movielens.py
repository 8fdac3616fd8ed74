"""MovieLens, read from a folder or fetched from GroupLens; the package itself ships none of it."""

from __future__ import annotations

import csv
import os
import zipfile
import zlib
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from mpc_lab.errors import MpcError, near_match
from mpc_lab.rankers import svd
from mpc_lab.ranking import Ranking

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
    frame = _read(home / f"ratings.{suffix}", "ascii")
    return frame.set_axis(list(RATINGS), axis="columns")


def read_movies(home: Traversable, suffix: str, encoding: str) -> pd.DataFrame:
    """Return item, title and genres, joined by "|"; empty text for a movie without a genre."""
    frame = _read(home / f"movies.{suffix}", encoding).set_axis(list(MOVIES), axis="columns")
    return frame.assign(genres=frame["genres"].where(frame["genres"] != NO_GENRES, ""))


def check_together(ratings: pd.DataFrame, movies: pd.DataFrame, home: Traversable) -> None:
    """Raise unless every rated movie is listed, and listed once."""
    repeated = movies["item"].duplicated()
    if repeated.any():
        raise MpcError(
            f"The movies in {home} must each be listed once; got movie "
            f"{movies['item'][repeated].iloc[0]} twice. Unpack the files again."
        )
    unknown = ~ratings["item"].isin(movies["item"])
    if unknown.any():
        raise MpcError(
            f"The movies in {home} must include every rated movie; got ratings of movie "
            f"{ratings['item'][unknown].iloc[0]}, which is not listed. Take both files from one "
            "data set."
        )


def _read(path: Traversable, encoding: str) -> pd.DataFrame:
    reader = {
        "ratings.csv": _ratings_csv,
        "movies.csv": _movies_csv,
        "ratings.dat": _ratings_dat,
        "movies.dat": _movies_dat,
    }[path.name]
    try:
        with path.open("rb") as file:
            frame = reader(file, encoding)
        _check_rows(frame)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        what = "begin with the line" if path.name.endswith("csv") else "have lines of the form"
        raise MpcError(
            f"{path} must {what} {FORMS[path.name]!r}; got an error while reading it "
            f"({_first_line(error)}). Unpack it again from the archive of GroupLens."
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


def _ratings_csv(file: IO[bytes], encoding: str) -> pd.DataFrame:
    return _table(file, "ratings.csv", list(RATINGS.values()), encoding=encoding)


def _movies_csv(file: IO[bytes], encoding: str) -> pd.DataFrame:
    # There are movies called "None" and "NaN": no text means a missing value.
    types = list(MOVIES.values())
    return _table(file, "movies.csv", types, encoding=encoding, keep_default_na=False)


def _table(file: IO[bytes], name: str, dtypes: list[str], **options: Any) -> pd.DataFrame:
    header = FORMS[name].split(",")
    dtype = dict(zip(header, dtypes, strict=True))
    frame: pd.DataFrame = pd.read_csv(file, dtype=dtype, **options)
    if list(frame.columns) != header:
        raise ValueError(f"its columns are {', '.join(map(str, frame.columns))}")
    return frame


def _ratings_dat(file: IO[bytes], encoding: str) -> pd.DataFrame:
    # A separator of one character lets pandas' fast parser in; "::" leaves an empty field between.
    names = ["user", "between 1", "item", "between 2", "rating", "between 3", "timestamp"]
    frame = pd.read_csv(
        file,
        sep=":",
        header=None,
        names=names,
        dtype=RATINGS,
        encoding=encoding,
        quoting=csv.QUOTE_NONE,
    )
    between = [name for name in names if name not in RATINGS]
    if frame[between].notna().any(axis=None):
        raise ValueError("a line has other separators")
    return frame[list(RATINGS)]


def _movies_dat(file: IO[bytes], encoding: str) -> pd.DataFrame:
    # Not splitlines: it would break lines at the control characters of latin-1.
    lines = [line.rstrip("\r") for line in file.read().decode(encoding).split("\n")]
    fields = [line.split("::") for line in lines if line]
    for number, line in enumerate(fields, start=1):
        if len(line) != len(MOVIES):
            raise ValueError(f"line {number} has {len(line)} fields")
    return pd.DataFrame(fields, columns=list(MOVIES)).astype(MOVIES)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")


ENVIRONMENT = "MPC_LAB_DATA"
SERVER = "https://files.grouplens.org/datasets/movielens/"


@dataclass(frozen=True)
class Release:
    """One data set as GroupLens publishes it."""

    stem: str
    suffix: str
    known_hash: str
    inside: str = ""  # the folder in the archive, where it has another name
    encoding: str = "utf-8"

    @property
    def archive(self) -> str:
        """Name of the archive."""
        return f"{self.stem}.zip"

    @property
    def folder(self) -> str:
        """Name of the folder in the archive."""
        return self.inside or self.stem


# For the large sets GroupLens publishes md5 sums beside the archives (ml-25m.zip.md5, …).
RELEASES = {
    "1m": Release(
        "ml-1m",
        "dat",
        "sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        encoding="latin-1",
    ),
    "10m": Release("ml-10m", "dat", "md5:ce571fd55effeba0271552578f2648bd", "ml-10M100K"),
    "20m": Release("ml-20m", "csv", "md5:cd245b17a1ae2cc31bb14903e1204af3"),
    "latest-small": Release(
        "ml-latest-small",
        "csv",
        "sha256:696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436",
    ),
    "25m": Release("ml-25m", "csv", "md5:6b51fb2759a8657d3bfcbfc42b592ada"),
    "32m": Release("ml-32m", "csv", "md5:d472be332d4daa821edc399621853b57"),
}


@dataclass(frozen=True, eq=False, repr=False)
class MovieLens:
    """A MovieLens data set.

    Attributes
    ----------
    name : str
        Which one: "1m", "10m", "20m", "25m", "32m" or "latest-small".
    ratings : pandas.DataFrame
        user, item, rating, timestamp (seconds since 1970), in the order of the file.
    movies : pandas.DataFrame
        item, title, genres ("Comedy|Drama"; empty for a movie without any).
    """

    name: str
    ratings: pd.DataFrame
    movies: pd.DataFrame

    def __repr__(self) -> str:
        counts = f"{len(self.ratings):,} ratings, {len(self.movies):,} movies"
        return f"<MovieLens {self.name}: {counts}>"


def movielens(name: str = "1m", folder: str | os.PathLike[str] | None = None) -> MovieLens:
    """Read a MovieLens data set, and fetch it from GroupLens where it is not on this machine.

    It is looked for in `folder`, and only there if one is given; else in the folder that the
    environment variable ``MPC_LAB_DATA`` names; else among earlier downloads; and last it is
    downloaded, checked by its hash, and kept in the user's cache folder. A folder may hold the
    archive (``ml-1m.zip``) or what is in it (``ml-1m/ratings.dat``, ``ml-1m/movies.dat``).

    GroupLens allows research with the data but not passing them on; the terms are in the
    README of each set.

    Parameters
    ----------
    name : {"1m", "10m", "20m", "25m", "32m", "latest-small"}
        Which data set. All but "1m" have half stars, as the paper's.
    folder : path, optional
        Where it is, in GroupLens' own layout.

    Returns
    -------
    MovieLens
        With ``.ratings`` (user, item, rating, timestamp) and ``.movies`` (item, title, genres).

    References
    ----------
    Harper & Konstan (2015), The MovieLens Datasets: History and Context,
    ACM Transactions on Interactive Intelligent Systems 5(4), 19. doi:10.1145/2827872

    Examples
    --------
    >>> data = movielens("1m")  # doctest: +SKIP
    >>> data  # doctest: +SKIP
    <MovieLens 1m: 1,000,209 ratings, 3,883 movies>
    """
    if name not in RELEASES:
        raise MpcError(f"There is no MovieLens data set {name!r}.{near_match(name, RELEASES)}")
    release = RELEASES[name]
    home = _find(release, folder)
    ratings = read_ratings(home, release.suffix)
    movies = read_movies(home, release.suffix, release.encoding)
    check_together(ratings, movies, home)
    return MovieLens(name, ratings, movies)


def movielens_ranking(
    name: str = "1m", rank: int = 64, folder: str | os.PathLike[str] | None = None
) -> Ranking:
    """Rank MovieLens as in the paper: learn from the first 80 % of ratings, score the rest.

    Parameters
    ----------
    name : {"1m", "10m", "20m", "25m", "32m", "latest-small"}
        Which data set.
    rank : int
        How many singular vectors :func:`mpc_lab.rankers.svd` keeps.
    folder : path, optional
        Where the data set is; see :func:`movielens`.

    Returns
    -------
    Ranking
        Query = user, item = movie, outcome = rating, groups = genres, of which a movie may have
        several. The columns ``timestamp`` and ``title`` are there too.

    References
    ----------
    Korevaar et al. (2023), Matched Pair Calibration for Ranking Fairness.

    Examples
    --------
    >>> movielens_ranking("1m").n_queries  # doctest: +SKIP
    1143
    """
    data = movielens(name, folder)
    return Ranking(
        svd(data.ratings, rank=rank).merge(data.movies, how="left", on="item"),
        query="user",
        item="item",
        score="score",
        outcome="rating",
        group="genres",
        group_sep="|",
    )


def _find(release: Release, folder: str | os.PathLike[str] | None) -> Traversable:
    """Return the place that holds the two files: a folder, or a folder inside an archive."""
    if folder is not None:
        given = Path(folder).expanduser()
        home = _inside(given, release)
        if home is None:
            raise MpcError(f"There is no {release.stem} in {given}. {_advice(release, str(given))}")
        return home
    named = os.environ.get(ENVIRONMENT, "")
    home = _inside(Path(named).expanduser(), release) if named else None
    return home if home is not None else _open_archive(_download(release), release)


def _inside(folder: Path, release: Release) -> Traversable | None:
    places = [folder / release.folder]
    # All .csv sets have the same file names: do not take one for another.
    if folder.name not in {other.folder for other in RELEASES.values()} - {release.folder}:
        places.append(folder)
    for place in places:
        if all((place / name).is_file() for name in file_names(release.suffix)):
            return place
    archive = folder / release.archive
    return _open_archive(archive, release) if archive.is_file() else None


def _open_archive(archive: Path, release: Release) -> Traversable:
    # Read inside the archive: its checksums catch what a half-unpacked file would hide.
    try:
        home = zipfile.Path(archive, f"{release.folder}/")
    except (OSError, zipfile.BadZipFile) as error:
        raise MpcError(
            f"{archive} must be the archive {SERVER}{release.archive}; got a file that cannot be "
            f"opened ({error}). Download it again."
        ) from error
    absent = [name for name in file_names(release.suffix) if not (home / name).is_file()]
    if absent:
        raise MpcError(
            f"{archive} must be the archive {SERVER}{release.archive}; got one without "
            f"{release.folder}/{absent[0]}. Download it again."
        )
    return home


def _download(release: Release) -> Path:
    import pooch  # only where something is to be fetched

    try:
        found = pooch.retrieve(
            SERVER + release.archive,
            known_hash=release.known_hash,
            fname=release.archive,
            path=pooch.os_cache("mpc_lab"),
            progressbar=True,
        )
    except (OSError, ValueError) as error:
        # pooch's ValueError is a wrong hash; what requests raises is an OSError.
        failed = "could not be reached"
        if isinstance(error, ValueError) and not isinstance(error, OSError):
            failed = "gave a file with another hash"
        raise MpcError(
            f"{release.stem} cannot be found on this machine, and {SERVER}{release.archive} "
            f"{failed}. {_advice(release, os.environ.get(ENVIRONMENT, ''))}"
        ) from error
    return Path(found)


def _advice(release: Release, folder: str) -> str:
    files = " and ".join(f"{release.folder}/{name}" for name in file_names(release.suffix))
    what = f"Put {release.archive} from GroupLens, or {files} out of it, into"
    return f"{what} {folder or f'a folder, and pass it as folder= or in {ENVIRONMENT}'}."
