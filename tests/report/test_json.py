"""The JSON twin keeps to its published schema, and the model card says the same."""

from __future__ import annotations

import json
import math

import jsonschema
import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.report import schema
from mpc_lab.results.schema import CURVE, HEADLINE
from mpc_lab.vocabulary import VERDICTS


@pytest.fixture(scope="module")
def validator():
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


def test_the_twin_of_an_audit_keeps_to_the_schema(audit, validator):
    validator.validate(json.loads(audit.to_json()))
    validator.validate(json.loads(audit.to_json(curve=False)))


def test_a_gate_by_a_confidence_sequence_keeps_to_the_schema(validator):
    audit = mpc.audit(mpc.datasets.synthetic(queries=1000), threshold=0.02, progress=False)
    found = json.loads(audit.to_json(planned=3000))
    validator.validate(found)
    assert (found["gate"]["answer"], found["gate"]["intervals"]) == (0, "anytime")
    assert json.loads(audit.to_json())["gate"]["answer"] == 1
    # A text of before there was a choice still keeps to it.
    del found["gate"]["intervals"], found["gate"]["planned"]
    validator.validate(found)


def test_asking_for_a_missing_confidence_sequence_is_an_error(tmp_path):
    audit = mpc.audit(mpc.datasets.synthetic(queries=1000), progress=False)
    for make in (
        lambda: audit.to_json(planned=3000),
        lambda: audit.model_card(planned=3000),
        lambda: audit.report(tmp_path / "a.html", planned=3000),
    ):
        with pytest.raises(mpc.MpcError, match="fixed in advance"):
            make()
    assert not list(tmp_path.iterdir())


def test_every_rule_mode_and_odd_cell_keeps_to_the_schema(validator):
    log = {
        "q": np.repeat(np.arange(150), 6),
        "s": np.tile([0.1, 0.2, 0.2, 0.4, 0.5, 0.6], 150),
        "y": np.tile([0.0, 1.0, 1.0, 0.0, 1.0, 0.0], 150),
        "g": np.tile(["a", "b", "a", "b", "a", ""], 150),
    }
    log["g"][3] = "rare"
    audit = mpc.audit(
        log,
        query="q",
        score="s",
        outcome="y",
        group="g",
        scoring_rules=("baseline", "boosted"),
        pairing_modes=("matched", "mirrored", "adjacent"),
        threshold=mpc.Powered(0.1),
        bootstrap=19,
        progress=False,
    )
    validator.validate(json.loads(audit.to_json()))


def test_hostile_names_come_back_as_they_are(hostile, validator):
    text = hostile.to_json()
    found = json.loads(text)
    validator.validate(found)
    assert tuple(cell["group"] for cell in found["cells"]) == hostile.groups
    assert text.isascii()


def test_the_numbers_are_those_of_the_audit(audit):
    found = json.loads(audit.to_json())
    for cell in found["cells"]:
        own = audit.headline.sel({dim: cell[dim] for dim in audit.headline["estimate"].dims})
        for name in HEADLINE:
            if name in own and name != "std_error_by":
                value = own[name].item()
                missing = isinstance(value, float) and not math.isfinite(value)
                assert cell[name] == (None if missing else value), name
        assert cell["std_error_by"]["union"] == own["std_error_by"].sel(variance="union").item()
    curve = found["curve"]
    assert curve["epsilon"] == audit.curve["epsilon"].values.tolist()
    assert curve["cells"][0]["n_pairs"] == audit.curve["n_pairs"].values[0, :, 0, 0].tolist()
    assert found["data"]["fingerprint"] == audit.ranking.fingerprint()
    assert found["gate"]["answer"] == 1


def test_a_loaded_audit_has_the_same_twin(audit, tmp_path):
    audit.save(tmp_path / "a.nc")
    assert mpc.load(tmp_path / "a.nc").to_json() == audit.to_json()


def test_the_schema_knows_every_variable():
    cells = schema()["properties"]["cells"]["items"]["properties"]
    assert set(cells) == {"group", "scoring_rule", "pairing_mode", "n_queries_text", *HEADLINE}
    assert cells["verdict"]["enum"] == list(VERDICTS)
    points = schema()["properties"]["curve"]["properties"]["cells"]["items"]["properties"]
    assert set(points) == {"group", "scoring_rule", "pairing_mode", "n_queries_text", *CURVE}


def test_an_unknown_verdict_is_refused(audit, validator):
    found = json.loads(audit.to_json())
    found["cells"][0]["verdict"] = "fair"
    with pytest.raises(jsonschema.ValidationError, match="'fair' is not one of"):
        validator.validate(found)


def test_the_model_card_has_the_finding_the_table_and_the_limits(audit):
    card = audit.model_card()
    assert card.startswith("## Matched pair calibration\n")
    assert "- Group '1' is undervalued: \\`outcome\\` is" in card
    assert "| 1 | undervalued |" in card
    assert audit.ranking.fingerprint() in card
    assert "### Limits" in card
    assert "Inconclusive is not the same as no gap" in card
