"""What an example shows: figures of pyplot, and what a block ends with, a figure of no window or a page of HTML.

The last panel of a figure of pyplot, or the first of one of no window, becomes the example's thumbnail, square and without
letters, if its block holds the line ``# sphinx_gallery_thumbnail_number = 0``. All examples have one look.
"""

from __future__ import annotations

import ast
import shutil
import warnings
from pathlib import Path
from textwrap import indent
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from docutils.parsers.rst.directives import register_directive
from docutils.parsers.rst.directives.body import MathBlock
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sphinx.directives.patches import MathDirective
from sphinx_gallery.scrapers import figure_rst, matplotlib_scraper

from herdfilter.plotting import style

PAGES = Path(__file__).parents[1] / "examples" / "pages"
"""Folder of the pages of HTML; its files become static ones of the site."""

FRAME = """
.. raw:: html

    <iframe src="../_static/{name}" title="{name}" loading="lazy"></iframe>
    <p><a href="../_static/{name}">The same, as a page of its own</a></p>
"""


MARK = "# sphinx_gallery_thumbnail_number = 0"
"""The line in a block whose figure has the thumbnail: picture 0, which is not on the page."""


def blocks_pictures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Return what a block of code shows, and draw the thumbnail if it is marked: a scraper of sphinx-gallery."""
    figures = [plt.figure(number) for number in plt.get_fignums()]  # the next call closes them
    page = in_a_box(str(matplotlib_scraper(block, block_vars, gallery_conf)))
    page += last_value(block, block_vars, gallery_conf)
    if MARK in block.content:
        panel = figures[-1].axes[-1] if figures else block_vars["example_globals"]["___"].axes[0]
        thumbnail(panel, Path(block_vars["image_path_iterator"].image_path.format(0)))
    return page


def in_a_box(pictures: str) -> str:
    """Return pictures in a box, which scrolls on a phone, so that letters stay as large as they are."""
    return (
        f"\n.. container:: pictures\n\n{indent(pictures, '    ')}\n\n"
        if pictures.strip()
        else pictures
    )


def thumbnail(ax: Axes, path: Path) -> None:
    """Write a panel to a file, square, without its letters and its neighbours. The figure is spoilt."""
    square(ax).savefig(path, dpi=200)


def square(ax: Axes) -> Figure:
    """Return the figure of a panel with this panel alone, square and without letters. The figure is spoilt."""
    figure: Any = ax.figure
    for artist in [*figure.texts, *figure.legends, *ax.texts, *filter(None, [ax.get_legend()])]:
        artist.remove()
    for other in [other for other in figure.axes if other is not ax]:
        other.set_visible(False)
    if ax.get_aspect() != "auto":  # a map: its longer side fills the square
        low, high = np.transpose([ax.get_xlim(), ax.get_ylim()])
        middle, half = (low + high) / 2, abs(high - low).max() / 2
        ax.set(
            aspect="auto",
            xlim=(middle[0] - half, middle[0] + half),
            ylim=(middle[1] - half, middle[1] + half),
        )
    ax.set(title="", position=(0.05, 0.05, 0.9, 0.9))
    for frame in (ax.xaxis, ax.yaxis, *ax.spines.values()):
        frame.set_visible(False)
    figure.set_layout_engine("none")
    figure.set_size_inches(2.2, 2.2)
    return figure


def last_value(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Return what a block of code ends with, to be shown as in a notebook: a scraper of sphinx-gallery."""
    body = ast.parse(block.content).body
    value = (
        block_vars["example_globals"]["___"] if body and isinstance(body[-1], ast.Expr) else None
    )
    if (
        isinstance(value, Figure) and value.canvas.manager is None
    ):  # those of pyplot are found without this
        image = next(block_vars["image_path_iterator"])
        value.savefig(image)
        return in_a_box(str(figure_rst([image], gallery_conf["src_dir"])))
    if isinstance(value, Path) and value.suffix == ".html":
        name = f"{Path(block_vars['src_file']).stem}.html"
        shutil.copyfile(value, PAGES / name)
        return FRAME.format(name=name)
    return ""


def plain_docutils(gallery_conf: dict[str, Any], fname: str, when: str) -> None:
    """Give docutils its own equations back while an example runs: Sphinx's work in its pages only, and reports have some."""
    register_directive("math", MathBlock if when == "before" else MathDirective)


def one_look(gallery_conf: dict[str, Any], fname: str, when: str) -> None:
    """Give the figures of an example the letters, grids and colours of a report, and its warnings no path of a file."""
    with style.figures():
        look = mpl.rcParams.copy()
    mpl.rcParams.update(look)
    colours = style.BLUE, style.ORANGE, style.GREEN, style.RED, style.SKY, style.NAVY
    mpl.rcParams["axes.prop_cycle"] = cycler(color=colours)
    warnings.formatwarning = lambda message, category, *_: f"{category.__name__}: {message}\n"
