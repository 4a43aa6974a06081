"""How many exponentials a herding sampler evaluates, how many its definition needs, and what one costs.

The compiled loops keep no count. `exponentials` runs them as plain Python in a process of its own
(``NUMBA_DISABLE_JIT=1``) with every exponential function of `herdfilter.samplers._fastmath` replaced by one that counts
its calls.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import cpu_seconds
from numba import njit

from herdfilter import ContinuousHerdedGibbs, GaussianMixture
from herdfilter.samplers import _fastmath

ROUNDS = 100
LENGTH = 1000  # of the vectors on which one exponential is timed: they fit the first cache


def cost_of_exp(repeats: int = 50) -> dict[str, float]:
    """CPU seconds of one exponential in a vectorised loop, by implementation."""
    x = -np.linspace(0.0, 20.0, LENGTH)
    out = np.empty(LENGTH)
    calls = {"numpy.exp": lambda: [np.exp(x, out=out) for _ in range(ROUNDS)]}
    for name, function in compiled_exponentials().items():
        calls[name] = _loop(function, x, out)
    seconds = cpu_seconds(list(calls.values()), repeats)
    return {name: float(s) / (ROUNDS * LENGTH) for name, s in zip(calls, seconds, strict=True)}


def compiled_exponentials() -> dict[str, Callable[[float], float]]:
    """Return the exponential functions of the samplers' inner loops by name."""
    return {name: f for name, f in vars(_fastmath).items() if name.startswith("exp")}


def _loop(function: Callable[[float], float], x: np.ndarray, out: np.ndarray) -> Callable[[], None]:
    @njit(fastmath=_fastmath.VECTORISE)
    def many(x, out):
        for k in range(ROUNDS):
            for i in range(len(x)):
                out[i] = function(x[i] - 1e-3 * k)

    return lambda: many(x, out)


def needed(sampler: object, mixture: GaussianMixture, n: int) -> int:
    """Kernel evaluations of the definition, every maximum being found at the first look.

    Kernel herding: the objective at each of the n points, once: M components and t earlier points. Herded Gibbs: for each of
    the d coordinates and each sweep of a point the slice weights of t earlier points and the weights of M components, and
    the objective once, which is as many again. A sampler that leaves out kernels too far away to matter does with fewer.
    """
    objective = n * (n - 1) // 2 + n * len(mixture)
    if isinstance(sampler, ContinuousHerdedGibbs):
        return 2 * mixture.dim * sampler._options[2] * (objective - len(mixture))
    return objective


def exponentials(sampler: object, mixture: GaussianMixture, n: int, timeout: float = 120.0) -> int | None:
    """Count the calls of the compiled loops' exponential for one sample; None if that takes over `timeout` seconds."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    try:
        done = subprocess.run(
            [sys.executable, Path(__file__)],
            input=pickle.dumps((sampler, mixture, n)),
            env=environment,
            capture_output=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise RuntimeError(f"counting failed:\n{done.stderr.decode()}")
    return int(done.stdout)


def _count() -> None:
    """Read a job from standard input, run it, print the number of exponentials."""
    sampler, mixture, n = pickle.load(sys.stdin.buffer)
    calls = 0

    def counting(function):
        def call(*arguments):
            nonlocal calls
            calls += 1
            return function(*arguments)

        return call

    counted = {f: counting(f) for f in compiled_exponentials().values()}
    for name, module in list(sys.modules.items()):
        if name.startswith("herdfilter."):
            for key, value in list(vars(module).items()):
                if callable(value) and value in counted:
                    setattr(module, key, counted[value])
    sampler.sample(mixture, n)
    print(calls)


if __name__ == "__main__":
    _count()
