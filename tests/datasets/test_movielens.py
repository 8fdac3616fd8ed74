from __future__ import annotations

import zipfile

import pandas as pd
import pytest

import mpc_lab as mpc
from mpc_lab.datasets.movielens import RELEASES

RATINGS_DAT = "1::10::5::978300760\n1::20::3::978302109\n2::10::4::978301968\n"
MOVIES_DAT = "10::Fiancé: A Story (1999)::Comedy|Drama\n20::Élisa (1995)::Drama\n"
RATINGS_CSV = "userId,movieId,rating,timestamp\n1,10,4.5,964982703\n2,30,0.5,964981247\n"
MOVIES_CSV = (
    'movieId,title,genres\n10,"American President, The (1995)",Comedy|Drama\n'
    '20,None,Horror\n30,"Amélie ""2001""",(no genres listed)\n'
)


@pytest.fixture(autouse=True)
def no_data_and_no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise ConnectionError("no network in tests")

    monkeypatch.delenv("MPC_LAB_DATA", raising=False)
    monkeypatch.setattr("pooch.retrieve", refuse)


def write(folder, ratings, movies, suffix, encoding):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"ratings.{suffix}").write_bytes(ratings.encode(encoding))
    (folder / f"movies.{suffix}").write_bytes(movies.encode(encoding))


def write_dat(folder, ratings=RATINGS_DAT, movies=MOVIES_DAT):
    write(folder, ratings, movies, "dat", "latin-1")


def write_csv(folder, ratings=RATINGS_CSV, movies=MOVIES_CSV):
    write(folder, ratings, movies, "csv", "utf-8")


