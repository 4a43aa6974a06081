"""Another processor, by a seed: a pytest plugin under which the package and its tests round differently.

BLAS kernels sum in other orders, vector instructions fuse products, and exp or sin of one machine differ from those of
another in the last bit. This plugin does the same to the code of the package and of its tests when that is imported:

- ``a @ b``, ``np.dot``, ``np.einsum`` and their like sum in another order, and move by at most one unit in the last place;
- results of NumPy's transcendental functions, of powers, and of the modules ``np.linalg``, ``scipy.linalg`` and
  ``scipy.special`` move likewise;
- floating-point arguments of compiled loops do, where Python calls them;
- ``np.empty`` gives NaN, which does not move, in place of what lay in memory.

A number moves by -1, 0 or 1 units as its own bits, the shape of the array and the seed say, so that the same expression of
the same numbers gives the same bits, in every process. Zeros, infinities, NaN and whole numbers stay: they come from exact
operations. Sums, products, quotients and square roots stay as well, being the same on every processor.

``make test-rounding SEED=3`` runs the whole suite so; ``HERDFILTER_ROUNDING=3 PYTHONPATH=$PWD/tests/rounding pytest
-p rounding --assert=plain tests/samplers`` a part of it.
"""

import ast
import functools
import importlib.abc
import importlib.machinery
import os
import sys
import types
from pathlib import Path

import numpy as np

VARIABLE = "HERDFILTER_ROUNDING"
SEED = int(os.environ.get(VARIABLE, "0"))
ROOT = Path(__file__).parents[2]
CODE = tuple(str(ROOT / folder) + os.sep for folder in ("herdfilter", "tests"))

INEXACT = """exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 power float_power cbrt sin cos tan
arcsin arccos arctan arctan2 hypot sinc sinh cosh tanh arcsinh arccosh arctanh"""
TRANSCENDENTAL = set(INEXACT.split())
PRODUCTS = {"dot", "vdot", "inner", "matmul", "tensordot", "einsum"}
# modules whose functions move when imported by name
WRAPPED = ("numpy.linalg", "scipy.linalg", "scipy.special")


# How a number moves


