import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.inference.sequence import confidence_sequence


def test_the_sequence_of_a_cell_is_that_of_its_query_variance():
    ranking = mpc.datasets.synthetic(queries=2_000)
    audit = mpc.audit(ranking, threshold=0.05, cluster="query", progress=False)
    found = audit.confidence_sequence(planned=500, asymptotic=True)
    cell = audit.headline.sel(group="1", scoring_rule="baseline", pairing_mode="matched")
    q = int(cell["n_queries"])
    raw = float(cell["std_error"]) ** 2 * (q - 1) / q
    low, high = confidence_sequence(
        cell["estimate"].values,
        np.array(raw),
        np.array(2_000),
        np.array(q),
        planned=500,
        tests=2,
    )
    assert float(found["low"].sel(group="1").item()) == pytest.approx(float(low), rel=1e-10)
    assert float(found["high"].sel(group="1").item()) == pytest.approx(float(high), rel=1e-10)


def test_repeated_looks_need_a_threshold_fixed_in_advance():
    audit = mpc.audit(mpc.datasets.synthetic(queries=200), progress=False)
    with pytest.raises(mpc.MpcError, match="a number as threshold"):
        audit.confidence_sequence()


def test_bootstrap_intervals_stand_in_the_headline_when_asked_for():
    ranking = mpc.datasets.synthetic(queries=1_000)
    audit = mpc.audit(ranking, threshold=0.05, bootstrap=199, progress=False)
    found = audit.bootstrap(199)
    assert np.array_equal(audit.headline["bootstrap_low"], found["percentile_low"])
    assert np.array_equal(audit.headline["bootstrap_t_high"], found["studentised_high"])
    cell = audit.headline.sel(group="1").squeeze()
    assert cell["bootstrap_low"] < cell["estimate"] < cell["bootstrap_high"]