def write_zip(path, stem="ml-1m"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{stem}/ratings.dat", RATINGS_DAT.encode("latin-1"))
        archive.writestr(f"{stem}/movies.dat", MOVIES_DAT.encode("latin-1"))


def first_user(data):
    return data.ratings["user"].iloc[0]


def test_the_dat_layout_is_read(tmp_path):
    write_dat(tmp_path / "ml-1m")
    data = mpc.datasets.movielens("1m", tmp_path)
    assert data.ratings.to_dict("list") == {
        "user": [1, 1, 2],
        "item": [10, 20, 10],
        "rating": [5.0, 3.0, 4.0],
        "timestamp": [978300760, 978302109, 978301968],
    }
    assert data.movies["title"].tolist() == ["Fiancé: A Story (1999)", "Élisa (1995)"]
    assert data.movies["genres"].tolist() == ["Comedy|Drama", "Drama"]


@pytest.mark.parametrize("name", ["latest-small", "20m", "25m", "32m"])
def test_the_csv_layout_is_read(tmp_path, name):
    write_csv(tmp_path / f"ml-{name}")
    data = mpc.datasets.movielens(name, tmp_path)
    assert data.ratings["rating"].tolist() == [4.5, 0.5]
    titles = ["American President, The (1995)", "None", 'Amélie "2001"']
    assert data.movies["title"].tolist() == titles
    assert list(data.ratings.columns) == ["user", "item", "rating", "timestamp"]
    assert list(data.movies.columns) == ["item", "title", "genres"]


def write_archive(path, folder, files):
    """Write an archive as GroupLens packs it: a folder of its own, and other files beside ours."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{folder}/", "")
        for name, text in files.items():
            archive.writestr(f"{folder}/{name}", text.encode())


def test_the_archive_of_ten_million_is_read(tmp_path):
    """Half stars, UTF-8, a folder of another name, and a movie without genres in a .dat."""
    files = {
        "README.html": "<html></html>",
        "allbut.pl": "#!/usr/bin/perl",
        "movies.dat": MOVIES_DAT + "8606::Pull My Daisy (1958)::(no genres listed)\n",
        "ratings.dat": RATINGS_DAT.replace("::5::", "::4.5::") + "2::8606::0.5::838985046\n",
        "split_ratings.sh": "#!/bin/sh",
        "tags.dat": "15::4973::excellent!::1215184630\n",
    }
    write_archive(tmp_path / "ml-10m.zip", "ml-10M100K", files)
    packed = mpc.datasets.movielens("10m", tmp_path)
    assert packed.ratings["rating"].tolist() == [4.5, 3.0, 4.0, 0.5]
    assert packed.movies["title"].tolist()[:2] == ["Fiancé: A Story (1999)", "Élisa (1995)"]
    assert packed.movies["genres"].tolist() == ["Comedy|Drama", "Drama", ""]
    with zipfile.ZipFile(tmp_path / "ml-10m.zip") as archive:
        archive.extractall(tmp_path / "loose")
    loose = mpc.datasets.movielens("10m", tmp_path / "loose")
    pd.testing.assert_frame_equal(loose.ratings, packed.ratings)


def test_the_archive_of_twenty_million_is_read(tmp_path):
    others = ("README.txt", "genome-scores.csv", "genome-tags.csv", "links.csv", "tags.csv")
    files = dict.fromkeys(others, "userId,movieId,tag,timestamp\r\n")
    files |= {"movies.csv": MOVIES_CSV.replace("\n", "\r\n")}
    files |= {"ratings.csv": RATINGS_CSV.replace("\n", "\r\n")}
    write_archive(tmp_path / "ml-20m.zip", "ml-20m", files)
    data = mpc.datasets.movielens("20m", tmp_path)
    assert data.ratings["rating"].tolist() == [4.5, 0.5]
    assert data.movies["genres"].tolist() == ["Comedy|Drama", "Horror", ""]


def test_archives_of_half_star_sets_are_ranked(tmp_path):
    """Each set is ranked from its archive alone, as the paper ranks its table."""
    ratings = [
        (u, i, 0.5 + (u * i) % 10 / 2, (7 * u + 13 * i) % 60)
        for u in range(1, 31)
        for i in range(20)
    ]
    dat = "".join("::".join(map(str, row)) + "\n" for row in ratings)
    csv = "userId,movieId,rating,timestamp\n" + dat.replace("::", ",")
    genres = [(i, f"Film {i} (1999)", ("Drama", "Comedy")[i % 2]) for i in range(20)]
    films = "".join("::".join(map(str, row)) + "\n" for row in genres)
    films_csv = "movieId,title,genres\n" + films.replace("::", ",")
    write_archive(tmp_path / "ml-10m.zip", "ml-10M100K", {"ratings.dat": dat, "movies.dat": films})
    write_archive(tmp_path / "ml-20m.zip", "ml-20m", {"ratings.csv": csv, "movies.csv": films_csv})
    ten, twenty = (
        mpc.datasets.movielens_ranking(name, rank=2, folder=tmp_path) for name in ("10m", "20m")
    )
    assert ten.groups == ("Comedy", "Drama")
    assert len(set(ten.outcome)) == 10
    pd.testing.assert_frame_equal(ten.to_frame(), twenty.to_frame())


def test_both_layouts_have_the_same_types(tmp_path):
    write_dat(tmp_path / "ml-1m")
    write_csv(tmp_path / "ml-25m")
    dat, csv = (mpc.datasets.movielens(name, tmp_path) for name in ("1m", "25m"))
    assert dat.ratings.dtypes.equals(csv.ratings.dtypes)
    assert dat.movies.dtypes.equals(csv.movies.dtypes)


def test_no_genres_listed_is_no_group(tmp_path):
    write_csv(tmp_path / "ml-25m")
    genres = mpc.datasets.movielens("25m", tmp_path).movies["genres"]
    assert genres.tolist() == ["Comedy|Drama", "Horror", ""]


def test_windows_line_ends_are_taken(tmp_path):
    write_dat(tmp_path, RATINGS_DAT.replace("\n", "\r\n"), MOVIES_DAT.replace("\n", "\r\n"))
    data = mpc.datasets.movielens("1m", tmp_path)
    assert data.movies["genres"].tolist() == ["Comedy|Drama", "Drama"]
    assert data.ratings["timestamp"].tolist()[-1] == 978301968


def test_the_folder_may_be_the_data_set_itself_or_hold_its_archive(tmp_path):
    write_dat(tmp_path / "mine")
    (tmp_path / "packed").mkdir()
    write_zip(tmp_path / "packed" / "ml-1m.zip")
    loose, packed = (mpc.datasets.movielens("1m", tmp_path / at) for at in ("mine", "packed"))
    pd.testing.assert_frame_equal(loose.ratings, packed.ratings)
    pd.testing.assert_frame_equal(loose.movies, packed.movies)


def test_the_folder_comes_before_the_environment(tmp_path, monkeypatch):
    write_dat(tmp_path / "given", RATINGS_DAT.replace("1::10::5", "7::10::5"))
    write_dat(tmp_path / "named" / "ml-1m", RATINGS_DAT.replace("1::10::5", "8::10::5"))
    monkeypatch.setenv("MPC_LAB_DATA", str(tmp_path / "named"))
    assert first_user(mpc.datasets.movielens("1m", tmp_path / "given")) == 7
    assert first_user(mpc.datasets.movielens("1m")) == 8


def test_the_environment_comes_before_a_download(tmp_path, monkeypatch):
    monkeypatch.setenv("MPC_LAB_DATA", str(tmp_path))
    with pytest.raises(mpc.MpcError, match="ml-1m cannot be found on this machine"):
        mpc.datasets.movielens("1m")
    write_dat(tmp_path / "ml-1m")
    assert len(mpc.datasets.movielens("1m").ratings) == 3


def test_a_download_is_checked_by_its_hash_and_shows_a_bar(tmp_path, monkeypatch):
    asked = {}

    def retrieve(url, **options):
        asked.update(options, url=url)
        write_zip(tmp_path / "ml-1m.zip")
        return str(tmp_path / "ml-1m.zip")

    monkeypatch.setattr("pooch.retrieve", retrieve)
    assert len(mpc.datasets.movielens("1m").ratings) == 3
    assert asked["url"] == "https://files.grouplens.org/datasets/movielens/ml-1m.zip"
    assert asked["known_hash"] == RELEASES["1m"].known_hash
    assert asked["progressbar"] is True


@pytest.mark.parametrize("name", RELEASES)
def test_every_hash_has_the_length_of_its_kind(name):
    kind, digest = RELEASES[name].known_hash.split(":")
    assert len(bytes.fromhex(digest)) == {"sha256": 32, "md5": 16}[kind]


def test_without_network_and_data_it_says_where_to_put_which_file():
    wanted = (
        r"ml-25m cannot be found on this machine.*could not be reached\. Put ml-25m\.zip from "
        r"GroupLens, or ml-25m/ratings\.csv and ml-25m/movies\.csv out of it, into a folder, "
        r"and pass it as folder= or in MPC_LAB_DATA\."
    )
    with pytest.raises(mpc.MpcError, match=wanted):
        mpc.datasets.movielens("25m")


def test_the_folder_of_the_environment_is_named_where_it_lacks_the_data(tmp_path, monkeypatch):
    monkeypatch.setenv("MPC_LAB_DATA", str(tmp_path))
    with pytest.raises(mpc.MpcError, match=rf"ml-1m/movies\.dat out of it, into {tmp_path}\."):
        mpc.datasets.movielens("1m")


def test_another_file_than_the_known_one_is_refused(monkeypatch):
    def retrieve(url, **options):
        raise ValueError("hash does not match")

    monkeypatch.setattr("pooch.retrieve", retrieve)
    with pytest.raises(mpc.MpcError, match="gave a file with another hash"):
        mpc.datasets.movielens("latest-small")


def test_a_folder_without_the_data_says_what_to_put_there(tmp_path):
    (tmp_path / "ratings.dat").write_text(RATINGS_DAT)
    with pytest.raises(mpc.MpcError, match=r"There is no ml-1m in .*\. Put ml-1m\.zip"):
        mpc.datasets.movielens("1m", tmp_path)


def test_one_csv_set_is_not_taken_for_another(tmp_path):
    write_csv(tmp_path / "ml-latest-small")
    with pytest.raises(mpc.MpcError, match="There is no ml-25m in"):
        mpc.datasets.movielens("25m", tmp_path / "ml-latest-small")


def test_an_unknown_name_lists_the_near_match():
    with pytest.raises(mpc.MpcError, match=r"no MovieLens data set 'latest_small'\. Did you mean"):
        mpc.datasets.movielens("latest_small")


@pytest.mark.parametrize(
    "ratings",
    [
        "",
        "1::10::5\n",
        "1::10::five::978300760\n",
        "1::10::5::978300760\n1::20::3\n",
        "1::10::5::978300760::9\n2::10::5::978300760::9\n",
        "1::10::5::978300760\n1::20::3::978302109::9\n",
        "1:a:10:b:5:c:978300760\n",
        "1,10,5,978300760\n",
        "1::10::::978300760\n",
        "1::10::inf::978300760\n",
    ],
)
def test_malformed_dat_ratings_name_the_file_and_its_form(tmp_path, ratings):
    write_dat(tmp_path, ratings)
    wanted = r"ratings\.dat must have lines of the form 'user::movie::rating::timestamp'; got"
    with pytest.raises(mpc.MpcError, match=wanted):
        mpc.datasets.movielens("1m", tmp_path)


@pytest.mark.parametrize(
    "movies", ["", "10::Heat (1995)\n", "ten::Heat (1995)::Action\n", "10::A::B::C::Action\n"]
)
def test_malformed_dat_movies_name_the_file_and_its_form(tmp_path, movies):
    write_dat(tmp_path, movies=movies)
    wanted = r"movies\.dat must have lines of the form 'movie::title::genres'; got"
    with pytest.raises(mpc.MpcError, match=wanted):
        mpc.datasets.movielens("1m", tmp_path)


@pytest.mark.parametrize(
    "ratings",
    [
        "",
        "userId,movieId,rating,timestamp\n",
        "user,movie,rating,timestamp\n1,10,4.5,964982703\n",
        "userId,movieId,rating,timestamp\n1,10,good,964982703\n",
        "userId,movieId,rating,timestamp\n1,10,,964982703\n",
        "userId,movieId,rating,timestamp\n1,10,4.5,964982703,9\n",
        "userId,movieId,rating,timestamp\n1,10,4.5\n",
        "1,10,4.5,964982703\n",
    ],
)
def test_malformed_csv_ratings_name_the_file_and_its_first_line(tmp_path, ratings):
    write_csv(tmp_path, ratings)
    wanted = r"ratings\.csv must begin with the line 'userId,movieId,rating,timestamp'; got"
    with pytest.raises(mpc.MpcError, match=wanted):
        mpc.datasets.movielens("25m", tmp_path)


def test_a_csv_in_another_encoding_is_refused(tmp_path):
    write_csv(tmp_path)
    (tmp_path / "movies.csv").write_bytes(MOVIES_CSV.encode("latin-1"))
    with pytest.raises(mpc.MpcError, match=r"movies\.csv must begin with the line 'movieId,title"):
        mpc.datasets.movielens("25m", tmp_path)


def test_a_rated_movie_must_be_listed(tmp_path):
    write_dat(tmp_path, movies="10::Heat (1995)::Action\n")
    with pytest.raises(mpc.MpcError, match="got ratings of movie 20, which is not listed"):
        mpc.datasets.movielens("1m", tmp_path)


def test_a_movie_must_be_listed_once(tmp_path):
    write_dat(tmp_path, movies=MOVIES_DAT + "10::Heat (1995)::Action\n")
    with pytest.raises(mpc.MpcError, match="got movie 10 twice"):
        mpc.datasets.movielens("1m", tmp_path)


def test_a_file_that_is_not_an_archive_is_refused(tmp_path):
    (tmp_path / "ml-1m.zip").write_bytes(b"<html>not found</html>")
    with pytest.raises(mpc.MpcError, match=r"ml-1m\.zip must be the archive https.*cannot be open"):
        mpc.datasets.movielens("1m", tmp_path)


def test_an_archive_of_something_else_is_refused(tmp_path):
    write_zip(tmp_path / "ml-1m.zip", stem="ml-10m")
    with pytest.raises(
        mpc.MpcError, match=r"got one without ml-1m/ratings\.dat\. Download it again"
    ):
        mpc.datasets.movielens("1m", tmp_path)


def test_a_damaged_archive_is_refused(tmp_path):
    write_zip(tmp_path / "ml-1m.zip")
    content = bytearray((tmp_path / "ml-1m.zip").read_bytes())
    content[60] ^= 0xFF  # inside the compressed ratings
    (tmp_path / "ml-1m.zip").write_bytes(content)
    with pytest.raises(mpc.MpcError, match=r"ratings\.dat must have lines of the form"):
        mpc.datasets.movielens("1m", tmp_path)


def test_it_is_shown_by_name_and_size(tmp_path):
    write_dat(tmp_path)
    shown = repr(mpc.datasets.movielens("1m", tmp_path))
    assert shown == "<MovieLens 1m: 3 ratings, 2 movies>"