def moved(x):
    """Return float64 numbers each moved by -1, 0 or 1 units in the last place."""
    flat = np.ascontiguousarray(x).reshape(-1)
    bits = flat.view(np.int64)
    mixed = (bits.view(np.uint64) + np.uint64(hash((SEED, x.shape)) % 2**63)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    step = (mixed >> np.uint64(33)).astype(np.int64) % 3 - 1
    size = np.abs(flat)
    with np.errstate(invalid="ignore"):
        free = (size > 1e-290) & (size < 1e290) & (flat != np.rint(flat))
    return (bits + np.where(free, step, 0)).view(np.float64).reshape(x.shape)


def moved_result(result):
    """Return what a function gave, its floating-point numbers moved: an array, a number, or a tuple of them."""
    if type(result) is np.ndarray and result.dtype == np.float64:
        return moved(result)
    if isinstance(result, np.float64):
        return moved(np.asarray(result))[()]
    if isinstance(result, tuple):
        parts = [moved_result(part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return result


class Function:
    """A function of NumPy or SciPy whose results move."""

    def __init__(self, module, name):
        self.module = module
        self.name = name
        self.function = functools.reduce(getattr, name.split("."), sys.modules[module])

    def __call__(self, *args, **options):
        result = self.function(*args, **options)
        if options.get("out") is None:
            return moved_result(result)
        out = options["out"][0] if isinstance(options["out"], tuple) else options["out"]
        if options.get("where", True) is True and out.dtype == np.float64:
            out[...] = moved(out)
        return out

    def __getattr__(self, name):
        if name.startswith("__") or "function" not in vars(self):
            raise AttributeError(name)
        return getattr(self.function, name)

    def __reduce__(self):
        return Function, (self.module, self.name)


class Module:
    """A module of NumPy or SciPy whose functions move; everything else is as it was."""

    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        if name in ("module", "__setstate__"):
            raise AttributeError(name)
        found = getattr(self.module, name)
        if self.module is np:
            if name in PRODUCTS:
                return functools.partial(product, found)
            if name.startswith("empty"):
                return functools.partial(fill_with_nan, found)
            if name == "linalg":
                return Module(np.linalg)
            return Function("numpy", name) if name in TRANSCENDENTAL else found
        return wrapped(found, self.module.__name__, name)


def wrapped(found, module, name):
    """Return a function that moves its results; classes, errors and the rest unchanged."""
    return Function(module, name) if callable(found) and not isinstance(found, type) else found


def fill_with_nan(function, *args, **options):
    """Return a new array of NaN: `call_compiled` would take a result equal to what lay there, moved, for no result."""
    array = function(*args, **options)
    if array.dtype == np.float64:
        array.fill(np.nan)
    return array


def product(function, *args, **options):
    """Sums of products, moved where there are sums: what is summed over one entry only is exact."""
    result = function(*args, **options)
    if function is np.einsum and isinstance(args[0], str) and "->" in args[0]:
        inputs, output = args[0].replace(" ", "").split("->")
        if not set(inputs) - set(output) - {","}:
            return result
    if all(whole(a) for a in args if isinstance(a, np.ndarray)):
        return result
    return moved_result(result)


def whole(a):
    """Whether numbers are whole, so that products and sums of them are exact."""
    return np.asarray(a).dtype.kind in "biu" or bool((a == np.rint(a)).all())


def lone(a, axis):
    """Whether at most one entry along an axis differs from zero, so that nothing is summed: as of the identity matrix."""
    return bool((np.count_nonzero(a, axis=axis) <= 1).all())


def matmul(a, b):
    """Return ``a @ b``, summed in another order, and moved where more than one product is summed."""
    arrays = type(a) is type(b) is np.ndarray and a.dtype == b.dtype == np.float64
    if not arrays or a.shape[-1] < 2:
        return a @ b
    inner = -1 if b.ndim == 1 else -2
    if b.shape[inner] != a.shape[-1] or (whole(a) and whole(b)) or lone(a, -1) or lone(b, inner):
        return a @ b
    order = np.random.default_rng([SEED, a.shape[-1]]).permutation(a.shape[-1])
    left = np.take(a, order, axis=-1)
    mirrored = (
        a.ndim == 2
        and a.shape == b.shape[::-1]
        and a.ctypes.data == b.ctypes.data
        and a.strides == b.strides[::-1]
    )
    # the product of a matrix and its transpose stays symmetric to the last bit, as by BLAS
    result = left @ (left.T if mirrored else np.take(b, order, axis=inner))
    return moved_result(result)


def power(a, b):
    """Return ``a ** b``, moved unless NumPy takes a square, a root or a quotient for it."""
    result = a**b
    return result if np.ndim(b) == 0 and b in (-1, 0, 0.5, 1, 2) else moved_result(result)


# Compiled loops


def moved_argument(value):
    """Return an argument moved, of the same kind and layout, and what is to be written back after the call."""
    if isinstance(value, float) and not isinstance(value, np.generic):
        return float(moved(np.asarray(value))), []
    if isinstance(value, tuple):
        parts = [moved_argument(part) for part in value]
        if not any(part is not old for (part, _), old in zip(parts, value, strict=True)):
            return value, []
        new = [part for part, _ in parts]
        made = type(value)(*new) if hasattr(value, "_fields") else tuple(new)
        return made, [back for _, backs in parts for back in backs]
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.size:
        layout = value.flags
        if not (layout.c_contiguous or layout.f_contiguous):
            return value, []
        order = "C" if layout.c_contiguous else "F"
        new = np.array(moved(value), order=order)
        before = new.copy()
        new.flags.writeable = layout.writeable
        return new, [(value, before, new)] if layout.writeable else []
    return value, []


def call_compiled(dispatcher, *args, **options):
    """Call a compiled function of the package with moved arguments; what it writes into them reaches the caller's arrays."""
    plain = type(dispatcher).__mro__[-2].__call__  # the compiled base class's
    module = str(getattr(dispatcher.py_func, "__module__", ""))
    buffers = [a for a in args if isinstance(a, np.ndarray)]
    shared = any(np.shares_memory(a, b) for i, a in enumerate(buffers) for b in buffers[:i])
    if not module.startswith("herdfilter") or shared:
        return plain(dispatcher, *args, **options)
    pairs = [moved_argument(value) for value in args]
    result = plain(dispatcher, *(new for new, _ in pairs), **options)
    for _, backs in pairs:
        for old, before, new in backs:
            # all of it is written back: one entry may have been given the very number that stood there, moved
            if not np.array_equal(new, before, equal_nan=True):
                old[...] = new
    return result


# Code


class Rewrite(ast.NodeTransformer):
    """Put moved operations in place of the plain ones, but in compiled functions."""

    def visit_FunctionDef(self, node):
        compiled = any("jit" in ast.unparse(decorator) for decorator in node.decorator_list)
        return node if compiled else self.generic_visit(node)

    def visit_BinOp(self, node):
        self.generic_visit(node)
        name = {ast.MatMult: "matmul", ast.Pow: "power"}.get(type(node.op))
        if name is None or (
            name == "power" and isinstance(node.right, ast.Constant) and node.right.value == 2
        ):
            return node
        return ast.copy_location(ast.Call(attribute(name), [node.left, node.right], []), node)

    def visit_Attribute(self, node):
        self.generic_visit(node)
        names = TRANSCENDENTAL | PRODUCTS | {"linalg", "empty", "empty_like"}
        is_numpy = isinstance(node.value, ast.Name) and node.value.id == "np" and node.attr in names
        if is_numpy and isinstance(node.ctx, ast.Load):
            node.value = ast.copy_location(attribute("numpy"), node.value)
        return node

    def visit_ImportFrom(self, node):
        if node.module not in WRAPPED:
            return node
        lines = [node]
        for alias in node.names:
            name = alias.asname or alias.name
            call = ast.Call(
                attribute("wrapped"),
                [ast.Name(name, ast.Load()), ast.Constant(node.module), ast.Constant(alias.name)],
                [],
            )
            lines.append(ast.Assign([ast.Name(name, ast.Store())], call))
        return [ast.copy_location(line, node) for line in lines]


def attribute(name):
    """Return the expression ``__rounding__.name``."""
    return ast.Attribute(ast.Name("__rounding__", ast.Load()), name, ast.Load())


AS_WRITTEN = {}
"""Code of the functions of rewritten files as it was."""


def place(code):
    """Return what a function is found by: file, name, line and arguments."""
    return code.co_filename, code.co_name, code.co_firstlineno, code.co_varnames[: code.co_argcount]


def note_code(code):
    """Note the code of all functions inside, as it is."""
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            AS_WRITTEN[place(part)] = part
            note_code(part)


def as_written(function):
    """Return a function, that numba is to compile, with its code as it was before it was rewritten."""
    plain = AS_WRITTEN.get(place(function.__code__))
    if plain is None or plain.co_freevars != function.__code__.co_freevars:
        return function
    made = types.FunctionType(
        plain, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(made, function, updated=())


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a source file rewritten, past the files of compiled bytecode."""

    def get_code(self, fullname):
        note_code(compile(self.get_data(self.path), self.path, "exec", dont_inherit=True))
        tree = Rewrite().visit(ast.parse(self.get_data(self.path), self.path))
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)

    def exec_module(self, module):
        module.__dict__["__rounding__"] = sys.modules[__name__]
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    """Finds modules as Python does, and gives those of the package and of its tests to the loader above."""

    def find_spec(self, name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        if not spec.origin.startswith(CODE) or spec.origin.startswith(str(Path(__file__).parent)):
            return None
        spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


numpy = Module(np)


def install():
    """Rewrite what is imported from now on."""
    if SEED and not any(isinstance(finder, Finder) for finder in sys.meta_path):
        from numba.core.registry import CPUDispatcher

        sys.meta_path.insert(0, Finder())
        CPUDispatcher.__call__ = call_compiled
        make = CPUDispatcher.__init__
        CPUDispatcher.__init__ = lambda self, py_func, *args, **options: make(
            self, as_written(py_func), *args, **options
        )


def pytest_report_header():
    """Name the seed."""
    return (
        f"rounding: seed {SEED}, {'in force' if SEED else f'set {VARIABLE} to a positive number'}"
    )


install()
