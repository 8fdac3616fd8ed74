"""MovieLens, read from a folder or fetched from GroupLens; the package itself ships none of it."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

import pandas as pd

from mpc_lab.datasets.movielens_files import (
    check_together,
    file_names,
    read_movies,
    read_ratings,
)
from mpc_lab.errors import MpcError, near_match
from mpc_lab.rankers import svd
from mpc_lab.ranking import Ranking

ENVIRONMENT = "MPC_LAB_DATA"
SERVER = "https://files.grouplens.org/datasets/movielens/"


@dataclass(frozen=True)
class Release:
    """One data set as GroupLens publishes it."""

    stem: str
    suffix: str
    known_hash: str

    @property
    def archive(self) -> str:
        """Name of the archive."""
        return f"{self.stem}.zip"


# For the two large sets GroupLens publishes md5 sums beside the archives (ml-25m.zip.md5, …).
RELEASES = {
    "1m": Release(
        "ml-1m",
        "dat",
        "sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    ),
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
        Which one: "1m", "latest-small", "25m" or "32m".
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
    """Read a MovieLens data set, and fetch it from GroupLens where it is not at hand.

    It is looked for in `folder`, and only there if one is given; else in the folder that the
    environment variable ``MPC_LAB_DATA`` names; else among earlier downloads; and last it is
    downloaded, checked by its hash, and kept in the user's cache folder. A folder may hold the
    archive (``ml-1m.zip``) or what is in it (``ml-1m/ratings.dat``, ``ml-1m/movies.dat``).

    GroupLens allows research with the data but not passing them on; the terms stand in the
    README of each set.

    Parameters
    ----------
    name : {"1m", "latest-small", "25m", "32m"}
        Which data set.
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
    movies = read_movies(home, release.suffix)
    check_together(ratings, movies, home)
    return MovieLens(name, ratings, movies)


def movielens_ranking(
    name: str = "1m", rank: int = 64, folder: str | os.PathLike[str] | None = None
) -> Ranking:
    """Rank MovieLens as in the paper: learn from the first 80 % of ratings, score the rest.

    Parameters
    ----------
    name : {"1m", "latest-small", "25m", "32m"}
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
            raise MpcError(f"There is no {release.stem} in {given}: {_advice(release, str(given))}")
        return home
    named = os.environ.get(ENVIRONMENT, "")
    home = _inside(Path(named).expanduser(), release) if named else None
    return home if home is not None else _opened(_download(release), release)


def _inside(folder: Path, release: Release) -> Traversable | None:
    places = [folder / release.stem]
    # All .csv sets have the same file names: do not take one for another.
    if folder.name not in {other.stem for other in RELEASES.values()} - {release.stem}:
        places.append(folder)
    for place in places:
        if all((place / name).is_file() for name in file_names(release.suffix)):
            return place
    archive = folder / release.archive
    return _opened(archive, release) if archive.is_file() else None


def _opened(archive: Path, release: Release) -> Traversable:
    # Read inside the archive: its checksums catch what a half-unpacked file would hide.
    try:
        home = zipfile.Path(archive, f"{release.stem}/")
    except (OSError, zipfile.BadZipFile) as error:
        raise MpcError(
            f"{archive} must be the archive {SERVER}{release.archive}, but it cannot be opened "
            f"({error}): download it anew."
        ) from error
    absent = [name for name in file_names(release.suffix) if not (home / name).is_file()]
    if absent:
        raise MpcError(
            f"{archive} must be the archive {SERVER}{release.archive}, but it has no "
            f"{release.stem}/{absent[0]}: download it anew."
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
            failed = "gave another file than the one whose hash is known"
        raise MpcError(
            f"{release.stem} is not on this machine, and {SERVER}{release.archive} {failed}: "
            f"{_advice(release, os.environ.get(ENVIRONMENT, ''))}"
        ) from error
    return Path(found)


def _advice(release: Release, folder: str) -> str:
    files = " and ".join(f"{release.stem}/{name}" for name in file_names(release.suffix))
    what = f"put {release.archive} from GroupLens, or {files} out of it, into"
    return f"{what} {folder or f'a folder, and pass it as folder= or in {ENVIRONMENT}'}."
