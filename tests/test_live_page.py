"""The page with sliders: its table is the package's own, its script runs without complaint, and sliders and keys move it."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest

import herdfilter as hf

DOCS = Path(__file__).parent.parent / "docs"
pytestmark = pytest.mark.slow
SIZES = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "phone": {
        "viewport": {"width": 360, "height": 740},
        "device_scale_factor": 2,
        "is_mobile": True,
        "has_touch": True,
    },
}


@pytest.fixture(scope="module")
def make_live(scripts):
    return scripts("docs/make_live")


@pytest.fixture(scope="module")
def table(make_live):
    text = make_live.DATA.read_text(encoding="utf-8")
    return json.loads(text.removeprefix(make_live.HEAD).removesuffix(";\n"))


@pytest.fixture(scope="module")
def limits(make_live):
    """Mixture -> the limits of its picture."""
    return {name: make_live.outlines(mixture)[:2] for name, mixture in make_live.mixtures().items()}


def decoded(entry, limits):
    low, high = limits
    codes = np.frombuffer(base64.b64decode(entry["points"]), "<u2").reshape(-1, 2)
    return low + codes / 65_535 * (high - low), (codes % 65_535 > 0).all(axis=1)


# The table


def test_the_points_are_what_the_samplers_return(make_live, table, limits):
    """A last bit may send single points elsewhere: nine sets of ten have the same beginning, and all the same distance."""
    near = []
    for name, mixture in make_live.mixtures().items():
        size = np.ptp(limits[name], axis=0).max()
        for sampler, herded in make_live.HERDED.items():
            sets = table["mixtures"][name]["sets"][sampler]
            for i in (3, 5):
                x, _ = decoded(sets[i], limits[name])
                kernel = make_live.WIDTHS[i - 1] ** 2 * mixture.covariance
                own = herded(bandwidth=kernel).sample(mixture, make_live.COUNTS[-1]).x
                near.append(np.abs(own[:20] - x[:20]).max() < 1e-3 * size)
                distances = [hf.energy_distance(hf.Points(own[:n]), mixture) for n in (20, 200)]
                tabulated = [sets[i]["distances"][make_live.COUNTS.index(n)] for n in (20, 200)]
                np.testing.assert_allclose(distances, tabulated, rtol=0.5)
            automatic = hf.energy_distance(herded().sample(mixture, 25), mixture)
            assert sets[0]["distances"][make_live.COUNTS.index(25)] == pytest.approx(
                automatic, rel=0.1
            )
    assert np.mean(near) >= 0.9


def test_what_the_page_says_of_the_table_is_so(make_live, table):
    n = np.array(make_live.COUNTS)
    herded = list(make_live.HERDED)
    ratios = {}
    for name, entry in table["mixtures"].items():
        for sampler, sets in entry["sets"].items():
            ratios[name, sampler] = np.array([one["distances"] for one in sets]) / entry["expected"]
    for name in table["mixtures"]:
        for sampler in herded:
            own = ratios[name, sampler]
            assert (own[0, n >= 20] < 1 / 6).all(), "less than a sixth from 20 points on"
            assert own[0, -1] < own[0, n == 20], "the gap grows"
            assert (own[0, n <= 2].round(1) >= 0.3).all()
            assert (own[0, n <= 2].round(1) <= 0.5).all(), (
                "a factor of two to three with one or two points"
            )
    spread = np.concatenate(
        [np.ptp(np.log(ratios[name, "random"]), axis=0) for name in table["mixtures"]]
    )
    assert np.mean(spread > np.log(2)) > 0.5, "the worst has over twice the distance of the best"
    for sampler in herded:
        assert ratios["five components", sampler][1, n == 50] > 9, "ten times that of draws"
        assert ratios["far modes", sampler][-1, n == 50] > 1
        assert (ratios["wide and narrow", sampler][1:] > 0.1).all(), (
            "no single width gets below a tenth"
        )
        assert (ratios["wide and narrow", sampler][0, n >= 100] < 0.1).all()


# The page in a browser


def page_of(folder):
    """The parts of the page that the script fills, with the scripts and the style as the page names them."""
    text = (DOCS / "herding_live.md").read_text(encoding="utf-8")
    elements = "".join(re.findall(r"^<(?:div|/div|link|script).*$", text, re.M))
    assert ":::{div} herding-player" in text
    page = folder / "page.html"
    page.write_text(
        '<!doctype html><meta name="viewport" content="width=device-width"><body><div class="herding-player"></div>'
        + elements.replace("_static/", f"{(DOCS / '_static').as_uri()}/"),
        encoding="utf-8",
    )
    return page


@pytest.fixture(scope="module", params=SIZES)
def opened_once(watched, tmp_path_factory, request):
    with watched(SIZES[request.param], page_of(tmp_path_factory.mktemp("live")).as_uri()) as page:
        yield page


@pytest.fixture
def opened(opened_once):
    """Page as it opens, and what it complained of and asked for."""
    opened_once[0].reload()
    return opened_once


def state(page):
    """How many points are drawn, and the numbers shown: energy distance, mean of draws, ratio."""
    numbers = page.locator(".herding-numbers b").all_inner_texts()
    return page.locator(".herding-plot .herding-point").count(), *map(float, numbers)


def tabulated(table, mixture, sampler, choice, n):
    entry = table["mixtures"][mixture]
    k = table["counts"].index(n)
    distance = entry["sets"][sampler][choice]["distances"][k]
    expected = entry["expected"][k]
    return n, distance, expected, pytest.approx(distance / expected, rel=0.06)


def test_the_page_is_quiet_alone_and_no_wider_than_the_screen(opened):
    page, heard, asked = opened
    assert heard == []
    assert [url for url in asked if not url.startswith("file:")] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for selector in (".herding-picture", ".herding-chart", "button", "input[type=range]"):
        assert page.locator(selector).first.bounding_box()["height"] > 20, selector


def test_sliders_and_choices_change_the_points_and_the_numbers(opened, table):
    page, heard, _ = opened
    assert state(page) == tabulated(table, "five components", "kernel herding", 0, 50)
    page.locator("#herding-size").fill("10")
    assert state(page) == tabulated(
        table, "five components", "kernel herding", 0, table["counts"][10]
    )
    page.locator("#herding-width").fill("2")
    assert state(page) == tabulated(
        table, "five components", "kernel herding", 2, table["counts"][10]
    )
    page.select_option("#herding-mixture", "wide and narrow")
    page.check("input[value='herded Gibbs']")
    assert state(page) == tabulated(
        table, "wide and narrow", "herded Gibbs", 2, table["counts"][10]
    )
    page.check("input[value='random']")
    assert page.locator("#herding-width").is_disabled()
    page.click("text=Draw again")
    assert state(page) == tabulated(table, "wide and narrow", "random", 1, table["counts"][10])
    page.check("input[value='kernel herding']")
    page.select_option("#herding-mixture", "five components")
    assert heard == []


def test_the_keyboard_does_all_that_the_mouse_does(opened, table):
    page, heard, _ = opened
    page.focus("#herding-size")
    page.keyboard.press("Home")
    assert state(page)[0] == 1
    page.keyboard.press("ArrowRight")
    assert state(page)[0] == 2
    page.keyboard.press("End")
    assert state(page)[0] == 200
    page.focus("#herding-width")
    page.keyboard.press("End")
    assert state(page) == tabulated(
        table, "five components", "kernel herding", len(table["widths"]), 200
    )
    page.focus("input[value='kernel herding']")
    page.keyboard.press("ArrowDown")
    assert page.is_checked("input[value='herded Gibbs']")
    page.focus(".herding-player button")
    page.keyboard.press("Space")
    for _ in range(200):
        if page.input_value("#herding-step") not in {"0", "99"}:
            break
        page.wait_for_timeout(50)
    page.keyboard.press("Space")
    at = page.input_value("#herding-step")
    assert at not in {"0", "99"}
    page.wait_for_timeout(500)
    assert page.input_value("#herding-step") == at  # it rests
    assert heard == []


def test_everything_has_a_name_for_those_who_do_not_see_it(opened):
    page, _, _ = opened
    for control in page.locator(".herding :is(input, select, button)").all():
        named = control.evaluate(
            "c => c.tagName === 'BUTTON' ? c.textContent : [...c.labels].map(l => l.textContent).join('')"
        )
        assert named.strip()
    pictures = page.locator(".herding svg[role=img]")
    assert pictures.count() == 7  # four pictures, three charts
    assert all(len(picture.get_attribute("aria-label")) > 20 for picture in pictures.all())
    assert page.get_attribute("#herding-width", "aria-valuetext")
