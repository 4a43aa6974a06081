"""Time and memory of the herding samplers against the number of points: d = 2, 5 components.

Every size runs in a process of its own, so that its peak memory can be read. A series ends early when its next size, at the
growth seen so far, would take longer than `patience` seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from common import cpu_seconds, timed

from herdfilter import ContinuousHerdedGibbs, KernelHerding
from herdfilter.paper.common import rotated_mixture

SIZES = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
FIT_FROM = 1000  # points; below, what every call costs hides the growth
SAMPLERS = {"KH": KernelHerding, "CHG": ContinuousHerdedGibbs}
BANDWIDTHS = ("0.1", "auto")


def measured(args: argparse.Namespace) -> pd.DataFrame:
    """Seconds and growth of peak memory in MB against the number of points."""
    rows = []
    for name in SAMPLERS:
        for bandwidth in BANDWIDTHS[-1:] if args.quick else BANDWIDTHS:
            rows += series(
                name, bandwidth, min(args.largest, 300 if args.quick else SIZES[-1]), args
            )
    table = pd.DataFrame(rows)
    for key, part in table.groupby(["sampler", "bandwidth"], sort=False):
        slope, low, high = exponent(part["n"], part["seconds"])
        print(f"{', '.join(key)}: exponent of time {slope:.2f} ({low:.2f}, {high:.2f})")
    return table


def series(name: str, bandwidth: str, largest: int, args: argparse.Namespace) -> list[dict]:
    """Return the rows of one sampler over all sizes that patience allows."""
    rows: list[dict] = []
    for n in [n for n in SIZES if n <= largest]:
        if len(rows) > 1:
            seconds, sizes = ([row[key] for row in rows[-2:]] for key in ("seconds", "n"))
            slope = max(np.diff(np.log(seconds))[0] / np.diff(np.log(sizes))[0], 1.0)
            if seconds[-1] * (n / sizes[-1]) ** slope > args.patience:
                break
        rows.append(
            {"sampler": name, "bandwidth": bandwidth, "n": n} | fresh(name, bandwidth, n, args.seed)
        )
    return rows


def fresh(name: str, bandwidth: str, n: int, seed: int) -> dict[str, float]:
    """Run one size in a process of its own."""
    job = json.dumps([name, bandwidth, n, seed])
    done = subprocess.run(
        [sys.executable, __file__, job], env=os.environ, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{name}, n = {n}:\n{done.stderr}")
    return json.loads(done.stdout)


def run(name: str, bandwidth: str, n: int, seed: int) -> dict[str, float]:
    """CPU seconds of one sample, the median where it is short, and the growth of peak memory in MB."""
    sampler = SAMPLERS[name](bandwidth=bandwidth if bandwidth == "auto" else float(bandwidth))
    mixture = rotated_mixture(2, np.random.default_rng(seed))
    sampler.sample(mixture, min(n, 100))  # loads or compiles the code
    before = peak_memory()
    seconds, _ = timed(lambda: sampler.sample(mixture, n))
    memory = peak_memory() - before
    if seconds < 1.0:
        repeats = int(np.clip(1.0 / seconds, 3, 21))
        seconds = float(cpu_seconds([lambda: sampler.sample(mixture, n)], repeats)[0])
    return {"seconds": seconds, "memory_mb": memory}


def peak_memory() -> float:
    """Largest resident memory of this process so far, in MB."""
    unit = 1e-6 if sys.platform == "darwin" else 1e-3  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def exponent(sizes: Sequence[int], values: Sequence[float]) -> tuple[float, float, float]:
    """Slope of log(values) on log(sizes) for sizes from FIT_FROM on, with its 95 % interval; NaN where they are too few."""
    points = np.log([(n, v) for n, v in zip(sizes, values, strict=True) if n >= FIT_FROM and v > 0])
    if len(points) < 3:
        return (float("nan"),) * 3
    from scipy import stats  # which the processes of single sizes need not load

    fit = stats.linregress(*points.T)
    half = stats.t.ppf(0.975, len(points) - 2) * fit.stderr
    return fit.slope, fit.slope - half, fit.slope + half


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    print(json.dumps(run(*json.loads(sys.argv[1]))))
