import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc


@pytest.fixture(scope="module")
def audit():
    frame = mpc.datasets.synthetic(queries=300).to_frame()
    frame["type"] = pd.Categorical(frame["type"], categories=["1", "2", "none"])
    columns = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}
    return mpc.audit(frame, **columns, group="type", segment="query_type", progress=False)


def test_a_group_without_pairs_is_empty_in_every_segment(audit):
    found = audit.by_segment().sel(group="none")
    assert (found["n_pairs"] == 0).all()
    assert np.isnan(found["estimate"]).all()
    assert (audit.by_segment().sel(group="1")["n_pairs"] > 0).all()


def test_an_unknown_rule_lists_those_there_are(audit):
    with pytest.raises(mpc.MpcError, match="no scoring rule 'boosted'"):
        audit.by_segment(scoring_rule="boosted")


def test_having_no_group_to_compare_is_an_error(audit):
    with pytest.raises(mpc.MpcError, match="at least one group"):
        audit.compare(groups=[])
