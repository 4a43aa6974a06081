"""Argument checks shared by the public classes: each error names the argument, what was expected and what was given."""

from __future__ import annotations

import inspect
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from difflib import get_close_matches
from functools import wraps
from numbers import Integral, Real
from typing import Any, ParamSpec
from unicodedata import category

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.floating[Any]]
Indices = NDArray[np.integer[Any]]
Shape = tuple[int | None, ...]
SeedLike = np.random.Generator | int | None
# a function of states (n, d), and perhaps of other arguments, whose value may need conversion
UserFunction = Callable[..., ArrayLike]
RowFunction = Callable[[Array], Array]  # (n, d) -> (n, k)
P = ParamSpec("P")

# types of entries that stand for themselves; of others some mean a missing entry
PLAIN_TYPES = {bool, int, float, np.float64}
NO_NUMBERS = (str, bytes, np.timedelta64, np.datetime64)

UNDERFLOW = 1e-280  # products of a smaller variance with others underflow and lose digits
SMALLEST = 1e-140  # smallest positive number allowed: its square is UNDERFLOW
LARGEST = 1e150  # largest number of a state or an observation: the squares of larger ones overflow
# asymmetry or negative eigenvalue of a correlation matrix that rounding may have caused
MATRIX_ROUNDING = 1e-8
ROUNDING_IN_FLOAT32 = 1e-6  # the same for a matrix in float32
# characters of a title, label or name of a filter: figures and tables show it in full
LONGEST_LABEL = 200
SUM_ERROR = 1e-6  # deviation allowed from a sum of 1
MOST = 2**31 - 1  # largest number of points, particles, steps and the like
MAX_STEPS = 10**7  # steps of one forecast or simulation, in which every step is an object
# smaller variances, relative to the largest entry, are no measure of rounding in a covariance matrix
LEAST_SHARE = 1e-6
OPTION_SYNONYMS = {
    "'n_particles'": "n np particles nparticles samples size",
    "'rng'": "seed random generator",
}
"""Argument of a filter -> words for it in other libraries."""


def shape_text(shape: Shape) -> str:
    """Write a shape with ``None`` for a free axis the way the docstrings do: ``(*, 3)``."""
    return str(shape).replace("None", "*")


def short_repr(value: Any, width: int = 80) -> str:
    """Return the repr of a value for a message: on one line, its middle left out if it is long; of a class, advice."""
    if isinstance(value, type):
        return f"the class {value.__name__}; call it: {value.__name__}()"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # nested too deeply, too many digits, or a class of the caller's
        text = f"a value of type {type(value).__name__}"
    return shortened(text, width)


def shortened(text: str, width: int) -> str:
    """Return a text of at most `width` characters, its middle left out."""
    half = (width - 5) // 2
    return text if len(text) <= width else f"{text[:half]} ... {text[-half:]}"


def as_array(
    name: str, value: ArrayLike, shape: Shape, *, finite: bool = True, largest: float = math.inf
) -> Array:
    """Return `value` as a float64 array of the given shape; ``None`` leaves an axis free."""
    array = as_numbers(name, value, shape)
    # The first comparison, which is quick, is true of most arrays that a filter checks at every step.
    if array.shape != shape and not fits(array.shape, shape):
        raise ValueError(f"{name}: expected shape {shape_text(shape)}, got {array.shape}")
    if finite and not np.isfinite(array).all():
        raise ValueError(
            f"{name}: expected finite numbers, got {np.count_nonzero(~np.isfinite(array))} non-finite"
        )
    if largest < math.inf and (np.abs(array) > largest).any():  # beside NaN, too
        raise ValueError(
            f"{name}: expected numbers up to {largest:g}, got {np.nanmax(np.abs(array))}; choose larger units"
        )
    return array


def fits(shape: tuple[int, ...], expected: Shape) -> bool:
    """Return True if a shape is as expected; ``None`` leaves an axis free."""
    if len(shape) != len(expected):
        return False
    wanted = zip(expected, shape, strict=True)
    return [*shape] == [size if want is None else want for want, size in wanted]


def as_numbers(name: str, value: Any, shape: Shape, *, missing: bool = False) -> Array:
    """Return `value` as a float64 array, unless it holds text, dates or complex numbers; `shape` is for the error only.

    With `missing`, as in an observation, masked entries and ``pandas.NA`` become NaN.
    """
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    got = short_repr(value)
    with suppress(TypeError, ValueError, RecursionError):
        array = np.asarray(with_nan(value) if missing else value)
        objects = array.flat if array.dtype == object else ()
        # NumPy would convert objects that hold numbers as text, or durations, without a word.
        if array.dtype.kind in "biufO" and not any(isinstance(x, NO_NUMBERS) for x in objects):
            return array.astype(np.float64, copy=False)
        if array.dtype.kind == "c":
            got = "complex numbers"
    raise ValueError(f"{name}: expected numbers of shape {shape_text(shape)}, got {got}")


