"""Seconds to import the package, and to the first points of a sampler with and without compiled code on disk."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import numpy as np
from common import show

IMPORT = (
    "import time; start = time.perf_counter(); import herdfilter as hf; print(time.perf_counter() - start)"
)
FIRST_CALL = """
import time, numpy as np, herdfilter as hf
mixture = hf.GaussianMixture([0.5, 0.5], [[0.0, 0.0], [3.0, 1.0]], np.eye(2))
start = time.perf_counter()
hf.{sampler}().sample(mixture, 100)
print(time.perf_counter() - start)
"""


def run(code: str, **settings: str) -> float:
    """Run code in a fresh process; return the number that it prints."""
    result = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | settings, capture_output=True, text=True, check=True
    )
    return float(result.stdout)


if __name__ == "__main__":
    run(IMPORT)
    rows = [["import herdfilter", float(np.median([run(IMPORT) for _ in range(7)])), ""]]
    for sampler in ("ContinuousHerdedGibbs", "KernelHerding"):
        code = FIRST_CALL.format(sampler=sampler)
        with tempfile.TemporaryDirectory() as cache:
            first = run(code, NUMBA_CACHE_DIR=cache)
            rows.append(
                [sampler, first, float(np.median([run(code, NUMBA_CACHE_DIR=cache) for _ in range(7)]))]
            )
    show("Seconds", ["", "first time", "compiled code on disk"], rows)
