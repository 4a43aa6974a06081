"""The commands, names and links that README.md and docs/ show exist; their code blocks are run by the root conftest.py."""

import dataclasses
import importlib
import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from herdfilter.catalogue.specifications import catalogue
from herdfilter.cli import main
from herdfilter.evaluation.scenario import scenario_files

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(params=PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def page(request):
    return request.param


@pytest.fixture
def make_pages(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("make_pages")


@pytest.fixture
def make_images(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("make_images")


def command_lines(text):
    for block in re.findall(r"^```(?:shell|console)\n(.*?)^```", text, re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            yield shlex.split(line.removeprefix("$ "), comments=True)


def test_commands_shown_are_understood(page):
    text = page.read_text(encoding="utf-8")
    for program, name, *arguments in (line for line in command_lines(text) if line[:1] == ["herdfilter"]):
        if not name.startswith("-"):
            options = main.commands[name].make_context(name, arguments).params
            scenario, filters = options.get("scenario"), options.get("filters")
            if scenario in scenario_files():
                assert filters is None or set(filters.split(",")) <= set(catalogue())
            else:
                assert scenario is None or f"# {scenario}\n" in text, (
                    f"{program}: {scenario} neither shipped nor shown"
                )


def test_make_targets_shown_exist(page):
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    shown = re.findall(r"(?:^|`)make (\w+)(?:$|`)", page.read_text(encoding="utf-8"), re.M)
    assert set(shown) <= set(targets)


def test_filters_named_are_in_the_catalogue(page):
    named = re.findall(r"`((?:herded|mixture|augmented)-[\w-]+)`", page.read_text(encoding="utf-8"))
    assert set(named) <= set(catalogue())


def test_relative_links_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", prose):
        if target.startswith("examples/"):  # made of the gallery's scripts when the pages are built
            target = f"gallery/{Path(target).stem}.py".replace("index.py", "README.rst")
        assert (page.parent / target).exists(), target


def names(text):
    """Dotted names that begin with the package, in backticks or in the code of a page."""
    code = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
    return {name for words in code for name in re.findall(r"(?<![\w./-])(?:hf|herdfilter)(?:\.\w+)+", words)}


def exists(name):
    """Whether a dotted name can be imported, or is an attribute of what can."""
    found = importlib.import_module("herdfilter")
    for part in name.split(".")[1:]:
        if hasattr(found, part) or (dataclasses.is_dataclass(found) and part in found.__dataclass_fields__):
            found = getattr(found, part, None)
        elif isinstance(found, ModuleType) and importlib.util.find_spec(f"{found.__name__}.{part}"):
            found = importlib.import_module(f"{found.__name__}.{part}")
        else:
            return False
    return True


def test_names_of_the_package_exist(page):
    shown = names(page.read_text(encoding="utf-8"))
    assert {name for name in shown if not exists(name)} == set()


def test_names_that_do_not_exist_are_found():
    text = "`herdfilter.kernels.floored`, `hf.KernelHerding()`, `herdfilter.samplers.Sampler`, `herdfilter compare`"
    assert {name for name in names(text) if not exists(name)} == {"herdfilter.kernels.floored"}
    assert len(names(text)) == 3


def test_files_named_are_there(page):
    paths = re.findall(
        r"`((?:herdfilter|benchmarks|docs|scenarios|tests)/[\w/.]*)`", page.read_text(encoding="utf-8")
    )
    assert [path for path in paths if not (ROOT / path).exists()] == []


RATES = re.compile(
    r"\b(?:one|two|once|twice|entry|row|file|points?|sweeps?|evaluations?|seconds?|[mµ]s|us|time|cost|pictures?) an? "
    r"(?:step|particle|point|run|sample|coordinate|sweep|second|component|cell|scenario|family|filter|row|place|figure)\b",
    re.I,
)


def test_rates_are_per_something(page):
    """Plain English: one per step, not one a step."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert RATES.findall(text) == []
    assert RATES.search("two sweeps a point")
    assert not RATES.search("two sweeps per point, and a run")


def test_every_picture_is_drawn_by_a_command_and_small(make_images):
    pictures = list((ROOT / "docs" / "images").glob("*.png"))
    assert {path.stem for path in pictures} <= set(make_images.figures())
    assert [path.name for path in pictures if path.stat().st_size > 120_000] == []


def test_tables_are_those_of_the_results_files(page, make_pages):
    text = page.read_text(encoding="utf-8")
    assert make_pages.filled(text) == text, "run: python docs/make_pages.py"


def test_pages_are_short(page):
    """Twelve thousand characters of prose at most; tables, code and lists of sources aside."""
    text = re.sub(
        r"^(?:```|<!-- table).*?^(?:```|<!-- end -->)",
        "",
        page.read_text(encoding="utf-8"),
        flags=re.M | re.S,
    )
    prose = text.split("\n## Sources")[0]
    assert len(prose) <= 12_000
    assert page.name != "README.md" or page.stat().st_size <= 6000


def test_every_results_file_says_when_it_was_measured(make_pages):
    files = {path.stem for path in make_pages.RESULTS.glob("*.csv")} - {"measured"}
    log = make_pages.RESULTS / "measured.csv"
    assert files == {line.split(",")[0] for line in log.read_text(encoding="utf-8").splitlines()[1:]}


def test_excerpt_of_the_demo_keeps_headings_some_filters_and_the_verdict(make_pages):
    table = "a title\n\n filter n error\n ----\n bootstrap 50 3\n bootstrap 100 2\n\n ukf 100 9\n auto-kh 100 1\n\nverdict\n"
    kept = make_pages.excerpt(table)
    assert kept.split("\n") == [
        "a title",
        "",
        " filter n error",
        " ----",
        " bootstrap 100 2",
        " auto-kh 100 1",
        "",
        "verdict",
        "",
    ]
