"""What a figure hangs on: a digest of the code that it measures, so that `make_figures.py --list` can tell when it is stale.

The code is that of the modules named and of all that they import, wherever in a file, as a syntax tree. These do not count:

- comments, docstrings, white space, types of arguments, and what the list of filters says of each;
- words of exceptions, warnings and the log;
- code that only refuses: an `if` or a loop that does nothing but raise one of `REFUSALS`, and calls of functions that do
  nothing else; what is computed or imported for it alone.

An exception of our own counts, since filters catch it, and so does every refusal in a module of `CAUGHT`. For what measures
the refusals themselves, the module `_checks`, all of them count.
"""

from __future__ import annotations

import ast
import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = "herdfilter"
CHECKS = "_checks"
NO_NUMBERS = (CHECKS, "_repr", "_version", "by_name", "pictures", "plotting", "testing")
"""Modules of the package that decide no number."""
CAUGHT = ("filters.grid",)
"""Modules whose refusals decide numbers: a reference that the grid refuses is made with particles."""
REFUSALS = (
    "FileNotFoundError",
    "ImportError",
    "NotImplementedError",
    "OSError",
    "RuntimeError",
    "TypeError",
    "ValueError",
)
"""Exceptions that end a call. Others may steer: a missing attribute chooses another way."""
WORDS = ("warnings.warn", "_log.debug", "_log.info", "_log.warning")
"""Calls that only say something."""
REFUSING = ("check_", "require", "prefix_errors")
"""Beginnings of the names of functions that check what they are given, wherever they are defined."""
HARMLESS = {
    "len",
    "sorted",
    "str",
    "repr",
    "type",
    "list",
    "tuple",
    "set",
    "join",
    "short_repr",
    "tolist",
}
"""Functions that change nothing: what they return is left out where nothing computes with it."""


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
def read(path: Path, refusals: bool = False) -> tuple[str, frozenset[str]]:
    """Return the text of a file, of a module what counts of its tree, and the modules of the package that it imports."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        words = ("about", "group")  # of the list of filters, and no number's
        tables = {key: _without(value, words) for key, value in tomllib.loads(text).items()}
        return json.dumps(tables, sort_keys=True, default=str), frozenset()
    if path.suffix != ".py":
        return text, frozenset()
    refusals = refusals or any(path == modules().get(name) for name in CAUGHT)
    tree = computing(ast.parse(text), refusals, packaged=path.name == "__init__.py")
    found = set()
    for node in _parts(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            base = (node.module or "").split(".")[1:]
            named = {alias.name: ".".join([*base, alias.name]) for alias in node.names}
            found |= {inner if inner in modules() else ".".join(base) for inner in named.values()}
        elif isinstance(node, ast.Import):
            found |= {
                alias.name.partition(".")[2]
                for alias in node.names
                if alias.name.startswith(f"{PACKAGE}.")
            }
    return _written(tree), frozenset(found - {""})


def _written(node: Any) -> str:
    """Write a tree as every version of Python does: without places, and without what is empty."""
    if isinstance(node, ast.AST):
        fields = (
            f"{name}={_written(value)}"
            for name, value in ast.iter_fields(node)
            if value not in (None, [])
        )
        return f"{type(node).__name__}({','.join(fields)})"
    return f"[{','.join(map(_written, node))}]" if isinstance(node, list) else repr(node)


def computing(tree: ast.Module, refusals: bool = False, packaged: bool = False) -> ast.Module:
    """Return the part of a module that computes, made of its tree, which is changed.

    It may have its `refusals`, without their words. What a package imports, it may import for others: that counts.
    """
    return Computing(tree, refusals, packaged).tree


class Computing:
    """What leaves out, of the tree of one module, all that computes nothing."""

    def __init__(self, tree: ast.Module, refusals: bool, packaged: bool) -> None:
        self.tree, self.refusals = tree, refusals
        self.refusing = {  # functions that return at most what they are given
            alias.asname or alias.name
            for node in _parts(tree)
            if isinstance(node, ast.ImportFrom)
            and (node.module or "").removeprefix(f"{PACKAGE}.") in NO_NUMBERS
            for alias in node.names
        }
        for node in _parts(tree):
            self._forget_words(node)
        self.changed = True
        while self.changed:  # what computes for nothing else any more goes next
            self.changed = False
            tree.body = self._block(tree.body)
            for node in _statements(tree):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    self._forget_unused(node)
        if not packaged:
            self._forget_imports()

    def _forget_words(self, node: ast.AST) -> None:
        if isinstance(node, ast.Raise):
            node.exc, node.cause = getattr(node.exc, "func", node.exc), None
        elif isinstance(node, ast.Call) and self._refuses(node.func):
            node.args = [value for value in node.args if not _is_text(value)]
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None

    def _block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Return the statements of a block that compute."""
        kept = []
        for node in statements:
            for name, block in _blocks(node):
                setattr(node, name, self._block(block))
            handlers = getattr(node, "handlers", [])
            raising = all(
                handler.body and isinstance(handler.body[-1], ast.Raise) for handler in handlers
            )
            for handler in handlers:
                handler.body = self._block(handler.body)
            raising &= (
                isinstance(node, ast.Try)
                and not node.finalbody
                and not any(handler.body for handler in handlers)
            )
            if raising:
                kept += node.body + node.orelse  # an error is raised in other words
            elif not self._says_only(node):
                kept.append(node)
        self.changed |= kept != statements
        return kept

    def _says_only(self, node: ast.stmt) -> bool:
        """Whether a statement only refuses or says something, or is nothing but a docstring or an ellipsis."""
        if isinstance(node, ast.Raise):
            return not self.refusals and getattr(node.exc, "id", "") in REFUSALS
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return not node.names
        if isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Call):
                return ast.unparse(node.value.func) in WORDS or (
                    not self.refusals and self._refuses(node.value.func)
                )
            return isinstance(node.value, ast.Constant)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            return True
        if any(block for _, block in _blocks(node)):
            return False
        if isinstance(node, (ast.If, ast.For, ast.While)):
            return not any(isinstance(part, ast.NamedExpr) for part in _parts(node))
        if isinstance(node, ast.FunctionDef) and node in self.tree.body and not node.decorator_list:
            self.refusing.add(node.name)
            return True
        return False

    def _refuses(self, function: ast.expr) -> bool:
        """Whether a function does no more than refuse what it is given, or return it."""
        name = getattr(function, "id", getattr(function, "attr", ""))
        return name.startswith(REFUSING) or (
            isinstance(function, ast.Name) and name in self.refusing
        )

    def _forget_unused(self, function: ast.AST) -> None:
        """Leave out what a function keeps under a name that it does not look at."""
        names = [part for part in _parts(function) if isinstance(part, ast.Name)]
        looked_at = {name.id for name in names if not isinstance(name.ctx, ast.Store)}
        for node in [function, *_statements(function)]:
            for name, block in _blocks(node):
                kept = [one for one in block if not _is_unused(one, looked_at)]
                self.changed |= kept != block
                setattr(node, name, kept)

    def _forget_imports(self) -> None:
        """Leave out what is imported for what was left out."""
        looked_at = {node.id for node in _parts(self.tree) if isinstance(node, ast.Name)}
        for node in _statements(self.tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                node.names = [
                    a for a in node.names if (a.asname or a.name).split(".")[0] in looked_at
                ]
        self.tree.body = self._block(self.tree.body)


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it, as `ast.walk` does, which takes three times as long."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                pending += [part for part in value if isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST) and name != "ctx":
                pending.append(value)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements below a node."""
    for _, block in [
        *_blocks(node),
        *(pair for handler in getattr(node, "handlers", ()) for pair in _blocks(handler)),
    ]:
        for statement in block:
            yield statement
            yield from _statements(statement)


def _blocks(node: ast.AST) -> list[tuple[str, list[ast.stmt]]]:
    """Return the blocks of statements of a statement, by their names."""
    found = [(name, getattr(node, name, None)) for name in ("body", "orelse", "finalbody")]
    return [(name, block) for name, block in found if isinstance(block, list)]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)


def _is_unused(node: ast.stmt, looked_at: set[str]) -> bool:
    """Whether a statement gives a value, found without changing anything, to a name that is not looked at."""
    if not (isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) for t in node.targets)):
        return False
    if any(target.id in looked_at for target in node.targets):
        return False
    called = [part.func for part in _parts(node.value) if isinstance(part, ast.Call)]
    return all(getattr(one, "id", getattr(one, "attr", "")) in HARMLESS for one in called)


def needed(measures: Iterable[str]) -> list[Path]:
    """Return the files that decide the numbers of a measurement.

    It measures these modules or folders of the package, and hangs on these other files and folders of the project.
    """
    files, pending, reached = set(), [], set()
    for name in measures:
        inside = [m for m in modules() if m == name or m.startswith(f"{name}.")]
        outside = [ROOT / name] if (ROOT / name).is_file() else sorted((ROOT / name).glob("*.*"))
        if not inside + outside:
            raise ValueError(
                f"measures: expected modules of {PACKAGE}, or files of the project, got {name!r}"
            )
        pending += inside
        files |= set(outside)
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += [
                found
                for found in read(modules()[name], CHECKS in measures)[1]
                if found.split(".")[0] not in NO_NUMBERS
            ]
    return sorted(files | {modules()[name] for name in reached})


@cache
def digest(*measures: str) -> str:
    """Return twelve hexadecimal digits that change when the measured code does."""
    text = hashlib.sha256()
    for path in needed(measures):
        text.update(
            f"{path.relative_to(ROOT).as_posix()}\n{read(path, CHECKS in measures)[0]}\n".encode()
        )
    return text.hexdigest()[:12]
