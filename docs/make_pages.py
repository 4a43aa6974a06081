"""Fill the tables of README.md and docs/*.md from benchmarks/results: ``python docs/make_pages.py``.

What stands between ``<!-- table: NAME -->`` and ``<!-- end -->`` on a page is made by the function of that name in
tools/page_tables.py, and never typed. The results files are written by the scripts in benchmarks/, those of the paper by
make_images.py; demo.txt is taken from results/demo/table.txt, which ``make demo`` leaves. Long tables are CSV files that
pages show: see tools/page_views.py. ``--check`` only names the files that are not up to date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "tools"))

from page_format import RESULTS
from page_tables import ROOT, TABLES, excerpt
from page_views import written

DEMO = ROOT / "results" / "demo" / "table.txt"
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.S)


def filled(text: str) -> str:
    """Return a page with its tables made anew."""
    return BLOCK.sub(lambda block: block[1] + TABLES[block[2]]() + block[3], text)


def pages() -> list[Path]:
    """Return the pages that may have tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` name those that are not up to date."""
    check = "--check" in arguments
    if DEMO.is_file() and not check:
        text = excerpt(DEMO.read_text(encoding="utf-8"))
        (RESULTS / "demo.txt").write_text(text, encoding="utf-8")
    made = written() | {page: filled(page.read_text(encoding="utf-8")) for page in pages()}
    changed = []
    for path, text in made.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            changed.append(path.name)
            if not check:
                path.write_text(text, encoding="utf-8")
    print("not up to date:" if check else "written:", ", ".join(changed) or "none")
    return int(check and bool(changed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
