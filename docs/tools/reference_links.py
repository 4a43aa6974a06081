"""Links to the reference: a public name in code, in a docstring or on a page, under whichever of its names it is called."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from importlib import import_module

from docutils import nodes
from public_names import is_shared, public_modules, public_names
from sphinx.addnodes import pending_xref
from sphinx.ext.autosummary import AutoLink
from sphinx.transforms import SphinxTransform

CODE = re.compile(r"(?:hf\.|herdfilter\.)?([A-Za-z_][\w.]*)(?:\(.*\))?")


@cache
def places() -> dict[str, str]:
    """Every name of a public object, and its last part where that is capitalised and nobody else's -> its place."""
    shortest = {id(found): full for full, found in public_names().items()}
    found = {full: full for full in public_names()}
    for module in public_modules():
        holder = import_module(module)
        for name in holder.__all__:
            thing = getattr(holder, name)
            if is_shared(thing):
                found[f"{module}.{name}"] = shortest[id(thing)]
    last = defaultdict(set)
    for full in public_names():
        last[full.rpartition(".")[2]].add(full)
    return found | {
        name: full.pop() for name, full in last.items() if len(full) == 1 and name[0].isupper()
    }


def place_of(code: str, module: str = "herdfilter") -> str | None:
    """Return where the reference has what a piece of code names, or a method of it; None for anything else."""
    named = CODE.fullmatch(code)
    if named is None:
        return None
    holder, _, member = named[1].rpartition(".")
    for path, ending in ((named[1], ""), (holder, f".{member}")):
        for name in (f"herdfilter.{path}", f"{module}.{path}", path):
            if path and name in places():
                return places()[name] + ending
    return None


class LinkRole(AutoLink):
    """The default role: a link where there is such an object."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Link to a public name, or do what autosummary does."""
        full = place_of(self.text, self.env.ref_context.get("py:module") or "herdfilter")
        if full is None:
            return super().run()
        return [reference_to(full, self.text, self.env.docname)], []


def reference_to(full: str, text: str, docname: str) -> pending_xref:
    """Return a link that is plain code where the reference has no such name."""
    code = nodes.literal(text, text, classes=["xref", "py", "py-obj"])
    return pending_xref(
        "",
        code,
        refdomain="py",
        reftype="obj",
        reftarget=full,
        refdoc=docname,
        refexplicit=True,
        refwarn=False,
    )


class LinkedCode(SphinxTransform):
    """Make links of the public names that a page has in code."""

    default_priority = 400

    def apply(self) -> None:
        """Replace the code by a link, headings and what is a link already aside."""
        for code in list(self.document.findall(nodes.literal)):
            inside = code.parent
            while inside and not isinstance(inside, nodes.title | nodes.reference | pending_xref):
                inside = inside.parent
            full = None if inside or "xref" in code["classes"] else place_of(code.astext())
            if full:
                code.replace_self(reference_to(full, code.astext(), self.env.docname))
