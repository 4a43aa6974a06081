"""The floors of the house: imports run downwards only, and nowhere in circles."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import herdfilter

ROOT = Path(herdfilter.__file__).parent

FLOORS = (
    ("cli", "__main__"),
    ("report",),
    ("paper",),
    ("plotting",),
    ("study",),
    ("by_name",),
    ("tracking",),
    ("catalogue",),
    ("adapters",),
    ("noise",),
    ("smoothing", "likelihood"),
    ("compiled",),
    ("filters",),
    ("association",),
    ("models",),
    ("testing",),
    ("fitting",),
    ("samplers",),
    ("discrepancy",),
    ("discrete",),
    ("kernels",),
    ("pictures",),
    (
        "mixture",
        "points",
        "angles",
        "bandwidths",
        "_checks",
        "_covariances",
        "_jit",
        "_repr",
        "_version",
    ),
)
"""Folders and modules, from the roof to the ground; the package itself, which offers names of all floors, is none."""


@cache
def imports():
    """Module -> modules of this package that it imports, wherever in the file, for type checkers too."""
    files = {}
    for path in ROOT.rglob("*.py"):
        # where the wheel keeps what stands beside the package here
        if path.parent.name == "_scenarios":
            continue
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found = {}
    for name, path in files.items():
        wanted = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{name}: relative imports hide the floor"
                whole = {f"{node.module}.{alias.name}" for alias in node.names}
                wanted |= {one if one in files else node.module for one in whole}
        found[name] = {one for one in wanted if one in files}
    return found


def floor_of(module):
    return module.split(".")[1]


def test_imports_run_downwards_only():
    place = {name: i for i, floor in enumerate(FLOORS) for name in floor}
    wrong = []
    for module, wanted in imports().items():
        if module == "herdfilter":
            continue
        assert floor_of(module) in place, f"{module} has no floor: add it to FLOORS"
        for other in wanted:
            if other == "herdfilter":
                wrong.append(f"{module} imports the package itself")
                continue
            step = floor_of(module), floor_of(other)
            if place[step[1]] < place[step[0]]:
                wrong.append(f"{module} imports {other}, which stands above it")
    assert wrong == []


def test_no_import_goes_in_a_circle():
    graph = {
        module: wanted - {"herdfilter"}
        for module, wanted in imports().items()
        if module != "herdfilter"
    }
    assert set(TopologicalSorter(graph).static_order()) == set(graph)  # a circle is an error


def test_no_module_switches_warnings_off():
    """`warnings.catch_warnings` and the like change them in all threads of the process."""
    process_wide = {"catch_warnings", "simplefilter", "filterwarnings", "resetwarnings"}
    calls = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute)
        and {getattr(node, "id", ""), getattr(node, "attr", "")} & process_wide
    ]
    assert calls == []


def test_the_workflow_may_only_read_and_pins_what_it_uses():
    workflow = (Path(__file__).parents[1] / ".github" / "workflows" / "checks.yml").read_text(
        encoding="utf-8"
    )
    used = re.findall(r"^ +- uses: (.*)$", workflow, re.MULTILINE)
    assert len(used) > 10
    assert [
        one
        for one in used
        if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", one)
    ] == []
    assert re.findall(r"^ *permissions:\n(?: +.*\n)+?(?=\S)", workflow, re.MULTILINE) == [
        "permissions:\n  contents: read\n"
    ]
