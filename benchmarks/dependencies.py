"""What a figure hangs on: a digest of the code that it measures, so that a test can tell when it is stale.

The code is that of the modules named and of all that they import, wherever in a file, except what only types or the look of
things need. Comments, docstrings and white space do not count, nor what the list of filters says of each.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = "herdfilter"
NO_NUMBERS = ("_checks", "_repr", "_version", "by_name", "pictures", "plotting", "testing")
"""Modules of the package that decide no number."""
COMMENT = re.compile(r"(^|\s)\s*#.*$", re.M)


@cache
def modules() -> dict[str, Path]:
    """Return the file of every module, by its name without that of the package."""
    found = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT / PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _without(value: Any, keys: Iterable[str]) -> Any:
    return {k: v for k, v in value.items() if k not in keys} if isinstance(value, dict) else value


@cache
def read(path: Path) -> tuple[str, frozenset[str]]:
    """Return the text of a file, of a module only what counts, and the modules of the package that it imports."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        words = ("about", "group")  # of the list of filters, and no number's
        tables = {key: _without(value, words) for key, value in tomllib.loads(text).items()}
        return json.dumps(tables, sort_keys=True, default=str), frozenset()
    if path.suffix != ".py":
        return text, frozenset()
    lines, found, pending = text.splitlines(), set(), [ast.parse(text)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and ast.get_docstring(node, clean=False) is not None
        ):
            first, last = node.body[0].lineno, node.body[0].end_lineno or node.body[0].lineno
            lines[first - 1 : last] = [""] * (last - first + 1)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            base = (node.module or "").split(".")[1:]
            named = {alias.name: ".".join([*base, alias.name]) for alias in node.names}
            found |= {inner if inner in modules() else ".".join(base) for inner in named.values()}
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[2] for alias in node.names if alias.name.startswith(f"{PACKAGE}.")}
        if not isinstance(node, ast.expr):
            pending += ast.iter_child_nodes(node)
    return "".join(COMMENT.sub("", "\n".join(lines)).split()), frozenset(found - {""})


def needed(measures: Iterable[str]) -> list[Path]:
    """Return the files that decide the numbers of a measurement.

    It measures these modules or folders of the package, and hangs on these other files and folders of the project.
    """
    files, pending, reached = set(), [], set()
    for name in measures:
        inside = [m for m in modules() if m == name or m.startswith(f"{name}.")]
        outside = [ROOT / name] if (ROOT / name).is_file() else sorted((ROOT / name).glob("*.*"))
        if not inside + outside:
            raise ValueError(f"measures: expected modules of {PACKAGE}, or files of the project, got {name!r}")
        pending += inside
        files |= set(outside)
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += [found for found in read(modules()[name])[1] if found.split(".")[0] not in NO_NUMBERS]
    return sorted(files | {modules()[name] for name in reached})


@cache
def digest(*measures: str) -> str:
    """Return twelve hexadecimal digits that change when the measured code does."""
    text = hashlib.sha256()
    for path in needed(measures):
        text.update(f"{path.relative_to(ROOT).as_posix()}\n{read(path)[0]}\n".encode())
    return text.hexdigest()[:12]
