"""Colours of filters: told apart in every kind of colour vision, on light and on dark pages, by hue or by marker."""

from itertools import combinations

import numpy as np
import pytest
from helpers import cases

from herdfilter import plotting
from herdfilter.catalogue.specifications import catalogue
from herdfilter.plotting.style import INK, QUIET, STYLES
from herdfilter.study.scenario import load_scenario, scenario_files

colorspacious = pytest.importorskip(
    "colorspacious", reason="colorspacious, which simulates colour vision, is not installed"
)

VISIONS = (None, "protanomaly", "deuteranomaly", "tritanomaly")
LEAST_DISTANCE = 12  # CAM02-UCS; 1 is just noticed side by side, and colours of lines are remembered from a legend


def channels(colour):
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255


@pytest.fixture(scope="module")
def pages(scripts):
    """Page -> its transformation of a colour."""
    return {"light": str, "dark": scripts("docs/figures/look").mirrored}


def distance(pages, one, other):
    """The least of two colours, over kinds of colour vision and light and dark pages."""
    found = []
    for page in pages.values():
        pair = np.array([channels(page(one)), channels(page(other))])
        for vision in VISIONS:
            space = (
                "sRGB1"
                if vision is None
                else {"name": "sRGB1+CVD", "cvd_type": vision, "severity": 100}
            )
            seen = np.clip(colorspacious.cspace_convert(pair, space, "sRGB1"), 0, 1)
            found.append(float(colorspacious.deltaE(*seen, input_space="sRGB1")))
    return min(found)


def contrast(one, other):
    """Of two colours, as the Web Content Accessibility Guidelines define it."""
    linear = [
        np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        for c in map(channels, (one, other))
    ]
    dark, light = sorted(float(c @ [0.2126, 0.7152, 0.0722]) for c in linear)
    return (light + 0.05) / (dark + 0.05)


def test_filters_that_are_compared_have_colours_that_everyone_tells_apart(pages):
    """The simulation knows which colours are confused."""
    assert distance(pages, "#d00000", "#507000") < LEAST_DISTANCE
    assert distance(pages, "#000000", "#0072b2") > LEAST_DISTANCE
    compared = {
        pair for name in scenario_files() for pair in combinations(load_scenario(name).filters, 2)
    }
    compared |= set(
        combinations(
            ("bootstrap", "auto", "sqmc", "herded-kh", "herded-chg", "augmented-kh", "ukf"), 2
        )
    )
    solid = [pair for pair in compared if {STYLES[name].linestyle for name in pair} == {"-"}]
    assert not [
        pair
        for pair in solid
        if distance(pages, *(STYLES[name].color for name in pair)) < LEAST_DISTANCE
    ]


def test_no_two_filters_share_both_colour_and_marker():
    assert set(catalogue()) <= set(STYLES)
    plain = [style for name, style in STYLES.items() if not name.startswith("lmb-")]
    assert len(set(plain)) == len(plain)
    trackers = [style for name, style in STYLES.items() if name.startswith("lmb-")]
    assert len(set(trackers)) == len(trackers)


@cases("page grounds", ("light", ["#ffffff"]), ("dark", ["#15171a", "#1e2125"]))
def test_every_colour_is_seen_on_the_page(pages, page, grounds):
    """Three to one, as the guidelines ask of graphics; letters of ink 4.5 to one."""
    for colour in {style.color for style in STYLES.values()} | {QUIET}:
        assert contrast(pages[page](colour), grounds[0]) > 3, colour
    assert min(contrast(pages[page](INK), ground) for ground in grounds) > 4.5


def test_own_filters_get_colours_that_are_free(pages):
    looks = plotting.styles(["bootstrap", "auto", "mine", "yours", "theirs"])
    assert all(
        distance(pages, *(look.color for look in pair)) >= LEAST_DISTANCE
        for pair in combinations(looks.values(), 2)
    )
