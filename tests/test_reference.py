"""The reference has every public name once, and a name in code leads there under whichever of its names it is called."""

import importlib
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from helpers import cases, refusal

import herdfilter

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture
def tables(scripts):
    """A function: a script that fills the pages, by name."""
    for library in ("sphinx", "stonesoup"):
        pytest.importorskip(library, reason=f"the optional library {library} is not installed")
    return lambda name: scripts(f"docs/tools/{name}")


@pytest.fixture
def reference(tables):
    return tables("reference")


def listed(reference):
    return [
        full
        for parts in reference.contents().values()
        for names in parts.values()
        for full in names
    ]


def test_every_public_name_stands_in_the_reference_once(reference, tables):
    found = tables("public_names").public_names()
    assert Counter(listed(reference)) == Counter(found.keys())
    shown = {id(thing) for thing in found.values()}
    for module in tables("public_names").public_modules():
        holder = importlib.import_module(module)
        for name in holder.__all__:
            thing = getattr(holder, name)
            assert (
                isinstance(thing, ModuleType) or id(thing) in shown or f"{module}.{name}" in found
            )


def test_the_reference_begins_with_what_users_call_first_and_pages_end_with_errors(reference):
    assert listed(reference)[:2] == ["herdfilter.ParticleFilter", "herdfilter.make_filter"]
    assert set(reference.FIRST) <= set(listed(reference))
    found = reference.public_names()
    for names in (names for parts in reference.contents().values() for names in parts.values()):
        errors = [isinstance(found[n], type) and issubclass(found[n], BaseException) for n in names]
        assert errors == sorted(errors)


def test_nothing_private_is_shown(reference):
    assert [name for name in listed(reference) if re.search(r"(^|\.)_", name)] == []
    assert [
        name for name in reference.members(herdfilter.GaussianMixture) if name.startswith("_")
    ] == []


def test_methods_are_shown_once_where_they_are_told(reference):
    assert {"predict", "update", "run", "mean"} <= set(reference.members(herdfilter.ParticleFilter))
    assert reference.members(herdfilter.KernelHerding) == ["sample"]
    assert set(reference.members(herdfilter.Proposal)) == {"check", "initial", "propose", "uses"}
    assert reference.members(herdfilter.BootstrapProposal) == []  # that is the contract's
    assert "trusted" not in reference.members(herdfilter.Points)
    assert "weights" not in reference.members(herdfilter.GaussianMixture)  # among its attributes


def test_every_page_is_in_the_overview(reference):
    assert {path.name for path in reference.pages()} == {
        path.name for path in (DOCS / "reference").glob("*.md")
    }
    text = reference.overview(reference.overview_text())
    for full in listed(reference):
        assert text.count(f"   * - :py:obj:`{full.removeprefix('herdfilter.')} <{full}>`") == 1
    assert "autoclass:: KernelHerding\n" in reference.page(
        "samplers", "<!-- names: herdfilter.samplers -->"
    )


def test_name_without_a_page_and_page_without_names_are_errors(reference, monkeypatch):
    class Newcomer:
        """Of a module that no page asks for."""

    contents = reference.contents.__wrapped__  # not those at hand
    Newcomer.__module__ = "herdfilter.newly"
    monkeypatch.setattr(reference, "public_names", lambda: {"herdfilter.newly.Newcomer": Newcomer})
    with refusal(r"herdfilter\.newly\.Newcomer .* is on no page of docs/reference"):
        contents()
    monkeypatch.setattr(reference, "public_names", dict)
    with refusal(r"without public names: .*herdfilter\.samplers"):
        contents()


@cases(
    "code place",
    ("hf.KernelHerding()", "herdfilter.KernelHerding"),
    ("herdfilter.filters.ParticleFilter.run", "herdfilter.ParticleFilter.run"),
    ("herdfilter.pictures.plot_track", "herdfilter.plotting.plot_track"),
    ("hf.association.HerdedGibbs", "herdfilter.association.HerdedGibbs"),
    ("HerdedGibbs", None),  # there are two
    ("marginals", None),  # a word for many things
    ("hf.nothing", None),
)
def test_code_leads_to_its_place(tables, code, place):
    assert tables("reference_links").place_of(code) == place


def test_names_that_pages_show_are_in_the_reference(tables):
    """A page tells nobody to call what the reference does not have."""
    unknown = set()
    for path in sorted(DOCS.glob("*.md")):
        code = re.findall(r"`(hf(?:\.\w+)+)[^`\n]*`", path.read_text(encoding="utf-8"))
        unknown |= {name for name in code if not known(name, tables("reference_links").place_of)}
    assert unknown == set()


def known(name, place_of):
    found = herdfilter
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return isinstance(found, ModuleType) or place_of(name) is not None
