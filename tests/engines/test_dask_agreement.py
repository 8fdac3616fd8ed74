from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.agreeing import BOOLEANS, COLUMNS, assert_agree, random_log
from mpc_lab.engines import running

pytestmark = pytest.mark.needs_dask


def both(frame, pieces=4, **how):
    """Audit a frame in memory and the same rows as a Dask frame."""
    import dask.dataframe as dd

    how = {**COLUMNS, "group": BOOLEANS, "progress": False, **how}
    return mpc.audit(frame, **how), mpc.audit(dd.from_pandas(frame, npartitions=pieces), **how)


@pytest.mark.parametrize("seed", range(2, 6))
def test_any_scheduler_agrees_with_memory(seed):
    import dask

    with dask.config.set(scheduler="threads"):
        how = {"item": "item", "scoring_rules": ["baseline", "demoted"], "groups": ["g1", "g0"]}
        assert_agree(*both(random_log(seed), pieces=1 + 2 * seed, **how))


def test_partitions_with_whole_queries_are_not_shuffled(monkeypatch):
    import dask

    from mpc_lab.engines import dask as engine

    def refuse(*arguments):
        raise AssertionError("shuffled")

    frame = random_log(7).sort_values("query").reset_index(drop=True)
    monkeypatch.setattr(engine, "_shuffle", refuse)
    pieces = np.flatnonzero(np.diff(frame["query"], prepend=-1))[::10].tolist()
    import dask.dataframe as dd

    apart = dd.from_map(
        lambda at: frame[at[0] : at[1]],
        list(zip(pieces, [*pieces[1:], len(frame)], strict=True)),
        meta=frame[:0],
    )
    with dask.config.set(scheduler="sync"):
        how = {**COLUMNS, "group": BOOLEANS, "progress": False}
        assert_agree(mpc.audit(frame, **how), mpc.audit(apart, **how))


def test_a_worker_killed_in_the_middle_changes_nothing(dask_client, monkeypatch):
    from mpc_lab.engines import dask as engine

    asked = engine.DaskParts.total
    killed = []

    def kill_first(self, task, label, start):
        if label == "sweeping" and not killed:
            killed.append(next(iter(dask_client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)
        return asked(self, task, label, start)

    monkeypatch.setattr(engine.DaskParts, "total", kill_first)
    found = both(random_log(9), groups=["g0"], item="item")
    assert killed
    assert_agree(*found, curve=False)


def test_left_out_rows_are_counted_as_in_memory():
    import dask

    frame = random_log(10)
    frame["score"] = frame["score"].where(frame.index % 11 != 0)
    frame.loc[frame.index < 200, "outcome"] = np.nan  # a partition of which nothing is left
    with dask.config.set(scheduler="sync"):
        assert_agree(*both(frame, pieces=5, missing="drop"))


def test_memory_is_for_files():
    import dask.dataframe as dd

    rows = dd.from_pandas(random_log(1), npartitions=3)
    with pytest.raises(mpc.MpcError, match="memory must go with files"):
        mpc.audit(rows, **COLUMNS, group=BOOLEANS, memory="4GB")


def test_an_install_without_distributed_names_the_extra(monkeypatch):
    import dask.dataframe as dd

    monkeypatch.setattr(running, "find_spec", lambda name: None)
    with pytest.raises(mpc.MpcError, match=r'pip install "mpc-lab\[dask\]"'):
        mpc.audit(dd.from_pandas(random_log(1), npartitions=2), **COLUMNS, group=BOOLEANS)
