"""Look over the built pages: ``python docs/check_site.py docs/_build``, the last step of ``make docs``.

Three things are checked: that every link inside the site, with its anchor, leads somewhere; that nothing is loaded from
other hosts; and, where a Chromium is installed, that pages fit. No page is wider than its window, be it of a desk (1280
pixels) or of a phone (390), so that no text is cut. A desk of 1440 pixels shows all columns of a table, but for tables in
boxes that can be sorted.
"""

from __future__ import annotations

import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

WIDTHS = (1280, 390)
LOADED_BY_STYLE = re.compile(r"""(?:url\(|@import)\s*["']?([^"')\s;]+)""")
WIDER = """() => {
    const boxes = [document.documentElement, document.querySelector(".content")];
    return boxes.some((box) => box && box.scrollWidth > box.clientWidth + 1);
}"""
DESK = 1440
WIDE_TABLE = """() => [...document.querySelectorAll(".table-wrapper:not(.sortable)")].some(
    (box) => box.querySelector("table")?.offsetWidth > box.clientWidth + 1
)"""


class Page(HTMLParser):
    """The links of a page, and the anchors that others may link to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note where the tag links to and the anchor that it is."""
        found = dict(attributes)
        self.anchors |= {found[key] or "" for key in ("id", "name") if key in found}
        self.links += [
            found[key] or "" for key in ("href", "src") if key in found and tag != "base"
        ]
        if tag == "link" and not {"stylesheet", "preload", "icon"}.isdisjoint(
            (found.get("rel") or "").split()
        ):
            self.loaded.append(found.get("href") or "")
        self.loaded += [
            found[key] or "" for key in ("src", "srcset", "poster", "data") if key in found
        ]


def broken_links(site: Path) -> list[str]:
    """Name the links that lead to no file of the site, or to no anchor of its page."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else {unquote(parts.fragment)}
            if not target.exists() or unquote(parts.fragment) not in anchors:
                broken.append(f"{path.relative_to(site.resolve())}: the link {link} leads nowhere")
    return broken


def other_hosts(site: Path) -> list[str]:
    """Name what pages and style sheets load from elsewhere: whoever reads them is nobody else's business."""
    found = [(path, link) for path in sorted(site.rglob("*.html")) for link in Page(path).loaded]
    for path in sorted(site.rglob("*.css")):
        found += [
            (path, link) for link in LOADED_BY_STYLE.findall(path.read_text(encoding="utf-8"))
        ]
    outside = [(path, link) for path, link in found if urlsplit(link.strip()).netloc]
    return [f"{path.relative_to(site)}: loads {link}" for path, link in outside]


def wide_pages(site: Path) -> list[str]:
    """Name the pages that are wider than a window; none where there is no browser to ask."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("playwright is not installed: the widths of the pages were not checked")
        return []
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        print("no Chromium is installed: the widths of the pages were not checked")
        return []
    wide = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        window = browser.new_page()
        for path in sorted(site.rglob("*.html")):
            window.goto(path.resolve().as_uri())
            for width in WIDTHS:
                window.set_viewport_size({"width": width, "height": 900})
                if window.evaluate(WIDER):
                    wide.append(f"{path.relative_to(site)}: wider than a window of {width} pixels")
            window.set_viewport_size({"width": DESK, "height": 900})
            if window.evaluate(WIDE_TABLE):
                wide.append(
                    f"{path.relative_to(site)}: a table is cut in a window of {DESK} pixels"
                )
        browser.close()
    return wide


def main(site: Path) -> int:
    """Print what is wrong; 1 if anything is."""
    if not (site / "index.html").is_file():
        print(f"{site}: no built pages here; build them with: make docs")
        return 1
    wrong = broken_links(site) + other_hosts(site) + wide_pages(site)
    print(
        "\n".join(wrong)
        or f"{len(list(site.rglob('*.html')))} pages: links, hosts and widths are as they should be"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
