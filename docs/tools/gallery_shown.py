"""What an example shows beyond the figures of pyplot, where a block ends with it: a figure of no window, a page of HTML."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import Any

from docutils.parsers.rst.directives import register_directive
from docutils.parsers.rst.directives.body import MathBlock
from matplotlib.figure import Figure
from sphinx.directives.patches import MathDirective
from sphinx_gallery.scrapers import figure_rst

PAGES = Path(__file__).parents[1] / "examples" / "pages"
"""Folder of the pages of HTML; its files become static ones of the site."""

FRAME = """
.. raw:: html

    <iframe src="../_static/{name}" title="{name}" loading="lazy"></iframe>
    <p><a href="../_static/{name}">The same, as a page of its own</a></p>
"""


def last_value(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Return what a block of code ends with, to be shown as in a notebook: a scraper of sphinx-gallery."""
    body = ast.parse(block.content).body
    value = block_vars["example_globals"]["___"] if body and isinstance(body[-1], ast.Expr) else None
    if isinstance(value, Figure) and value.canvas.manager is None:  # those of pyplot are found without this
        image = next(block_vars["image_path_iterator"])
        value.savefig(image)
        return str(figure_rst([image], gallery_conf["src_dir"]))
    if isinstance(value, Path) and value.suffix == ".html":
        name = f"{Path(block_vars['src_file']).stem}.html"
        shutil.copyfile(value, PAGES / name)
        return FRAME.format(name=name)
    return ""


def plain_docutils(gallery_conf: dict[str, Any], fname: str, when: str) -> None:
    """Give docutils its own equations back while an example runs: Sphinx's work in its pages only, and reports have some."""
    register_directive("math", MathBlock if when == "before" else MathDirective)