def with_nan(value: Any) -> Any:
    """Return an observation with NaN for entries that are masked or ``pandas.NA``."""
    if hasattr(value, "to_numpy"):  # a table
        value = value.to_numpy()
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.filled(value.astype(object), np.nan).tolist()
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    if isinstance(value, list | tuple) and not {*map(type, value)} <= PLAIN_TYPES:
        return [with_nan(entry) for entry in value]
    return np.nan if type(value).__name__ == "NAType" else value


def read_only(value: Array) -> Array:
    """Return a read-only view of an array, to pass to a user's function; any other value as it is."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.view()
        value.flags.writeable = False
    return value


def ask_twice(name: str, function: Callable[..., Any], *arguments: Any) -> Array | None:
    """Return the value of a user's function; None if it raises an error of its own.

    Raises ValueError if it writes to its arguments, or if a second call returns another value, beyond rounding.
    """
    try:
        with np.errstate(all="ignore"):
            first, second = (
                np.array(function(*map(read_only, arguments)), ndmin=2) for _ in range(2)
            )
            if np.allclose(first, second, 1e-9, 1e-12, equal_nan=True):
                return first
    except (Exception, SystemExit) as error:
        if "readonly" not in str(error).replace("-", ""):
            return None
        raise ValueError(
            f"{name}: expected a function that leaves its arguments as they are, got {error}; let it change a copy"
        ) from error
    raise ValueError(
        f"{name}: expected the same value at every call with the same arguments, got {short_repr(first.tolist())} and "
        f"{short_repr(second.tolist())}; leave noise to the filter"
    )


def as_points(name: str, value: ArrayLike, dim: int | None = None) -> Array:
    """Return `value` as points of shape (n, dim); a vector stands for one point (or n points when dim is 1)."""
    array = as_numbers(name, value, (None, dim))
    if array.ndim == 1 and dim is not None:
        array = array[:, None] if dim == 1 else array[None, :]
    return as_array(name, array, (None, dim))


def as_weights(name: str, value: Any, n: int | None = None, signed: bool = False) -> Array:
    """Return weights normalised to sum to 1; non-negative ones, unless `signed`. None stands for `n` equal weights."""
    if value is None and n is not None:
        return np.full(n, 1.0 / n)
    weights = as_array(name, value, (n,))
    if not signed and (weights < 0).any():
        raise ValueError(f"{name}: expected non-negative weights, got {weights.min():g}")
    largest = np.abs(weights).max(initial=0.0)
    if largest > LARGEST:  # their sum might overflow
        weights = weights / largest
    total = float(weights.sum())
    if not total > 0:
        raise ValueError(f"{name}: expected a positive finite sum, got {total:g}")
    return weights / total


def as_particles(name: str, value: ArrayLike, largest: float = math.inf) -> Array:
    """Return at least one particle of at least one dimension, (n, d)."""
    x = as_array(name, value, (None, None), largest=largest)
    if not x.size:
        raise ValueError(
            f"{name}: expected at least one point and one dimension, got shape {x.shape}"
        )
    return x


def as_weighted_particles(particles: ArrayLike, weights: ArrayLike | None) -> tuple[Array, Array]:
    """Return particles (n, d), whose squares are finite, and weights (n,) that sum to 1; equal weights by default."""
    x = as_particles("particles", particles, LARGEST)
    n = len(x)
    w = as_array(
        "weights", np.full(n, 1 / n) if weights is None else weights, (n,), largest=LARGEST
    )
    total = w.sum()
    if not abs(total - 1.0) <= SUM_ERROR or w.min() < 0:
        raise ValueError(
            f"weights: expected non-negative numbers that sum to 1, got a sum of {total} and a minimum of {w.min():g}"
        )
    return x, w


def as_definite(name: str, value: ArrayLike, dim: int | None) -> Array:
    """Return one positive definite matrix (d, d)."""
    matrix = as_covariance(name, value, dim)
    if matrix.ndim != 2 or np.linalg.eigvalsh(matrix)[0] <= 0:
        raise ValueError(
            f"{name}: expected a positive definite matrix {shape_text((dim, dim))}, got {short_repr(matrix.tolist())}"
        )
    return matrix


def as_covariance(name: str, value: ArrayLike, dim: int | None = None) -> Array:
    """Return one (d, d) or a stack (M, d, d) of symmetric positive semi-definite matrices, symmetrised.

    Variances must be 0, or large enough to keep their digits in products. An asymmetry and a negative eigenvalue that
    rounding may have caused, measured in units of each dimension's own spread, are removed.
    """
    array = as_numbers(name, value, (dim, dim))
    array = as_array(name, array, (*(None,) * max(array.ndim - 2, 0), dim, dim))
    if array.shape[-1] != array.shape[-2] or array.size == 0:
        raise ValueError(
            f"{name}: expected square matrices of at least one row, got shape {array.shape}"
        )
    rounding = (
        ROUNDING_IN_FLOAT32 if getattr(value, "dtype", None) == np.float32 else MATRIX_ROUNDING
    )
    # Much smaller variances than the largest may be rounding themselves, so they do not set the unit of rounding.
    smallest = LEAST_SHARE * np.abs(array).max(axis=(-1, -2))
    variances = np.diagonal(array, axis1=-2, axis2=-1)
    scale = np.sqrt(np.maximum(variances, smallest[..., None]))
    scale[scale == 0] = 1.0
    scales = scale[..., :, None] * scale[..., None, :]
    transposed = np.swapaxes(array, -1, -2)
    gap = np.abs(array - transposed)
    if (gap > rounding * scales).any():
        raise ValueError(f"{name}: expected symmetric matrices, got an asymmetry of {gap.max():g}")
    array = array + 0.5 * (transposed - array)  # a copy, and exact for a symmetric matrix
    tiny = variances[(variances > 0) & (variances < UNDERFLOW)]
    if tiny.size:
        raise ValueError(
            f"{name}: expected variances of 0 or at least {UNDERFLOW:g}, got {tiny[0]}, whose products underflow; choose "
            "smaller units"
        )
    with suppress(np.linalg.LinAlgError):
        np.linalg.cholesky(array)
        return array
    if np.linalg.eigvalsh(array / scales).min() < -rounding:
        lowest = np.linalg.eigvalsh(array).min()
        raise ValueError(
            f"{name}: expected positive semi-definite matrices, got an eigenvalue of {lowest:g}"
        )
    # A variance below zero, by rounding, stands for no spread, and then there is no covariance either.
    no_spread = variances < 0
    array[no_spread[..., :, None] | no_spread[..., None, :]] = 0.0
    return array


def check_count(name: str, value: Any, minimum: int = 1, most: int | None = MOST) -> int:
    """Return `value` as an integer from `minimum` to `most`, which by default is what memory can hold."""
    limit = f"of at least {minimum}"
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= minimum:
        if most is None or int(value) <= most:
            return int(value)
        limit = f"up to {most}, as memory is limited"
    raise ValueError(f"{name}: expected an integer {limit}, got {short_repr(value)}")


def as_number(
    name: str,
    value: Any,
    expected: str = "a finite number",
    fits: Callable[[float], bool] = math.isfinite,
) -> float:
    """Return `value` as a float if it is a real number that `fits`, and neither a truth value nor a duration."""
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool | np.timedelta64):
        with suppress(OverflowError):  # an integer of too many digits
            number = float(value)
    if not fits(number):
        raise ValueError(f"{name}: expected {expected}, got {short_repr(value)}")
    return number


def as_positive(
    name: str, value: Any, smallest: float = SMALLEST, largest: float = LARGEST
) -> float:
    """Return `value` as a positive float, by default one that has a square."""
    number = as_number(name, value, "a positive finite number", lambda x: 0 < x < math.inf)
    if not smallest <= number <= largest:
        raise ValueError(
            f"{name}: expected a number from {smallest:g} to {largest:g}, got {number}"
        )
    return number


def as_fraction(name: str, value: Any) -> float:
    """Return `value` as a float from 0 to 1."""
    return as_number(name, value, "a fraction from 0 to 1", lambda x: 0 <= x <= 1)


def check_share(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is a number from 0 to below 1."""
    as_number(name, value, "from 0 to below 1", lambda x: 0 <= x < 1)


