"""Objects written in TOML: constructor expressions such as ``"HerdedProposal(KernelHerding())"``.

An expression is written as in Python, but only calls of named classes and functions with constant arguments are understood,
and nothing is passed to ``eval``. A bare name is one of the public ``herdfilter`` namespace; a dotted name is in one of its
folders (``kernels.Laplace``), or in a module that the scenario's file names under ``imports``.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from herdfilter._checks import one_of, short_repr, shortened

FOLDERS = (
    "samplers",
    "fitting",
    "filters",
    "models",
    "kernels",
    "discrepancy",
    "association",
    "tracking",
)
"""Folders of the package whose public names a file may use; nothing in them reads or writes files."""

REPORTED = (FileNotFoundError, TypeError, ValueError)

Part = Callable[..., Any]
"""A class or function that an expression calls."""


@contextmanager
def prefix_errors(part: str, *converted: type[BaseException]) -> Iterator[None]:
    """Put the name of a part, such as ``"filter mine: "``, before the text of an error.

    Errors of the `converted` types, which a user's class may raise, become a ValueError, unless they are of type TypeError,
    ValueError or FileNotFoundError.
    """
    try:
        yield
    except REPORTED as error:
        # A subclass may need other arguments than a text.
        kind = next(kind for kind in REPORTED if isinstance(error, kind))
        raise kind(f"{part}{error}") from error
    except converted as error:
        raise ValueError(f"{part}{type(error).__name__}: {error}") from error


def evaluate(expression: str, imports: Imports | None = None) -> Any:
    """Build the object that a constructor expression describes; equal texts give the same object.

    It may use names of herdfilter and of the modules of `imports`. ValueError if the text is not such an expression, a name
    in it is unknown or not allowed, or a constructor fails; TypeError if one does not accept its arguments.
    """
    return _build(expression, tuple(imports.load().items() if imports else ()))


@lru_cache(maxsize=256)
def _build(expression: str, modules: tuple[tuple[str, ModuleType], ...]) -> Any:
    """Build an object; the modules are part of the cache's key, because a changed file is imported as another module."""
    with prefix_errors(f"{short_repr(expression)}: ", Exception):
        try:
            tree = ast.parse(expression.strip(), mode="eval")
        except (SyntaxError, MemoryError):
            # MemoryError: nested deeper than the parser can go.
            raise ValueError("expected a constructor call such as 'KernelHerding()'") from None
        return _build_node(tree.body, dict(modules))


def _build_node(node: ast.expr, modules: Mapping[str, ModuleType]) -> Any:
    match node:
        case ast.Constant(None | bool() | int() | float() | str() as value):
            return value
        # A negative number is an operation to Python's parser.
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return -number
        # TOML has lists only, so that a tuple makes no difference.
        case ast.List(items) | ast.Tuple(items):
            return [_build_node(item, modules) for item in items]
        case ast.Call(ast.Name() | ast.Attribute() as name, args, keywords) if all(
            k.arg for k in keywords
        ):
            part = find_part(ast.unparse(name), modules)
            options = {str(k.arg): _build_node(k.value, modules) for k in keywords}
            return part(*(_build_node(arg, modules) for arg in args), **options)
    raise ValueError(
        f"expected calls, numbers, strings and lists, got {short_repr(ast.unparse(node))}"
    )


class Imports:
    """The modules that a scenario's file names under ``imports``; their code runs when the scenario is used.

    The `names` are those of modules, such as ``"mypackage.samplers"``, or paths of Python files. A name without a dot is
    first looked for in `folder`, beside the scenario's file.
    """

    def __init__(self, names: Iterable[str] = (), folder: Path = Path()) -> None:
        self.names = tuple(names)
        # Private, because a study's description takes public attributes.
        self._folder = folder

    def load(self) -> dict[str, ModuleType]:
        """Import all modules, name in expressions -> module; a Python file goes by its name without ``.py``."""
        with prefix_errors("imports: "):
            return {
                name.removesuffix(".py").rpartition("/")[2]: self._module(name)
                for name in self.names
            }

    def _module(self, name: str) -> ModuleType:
        path = self._folder / f"{name.removesuffix('.py')}.py"
        if name.endswith(".py") or ("." not in name and os.path.isfile(path)):
            return import_file(path)
        with prefix_errors(f"{short_repr(name)} cannot be imported: ", Exception, SystemExit):
            return importlib.import_module(name)

    def resolve(self, name: str) -> Part:
        """Return the part that a key ``type`` names: ``Class`` of herdfilter.models, ``module:Class`` or ``file.py:Class``.

        A file in the scenario's folder, or below it, needs no entry under ``imports``; any other file does.
        """
        module, _, part = name.rpartition(":")
        if not module.endswith(".py"):
            return find_part(f"{module or 'models'}.{part}", self.load())
        path = self._folder / module
        if module not in self.names and not path.resolve().is_relative_to(self._folder.resolve()):
            raise ValueError(
                f"{module} is not beside the scenario; if you trust it, add imports = [{module!r}]"
            )
        return find_part(f"file.{part}", {"file": import_file(path)})


