"""Every word can be read, in both themes: on charts, in the report, in the explorers, in a story.

The guidelines ask for a contrast of 4.5 : 1 between words and what is behind them (level AA), but
not of what cannot be used while it looks so.
"""

from __future__ import annotations

import functools
import re
from importlib.resources import files

import pytest

from helpers.drawn import CHARTS
from mpc_lab.charts.theme import ACCENT, GREY, INK, ON_DARK, ON_LIGHT, PAGES, svg
from mpc_lab.results.questions.tell import _STYLE
from mpc_lab.vocabulary import VERDICTS

AA = 4.5
THEMES = pytest.mark.parametrize("theme", ["light", "dark"])
ON = {"light": ON_LIGHT, "dark": ON_DARK}
WORDS = [GREY, INK, ACCENT, *(verdict.colour for verdict in VERDICTS.values())]
# What is behind the words of a notebook, and the ink of its own two themes.
LAB = {"light": ["#ffffff", "#ffffff"], "dark": ["#111111", "#212121"]}
LAB_INK = {"light": "#212121", "dark": "#ffffff"}
# Lab itself draws such a button, in the blue of both its themes.
BUTTON = {".mpc-button.mod-primary": "#1976d2"}
# Numbers that are being made, a rail that is off, a panel without its kernel.
NOT_IN_USE = re.compile(r"\.mpc-stale|\.mpc-off|-disconnected\b.* > \*|-moving-out$")
SIGN = r"-\w+-sign$"
MARKS = re.compile(r" (rect|line)$|\.mpc-(here|zero)$|(?<!text)\[(fill|stroke)=")


def parts_of(colour):
    """Return red, green, blue and the share that it covers."""
    if colour.startswith("rgba("):
        *parts, share = (float(part) for part in colour[5:-1].split(","))
        return [part / 255 for part in parts], share
    whole = colour if len(colour) == 7 else "#" + "".join(sign * 2 for sign in colour[1:])
    return [int(whole[k : k + 2], 16) / 255 for k in (1, 3, 5)], 1.0


def over(colour, page, opacity=1.0):
    """Return what a colour that lets some of the page through looks like."""
    parts, share = parts_of(colour)
    behind, share = parts_of(page)[0], share * opacity
    mixed = (share * one + (1 - share) * other for one, other in zip(parts, behind, strict=True))
    return "#" + "".join(f"{round(255 * part):02x}" for part in mixed)


def luminance(colour):
    red, green, blue = (
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts_of(colour)[0]
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def rules_of(package, name):
    """Return the rules of a style sheet."""
    return parse(files(package).joinpath(name).read_text("utf-8"))


def parse(css):
    """Return, of each rule, its selectors with those around it, and its declarations."""
    css = re.sub(r"/\*.*?\*/|url\(\".*?\"\)|\"[^\"]*\"(?=;)", "", css, flags=re.DOTALL)
    found, around = [], []
    for before, sign in re.findall(r"([^{}]*)([{}])", css):
        if sign == "{":
            around.append(" ".join(before.split()))
            continue
        pairs = [one.split(":", 1) for one in before.split(";") if ":" in one]
        found.append((" ".join(around), {k.strip(): " ".join(v.split()) for k, v in pairs}))
        around.pop()
    return found


def colours_of(rules, is_there):
    """Return the custom properties of the rules whose selectors hold, a later one winning."""
    there = [body for selector, body in rules if is_there(selector)]
    return {k: v for body in there for k, v in body.items() if k.startswith("--")}


def words_of(rules):
    """Yield the selector, the colour of its words and its background, where it says them."""
    for selector, body in rules:
        colour = body.get("color", "" if MARKS.search(selector) else body.get("fill", ""))
        yield selector, colour, body.get("background", "")


def resolve(value, known):
    """Return the colour that a value means; empty where it is that of the page around."""
    name = re.fullmatch(r"var\((--[\w-]+)(?:, *(.+))?\)", value)
    if name:
        return resolve(known.get(name[1], name[2] or ""), known)
    return value if re.match(r"#|rgba\(", value) else ""


def test_the_measure_is_that_of_the_guidelines():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)
    assert over("rgba(0, 0, 0, .5)", "#ffffff") == "#808080"
    assert parse("@media print { a { color: red; } } b {}")[0] == (
        "@media print a",
        {"color": "red"},
    )


