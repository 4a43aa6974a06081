"""Run the code blocks of README.md and docs/: a page is one test, read from top to bottom in a folder of its own.

Python blocks are executed. A Python or TOML block that begins with a comment naming a file (``# pendulum.py``) is first
saved under that name, as a reader would, so that later blocks can use the file. A page that says ``<!-- needs: MODULE -->``
is skipped where that module is not installed. One that says ``<!-- slow -->`` is run by ``make test-all`` only.

No test reads or writes the user's cache. The pages have one of their own, where a reference posterior that several of them
ask for is computed once.
"""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sybil import Document, Example, Region, Sybil
from sybil.parsers.markdown import CodeBlockParser

# Here, so that worker processes have it too. Threads of one matrix product take turns with those of the other workers of
# pytest: with two threads on two cores, tests of small matrices take twice the time of the processor.
os.environ["HERDFILTER_CACHE"] = "off"
for library in ("OMP", "OPENBLAS", "MKL"):  # before numpy loads
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

gc.disable()  # until all tests are collected: none of them becomes garbage, and to look for it takes an eighth of the time


def pytest_collection_finish() -> None:
    """Look for garbage among what tests make, not among the thousands of tests."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the pages that say that they are slow."""
    for item in items:
        if item.path.suffix == ".md" and "<!-- slow -->" in item.path.read_text(encoding="utf-8"):
            item.add_marker(pytest.mark.slow)


def page(document: Document) -> Iterator[Region]:
    """Give one region that holds all blocks of a page, because they build on each other and tests may be spread."""
    blocks = [b for lang in ("python", "toml") for b in CodeBlockParser(lang, run)(document)]
    if blocks:
        blocks.sort(key=lambda block: block.start)
        yield Region(blocks[0].start, blocks[-1].end, blocks, run)


def run(example: Example) -> None:
    """Save and execute the blocks of a page; tracebacks show the lines of the page."""
    example.namespace["monkeypatch"].chdir(example.namespace["tmp_path"])
    example.namespace["monkeypatch"].setenv(
        "HERDFILTER_CACHE", str(example.namespace["pages_cache"])
    )
    text = example.document.text
    for module in re.findall(r"<!-- needs: (\w+) -->", text):
        pytest.importorskip(
            module, reason=f"the optional library {module}, of which this page is, is not installed"
        )
    for block in example.parsed:
        named = re.match(r"# (\w+\.(?:py|toml))\n", block.parsed)
        if named:
            (example.namespace["tmp_path"] / named[1]).write_text(block.parsed, encoding="utf-8")
        if block.lexemes["arguments"] == "python":
            above = text.count("\n", 0, block.start) + block.parsed.line_offset
            code = compile(
                "\n" * (above + 1) + block.parsed, example.path, "exec", dont_inherit=True
            )
            exec(code, example.namespace)


@pytest.fixture(scope="session")
def pages_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that the pages keep references in; the workers of one session share it."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache-of-pages"


pytest_collect_file = Sybil(
    [page], patterns=["*.md"], fixtures=["tmp_path", "monkeypatch", "pages_cache"]
).pytest()
