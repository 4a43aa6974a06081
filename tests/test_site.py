"""What the built site is checked for, and its tables that can be sorted, in a real browser."""

import json
from pathlib import Path

import pytest
from helpers import cases

DOCS = Path(__file__).parent.parent / "docs"
pytestmark = pytest.mark.slow
ROWS = """name,error,note
ten,1.5e1,"a ""quoted"" word, and a comma"
two,2.25,
nine,,<b>no markup</b>
"""


@pytest.fixture
def check_site(scripts):
    return scripts("docs/check_site")


OUTSIDE = {
    "script": '<script src="https://cdn.example/x.js"></script>',
    "style": '<link rel="stylesheet" href="//cdn.example/x.css">',
    "picture": '<img src="http://cdn.example/x.png">',
    "frame": '<iframe src="https://cdn.example/"></iframe>',
    "set": '<source srcset="https://cdn.example/x.png">',
}


@cases("kind", *OUTSIDE)
def test_a_page_that_loads_from_another_host_is_named(check_site, tmp_path, kind):
    (tmp_path / "a.html").write_text(OUTSIDE[kind])
    (tmp_path / "b.html").write_text(
        '<a href="https://cdn.example/">a link</a><img src="x.png"><link rel="canonical" href="https://a.example/">'
    )
    assert [line.split(":")[0] for line in check_site.other_hosts(tmp_path)] == ["a.html"]


def test_a_style_sheet_that_loads_from_another_host_is_named(check_site, tmp_path):
    (tmp_path / "a.css").write_text(
        '@import "https://cdn.example/a.css"; body { background: url(//cdn.example/x.png) }'
    )
    (tmp_path / "b.css").write_text(
        "body { background: url(x.png); mask: url('data:image/svg+xml;x') }"
    )
    assert [line.split(":")[0] for line in check_site.other_hosts(tmp_path)] == ["a.css", "a.css"]


@pytest.fixture
def table(watched, tmp_path):
    text = ROWS.replace("<", "&lt;")
    page = f"<!DOCTYPE html><title>t</title><script src='sortable.js'></script><pre class='data-table'>{text}</pre>"
    (tmp_path / "page.html").write_text(page)
    (tmp_path / "sortable.js").write_text(
        (DOCS / "_static" / "sortable.js").read_text(encoding="utf-8")
    )
    with watched(
        {"viewport": {"width": 800, "height": 600}}, (tmp_path / "page.html").as_uri()
    ) as (page, heard, _):
        yield page
        assert heard == []


def names(page):
    return page.locator("tbody tr:visible td:first-child").all_inner_texts()


def test_a_data_file_becomes_a_table_with_what_it_says(table):
    assert table.locator("th").all_inner_texts() == ["name", "error", "note"]
    assert names(table) == ["ten", "two", "nine"]
    notes = table.locator("td:nth-child(3)").all_inner_texts()
    assert notes == ['a "quoted" word, and a comma', "", "<b>no markup</b>"]


def test_headings_are_buttons_that_sort_by_click_and_by_key(table):
    heading = table.locator("th").nth(1)
    button = table.get_by_role("button", name="error")
    assert heading.get_attribute("aria-sort") == "none"
    arrow = "getComputedStyle(document.querySelectorAll('th button')[1], '::after').content"
    table.add_style_tag(path=DOCS / "_static" / "page.css")

    def shown():
        return json.loads(table.evaluate(arrow)).strip()

    seen = [shown()]
    button.click()
    assert (heading.get_attribute("aria-sort"), names(table)) == (
        "ascending",
        ["two", "ten", "nine"],
    )
    seen.append(shown())
    button.press("Enter")
    assert (heading.get_attribute("aria-sort"), names(table)) == (
        "descending",
        ["ten", "two", "nine"],
    )
    seen.append(shown())
    assert seen == ["\u2195", "\u2191", "\u2193"]
    button.press("ArrowLeft")
    table.keyboard.press("Space")
    assert [one.get_attribute("aria-sort") for one in table.locator("th").all()] == [
        "ascending",
        "none",
        "none",
    ]
    assert names(table) == ["nine", "ten", "two"]


def test_a_table_that_a_desk_cuts_is_named(check_site, tmp_path, watched):
    style = "<style>.table-wrapper { overflow: auto } td { white-space: nowrap }</style>"
    text = (
        "<!DOCTYPE html>" + style + "<div class='table-wrapper'><table><tr>CELLS</tr></table></div>"
    )
    for name, columns in {"narrow": 5, "wide": 500}.items():
        (tmp_path / f"{name}.html").write_text(text.replace("CELLS", "<td>number</td>" * columns))
    size = {"viewport": {"width": check_site.DESK, "height": 900}}
    with watched(size, (tmp_path / "narrow.html").as_uri()) as (page, _, _):
        assert not page.evaluate(check_site.WIDE_TABLE)
        page.goto((tmp_path / "wide.html").as_uri())
        assert page.evaluate(check_site.WIDE_TABLE)
