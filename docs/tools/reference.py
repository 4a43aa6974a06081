"""The pages of the reference: every public name once, on the page that names its module.

A page in docs/reference says ``<!-- names: MODULE ... -->`` where the names of these modules and of those below them
belong; the longest name that fits decides. A name without a page, or a page without names, is an error of the build.
"""

from __future__ import annotations

import enum
import functools
import inspect
import re
import sys
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from public_names import defined_in, is_shared, public_names
from reference_links import place_of
from sphinx.pycode import ModuleAnalyzer

from herdfilter.models.contract import OBSERVATION, TRANSITION

PAGES = Path(__file__).parent.parent / "reference"
MARKER = re.compile(r"<!-- names: ([\w. ]+) -->")

CONTRACT = {"circular", "dim", "initial", "noise_dim", *TRANSITION, *OBSERVATION}
"""What a model may have; the module of the contract tells it."""

LEFT_OUT = {
    "herdfilter": {
        "collect",
        "distinct_covariances",
        "factors",
        "from_table",
        "log_terms",
        "of_arrays",
        "told",
        "trusted",
    },
    "herdfilter.adapters.particles": {"M", "M0", "logG", "time_to_resample"},
    "herdfilter.association": {"cluster"},
    "herdfilter.study.scenario": {"initial_truth", "modules", "plane", "steps_of"},
    "herdfilter.study.store": {"check"},
    "herdfilter.study.plan": {"described", "filter_rng", "recording_rng", "reference_rng"},
    "herdfilter.study.targets": {"check_beside_model", "simulate_truth"},
    "herdfilter.filters.proposals": {
        "check",
        "draw",
        "follow",
        "initial",
        "initial_sampler",
        "needs_moments",
        "propose",
        "transitions",
        "uses",
    },
    "herdfilter.filters.resampling": {"ancestors", "check", "chosen", "resample"},
    "herdfilter.models": CONTRACT,
    "herdfilter.models.sensors": {"functions"},
    "herdfilter.study.data.textbook": CONTRACT | {"sample"},
    "herdfilter.models.with_clutter": CONTRACT
    | {"detection_log_likelihoods", "kind_suffix", "log_factors"},
    "herdfilter.samplers": {"draw", "draws"},
    "herdfilter.tracking": {"within"},
}
"""Module -> members that are public for other parts of the package only, or told once, where the contract is."""

KEPT = {
    "CopyingResampling": {"ancestors"},
    "FunctionModel": {"transition_covariance", "transition_mean"},
    "JumpMarkov": {"initial"},
}
"""Class -> members that it tells otherwise than the contract."""


FIRST = (
    "herdfilter.ParticleFilter",
    "herdfilter.make_filter",
    "herdfilter.run_many",
    "herdfilter.simulate",
    "herdfilter.models.FunctionModel",
    "herdfilter.tracking.LMBTracker",
    "herdfilter.compare",
    "herdfilter.choose",
)
"""Names that their page begins with."""


def pages() -> list[Path]:
    """Files of the pages, in the order of the overview."""
    names = re.search(
        r"^```{toctree}\n(?:.*\n)*?\n((?:reference/\w+\n)+)```", overview_text(), re.M
    )
    assert names, "api.md lists no pages of the reference"
    return [PAGES / f"{Path(name).name}.md" for name in names[1].split()]


def overview_text() -> str:
    """Return the overview as it is written."""
    return (PAGES.parent / "api.md").read_text(encoding="utf-8")


def fits(module: str, place: str) -> bool:
    """Whether a module is one that a page asks for, or below it."""
    return f"{module}.".startswith(f"{place}.")