def check_flags(**flags: Any) -> None:
    """Raise ValueError unless each of these is True or False."""
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name}: expected True or False, got {short_repr(value)}")


def check_fields(instance: Any, **checks: Callable[[str, Any], Any]) -> None:
    """Replace fields of a frozen dataclass, from its ``__post_init__``, by the values that the checks return."""
    for name, check in checks.items():
        object.__setattr__(instance, name, check(name, getattr(instance, name)))


def as_dims(name: str, value: Any, dim: int | None) -> tuple[int, ...]:
    """Return indices of dimensions, below `dim` unless that is None; an empty sequence is allowed."""
    if isinstance(value, tuple) and not value:  # that of most models, read at every step
        return ()
    try:
        dims = tuple(map(operator.index, value))
    except TypeError:
        dims = (-1,)
    if dims and not 0 <= min(dims) <= max(dims) < (math.inf if dim is None else dim):
        bounds = "from 0 on" if dim is None else f"from 0 to {dim - 1}"
        raise ValueError(
            f"{name}: expected a sequence of indices {bounds}, such as [0], got {short_repr(value)}"
        )
    return dims


def as_bounds(name: str, value: Any, dim: int | None, *, finite: bool = False) -> Array:
    """Return limits (dim, 2), the lower ones first; they may be infinite."""
    bounds = as_array(name, value, (dim, 2), finite=finite)
    if not (bounds[:, 0] < bounds[:, 1]).all():  # NaN, too
        raise ValueError(
            f"{name}: expected rows (lowest, highest), the first below the second, got {short_repr(bounds.tolist())}"
        )
    return bounds


