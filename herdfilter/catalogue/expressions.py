"""Objects written in TOML: constructor expressions such as ``"HerdedProposal(KernelHerding())"``.

An expression is written exactly as in Python, but only calls of named classes and functions with constant arguments are
understood, and nothing is handed to ``eval``. A bare name is one of the public ``herdfilter`` namespace; a dotted one stands
in a folder of it (``kernels.Laplace``), or in a module that the scenario's file names under ``imports``.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from herdfilter._checks import one_of, short_repr, shortened

FOLDERS = ("samplers", "fitting", "filters", "models", "kernels", "discrepancy", "association", "tracking")
"""Folders of the package whose public names a file may use; nothing in them reads or writes files."""

Part = Callable[..., Any]
"""A class or function that an expression calls."""


def evaluate(expression: str, imports: Imports | None = None) -> Any:
    """Build the object that a constructor expression describes; one object for each text and process.

    It may use names of herdfilter and of the modules of `imports`. ValueError if the text is not such an expression, a name
    in it is unknown or not to be used, or a constructor fails; TypeError if one does not take its arguments.
    """
    modules = {} if imports is None else imports.modules()
    return _build(expression, tuple(modules.items()))


@lru_cache(maxsize=256)
def _build(expression: str, modules: tuple[tuple[str, ModuleType], ...]) -> Any:
    """Build an object; the modules are part of the key, as a file that was changed is another one."""
    try:
        return _build_node(ast.parse(expression.strip(), mode="eval").body, dict(modules))
    except (SyntaxError, MemoryError):  # MemoryError: nested deeper than the parser can go
        raise ValueError(f"{short_repr(expression)}: expected a constructor call such as 'KernelHerding()'") from None
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{short_repr(expression)}: {error}") from error
    except Exception as error:  # whatever a constructor raises
        raise ValueError(f"{short_repr(expression)}: {type(error).__name__}: {error}") from error


def _build_node(node: ast.expr, modules: Mapping[str, ModuleType]) -> Any:
    match node:
        case ast.Constant(None | bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return -number
        case ast.List(items) | ast.Tuple(items):
            return [_build_node(item, modules) for item in items]
        case ast.Call(function, args, keywords) if all(k.arg for k in keywords):
            *path, name = _dotted_name(function)
            part = find_part(".".join(path), name, modules)
            return part(
                *(_build_node(arg, modules) for arg in args), **{str(k.arg): _build_node(k.value, modules) for k in keywords}
            )
    raise ValueError(f"expected calls, numbers, strings and lists, got {short_repr(ast.unparse(node))}")


def _dotted_name(function: ast.expr) -> list[str]:
    """Return the parts of a dotted name; nothing else may be called."""
    match function:
        case ast.Name(name):
            return [name]
        case ast.Attribute(value, name):
            return [*_dotted_name(value), name]
    raise ValueError(
        f"expected the name of a class or function before the brackets, got {short_repr(ast.unparse(function))}"
    )


class Imports:
    """The modules that a scenario's file names under ``imports``; their code runs when the scenario is used.

    The `names` are of modules such as ``"mypackage.samplers"``, or paths of Python files. One without a dot is looked for
    in `folder`, beside the scenario's file, first.
    """

    def __init__(self, names: Iterable[str] = (), folder: Path = Path()) -> None:
        self.names = tuple(names)
        self._folder = folder  # private, as it is no part of a study's description

    def modules(self) -> dict[str, ModuleType]:
        """Import all modules, name in expressions -> module; a Python file goes by its name without ``.py``."""
        return {Path(name).stem if name.endswith(".py") else name: self._module(name) for name in self.names}

    def _module(self, name: str) -> ModuleType:
        beside = self._folder / (name if name.endswith(".py") else f"{name}.py")
        if not name.endswith(".py") and ("." in name or not is_file(beside)):
            return _import_module(name)
        try:
            return import_file(beside)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"imports: {error}") from None

    def resolve(self, name: str) -> Part:
        """Return the part that a key ``type`` names: ``Class`` of herdfilter.models, ``module:Class`` or ``file.py:Class``.

        A file in the scenario's folder, or below it, is named by that already; any other must stand under ``imports``.
        """
        place, colon, cls = name.rpartition(":")
        if not colon:
            return _public(_own_folder("models"), name)
        if not place.endswith(".py"):
            return find_part(place, cls, self.modules())
        path = self._folder / place
        if place not in self.names and not path.resolve().is_relative_to(self._folder.resolve()):
            raise ValueError(f"{place} is not beside the scenario; if you trust it, add imports = [{place!r}]")
        return _public(import_file(path), cls)


def check_import(key: str, name: Any) -> None:
    """Raise ValueError, naming the `key`, unless `name` is that of a module or of a Python file."""
    dotted = isinstance(name, str) and all(part.isidentifier() for part in name.split("."))
    if not dotted and not (isinstance(name, str) and name.endswith(".py")):
        raise ValueError(f"{key}: expected modules such as 'mypackage.samplers', or Python files, got {short_repr(name)}")


def find_part(module: str, name: str, imported: Mapping[str, ModuleType]) -> Part:
    """Return a public class or function by the name of its module, empty for what is the package's own."""
    if module in imported:
        return _public(imported[module], name)
    root, _, inner = module.partition(".")
    if not module or module == "herdfilter":
        part: Part = getattr(importlib.import_module("herdfilter"), one_of("herdfilter", name, _known_of_package()))
        return part
    folder = inner.partition(".")[0] if root == "herdfilter" else root
    if folder not in FOLDERS:
        raise ValueError(
            f"{short_repr(module)} is not a part of herdfilter that a scenario may use; "
            f"if it is a module that you trust, add imports = [{short_repr(module)}]"
        )
    found = _public(_own_folder(folder), name)
    if inner.count("."):  # herdfilter.models.ungm, which has the class that its folder offers
        module_ = _import_module(module)
        if getattr(module_, name, None) is not found:
            raise ValueError(f"{module}: has no {name!r}")
    return found


