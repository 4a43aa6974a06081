"""The examples of the gallery as texts, and the tools that show them.

The build of the documentation runs them.
"""

import ast
import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure

from herdfilter.study.data import DATA_FILES

DOCS = Path(__file__).parent.parent / "docs"
SCRIPTS = sorted((DOCS / "gallery").glob("*.py"))
MOST_LINES = 110
pytestmark = pytest.mark.slow


@pytest.fixture(params=SCRIPTS, ids=lambda path: path.stem)
def script(request):
    return request.param


@pytest.fixture
def gallery_data(scripts):
    return scripts("docs/tools/gallery_data")


@pytest.fixture
def shown(scripts, monkeypatch, tmp_path):
    """What the gallery shows of a block of code that ends with a value."""
    pytest.importorskip("sphinx_gallery", reason="the documentation is not built without")
    gallery_shown = scripts("docs/tools/gallery_shown")
    monkeypatch.setattr(gallery_shown, "PAGES", tmp_path)

    def show(content, value):
        images = iter([str(tmp_path / "image.png")])
        known = {"___": value, "figure": value}
        block_vars = {
            "example_globals": known,
            "image_path_iterator": images,
            "src_file": "08_report.py",
        }
        return gallery_shown.last_value(
            SimpleNamespace(content=content), block_vars, {"src_dir": str(tmp_path)}
        )

    return show


def test_an_example_has_one_thumbnail(script, shown):
    assert (
        script.read_text(encoding="utf-8").count(importlib.import_module("gallery_shown").MARK) == 1
    )


def test_an_example_has_a_title_and_says_what_it_is_about(script):
    title, line, empty, *rest = (
        ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    ).split("\n")
    assert line == "=" * len(title) != ""
    assert not empty
    assert re.match(r"[A-Z].*\w\w.*[.?]$", " ".join(rest), re.S)


def test_an_example_is_short_and_ends_with_what_to_read_next(script):
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    *_, last = re.split(r"^# %%", text, flags=re.M)
    assert ":doc:`" in last
    assert not ast.parse(last).body  # words alone


def test_an_example_is_run_where_its_data_are(gallery_data, tmp_path):
    gallery = tmp_path / "gallery"
    place = tmp_path / "data"
    file = next(iter(DATA_FILES))
    gallery.mkdir()
    place.mkdir()
    (gallery / "1_needs.py").write_text(f'"""Of ``{file}``."""', encoding="utf-8")
    (gallery / "2_needs_nothing.py").write_text("", encoding="utf-8")

    assert gallery_data.missing(place, gallery) == {"1_needs": [file]}
    pattern = gallery_data.pattern({"1_needs": [file]})
    assert [path.stem for path in sorted(gallery.glob("*")) if re.search(pattern, str(path))] == [
        "2_needs_nothing"
    ]
    (place / file).touch()
    assert gallery_data.missing(place, gallery) == {}


def test_examples_of_real_data_name_their_files(gallery_data, script):
    """Otherwise a machine without the data would run them."""
    loads = re.search(r"\bload_(plaza|uav|autoferry|harbour)\b", script.read_text(encoding="utf-8"))
    assert bool(gallery_data.needed(script)) == bool(loads)


def test_a_figure_of_no_window_is_shown_where_a_block_ends_with_it(shown, tmp_path):
    assert "image.png" in shown("figure", Figure(figsize=(1, 1)))
    assert (tmp_path / "image.png").stat().st_size > 0
    assert shown("figure = 1", Figure()) == ""


def test_examples_of_data_have_their_pictures_stored(gallery_data):
    """Without the data nobody can draw them."""
    names = gallery_data.of_data()
    expected = {gallery_data.stored(name, k) for name in names for k in gallery_data.numbers(name)}
    assert len(expected) >= 2 * len(names) > 0
    assert {path.stem for path in (DOCS / "images").glob("gallery_*.png")} == expected


def test_a_page_without_its_data_shows_the_stored_pictures_and_says_so(gallery_data, tmp_path):
    file = next(iter(DATA_FILES))
    blocks = [
        "import numpy",
        "fig, ax = plt.subplots()\n\n    ax.plot()",
        "fig, ax = plt.subplots(2)",
    ]
    code = "".join(f".. code-block:: Python\n\n    {block}\n\nWords.\n\n" for block in blocks)
    page = f"Where?\n======\n\n{code}"
    shown = gallery_data.note(page, "05_robot", [file])
    assert "stored from a run with the data" in shown.split(".. code-block")[0]
    after = [part.split("Words.")[0] for part in shown.split(".. code-block")[1:]]
    assert [re.findall(r"image:: /images/(\w+)\.png", part) for part in after] == [
        [],
        ["gallery_05_1"],
        ["gallery_05_2"],
    ]
    run = f"{page}Total running time: 1 s"
    assert gallery_data.note(run, "05_robot", [file]) == run

    name = gallery_data.of_data()[0]
    gallery_data.place_thumbnails({name: [file]}, tmp_path)
    assert (tmp_path / "images" / f"sphx_glr_{name}_000.png").is_file()