def find_part(name: str, modules: Mapping[str, ModuleType]) -> Part:
    """Return a class or function of the package, or of one of the `modules`, by its dotted name."""
    module, _, part = name.rpartition(".")
    if module in modules:
        parts = _public_parts(modules[module])
        module = modules[module].__name__
    else:
        # ``herdfilter.kernels`` and ``kernels`` name the same folder.
        folder = f"{module}.".removeprefix("herdfilter.").rstrip(".")
        if folder not in ("", *FOLDERS):
            raise ValueError(
                f"{short_repr(module)} is not a part of herdfilter that a scenario may use; "
                f"if it is a module that you trust, add imports = [{short_repr(module)}]"
            )
        # Names outside these folders, such as those that write files, are out of reach.
        parts = own_parts(folder)
    return parts[one_of(module or "herdfilter", part, parts)]


@cache
def own_parts(folder: str) -> dict[str, Part]:
    """Return the public classes and functions of a folder of the package; those of ``herdfilter`` itself for ``""``."""
    parts = _public_parts(importlib.import_module(f"herdfilter.{folder}".rstrip(".")))
    if folder:
        return parts
    # Only what its folders contain: the package also has functions that read and write files.
    names = {"GaussianMixture", *(name for folder in FOLDERS for name in own_parts(folder))}
    return {name: parts[name] for name in sorted(names & parts.keys())}


def _public_parts(module: ModuleType) -> dict[str, Part]:
    """Return the classes and functions that a module lists in ``__all__`` or, without a list, defines itself."""
    # Without a list of public names, what the module imports from elsewhere is out of reach.
    listed = getattr(module, "__all__", None)
    home = f"{module.__name__}."
    return {
        name: value
        for name, value in vars(module).items()
        if callable(value)
        and not name.startswith("_")
        and (
            f"{getattr(value, '__module__', '')}.".startswith(home)
            if listed is None
            else name in listed
        )
    }


def import_file(path: Path) -> ModuleType:
    """Import a Python file by its path, once per process unless the file changes."""
    try:
        version = path.stat().st_mtime_ns
    except (OSError, ValueError):  # ValueError: a name that no file can have
        raise FileNotFoundError(f"no file {shortened(str(path), 200)}") from None
    return _import_file(path.resolve(), version)


@lru_cache(maxsize=64)
def _import_file(path: Path, _version: int) -> ModuleType:
    loader = SourceFileLoader(f"herdfilter_user_{path.stem}", str(path))
    module = ModuleType(loader.name)
    module.__file__ = loader.path
    # Dataclasses and pickle look up the module of a class here.
    sys.modules[module.__name__] = module
    with prefix_errors(f"{path} cannot be imported: ", Exception, SystemExit):
        loader.exec_module(module)
    return module


def check_keywords(
    where: str,
    function: Callable[..., Any],
    keywords: Mapping[str, Any],
    added: Iterable[str] = (),
) -> None:
    """Raise ValueError unless `function` takes all `keywords` and they are complete; the caller adds those in `added`."""
    parameters = inspect.signature(function).parameters.values()
    # A function that accepts any keyword must check them itself.
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = {p.name: p for p in parameters if p.kind in kinds and p.name not in added}
    for key in keywords:
        one_of(f"{where}: key", key, named)
    for name, parameter in named.items():
        if parameter.default is parameter.empty and name not in keywords:
            raise ValueError(f"{where}: key {name!r} is missing")
