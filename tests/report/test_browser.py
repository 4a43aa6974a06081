"""The report in a real browser, from disk: no complaint, no request, all in view, and what should move does."""

import base64
import json
import re
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from herdfilter.plotting import drawings
from herdfilter.plotting.style import mirrored
from herdfilter.report import write_report
from herdfilter.study.engine import run_study
from herdfilter.study.plan import plan_study
from herdfilter.study.scenario import Scenario

MODEL = {"type": "LinearGaussian", "F": [[0.9]], "H": [[1.0]], "Q": [[1.0]], "R": [[0.5]]}
SIZES = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True},
}


@pytest.fixture(scope="session")
def report_of(tmp_path_factory):
    """A function of the labels of the state; a report that another size of screen has asked for is there already."""
    return cache(lambda labels: written(labels, tmp_path_factory.mktemp("report")))


@pytest.fixture(scope="module", params=["x", "xy"], ids=["line", "plane"])
def report(request, report_of):
    return report_of(request.param)


def written(labels, folder):
    scenario = Scenario(
        name="walk",
        title="A walk",
        model=MODEL
        | {key: np.kron(np.eye(len(labels)), MODEL[key]).tolist() for key in "FHQR"}
        | {"initial_mean": [0.0] * len(labels), "initial_covariance": np.eye(len(labels)).tolist()},
        steps=24,
        runs=4,
        particles=(10, 30),
        filters=("bootstrap", "guided-augmented-gauss-kh"),
        labels=tuple(labels),
        reference={"type": "kalman"},
    )
    result = run_study(plan_study(scenario))
    plans = drawings(result)
    if labels == "x":  # the other figures are drawn from the same columns for a plane
        plans = {name: plans[name] for name in ("error_over_time", "trajectory")}
    return write_report(result, folder, plans)


@pytest.fixture(scope="module", params=SIZES)
def opened(watched, report, request):
    """Page, and what it complained of and asked for."""
    with watched(SIZES[request.param], report.as_uri()) as page:
        yield page


def test_the_page_is_quiet_alone_and_no_wider_than_the_screen(opened):
    page, heard, asked = opened
    assert heard == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_table_and_figures_are_in_view(opened):
    page, _, _ = opened
    assert page.locator("table.results tbody tr").count() >= 4
    for selector in ("table", "figure svg", "canvas", "#verdict", ".claim"):
        found = page.locator(selector)
        assert found.count() > 0, selector
        for i in range(found.count()):
            box = found.nth(i).bounding_box()
            assert box, selector
            assert min(box["width"], box["height"]) > 30, (selector, box)
            assert found.nth(i).is_visible()


def brightness(page, x, y):
    """Mean of the pixels at a place where there are no letters."""
    picture = page.screenshot(clip={"x": x, "y": y, "width": 3, "height": 3})
    return float(imread(BytesIO(picture), format="png")[..., :3].mean())


def test_a_shadow_says_that_a_table_goes_on_and_is_gone_at_its_end(opened):
    page, _, _ = opened
    table = page.locator(".scroll:has(table.results)")
    assert table.get_attribute("tabindex") == "0"
    assert "scrolls sideways" in table.get_attribute("aria-label")
    wide = table.evaluate("t => t.scrollWidth > t.clientWidth + 1")
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    edge = box["x"] + box["width"] - 4, box["y"] + 2  # above the headings
    before, paper = brightness(page, *edge), brightness(page, box["x"] + box["width"] / 2, box["y"] + 2)
    assert (before < paper - 0.05) == wide
    table.evaluate("t => t.scrollLeft = t.scrollWidth")
    page.wait_for_timeout(100)
    assert brightness(page, *edge) == pytest.approx(paper, abs=0.02)
    table.evaluate("t => t.scrollLeft = 0")


def test_letters_in_figures_can_be_read(opened):
    page, _, _ = opened
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('figure svg text')].map("
        "t => parseFloat(getComputedStyle(t).fontSize) * Math.hypot(t.getScreenCTM().a, t.getScreenCTM().b)))"
    )
    assert smallest > 8


def test_figures_are_mirrored_on_the_dark_page_as_their_colours_say(opened):
    """A dark page shows every figure by one filter; `mirrored` says which colours come of it."""
    page, _, _ = opened
    pixel = """() => {
        const box = document.createElement("canvas"), pen = box.getContext("2d");
        pen.filter = getComputedStyle(document.querySelector("figure svg")).filter;
        pen.fillStyle = "#0072b2";
        pen.fillRect(0, 0, 9, 9);
        return [...pen.getImageData(4, 4, 1, 1).data].slice(0, 3);
    }"""
    shown = {}
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        shown[scheme] = page.evaluate(pixel)
        filters = {
            page.evaluate(f"getComputedStyle(document.querySelector('{one}')).filter")
            for one in ("svg", ".swatch", "canvas")
        }
        assert len(filters) == 1
    for scheme, colour in (("dark", mirrored("#0072b2")), ("light", "#0072b2")):
        np.testing.assert_allclose(shown[scheme], [*bytes.fromhex(colour[1:])], atol=3)


