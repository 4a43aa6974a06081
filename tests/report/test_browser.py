"""The report in a real browser, from disk: no complaint, no request, all in view, and what should move does."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from helpers import result_of

from herdfilter.plotting import drawings
from herdfilter.report import write_report

pytestmark = pytest.mark.slow
SIZES = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "device_scale_factor": 2,
        "is_mobile": True,
        "has_touch": True,
    },
}


@pytest.fixture(scope="session")
def report_of(scenario, tmp_path_factory):
    """A function of the labels of the state; a report that another size of screen has asked for is there already."""
    return cache(lambda labels: written(scenario, labels, tmp_path_factory.mktemp("report")))


@pytest.fixture(scope="module", params=["x", "xy"], ids=["line", "plane"])
def report(request, report_of):
    return report_of(request.param)


def written(scenario, labels, folder):
    matrices = {
        name: np.kron(np.eye(len(labels)), scenario.model[name]).tolist()
        for name in ("F", "H", "Q", "R", "initial_covariance")
    }
    model = scenario.model | matrices | {"initial_mean": [0.0] * len(labels)}
    several = replace(scenario, model=model, labels=tuple(labels), steps=24, runs=4)
    result = result_of(several)
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
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('figure svg text')].map("
        "t => parseFloat(getComputedStyle(t).fontSize) * Math.hypot(t.getScreenCTM().a, t.getScreenCTM().b)))"
    )
    assert smallest > 8  # it can be read


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


def test_tables_of_the_documentation_sort_by_number_and_keep_the_rows_with_all_words(
    browser, tmp_path
):
    script = (Path(__file__).parents[2] / "docs" / "_static" / "sortable.js").read_text(
        encoding="utf-8"
    )
    (tmp_path / "page.html").write_text(f"<script>{script}</script>{SORTABLE}", encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())

    def shown():
        return page.locator("tbody tr:visible td:first-child").all_inner_texts()

    page.click("th:nth-child(3)")
    assert shown() == ["ranked", "auto-random", "bootstrap", "sqmc"]  # an empty cell stays below
    page.click("th:nth-child(3)")
    assert shown() == ["bootstrap", "auto-random", "ranked", "sqmc"]
    page.fill("input", "100")  # a number is meant as it is, and not as a part of another
    page.fill("input", "100 random")
    assert shown() == ["auto-random"]
    page.close()
