"""Objects written in TOML: constructor expressions such as ``"HerdedProposal(KernelHerding())"``.

An expression is written exactly as in Python, but only calls of named classes and functions with constant arguments are
understood, and nothing is handed to ``eval``. A bare name is one of the public ``herdfilter`` namespace; a dotted one stands
in a folder of it (``kernels.Laplace``), or in a module that the scenario's file names under ``imports``.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any

from herdfilter._checks import one_of, short_repr
from herdfilter.catalogue.names import Imports, named


def evaluate(expression: str, imports: Imports | None = None) -> Any:
    """Build the object that a constructor expression describes; one object for each text and process.

    Parameters
    ----------
    expression : str
        Such as ``"MixtureResampling(GaussianFit(), mypackage.samplers.MySampler(order=3))"``.
    imports : Imports, optional
        Modules whose names it may use beside those of herdfilter; none unless given.

    Raises
    ------
    ValueError
        If the text is not such an expression, a name in it is unknown (with the nearest known one) or not to be used, or
        a constructor fails.
    TypeError
        If a constructor does not take the arguments given.
    """
    modules = {} if imports is None else imports.modules()
    return _built(expression, tuple(modules.items()))


@lru_cache(maxsize=256)
def _built(expression: str, modules: tuple[tuple[str, ModuleType], ...]) -> Any:
    """Build an object; the modules are part of the key, as a file that was changed is another one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the parser, about escapes in strings
            tree = ast.parse(expression.strip(), mode="eval").body
        return _value(tree, dict(modules))
    except (SyntaxError, MemoryError):  # MemoryError: nested deeper than the parser can go
        raise ValueError(f"{short_repr(expression)}: expected a constructor call such as 'KernelHerding()'") from None
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{short_repr(expression)}: {error}") from error
    except Exception as error:  # whatever a constructor raises
        raise ValueError(f"{short_repr(expression)}: {type(error).__name__}: {error}") from error


def _value(node: ast.expr, modules: Mapping[str, ModuleType]) -> Any:
    match node:
        case ast.Constant(None | bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return -number
        case ast.List(items) | ast.Tuple(items):
            return [_value(item, modules) for item in items]
        case ast.Call(function, args, keywords) if all(k.arg for k in keywords):
            *path, name = _path(function)
            part = named(".".join(path), name, modules)
            return part(
                *(_value(arg, modules) for arg in args),
                **{str(k.arg): _value(k.value, modules) for k in keywords},
            )
    raise ValueError(f"expected calls, numbers, strings and lists, got {_told(node)}")


def _path(function: ast.expr) -> list[str]:
    """Return the parts of a dotted name; what is called may be nothing else."""
    match function:
        case ast.Name(name):
            return [name]
        case ast.Attribute(value, name):
            return [*_path(value), name]
    raise ValueError(f"expected the name of a class or function before the brackets, got {_told(function)}")


def _told(node: ast.expr) -> str:
    return short_repr(ast.unparse(node))


def check_keywords(where: str, function: Callable[..., Any], given: Mapping[str, Any], taken: Iterable[str] = ()) -> None:
    """Raise ValueError unless `function` takes all keywords `given`; the caller fills in those `taken`."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    named_ = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in taken]
    for key in given:
        one_of(f"{where}: key", key, [p.name for p in named_])
    missing = [p.name for p in named_ if p.default is p.empty and p.name not in given]
    if missing:
        raise ValueError(f"{where}: key {missing[0]!r} is missing")