def as_any(name: str, value: Any) -> np.ndarray:
    """Return `value` as an array of any type; entries must have one shape."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name}: expected entries of one shape, got {short_repr(value)}"
        ) from None


def as_list(
    name: str, value: Any, expected: str = "a sequence with one entry per step"
) -> list[Any]:
    """Return the entries of a sequence, or the rows of a table."""
    try:
        if isinstance(value, str | bytes | Mapping | Set):
            raise TypeError
        return list(value.to_numpy() if hasattr(value, "to_numpy") else value)
    except TypeError:
        raise ValueError(f"{name}: expected {expected}, got {short_repr(value)}") from None


def check_methods(name: str, value: Any, *methods: str) -> None:
    """Raise TypeError unless `value` is an object with these methods."""
    if isinstance(value, type):
        raise TypeError(f"{name}: expected an instance, got {short_repr(value)}")
    if not all(callable(getattr(value, method, None)) for method in methods):
        raise TypeError(
            f"{name}: expected an object with {' and '.join(methods)}, got {short_repr(value)}"
        )


def as_generator(rng: Any) -> np.random.Generator:
    """Return a `numpy.random.Generator` from a generator, a seed, a `SeedSequence` or None (fresh entropy)."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ValueError(
            f"rng: expected a numpy Generator, a seed or None, got {short_repr(rng)}"
        ) from None


def one_of(
    name: str,
    value: str,
    choices: Iterable[str],
    synonyms: Mapping[str, str] | None = None,
) -> str:
    """Return `value` if it is one of the choices; else raise a ValueError that suggests the most similar one.

    `synonyms` has words of other libraries: what to suggest -> the words for it.
    """
    choices = list(choices)
    if not isinstance(value, str) or value not in choices:
        asked = str(value).casefold()
        words = {*re.split(r"[\W_]+", asked)}
        hints = [text for text, others in (synonyms or {}).items() if words & {*others.split()}]
        folded = {text.casefold(): text for text in reversed(choices)}
        # A synonym counts more than a name that is similar by chance.
        similar = get_close_matches(asked, folded, n=1, cutoff=0.9 if hints else 0.5)
        hints = [repr(folded[text]) for text in similar] + hints
        hint = f"did you mean {hints[0]}?" if hints else f"expected one of {', '.join(choices)}"
        raise ValueError(f"{name}: unknown {short_repr(value)}; {hint}")
    return value


def known_keywords(function: Callable[P, None]) -> Callable[P, None]:
    """Let a constructor refuse a keyword that it does not know with the one that it probably stands for."""
    names = inspect.signature(function).parameters

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> None:
        for key in keywords:
            one_of(function.__qualname__, key, names, OPTION_SYNONYMS)
        function(*args, **keywords)

    return call


def printable(text: str) -> str:
    """Return a text that is safe in a terminal: control characters, and those that reverse the direction, are escaped."""
    return "".join(
        c if c.isprintable() or c in "\n\t" or category(c) == "Zs" else ascii(c)[1:-1] for c in text
    )


def check_label(name: str, value: Any) -> None:
    """Raise ValueError unless a value is a text that can stand in a figure."""
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected a text, got {short_repr(value)}")
    if len(value) > LONGEST_LABEL or value != printable(value):
        raise ValueError(
            f"{name}: expected at most {LONGEST_LABEL} printable characters, got {short_repr(value)}"
        )


def check_part(name: str, part: object, kind: type, expected: str) -> None:
    """Raise TypeError unless `part` is an instance of this kind."""
    # a class passes `isinstance` if the kind is a protocol
    if isinstance(part, kind) and not isinstance(part, type):
        return
    call = f"herdfilter.make_filter({part!r}, model, n_particles, rng)"
    advice = f"; to make a filter by its name, call {call}" if isinstance(part, str) else ""
    raise TypeError(f"{name}: expected {expected}, got {short_repr(part)}{advice}")