@THEMES
def test_the_words_of_charts_have_contrast(theme):
    for word in WORDS:
        assert contrast(ON[theme].get(word, word), PAGES[theme]) >= AA, word


@pytest.fixture(scope="module")
def words(audit):
    """Return a function from the name of a chart to the colours of the words drawn in it."""

    @functools.cache
    def drawn(name):
        texts = re.findall(r"<text\b[^>]*>", svg(CHARTS[name](audit, "1")))
        shown = [text for text in texts if not re.search(r'\bopacity="0"', text)]
        return {re.search(r'fill="([^"]+)"', text)[1] for text in shown}

    return drawn


@pytest.mark.parametrize("name", CHARTS)
def test_every_word_that_is_drawn_has_contrast_in_both_themes(words, name):
    assert words(name)
    for theme, page in PAGES.items():
        for word in words(name):
            assert contrast(ON[theme].get(word, word), page) >= AA, (theme, word)


def report_colours(theme):
    """Return the rules of the report and its custom properties in a theme or on paper."""
    rules = rules_of("mpc_lab.report", "style.css")
    sheets = {"dark": "@media (prefers-color-scheme: dark) :root", "print": "@media print :root"}
    return rules, colours_of(rules, lambda selector: selector in (":root", sheets.get(theme)))


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_the_words_of_charts_have_contrast_in_the_report(theme):
    rules, known = report_colours(theme)
    for word in WORDS:
        # As the page says of words, else of all that has this colour, else as it is drawn.
        fits = [f'svg {of}[fill="{word}"]' for of in ("", "text")]
        said = [body["fill"] for selector, body in rules if selector.endswith(tuple(fits))]
        shown = resolve(said[-1], known) if said else word
        assert contrast(shown, known["--page"]) >= AA, word


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_every_word_of_the_report_has_contrast(theme):
    rules, known = report_colours(theme)
    checked = 0
    for selector, value, behind in words_of(rules):
        colour = resolve(value, known)
        pages = [resolve(behind, known)] if behind else [known["--page"], known["--wash"]]
        for page in pages if colour else []:
            assert contrast(colour, page or known["--page"]) >= AA, (selector, value)
            checked += 1
    assert checked > 20


@pytest.mark.parametrize("sheet", ["explorer", "story"])
@THEMES
def test_every_word_in_a_notebook_has_contrast(theme, sheet):
    rules = rules_of("mpc_lab.explorers", "explorer.css") if sheet == "explorer" else parse(_STYLE)
    dark = re.compile(r'prefers-color-scheme: dark|theme-light="false"')
    known = colours_of(rules, lambda selector: theme == "dark" or not dark.search(selector))
    known |= colours_of(rules, lambda selector: bool(dark.search(selector)) == (theme == "dark"))
    known["--jp-ui-font-color1"] = LAB_INK[theme]
    for page in LAB[theme]:
        # What may lie between the page and words of any colour: a chip that is pressed, a card.
        for selector, value, behind in words_of(rules):
            if re.search(SIGN, selector):
                continue  # asked with the colour of its sign
            colour = resolve(value, known) or LAB_INK[theme]
            backs = [BUTTON.get(selector) or resolve(behind, known)]
            if selector == ".mpc-sign":
                backs = [body["background"] for one, body in rules if re.search(SIGN, one)]
            for back in backs:
                assert contrast(colour, over(back, page) if back else page) >= AA, selector
        for selector, body in rules:
            share = float(body.get("opacity", 1))
            if not NOT_IN_USE.search(selector) and not MARKS.search(selector):
                assert contrast(over(LAB_INK[theme], page, share), page) >= AA, selector


@THEMES
def test_a_chip_that_is_pressed_keeps_the_contrast_of_its_verdict(theme):
    rules = rules_of("mpc_lab.explorers", "explorer.css")
    tints = [body["background"] for selector, body in rules if ".mpc-chip[aria-pressed" in selector]
    assert tints
    verdicts = [VERDICTS[name].colour for name in ("undervalued", "overvalued")]
    for page in LAB[theme]:
        for colour in verdicts:
            shown = ON[theme].get(colour, colour)
            assert contrast(shown, over(tints[0], page)) >= AA
