"""Objects named in TOML: constructor expressions such as ``"HerdedProposal(KernelHerding())"``, and classes.

An expression is written exactly as in Python, but only calls with constant arguments are understood; nothing
is handed to ``eval``. A bare name is looked up in the public ``herdfilter`` namespace, a dotted one imported.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from herdfilter._checks import one_of


@lru_cache(maxsize=256)
def evaluate(expression: str) -> Any:
    """Build the object that a constructor expression describes; one object for each text and process.

    Parameters
    ----------
    expression : str
        Such as ``"MixtureResampling(GaussianFit(), mypackage.samplers.MySampler(order=3))"``.

    Raises
    ------
    ValueError
        If the text is not such an expression, or a name in it is unknown (with the nearest known one).
    TypeError
        If a constructor does not take the arguments given.
    """
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except SyntaxError:
        raise ValueError(f"{expression!r}: expected a constructor call such as 'KernelHerding()'") from None
    except (TypeError, ValueError) as error:
        raise type(error)(f"{expression!r}: {error}") from None


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return -number
        case ast.List(items) | ast.Tuple(items):
            return [_value(item) for item in items]
        case ast.Call(function, args, keywords) if all(k.arg for k in keywords):
            return _named(ast.unparse(function))(
                *map(_value, args), **{str(k.arg): _value(k.value) for k in keywords}
            )
    raise ValueError(f"expected calls, numbers, strings and lists, got {ast.unparse(node)!r}")


def _named(name: str) -> Callable[..., Any]:
    module, _, attribute = name.rpartition(".")
    return member(import_module("name", module), attribute) if module else member("herdfilter", name)


def member(module: ModuleType | str, name: str) -> Callable[..., Any]:
    """Return a public class or function of a module, naming the nearest one if there is none of that name."""
    if isinstance(module, str):
        module = importlib.import_module(module)
    public = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    return getattr(module, one_of(module.__name__, name, [n for n in public if callable(getattr(module, n))]))


def import_module(what: str, name: str) -> ModuleType:
    """Import a module by its dotted name; failure is a ValueError that says for `what` it was wanted."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ValueError(f"{what}: cannot import {name!r} ({error})") from None


def import_file(path: Path) -> ModuleType:
    """Import a Python file by its path; once per version of the file and process."""
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    return _import_file(path.resolve(), path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _import_file(path: Path, _version: int) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"herdfilter_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path}: expected a Python file (.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # where dataclasses and pickle look their classes up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{path}: cannot be imported ({type(error).__name__}: {error})") from error
    return module


def check_keywords(
    where: str, function: Callable[..., Any], given: Mapping[str, Any], taken: Iterable[str] = ()
) -> None:
    """Raise ValueError unless `function` takes all keywords `given`; the caller fills in those `taken`."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    named = [
        p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in taken
    ]
    for key in given:
        one_of(f"{where}: key", key, [p.name for p in named])
    missing = [p.name for p in named if p.default is p.empty and p.name not in given]
    if missing:
        raise ValueError(f"{where}: key {missing[0]!r} is missing")