@pytest.mark.parametrize("place", ["desk", "paper"])
def test_the_table_of_results_is_seen_whole(watched, report_of, place):
    """At 1440 pixels, and as wide as A4 paper between margins of a centimetre."""
    width = 1440 if place == "desk" else 718
    with watched({"viewport": {"width": width, "height": 900}}, report_of("x").as_uri()) as (page, _, _):
        page.emulate_media(media="screen" if place == "desk" else "print")
        hidden = "(box) => box.parentElement.scrollWidth - box.parentElement.clientWidth"
        assert page.locator(".results").evaluate(hidden) == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        heads = [" ".join(text.split()) for text in page.locator(".results thead th").all_inner_texts()]
        assert heads[1:5] == ["median error to the reference", "ratio to bootstrap", "ms per step", "diverged"]


def test_the_animation_moves_when_played_and_only_then(opened):
    page, heard, _ = opened
    picture = "[...document.querySelectorAll('canvas')].map(c => c.toDataURL()).join()"
    at, before = page.input_value("#step"), page.evaluate(picture)
    page.wait_for_timeout(400)
    assert page.input_value("#step") == at
    page.click("#play")
    for _ in range(200):
        if page.input_value("#step") != at:
            break
        page.wait_for_timeout(50)
    page.click("#play")
    assert page.input_value("#step") != at
    assert page.evaluate(picture) != before
    page.locator("#step").fill("0")
    assert page.text_content("#now").startswith("step 1 of")
    assert heard == []


def test_tracks_move_over_detections(browser, report_of, tmp_path):
    """The page of a plane with other data: two labels, one of which appears late, a target that leaves, and scans."""
    text = report_of("xy").read_text(encoding="utf-8")
    head, data, tail = re.split(r'(?<=id="animation-data">)(.*?)(?=</script>)', text, maxsplit=1, flags=re.DOTALL)
    made = json.loads(data)
    steps = len(made["steps"])
    path = [[[made["low"][0] * (1 - k / steps), made["high"][1] * k / steps]] for k in range(steps)]
    away = [[None, None]]
    made["truth"] = [one + (one if k < 12 else away) for k, one in enumerate(path)]
    made |= {"several": True, "scans": [k % 3 for k in range(steps)], "centre": None, "near": None, "exact": False}
    codes = np.linspace(20_000, 45_000, 2 * sum(made["scans"])).astype("<u2")
    made["detections"] = base64.b64encode(codes.tobytes()).decode()
    for entry in made["filters"].values():
        entry |= {"particles": "", "sizes": "", "drawn": 0}
        entry["estimate"] = [(away if k < 8 else one) + one for k, one in enumerate(path)]
    place = tmp_path / "report.html"
    head = re.sub(r'<label class="toggle">.*?</label>', "", head)  # there is no close-up of many
    place.write_text(head + json.dumps(made) + tail, encoding="utf-8")
    page = browser.new_page()
    heard = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.goto(place.as_uri())
    pictures = []
    for step in (7, 8, 9):  # scans of 1, 2 and no detections
        page.locator("#step").fill(str(step))
        pictures.append(page.locator("canvas").first.screenshot())
    assert heard == []
    assert len(set(pictures)) == 3
    page.close()


SORTABLE = """
<div class="table-wrapper sortable"><table class="sortable">
<thead><tr><th>filter</th><th>n</th><th>error</th><th>share</th></tr></thead>
<tbody>
<tr><td>auto-random</td><td>100</td><td>0.2 (0.15, 0.26)</td><td>14 %</td></tr>
<tr><td>bootstrap</td><td>1000</td><td>1</td><td>0 %</td></tr>
<tr><td>sqmc</td><td>100</td><td></td><td>100 %</td></tr>
<tr><td>ranked</td><td>50</td><td>9.1e-05 (8e-05, 1,000)</td><td>13 %</td></tr>
</tbody></table></div>
"""


def test_tables_of_the_documentation_sort_by_number_and_keep_the_rows_with_all_words(browser, tmp_path):
    script = (Path(__file__).parents[2] / "docs" / "_static" / "sortable.js").read_text(encoding="utf-8")
    (tmp_path / "page.html").write_text(f"<script>{script}</script>{SORTABLE}", encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())

    def shown():
        return page.locator("tbody tr:visible td:first-child").all_inner_texts()

    page.click("th:nth-child(3)")
    assert shown() == ["ranked", "auto-random", "bootstrap", "sqmc"]  # an empty cell stays below
    page.click("th:nth-child(3)")
    assert shown() == ["bootstrap", "auto-random", "ranked", "sqmc"]
    page.click("th:nth-child(4)")
    assert shown() == ["bootstrap", "ranked", "auto-random", "sqmc"]
    page.fill("input", "100")  # a number is meant as it is, and not as a part of another
    assert shown() == ["auto-random", "sqmc"]
    page.fill("input", "100 random")
    assert shown() == ["auto-random"]
    page.close()
