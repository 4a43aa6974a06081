"""The commands, names and links that README.md and docs/ show exist; their code blocks are run by the root conftest.py."""

import dataclasses
import importlib
import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from herdfilter.catalogue.specifications import catalogue
from herdfilter.cli import main
from herdfilter.study.scenario import scenario_files

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(scope="module")
def pages():
    """Path -> text. A test goes through all pages: five hundred tests of a page each cost more than what they test."""
    return {path: path.read_text(encoding="utf-8") for path in PAGES}


@pytest.fixture
def make_pages(scripts):
    return scripts("docs/make_pages")


def wanting(pages, found):
    """Page -> what `found(text)` finds on it, for the pages where that is something."""
    return {
        path.relative_to(ROOT).as_posix(): wrong
        for path, text in pages.items()
        if (wrong := found(text))
    }


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def command_lines(text):
    for block in re.findall(r"^```(?:shell|console)\n(.*?)^```", text, re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            yield shlex.split(line.removeprefix("$ "), comments=True)


def test_commands_shown_are_understood(pages):
    shipped, filters_known = scenario_files(), set(catalogue())
    for page, text in pages.items():
        for _, name, *arguments in (
            line for line in command_lines(text) if line[:1] == ["herdfilter"]
        ):
            if not name.startswith("-"):
                options = main.commands[name].make_context(name, arguments).params
                scenario, filters = options.get("scenario"), options.get("filters")
                if scenario in shipped:
                    assert filters is None or set(filters.split(",")) <= filters_known, (
                        page.name,
                        filters,
                    )
                else:
                    assert scenario is None or f"# {scenario}\n" in text, (
                        f"{page.name}: {scenario} neither shipped nor shown"
                    )


def test_make_targets_shown_exist(pages):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    shown = re.compile(r"(?:^|`)make ([\w-]+)(?:$|`)", re.M)
    assert wanting(pages, lambda text: set(shown.findall(text)) - targets) == {}


def test_filters_named_are_in_the_catalogue(pages, scripts):
    known = set(catalogue()) | set(scripts("benchmarks/studies").VARIATIONS)
    families = "|".join(sorted({name.partition("-")[0] for name in known if "-" in name}))
    named = re.compile(rf"[`\"',]((?:{families})-[\w-]*\w)(?=[`\"',])")
    methods = {"herded-gibbs"}  # of association
    sources = {
        path: path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").glob("*.py")
    }
    assert "bootstrap-ssp" in named.findall(sources[ROOT / "benchmarks" / "bench_engine.py"])
    assert wanting(pages | sources, lambda text: set(named.findall(text)) - known - methods) == {}


def test_relative_links_lead_somewhere(pages):
    for page, text in pages.items():
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", without_code(text)):
            if target.startswith(
                "examples/"
            ):  # made of the gallery's scripts when the pages are built
                target = f"gallery/{Path(target).stem}.py".replace("index.py", "README.rst")
            assert (page.parent / target).exists(), (page.name, target)


def names(text):
    """Dotted names that begin with the package, in backticks or in the code of a page."""
    code = re.findall(r"`([^`\n]+)`", without_code(text))
    return {
        name
        for words in code
        for name in re.findall(r"(?<![\w./-])(?:hf|herdfilter)(?:\.\w+)+", words)
    }


def exists(name):
    """Whether a dotted name can be imported, or is an attribute of what can."""
    found = importlib.import_module("herdfilter")
    for part in name.split(".")[1:]:
        if hasattr(found, part) or (
            dataclasses.is_dataclass(found) and part in found.__dataclass_fields__
        ):
            found = getattr(found, part, None)
        elif isinstance(found, ModuleType) and importlib.util.find_spec(f"{found.__name__}.{part}"):
            found = importlib.import_module(f"{found.__name__}.{part}")
        else:
            return False
    return True


def test_names_of_the_package_exist(pages):
    assert wanting(pages, lambda text: {name for name in names(text) if not exists(name)}) == {}


def test_files_named_are_there(pages):
    named = re.compile(r"`((?:herdfilter|benchmarks|docs|scenarios|tests)/[\w/.]*)`")
    assert (
        wanting(
            pages, lambda text: [path for path in named.findall(text) if not (ROOT / path).exists()]
        )
        == {}
    )


def test_every_picture_is_drawn_by_a_command_and_small(scripts):
    make_images = scripts("docs/make_images")
    pictures = list((ROOT / "docs" / "images").glob("*.png"))
    assert {path.stem for path in pictures} <= set(make_images.figures())
    assert [path.name for path in pictures if path.stat().st_size > 120_000] == []
    moving = list((ROOT / "docs" / "images").glob("*.gif"))
    assert {path.stem for path in moving} == set(make_images.MOVING)
    assert [path.name for path in moving if path.stat().st_size > 1_000_000] == []


@pytest.mark.slow
def test_tables_are_those_of_the_results_files(pages, make_pages):
    stale = [page.name for page, text in pages.items() if make_pages.filled(text) != text]
    assert stale == [], "run: python docs/make_pages.py"


BLOCK = re.compile(r"^<!-- table: (\w+) -->\n(.*?)^<!-- end -->", re.M | re.S)
FENCE = re.compile(r"^(`{3,}).*?^\1$", re.M | re.S)


def test_pages_are_short(pages):
    """Twelve thousand bytes of prose at most, with lists, equations and tables that are typed, but without code."""
    for page, text in pages.items():
        prose = FENCE.sub("", BLOCK.sub("", text)).split("\n## Sources")[0]
        assert len(prose.encode()) <= 12_000, page.name
        assert len(text.encode()) <= (6000 if page.name == "README.md" else 18_000), page.name


def test_equations_are_closed_and_hold_no_list(pages):
    """A line that begins with a sign is an item of a list, also within an equation of a paragraph."""
    item = re.compile(r"\n\s*(?:[-+*>]\s|\d+[.)]\s|\n)")

    def wrong(text):
        text = re.sub(r"`[^`\n]*`|\$\$.*?\$\$", "", FENCE.sub("", text), flags=re.S)
        found = [equation for equation in re.findall(r"\$[^$]+\$", text) if item.search(equation)]
        return found + ["$"] * (text.count("$") % 2)

    assert wanting(pages, wrong) == {}


def test_no_line_is_taken_for_a_comment(pages):
    """Markdown of the pages leaves out a line that begins with a percent sign."""
    assert wanting(pages, lambda text: re.findall(r"^%.*", without_code(text), re.M)) == {}


def test_tables_on_pages_are_short(pages):
    """A dozen rows carry an argument; longer tables are data files, which a page shows in a box that can be sorted."""
    for name, text in (block for page in pages.values() for block in BLOCK.findall(page)):
        rows = [
            sum(line.startswith("|") for line in table.split("\n")) - 2
            for table in text.split("\n\n")
        ]
        assert max(rows) <= 12, name


def test_data_files_of_long_tables_are_those_of_the_results_files(make_pages):
    made = make_pages.written()
    assert set(made) == set((ROOT / "docs" / "tables").glob("*.csv"))
    stale = [path.name for path, text in made.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run: python docs/make_pages.py"


def test_every_long_table_is_shown_and_can_be_downloaded(pages):
    shown = "".join(pages.values())
    files = (ROOT / "docs" / "tables").glob("*.csv")
    assert {f"view_{path.stem}" for path in files} <= {name for name, _ in BLOCK.findall(shown)}
    for path in re.findall(
        r"\{download\}`[\w.]+ <(.*?)>`|^(?::file:|```\{data-table\}) (.*)$", shown, re.M
    ):
        assert (ROOT / "docs" / "".join(path)).is_file()


@pytest.mark.slow
def test_what_the_captions_of_the_guide_claim_is_in_the_results_files(make_pages):
    page_guide, page_limits = map(importlib.import_module, ("page_guide", "page_limits"))
    read = page_guide.read
    taken = {
        problem: page_guide.least(page_guide.over_bootstrap(problem))
        for problem in page_guide.PROBLEMS
    }
    assert set(taken.values()) == {"auto"}
    table = read("default_budget")
    ours = table[table["filter"].isin(["auto", "ranked"])]
    shown = ours[ours["ratio_high"] < 1]
    assert set(shown["us_per_particle"]) == {0.0, 2.0}
    assert set(shown["filter"]) == {"auto", "ranked"}
    lead = read("default_growth").query("filter == 'auto'")["to_bootstrap"].to_numpy()
    assert lead[-1] >= lead[0]
    for _, rows in read("study").query("filter == 'herded-quantile'").groupby("scenario"):
        lead = rows.set_index("n")["to_bootstrap"]
        assert lead[500] < 0.5 * lead[20]
    same = read("kernels").query("what == 'auto'")
    assert (same["close"] == same["sets"]).all()
    assert same["largest"].max() < 1e-10
    found = page_limits.losses()
    assert not [row for row in found if row["ratio"] <= 1 or row["ratio_low"] <= 1]
    assert {"`lorenz96`", "`stochastic_volatility`"} < {row["where"] for row in found}
    quality = importlib.import_module("page_samplers").over_families(
        read("quality").query("n == 100")
    )["median"]
    for sampler in ("kh", "chg"):
        assert (np.diff(quality.xs(sampler, level="sampler")) > 0).all()
        assert quality.xs(sampler, level="sampler").max() < 1


def test_every_results_file_says_when_it_was_measured(make_pages):
    files = {path.stem for path in make_pages.RESULTS.iterdir()} - {"measured", "figures"}
    log = make_pages.RESULTS / "measured.csv"
    assert files == {
        line.split(",")[0] for line in log.read_text(encoding="utf-8").splitlines()[1:]
    }
