"""Time and memory of the herding samplers against the number of points: d = 2, 5 components, one core, compiled.

Every size runs in a process of its own, so that its peak memory can be read. Small sizes are repeated and the median
taken. A sampler's series ends early when its next size, at the growth seen so far, would take longer than `--patience`
seconds.

python benchmarks/bench_growth.py [--largest 100000] [--patience 120] [--samplers KH CHG ...] [--bandwidths 0.1 auto]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import announce, cpu_seconds, random_mixture, show, timed
from scipy import stats

from herdfilter import ContinuousHerdedGibbs, KernelHerding

SIZES = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
FIT_FROM = 1000  # points; below, what every call costs hides the growth
TARGETS = {100_000: 60}  # seconds
SAMPLERS = {
    "KH": KernelHerding,
    "CHG": ContinuousHerdedGibbs,
    'CHG, target="paper"': lambda bandwidth: ContinuousHerdedGibbs(target="paper", bandwidth=bandwidth),
}


def measure(name: str, bandwidth: str, n: int, seed: int) -> dict[str, float]:
    """CPU seconds of one sample of n points and the growth of peak memory in MB, measured in a fresh process."""
    job = json.dumps([name, bandwidth, n, seed])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, Path(__file__), "--job", job], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{name}, n = {n}:\n{done.stderr}")
    return json.loads(done.stdout)


def run(name: str, bandwidth: str, n: int, seed: int) -> None:
    """Do in this process what `measure` asks for and print it."""
    sampler = SAMPLERS[name](bandwidth=bandwidth if bandwidth == "auto" else float(bandwidth))
    mixture = random_mixture(2, np.random.default_rng(seed))
    sampler.sample(mixture, min(n, 100))  # loads or compiles the code
    before = peak_memory()
    seconds, _ = timed(lambda: sampler.sample(mixture, n))
    memory = peak_memory() - before
    if seconds < 1.0:
        repeats = int(np.clip(1.0 / seconds, 3, 21))
        seconds = float(cpu_seconds([lambda: sampler.sample(mixture, n)], repeats)[0])
    print(json.dumps({"seconds": seconds, "memory": memory}))


def peak_memory() -> float:
    """Largest resident memory of this process so far, in MB; NaN where the system does not tell."""
    try:
        import resource
    except ImportError:
        return float("nan")
    unit = 1e-6 if sys.platform == "darwin" else 1e-3  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def exponent(sizes: Sequence[int], values: Sequence[float]) -> str:
    """Slope of log(values) on log(sizes) for sizes from FIT_FROM on, with its 95 % interval."""
    points = [(np.log(n), np.log(v)) for n, v in zip(sizes, values, strict=True) if n >= FIT_FROM and v > 0]
    if len(points) < 2:
        return f"fewer than two sizes from {FIT_FROM} on"
    fit = stats.linregress(*zip(*points, strict=True))
    if len(points) < 3:
        return f"{fit.slope:.2f} (two sizes)"
    half = stats.t.ppf(0.975, len(points) - 2) * fit.stderr
    return f"{fit.slope:.2f} ({fit.slope - half:.2f}, {fit.slope + half:.2f})"


def series(name: str, bandwidth: str, args: argparse.Namespace) -> tuple[list, list]:
    """Return the table rows of one sampler over all sizes, and the row of its exponents."""
    sizes, seconds, memory, rows = [], [], [], []
    for n in [n for n in SIZES if n <= args.largest]:
        if len(sizes) > 1:
            slope = max(np.diff(np.log(seconds[-2:]))[0] / np.diff(np.log(sizes[-2:]))[0], 1.0)
            expected = seconds[-1] * (n / sizes[-1]) ** slope
            if expected > args.patience:
                rows.append(
                    [name, bandwidth, n, f"not run: about {expected:.0f} s", "", "", TARGETS.get(n, "")]
                )
                break
        got = measure(name, bandwidth, n, args.seed)
        sizes.append(n)
        seconds.append(got["seconds"])
        memory.append(got["memory"])
        per_point = [1e6 * seconds[-1] / n, memory[-1]]
        rows.append([name, bandwidth, n, seconds[-1], *per_point, TARGETS.get(n, "")])
    per_byte = "" if len(sizes) < 2 else 1e6 * (memory[-1] - memory[0]) / (sizes[-1] - sizes[0])
    return rows, [name, bandwidth, sizes[-1], exponent(sizes, seconds), per_byte]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="leave out sizes above this")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds that one size may take")
    parser.add_argument("--samplers", nargs="*", choices=SAMPLERS, default=["KH", "CHG"])
    parser.add_argument("--bandwidths", nargs="*", default=["0.1", "auto"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.job:
        run(*json.loads(args.job))
        return
    announce(args.seed)
    rows, fits = [], []
    for name in args.samplers:
        for bandwidth in args.bandwidths:
            some, fit = series(name, bandwidth, args)
            rows += some
            fits.append(fit)
    columns = ["sampler", "bandwidth", "n", "CPU seconds", "us a point", "peak memory, MB", "target, s"]
    show("Time and memory against the number of points, d = 2, 5 components", columns, rows)
    columns = ["sampler", "bandwidth", "largest n", "exponent of time (95 %)", "bytes a further point"]
    show(f"Growth from n = {FIT_FROM} on; memory from the smallest to the largest size", columns, fits)


if __name__ == "__main__":
    main()
