import numpy as np
import pytest

from helpers.pair_sums import random_pairs, sums
from mpc_lab.errors import MpcError
from mpc_lab.inference.estimates import estimate
from mpc_lab.inference.sides import fit


def test_regression_has_the_estimate_and_the_query_standard_error():
    pairs = random_pairs(7)
    by = {"naive": sums(np.arange(60), pairs.d), "query": sums(pairs.query, pairs.d)}
    clusters = np.array(np.unique(pairs.query).size)
    cell = estimate(pairs.count, 0.0, by, clusters=clusters, cluster="query")
    result = fit(pairs.d, pairs.query)
    assert result.params["MPC"] == pytest.approx(float(cell.estimate), rel=1e-12)
    assert result.bse["MPC"] == pytest.approx(float(cell.std_error), rel=1e-10)


def test_summary_names_the_gap():
    pairs = random_pairs(7)
    text = fit(pairs.d, pairs.query).summary().as_text()
    assert "MPC" in text
    assert "Dep. Variable:                      d" in text


@pytest.mark.parametrize(("queries", "effective"), [([5, 5, 5], "1"), ([5, 5, 6], "1.8")])
def test_fewer_than_three_effective_queries_are_too_few(queries, effective):
    with pytest.raises(MpcError, match=f"at least 3 effective queries; got {effective}. Choose"):
        fit(np.array([1.0, 2.0, 3.0]), np.array(queries))
