"""The builders keep to the written schema, and a dataset that does not is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.handmade import cell_numbers, headline_numbers
from mpc_lab.errors import MpcError
from mpc_lab.results import check_curve, check_headline, check_moments
from mpc_lab.results import curve_dataset as curve_of
from mpc_lab.results import headline_dataset as headline_of
from mpc_lab.results.schema import CURVE, HEADLINE, MOMENTS, clean_attrs, text

SHAPE = (2, 1, 1)
LABELS = (("1", "2"), ("baseline",), ("matched",))
OPTIONAL = {
    "exploratory",
    "heavy_share",
    "largest_query_share",
    "underpowered",
    "short_of_pairs",
    *(f"place_{name}" for name in ("overlap", "effect", "effect_low", "effect_high")),
    "place_effect_p_value",
    "shown_above",
    *(f"bootstrap_{end}" for end in ("low", "high", "t_low", "t_high")),
    "mde",
    "mde_adjusted",
    "variance_from",
    "share_items",
    "band_low",
    "band_high",
}


def headline(**changed):
    return headline_of(*LABELS, {**headline_numbers(SHAPE, 0), **changed})


@pytest.mark.parametrize("part", ["headline", "curve", "moments"])
def test_every_variable_says_what_it_is(audit, part):
    schema = {"headline": HEADLINE, "curve": CURVE, "moments": MOMENTS}[part]
    ds = getattr(audit, part)
    for name, array in ds.data_vars.items():
        assert array.attrs == {"long_name": schema[name].meaning, "units": schema[name].units}
        assert array.dims == schema[name].dims


def test_only_what_is_optional_may_be_absent(audit):
    absent = {*HEADLINE, *CURVE} - {*audit.headline.data_vars, *audit.curve.data_vars}
    assert absent == OPTIONAL


def test_counts_are_int64_and_labels_are_numpy_text():
    ds = headline(n_pairs=np.full(SHAPE, 7, np.int32))
    assert ds["n_pairs"].dtype == np.int64
    assert ds["ci_cut"].dtype == np.bool_
    assert {ds[name].dtype.kind for name in ("group", "verdict", "verdict_reason")} == {"U"}


def test_variance_families_keep_their_order():
    errors = np.ones(SHAPE)
    ds = headline(std_error_by={"query": 2 * errors, "naive": errors})
    assert ds["variance"].values.tolist() == ["naive", "query"]
    assert ds["std_error_by"].values[0, 0, 0].tolist() == [1.0, 2.0]


def test_optional_variables_are_taken():
    ds = headline(mde=np.ones(SHAPE), variance_from=np.full(SHAPE, "union"))
    assert ds["mde"].attrs["units"] == "outcome"
    assert ds["variance_from"].dtype.kind == "U"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_pairs": np.full(SHAPE, np.nan)}, r"headline\.n_pairs must be int64; got float64"),
        ({"n_pairs": np.full(SHAPE, -1)}, r"headline\.n_pairs must be a count .*; got -1"),
        ({"ci_cut": np.zeros(SHAPE)}, r"headline\.ci_cut must be bool; got float64"),
        ({"estimate": np.zeros((2, 1))}, r"headline\.estimate must have dims .* shape \(2, 1\)"),
        ({"estimate": np.zeros((3, 1, 1))}, r"headline\.estimate .* sizes \(2, 1, 1\); got"),
        ({"estimat": np.zeros(SHAPE)}, r"headline has no 'estimat'. Did you mean 'estimate'"),
        ({"verdict": np.full(SHAPE, "unfair")}, r"headline\.verdict has no 'unfair'"),
        ({"std_error_by": {"dyad": np.ones(SHAPE)}}, r"std_error_by has no 'dyad'"),
        ({"n_pairs": np.zeros(SHAPE, int)}, r"headline\.estimate must be NaN where there is no"),
        ({"mde": np.full(SHAPE, "x")}, r"headline\.mde must be float64; got <U1"),
    ],
)
def test_a_wrong_array_is_named(changed, message):
    with pytest.raises(MpcError, match=message):
        headline(**changed)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ((("1", "1"), ("baseline",), ("matched",)), r"headline\.group must hold each label once"),
        ((("1", "2"), ("baseline",), ("match",)), r"pairing_mode has no 'match'. Did you mean"),
    ],
)
def test_a_wrong_label_is_named(labels, message):
    with pytest.raises(MpcError, match=message):
        headline_of(*labels, headline_numbers(SHAPE, 0))


def test_a_missing_variable_is_named(audit):
    with pytest.raises(MpcError, match=r"headline\.p_value must be present"):
        check_headline(audit.headline.drop_vars("p_value"))
    with pytest.raises(MpcError, match=r"curve\.n_items must be present"):
        check_curve(audit.curve.drop_vars("n_items"))
    with pytest.raises(MpcError, match=r"moments\.pairs must be present"):
        check_moments(audit.moments.drop_vars("pairs"))


def test_dims_in_another_order_are_refused(audit):
    turned = audit.headline.transpose("pairing_mode", ...)
    with pytest.raises(MpcError, match=r"headline\.estimate must have dims \('group', "):
        check_headline(turned)


def test_float32_is_refused(audit):
    narrow = audit.headline.assign(dof=audit.headline["dof"].astype("float32"))
    with pytest.raises(MpcError, match=r"headline\.dof must be float64; got float32"):
        check_headline(narrow)


def test_labels_that_are_no_numpy_text_are_refused(audit):
    objects = audit.headline.assign_coords(group=np.array(["1", "2"], dtype=object))
    with pytest.raises(MpcError, match=r"headline\.group must be a coordinate of numpy text"):
        check_headline(objects)


@pytest.mark.parametrize("grid", [[0.1, 0.1], [0.2, 0.1], [0.1, np.nan], [0.1, np.inf]])
def test_a_grid_that_does_not_ascend_is_refused(grid):
    with pytest.raises(MpcError, match=r"curve\.epsilon must be finite float64 numbers in asc"):
        curve_of(LABELS[0], grid, *LABELS[1:], cell_numbers((2, 2, 1, 1), 0))


def test_attributes_become_plain_numbers_and_texts():
    cleaned = clean_attrs({"n": np.int64(3), "level": np.float64(0.95), "adjust": np.str_("holm")})
    assert {name: type(value) for name, value in cleaned.items()} == {
        "n": int,
        "level": float,
        "adjust": str,
    }


@pytest.mark.parametrize("value", [True, None, {"a": 1}, [1], np.bool_(True), np.ones(2)])
def test_other_attributes_are_refused_by_name(value):
    with pytest.raises(MpcError, match="Attribute 'option' must be a number or text"):
        clean_attrs({"option": value})


@pytest.mark.parametrize("values", [["a", "bbb"], [], [[""]], np.array(["a"], dtype="<U9")])
def test_text_has_the_smallest_width(values):
    array = text(values)
    assert array.dtype == np.array(array.tolist() or [""], dtype=str).dtype
    assert array.shape == np.shape(values)
