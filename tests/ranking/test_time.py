import pandas as pd
import pytest

import mpc_lab as mpc

LOG = {
    "query": [1, 1, 2, 2, 3, 3],
    "score": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
    "outcome": [0, 1, 0, 1, 0, 1],
    "group": ["a", "b"] * 3,
}
COLUMNS = {name: name for name in LOG}
DAYS = ["2026-03-09", "2026-03-10", "2026-03-02", "2026-03-02", "2026-03-10 01:00", "2026-04-01"]
EXPECTED = [1, 2, 0, 0, 3, 4]


@pytest.mark.parametrize(
    "times",
    [
        [9, 10, 2, 2, 10.5, 40],
        DAYS,
        pd.to_datetime(DAYS, format="ISO8601"),
        pd.to_datetime(DAYS, format="ISO8601").tz_localize("Europe/Paris"),
    ],
)
def test_times_are_places_among_all_times(times):
    ranking = mpc.Ranking({**LOG, "when": times}, **COLUMNS, time="when")
    assert ranking.time.tolist() == EXPECTED


def test_without_a_time_column_there_is_no_time():
    assert mpc.Ranking(LOG, **COLUMNS).time is None


def test_a_subset_keeps_its_times_and_the_fingerprint_knows_them():
    ranking = mpc.Ranking({**LOG, "when": DAYS}, **COLUMNS, time="when")
    part = ranking.subset(ranking.query_code > 0)
    assert part.time.tolist() == EXPECTED[2:]
    assert ranking.fingerprint() != mpc.Ranking(LOG, **COLUMNS).fingerprint()


def test_a_text_that_is_not_a_time_is_refused():
    with pytest.raises(mpc.MpcError, match="time column 'when' must hold numbers, dates or texts"):
        mpc.Ranking({**LOG, "when": ["soon"] * 6}, **COLUMNS, time="when")


def test_a_missing_time_is_missing():
    log = {**LOG, "when": [1, 2, None, 4, 5, 6]}
    with pytest.raises(mpc.MpcError, match="time column 'when' must be complete"):
        mpc.Ranking(log, **COLUMNS, time="when")
    assert mpc.Ranking(log, **COLUMNS, time="when", missing="drop").dropped == 1