@cache
def contents() -> dict[str, dict[str, list[str]]]:
    """Page -> modules that it asks for -> full names, in the order in which the modules list them.

    Names in `FIRST` stand before the others, errors and warnings behind them.

    Raises
    ------
    ValueError
        If a public name has no page, or a page asks for a module without public names.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for path in pages():
        asked = MARKER.findall(path.read_text(encoding="utf-8"))
        found[path.stem] = {modules: [] for modules in asked}
    places = [
        (place, page, modules)
        for page in found
        for modules in found[page]
        for place in modules.split()
    ]
    used = set()
    for full, thing in public_names().items():
        module = defined_in(full, thing)
        best = max(
            (place for place in places if fits(module, place[0])),
            key=lambda one: len(one[0]),
            default=None,
        )
        if best is None:
            raise ValueError(
                f"{full} of {module} is on no page of docs/reference: add the module to one"
            )
        used.add(best)
        found[best[1]][best[2]].append(full)
    if unused := set(places) - used:
        raise ValueError(f"docs/reference asks for modules without public names: {sorted(unused)}")
    for names in (names for parts in found.values() for names in parts.values()):
        names.sort(key=_rank)
    return found


def _rank(full: str) -> int:
    if full in FIRST:
        return FIRST.index(full)
    thing = public_names()[full]
    return len(FIRST) + (inspect.isclass(thing) and issubclass(thing, BaseException))


def left_out(found: type) -> set[str]:
    """Members of a class that the reference does not show; a Protocol is a contract, and shows all."""
    if getattr(found, "_is_protocol", False):
        return LEFT_OUT["herdfilter"]
    names = set().union(
        *(names for place, names in LEFT_OUT.items() if fits(found.__module__, place))
    )
    return names - KEPT.get(found.__name__, set())


def members(found: type) -> list[str]:
    """Methods, properties and documented attributes of a class, its own and those of bases that are not public themselves.

    What the section Attributes of its docstring describes is not repeated.
    """
    described = attributes_section(inspect.getdoc(found) or "")
    public = {id(thing) for thing in public_names().values()}
    names: dict[str, None] = {}
    for owner in found.__mro__:
        if not owner.__module__.startswith("herdfilter") or (
            owner is not found and id(owner) in public
        ):
            continue
        notes = ModuleAnalyzer.for_module(owner.__module__).find_attr_docs()
        for name, value in vars(owner).items():
            method = isinstance(
                value,
                FunctionType | classmethod | staticmethod | property | functools.cached_property,
            )
            documented = method and inspect.getdoc(getattr(found, name, value))
            if documented or (owner.__name__, name) in notes or isinstance(value, enum.Enum):
                names[name] = None
        names |= dict.fromkeys(name for holder, name in notes if holder == owner.__name__)
    return [
        name
        for name in names
        if not name.startswith("_") and name not in described | left_out(found)
    ]


def attributes_section(docstring: str) -> set[str]:
    """Names that the section Attributes of a docstring describes."""
    section = re.search(r"^Attributes\n-+\n(.*?)(?=^\w[^\n]*\n-{3,}$|\Z)", docstring, re.M | re.S)
    heads = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", section[1], re.M) if section else []
    return {name.strip() for head in heads for name in head.split(",")}


def constant_text(full: str, found: Any) -> str:
    """Docstring of a constant, which stands below it in the module that gives it its value."""
    module, _, name = full.rpartition(".")
    for place in [one for one in sys.modules if fits(one, module)]:
        if getattr(sys.modules[place], name, None) is found:
            notes = ModuleAnalyzer.for_module(place).find_attr_docs()
            if ("", name) in notes:
                return " ".join(notes["", name]).strip()
    raise ValueError(f"{full} has no docstring below it")


def first_line(full: str, found: Any) -> str:
    """Return the first line of a docstring, its names as links from wherever it is shown."""
    line = (
        (inspect.getdoc(found) or "").split("\n")[0]
        if is_shared(found)
        else constant_text(full, found)
    )

    def linked(code: re.Match[str]) -> str:
        place = place_of(code[1], full.rpartition(".")[0])
        return f":py:obj:`{code[1]} <{place}>`" if place else code[0]

    return re.sub(r"(?<![`:])`([^`]+)`(?!`)", linked, line)


def entry(full: str, found: Any) -> str:
    """Return the directive that documents a public name, in reStructuredText."""
    module, _, name = full.rpartition(".")
    place = f".. currentmodule:: {module}\n"
    if not is_shared(found):
        return f"{place}.. py:data:: {name}\n\n   {constant_text(full, found)}\n\n"
    if not inspect.isclass(found):
        return f"{place}.. autofunction:: {name}\n\n"
    kind = "exception" if issubclass(found, BaseException) else "class"
    options = f"   :members: {', '.join(members(found))}\n" if members(found) else ""
    options += "   :undoc-members:\n" if issubclass(found, enum.Enum) else ""
    return f"{place}.. auto{kind}:: {name}\n{options}\n"


def table(names: list[str]) -> str:
    """Return a table of names, each a link, with the first lines of their docstrings."""
    rows = "".join(
        f"   * - :py:obj:`{full.removeprefix('herdfilter.')} <{full}>`\n     - {first_line(full, public_names()[full])}\n"
        for full in names
    )
    return f".. currentmodule:: herdfilter\n.. list-table::\n   :class: names\n\n{rows}\n"


def block(text: str) -> str:
    """Return reStructuredText as a part of a page in Markdown."""
    return f"```{{eval-rst}}\n{text}```\n"


def page(name: str, text: str) -> str:
    """Fill a page: at each marker a table, and below it the entries."""
    parts = contents()[name]

    def filled(marker: re.Match[str]) -> str:
        names = parts[marker[1]]
        return block(table(names) + "".join(entry(full, public_names()[full]) for full in names))

    return MARKER.sub(filled, text)


def overview(text: str) -> str:
    """Fill the overview: a section for each page, with a table of its names."""
    sections = []
    for path in pages():
        title = re.search(r"^# (.*)\n\n(.*)$", path.read_text(encoding="utf-8"), re.M)
        assert title, path
        names = [full for found in contents()[path.stem].values() for full in found]
        below = block(table(names)) if names else title[2].replace("../", "") + "\n"
        sections.append(f"## [{title[1]}](reference/{path.name})\n\n{below}")
    return text.replace("<!-- overview -->", "\n".join(sections))