@cache
def _known_of_package() -> list[str]:
    known = {"GaussianMixture"} | {one for folder in FOLDERS for one in _own_folder(folder).__all__}
    return sorted(known & set(importlib.import_module("herdfilter").__all__))


def _own_folder(folder: str) -> ModuleType:
    return importlib.import_module(f"herdfilter.{folder}")


def _public(module: ModuleType, name: str) -> Part:
    """Return a class or function of a module, or raise ValueError with the nearest name.

    Without ``__all__``, names imported from other modules do not count.
    """
    listed = getattr(module, "__all__", None)
    known = [one for one in (dir(module) if listed is None else listed) if not one.startswith("_")]
    known = [one for one in known if callable(getattr(module, one, None))]
    if listed is None:
        home = module.__name__
        places = {one: getattr(getattr(module, one), "__module__", None) or "" for one in known}
        known = [one for one, place in places.items() if f"{place}.".startswith(f"{home}.")]
        if name in places and name not in known:
            raise ValueError(f"{home}: {name!r} comes from {places[name]!r}; name that module under imports")
    found: Part = getattr(module, one_of(module.__name__, name, known))
    return found


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise ValueError(f"imports: cannot import {short_repr(name)} ({type(error).__name__}: {error})") from error


def is_file(path: Path) -> bool:
    """Return True if there is such a file, False also for a name that is too long."""
    try:
        return path.is_file()
    except OSError:
        return False


def import_file(path: Path) -> ModuleType:
    """Import a Python file by its path; once per version of the file and process."""
    try:
        version = path.stat().st_mtime_ns
    except (OSError, ValueError):  # of a name that no file can have, too
        raise FileNotFoundError(f"no file {shortened(str(path), 200)}") from None
    return _import_file(path.resolve(), version)


@lru_cache(maxsize=64)
def _import_file(path: Path, _version: int) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"herdfilter_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path}: expected a Python file (.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # where dataclasses and pickle look their classes up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path}: cannot be imported ({type(error).__name__}: {error})") from error
    return module


def check_keywords(where: str, function: Callable[..., Any], given: Mapping[str, Any], added: Iterable[str] = ()) -> None:
    """Raise ValueError unless `function` takes all keywords `given`; the caller adds those in `added`."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in added]
    for key in given:
        one_of(f"{where}: key", key, [p.name for p in named])
    missing = [p.name for p in named if p.default is p.empty and p.name not in given]
    if missing:
        raise ValueError(f"{where}: key {missing[0]!r} is missing")
