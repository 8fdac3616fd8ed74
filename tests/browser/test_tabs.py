"""Every tab of the explorer, shown and used in JupyterLab as a person would."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.needs_browser


def turn_to(panel, tab):
    """Click a tab, and return its page once it is there."""
    panel.page.get_by_role("tab", name=tab, exact=True).click()
    panel.until("explorer.tab", tab)
    panel.until(f"explorer.tabs[{tab!r}].drawn > 0", True, seconds=60)
    assert panel.ask(f"explorer.tabs[{tab!r}].error") == "''"


def slider(panel, label):
    """Return what takes the keys of the slider with this label."""
    rail = panel.page.get_by_label(label, exact=True)
    if rail.count():
        return rail
    place = panel.page.locator(".widget-inline-hbox:visible", has_text=label)
    return place.locator(".noUi-handle").first


def test_the_live_panel_takes_the_place_of_the_static_form(panel):
    assert panel.page.locator(".mpc-static").count() > 0
    assert panel.page.locator(".mpc-static:visible").count() == 0
    assert panel.page.locator(".mpc-explorer").first.is_visible()


def test_a_click_on_a_row_of_the_forest_chooses_its_group_for_all_tabs(panel):
    turn_to(panel, "Groups")
    drawing = panel.charts.first.locator("svg")
    row = drawing.locator("text", has_text="gamma").first.bounding_box()
    frame = drawing.bounding_box()
    panel.page.mouse.click(frame["x"] + frame["width"] * 0.2, row["y"] + row["height"] / 2)
    panel.until("explorer.group", "gamma")
    panel.until("explorer.tabs['Pairs'].group", "gamma")
    panel.page.get_by_label("Group", exact=True).select_option("alpha")
    panel.until("explorer.group", "alpha")
    assert panel.ask("explorer.selection['verdict'].item()") == "'undervalued'"
    assert panel.clipped() == []


def test_the_arrow_keys_move_the_threshold_and_the_words_follow(panel):
    turn_to(panel, "Epsilon")
    handle = slider(panel, "Threshold ε")
    handle.focus()
    before, drawn = float(panel.ask("explorer.epsilon")), panel.drawn()
    handle.press("ArrowRight")
    panel.redrawn(drawn)
    after = float(panel.ask("explorer.epsilon"))
    assert after > before
    words = panel.page.locator(".mpc-tabs").get_by_text(f"At ε = {after:.3g}")
    words.wait_for()
    assert panel.clipped() == []


def test_the_rail_speaks_the_threshold_and_its_pairs(panel):
    turn_to(panel, "Epsilon")
    rail = slider(panel, "Threshold ε")
    spoken = rail.get_attribute("aria-valuetext")
    assert spoken == panel.ask("explorer.state.step_words(explorer.epsilon)").strip("'")
    assert "pair" in spoken


def test_the_rail_moves_every_row_of_the_overview_in_the_page(panel):
    turn_to(panel, "Groups")
    rail, chart = slider(panel, "Threshold ε"), panel.charts.first
    rail.focus()
    before = int(chart.get_attribute("data-moved") or 0)
    rail.press("ArrowRight")
    panel.page.wait_for_function(
        "([chart, before]) => Number(chart.dataset.moved ?? 0) > before",
        arg=[chart.element_handle(), before],
    )
    panel.until("explorer.tabs['Groups'].controls['chart'].params['at'] > 0", True)
    panel.ask("setattr(explorer, 'epsilon', explorer.state.own_epsilon)")
    assert panel.clipped() == []


def test_a_chip_is_a_button_that_keeps_to_its_verdict(panel):
    turn_to(panel, "Groups")
    chip = panel.page.locator(".mpc-chip", has_text="undervalued").first
    chip.press("Enter")
    panel.until("explorer.tabs['Groups'].verdicts", ("undervalued",))
    panel.ask("setattr(explorer.tabs['Groups'], 'verdicts', ())")
    panel.page.locator(".mpc-chip[aria-pressed=false]").first.wait_for()


def test_the_arrow_keys_walk_through_the_pairs(panel):
    turn_to(panel, "Pairs")
    panel.page.locator(".mpc-active[aria-label^=Pair]").focus()
    panel.page.keyboard.press("ArrowRight")
    panel.until("explorer.tabs['Pairs'].pair > 0", True)


def test_a_brush_on_the_curve_picks_thresholds(panel):
    turn_to(panel, "Epsilon")
    curve = panel.charts.first.locator("svg")
    curve.scroll_into_view_if_needed()
    drawing = curve.bounding_box()
    left, right = (drawing["x"] + drawing["width"] * share for share in (0.4, 0.7))
    height = drawing["y"] + 60
    mouse = panel.page.mouse
    mouse.move(left, height)
    mouse.down()
    mouse.move(right, height, steps=8)
    mouse.up()
    panel.until("len(explorer.tabs['Epsilon'].brush)", 2)
    panel.until("explorer.selection.sizes['epsilon'] > 1", True)
    low, high = (float(panel.ask(f"explorer.tabs['Epsilon'].brush[{k}]")) for k in (0, 1))
    assert 0 < low < high


def test_the_arrow_keys_move_the_boost_and_the_chart_follows(panel):
    turn_to(panel, "Boost")
    handle = slider(panel, "Boost α")
    handle.focus()
    drawn = panel.drawn()
    handle.press("ArrowRight")
    panel.redrawn(drawn)
    panel.until("explorer.tabs['Boost'].alpha > 0", True)
    assert panel.ask("float(explorer.selection['alpha'][-1]) > 0") == "True"
    assert panel.clipped() == []


PLACES = "() => [...document.querySelectorAll('.mpc-moving-item')].map((one) => one.ariaPosInSet)"


def test_a_boost_sorts_a_real_list_again_in_the_page(panel):
    turn_to(panel, "Boost")
    panel.ask("setattr(explorer.tabs['Boost'], 'alpha', 0.0)")
    panel.until("explorer.tabs['Boost'].controls['list'].alpha", 0.0)
    panel.page.wait_for_timeout(300)
    before, handle = panel.page.evaluate(PLACES), slider(panel, "Boost α")
    handle.focus()
    for _ in range(12):
        handle.press("PageUp")
    panel.page.wait_for_function(f"(before) => ({PLACES})().join() !== before.join()", arg=before)
    said = panel.page.locator(".mpc-moving-said", has_text="items are of group 'alpha'")
    said.wait_for(state="attached")
    panel.ask("setattr(explorer.tabs['Boost'], 'alpha', 0.0)")


def test_nothing_glides_where_a_person_wants_less_motion(panel):
    turn_to(panel, "Boost")
    time = "() => getComputedStyle(document.querySelector('.mpc-moving-item')).transitionDuration"
    assert panel.page.evaluate(time) != "0s"
    panel.page.emulate_media(reduced_motion="reduce")
    assert panel.page.evaluate(time) == "0s"
    panel.page.emulate_media(reduced_motion="no-preference")


def test_pairs_are_sorted_and_a_chosen_one_shows_in_its_list(panel):
    turn_to(panel, "Pairs")
    table = panel.page.locator(".mpc-explorer table.dataTable:visible").first
    rows = table.locator("tbody tr")
    rows.first.wait_for()
    names = table.locator("thead th").all_inner_texts()
    unsorted = rows.first.inner_text()
    order = table.get_by_role("button", name="query: Activate to sort")
    order.press("Enter")
    panel.page.wait_for_function(
        "([row, before]) => row.innerText !== before", arg=[rows.first.element_handle(), unsorted]
    )
    queries = [int(row.split("\t")[names.index("query")]) for row in rows.all_inner_texts()]
    assert queries == sorted(queries)
    rows.nth(2).click()
    panel.until("len(explorer.selection)", 1)
    assert panel.ask("int(explorer.selection['query'].iloc[0])") == str(queries[2])
    ranked = panel.page.locator(".mpc-explorer table.mpc-plain:visible")
    ranked.get_by_text("item of the group").wait_for()
    ranked.get_by_text("other item").wait_for()
    assert f"query '{queries[2]}'," in ranked.inner_text()


def test_negative_differences_have_a_minus_and_are_sorted_as_numbers(panel):
    turn_to(panel, "Pairs")
    table = panel.page.locator(".mpc-explorer table.dataTable:visible").first
    place = table.locator("thead th").all_inner_texts().index("difference") + 1
    cell = table.locator(f"tbody tr:first-child td:nth-child({place})")
    # What the button is called says what it does next.
    order = table.get_by_role("button", name=re.compile("^difference: "))
    order.press("Enter")
    cell.filter(has_text="\u22121").wait_for()
    order.press("Enter")
    cell.filter(has_text=re.compile("^1$")).wait_for()


def test_pairs_are_filtered_by_query(panel):
    turn_to(panel, "Pairs")
    query = panel.ask("str(explorer.tabs['Pairs'].shown['query'].iloc[0])").strip("'")
    field = panel.page.get_by_label("Query contains")
    field.fill(query)
    field.press("Enter")
    panel.until("explorer.tabs['Pairs'].query_text", query)
    panel.until(f"set(explorer.tabs['Pairs'].shown['query'].astype(str)) == {{{query!r}}}", True)
    field.fill("")
    field.press("Enter")
    panel.until("explorer.tabs['Pairs'].query_text", "")


@pytest.mark.parametrize("tab", ["Calibration", "Rivals"])
def test_a_tab_draws_its_chart_whole(panel, tab):
    turn_to(panel, tab)
    assert panel.drawn() >= 1
    assert panel.clipped() == []


PLOT = """() => Math.max(...[...document.querySelectorAll(".mpc-chart[data-drawn] svg")]
  .filter((one) => one.getBoundingClientRect().width)
  .map((one) => one.querySelector(".mark-line path").getBoundingClientRect().width))"""


def test_a_plot_below_whose_legend_is_wider_takes_the_room_that_comes_back(panel):
    turn_to(panel, "Checks")
    panel.ask("setattr(explorer.tabs['Checks'], 'check', 'power')")
    panel.ask("explorer.tabs['Checks'].run()")
    panel.until("explorer.tabs['Checks'].controls['chart'].title != ''", True)
    for width in (420, 700):
        panel.page.set_viewport_size({"width": width, "height": 1200})
        panel.page.wait_for_timeout(1500)
    wide = panel.page.evaluate(PLOT)
    room = panel.charts.first.bounding_box()["width"]
    panel.page.set_viewport_size({"width": 1280, "height": 1200})
    assert wide > 0.7 * room


def test_the_arrow_keys_walk_over_the_tiles_and_enter_opens_a_sentence(panel):
    turn_to(panel, "Rivals")
    panel.page.locator(".mpc-tile[tabindex='0']:visible").focus()
    for name in ("ArrowRight", "ArrowDown", "Enter"):
        panel.page.keyboard.press(name)
    panel.until("explorer.tabs['Rivals'].tile", panel_tile(panel, 1, 1))
    focused = panel.page.evaluate("() => document.activeElement.getAttribute('aria-pressed')")
    assert focused == "true"
    panel.page.locator(".mpc-sentence:visible", has_text="It compares").wait_for()
    panel.ask("setattr(explorer.tabs['Rivals'], 'tile', ())")


def panel_tile(panel, row, column):
    """Return the group and measure of a tile by its place."""
    matrix = "explorer.tabs['Rivals'].matrix"
    names = (f"{matrix}.groups[{row}]", f"{matrix}.measures[{column}]")
    return tuple(panel.ask(name).strip("'") for name in names)


def test_short_checks_show_at_once(panel):
    turn_to(panel, "Checks")
    for key in ("ladder", "power"):
        panel.ask(f"setattr(explorer.tabs['Checks'], 'check', {key!r})")
        panel.page.wait_for_timeout(500)
        assert panel.drawn() >= 1
        assert panel.clipped() == [], key


@pytest.mark.parametrize(
    ("check", "name"), [("balance", "Balance"), ("placebo", "Placebo"), ("density", "Distances")]
)
def test_a_long_check_runs_behind_a_button(panel, check, name):
    turn_to(panel, "Checks")
    panel.page.locator(".mpc-toggles").get_by_role("button", name=name).click()
    panel.until("explorer.tabs['Checks'].check", check)
    assert panel.ask("explorer.selection is None") == "True"
    panel.page.get_by_role("button", name="Run this check").click()
    panel.until("explorer.selection is None", False, seconds=60)
    assert panel.drawn() >= 1
    assert panel.clipped() == []


def test_tabs_are_reached_by_keyboard(panel):
    turn_to(panel, "Groups")
    panel.page.get_by_role("tab", name="Groups", exact=True).focus()
    panel.page.keyboard.press("ArrowRight")
    panel.page.keyboard.press("Enter")
    panel.until("explorer.tab", "Walk me through")
    panel.until("explorer.tabs['Walk me through'].drawn > 0", True, seconds=60)
    assert panel.ask("explorer.tabs['Walk me through'].error") == "''"


def test_what_code_sets_shows_on_the_page(panel):
    turn_to(panel, "Epsilon")
    panel.ask("setattr(explorer, 'group', 'beta')")
    panel.page.locator(".mpc-chart-title:visible", has_text="Group 'beta' is").wait_for()
    assert panel.page.get_by_label("Group", exact=True).input_value() == "beta"
    panel.ask("setattr(explorer, 'group', 'alpha')")


def test_every_control_in_sight_has_a_label(panel):
    turn_to(panel, "Boost")
    nameless = panel.page.evaluate(
        """() => [...document.querySelectorAll(
             ".mpc-explorer :is(select, input, button, [role=slider])")]
           .filter((one) => one.offsetParent)
           .filter((one) => !(one.labels?.length || one.ariaLabel || one.textContent.trim()))
           .map((one) => one.outerHTML)"""
    )
    assert nameless == []


def test_charts_fit_a_narrow_page(panel):
    for tab in ("Groups", "Epsilon", "Boost", "Calibration", "Rivals"):
        turn_to(panel, tab)
        panel.page.set_viewport_size({"width": 800, "height": 1200})
        panel.page.wait_for_timeout(1000)
        try:
            assert panel.clipped() == [], tab
        finally:
            panel.page.set_viewport_size({"width": 1280, "height": 1200})


def test_a_chart_that_was_squeezed_takes_its_room_again(panel):
    turn_to(panel, "Calibration")
    drawing = panel.charts.first.locator("svg")
    before = drawing.bounding_box()["width"]
    try:
        panel.page.set_viewport_size({"width": 330, "height": 1200})
        panel.page.wait_for_timeout(1000)
        assert drawing.bounding_box()["width"] < before - 100
    finally:
        panel.page.set_viewport_size({"width": 1280, "height": 1200})
    panel.page.wait_for_timeout(1500)
    assert drawing.bounding_box()["width"] == pytest.approx(before, abs=15)
