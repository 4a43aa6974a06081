"""Figures of matplotlib as SVG within a page: with its fonts and colours, and ids of their own."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from herdfilter.plotting.style import FAINT, INK, QUIET, figures, laid_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_WHITE = "#ffffff"
_NAMED = {INK: "ink", QUIET: "quiet", FAINT: "faint", _WHITE: "paper"}
_PLACES = ("d", "x", "y", "width", "height", "transform")


def inline(figure: Figure, key: str, label: str) -> str:
    """Return a figure as an element of HTML.

    Parameters
    ----------
    figure : Figure
    key : str
        Put before all ids, so that those of several figures do not clash; letters, digits and hyphens.
    label : str
        What a reader hears who does not see it.
    """
    import matplotlib as mpl

    file = io.StringIO()
    with figures(), mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": key}), laid_out(figure):
        figure.savefig(file, format="svg", dpi=160, transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{_SVG}}}metadata":
                parent.remove(child)
    used = set(re.findall(r"url\(#([^)]+)\)", file.getvalue())) | set(re.findall(r'xlink:href="#([^"]+)"', file.getvalue()))
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
        element.attrib = {name: value for pair in element.attrib.items() for name, value in _renamed(*pair, key, used)}
        for text in ("text", "tail"):
            if not (getattr(element, text) or "").strip():
                setattr(element, text, None)
    black = f"fill: {colour('#000000')}"  # matplotlib leaves out what is filled with black, the default
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": label, "style": black}
    return ElementTree.tostring(root, encoding="unicode")


def colour(value: str) -> str:
    """Return a colour as the page may set it: by a variable of that name, with the colour itself to fall back on."""
    value = value.lower()
    return f"var(--{_NAMED.get(value, 'c' + value[1:])}, {value})"


def _renamed(name: str, value: str, key: str, used: set[str]) -> list[tuple[str, Any]]:
    """Attributes for one of the original."""
    if name == "id":
        return [("id", f"{key}-{value}")] if value in used else []
    name = name.removeprefix(f"{{{_LINK}}}")
    if name == "href" and value.startswith("#"):
        return [("href", f"#{key}-{value[1:]}")]
    value = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", value)
    if name == "style":
        value = re.sub(r"#[0-9a-fA-F]{6}\b(?![^(]*\))", lambda found: colour(found[0]), value)
        value = re.sub(r"font: ([\d.]+)px [^;]*", r"font-size: \1px", value)
    if name in _PLACES:  # a hundredth of a point is seen by nobody
        value = re.sub(r"(?<=\.\d\d)\d+", "", value)
    return [(name, value)]
