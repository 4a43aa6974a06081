"""The commands, names and links that README.md and docs/ show exist; their code blocks are run by the root conftest.py."""

import re
import shlex
from pathlib import Path

import pytest

from herdfilter.cli import main
from herdfilter.evaluation.filters import catalogue
from herdfilter.evaluation.scenario import scenario_files

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(params=PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def page(request):
    return request.param


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
        assert (page.parent / target).exists(), target
