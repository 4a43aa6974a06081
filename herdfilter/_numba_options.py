"""Options with which numba compiles the loops of this package."""

from __future__ import annotations

from typing import Any

# Sums may be reordered and products fused, so that loops vectorise; infinities and NaN keep their meaning. The result is
# fixed by the compiled code: the same input gives the same bits.
VECTORISE = {"reassoc", "contract"}

# Options of loops that Python calls; of functions that only compiled code calls, which compile faster without wrappers and
# are kept with their callers; and of those that it calls in one place, made part of their caller before it is compiled.
CALLED: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
INSIDE: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
FAST: dict[str, Any] = INSIDE | {"fastmath": VECTORISE}
ONCE: dict[str, Any] = FAST | {"inline": "always"}
