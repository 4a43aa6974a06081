"""The yardstick of samplers: energy distance to the target over that of as many independent draws, nothing tuned per case.

Families of mixtures, seeded, in coordinates in which their covariance is I; independent draws are known exactly. Below
1 a sampler beats them; the worst case counts as much as the median. Each finished cell (family, d, n, sampler) goes to
the results file, and what is there with as many mixtures is not measured again, unless by `--again`.

python benchmarks/bench_quality.py [--dims 1 2 4 8 16] [--sizes 20 100 300 1000] [--families NAMES] [--samplers NAMES]
                                   [--mixtures 40] [--workers W] [--again]
python benchmarks/bench_quality.py --factors 0.8 1.1 1.4 2 2.8    kernel herding at these widths c n^(-1/(d + 1)): the rule
python benchmarks/bench_quality.py --hostile 4000                 two modes far apart; random mixtures from seed 2,000,000 on
python benchmarks/bench_quality.py --kernels Haswell Sandybridge Nehalem --mixtures 5
                                                                  how far results differ between kernels of OpenBLAS
python benchmarks/bench_quality.py --points kh pcd LCDSampling --dims 2 4 8 --sizes 50 100 400 [--pcd FOLDER]
                                                                  distance and time, in turn, of samplers by name: of this
                                                                  script, or a class of the package; --compiled: only times
                                                                  of PCD, as torch compiles it
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from common import announce, current, parser, save, show, timed, whitened
from hostile import CLAIMS, far_modes, random_mixtures
from joblib import Parallel, cpu_count, delayed
from kernels import compare, compute
from mixture_points import (
    BESIDE,
    CHECKOUT,
    measure_compiled,
    measure_together,
    one_component,
    use_checkout,
)

import herdfilter as hf
from herdfilter.paper.common import rotated_mixture

TARGETS = {1: 0.15, 2: 0.15, 4: 0.2, 8: 0.3, 16: 0.45}  # medians of herding; the worst case: 1
KEYS = ["family", "d", "n", "sampler"]
SAMPLERS: dict[str, hf.samplers.Sampler] = {
    "kh": hf.KernelHerding(),
    "chg": hf.ContinuousHerdedGibbs(),
    "chg-smoothed-only": hf.ContinuousHerdedGibbs(effective_count=False, component_herding=False),
    "chg-paper": hf.ContinuousHerdedGibbs(target="paper"),
    "sobol": hf.SobolSampling(),
    "mapped-kh": hf.MappedSampling(hf.KernelHerding()),
    "kh-polished": hf.Polished(hf.KernelHerding()),
    "sobol-polished": hf.Polished(hf.SobolSampling()),
    "random": hf.RandomSampling(),
}

HOSTILE: dict[str, hf.samplers.Sampler] = {
    "kh": hf.KernelHerding(),
    "chg": hf.ContinuousHerdedGibbs(),
    "kh-one-kernel": hf.KernelHerding(hf.bandwidths.Whitened()),
    "mapped-kh": hf.MappedSampling(hf.KernelHerding()),
    "sobol": hf.SobolSampling(),
}


def long_component(dim: int, rng: np.random.Generator) -> hf.GaussianMixture:
    """Two components of condition number 1e4 in random directions that cross, in one dimension of widths 1 and 0.01."""
    values = np.logspace(0, -4, dim) if dim > 1 else np.ones(1)
    turns = np.linalg.qr(rng.standard_normal((2, dim, dim)))[0]
    covariances = (turns * values) @ turns.swapaxes(1, 2)
    if dim == 1:
        covariances[1] *= 1e-4
    return hf.GaussianMixture([0.5, 0.5], 0.3 * rng.standard_normal((2, dim)), covariances)


def fifty_components(dim: int, rng: np.random.Generator) -> hf.GaussianMixture:
    """Like the five, but fifty."""
    return rotated_mixture(dim, rng, components=50)


def two_far_modes(dim: int, rng: np.random.Generator) -> hf.GaussianMixture:
    """Two unit components of weights 0.95 and 0.05, twelve apart in a random direction."""
    towards = rng.standard_normal(dim)
    means = np.outer([0.0, 12.0], towards / np.linalg.norm(towards))
    return hf.GaussianMixture([0.95, 0.05], means, np.eye(dim))


def particles(dim: int, rng: np.random.Generator) -> hf.GaussianMixture:
    """Give what a filter predicts: a hundred uneven weights, every component a tenth of the whole covariance."""
    x = rotated_mixture(dim, rng).sample(100, rng)
    return hf.GaussianMixture(rng.dirichlet(np.ones(100)), x, 0.1 * np.cov(x.T).reshape(dim, dim))


FAMILIES: dict[str, Callable[[int, np.random.Generator], hf.GaussianMixture]] = {
    "5 components": rotated_mixture,
    "long and narrow": long_component,
    "50 components": fifty_components,
    "two far modes": two_far_modes,
    "100 particles": particles,
    "1 component": one_component,
}
OF_QUALITY = [name for name in FAMILIES if name != "1 component"]
OF_POINTS = ["1 component", "5 components", "100 particles"]


def case(family: str, dim: int, seed: int) -> hf.GaussianMixture:
    """Return one mixture of a family."""
    return whitened(
        FAMILIES[family](dim, np.random.default_rng([seed, dim, list(FAMILIES).index(family)]))
    )


def sampler_named(name: str) -> hf.samplers.Sampler:
    """Return a sampler, or one of a class of the package by that name.

    `kh-1.4` is kernel herding in a kernel of the width 1.4 n^(-1/(d + 1)), `polished-8` Sobol points after 8 iterations.
    """
    samplers = SAMPLERS | BESIDE
    if name in samplers:
        return samplers[name]
    if hasattr(hf, name):
        return getattr(hf, name)()
    if name.startswith("polished-"):
        return hf.Polished(hf.SobolSampling(), iterations=int(name.removeprefix("polished-")))
    return hf.KernelHerding(
        bandwidth=hf.bandwidths.Whitened(constant=float(name.removeprefix("kh-")))
    )


def measured(family: str, dim: int, n: int, sampler: str, seed: int) -> tuple[float, float]:
    """Energy distance over what n independent draws have in the mean, and milliseconds."""
    mixture = case(family, dim, seed)
    seconds, points = timed(
        lambda: sampler_named(sampler).sample(mixture, n, np.random.default_rng(seed))
    )
    assert isinstance(points, hf.Points)
    return hf.energy_distance(points, mixture) / hf.expected_energy_distance(
        mixture, n
    ), 1e3 * seconds


def cells(args: argparse.Namespace, samplers: Sequence[str]) -> list[tuple[str, int, int, str]]:
    """List what is not in the results file with as many mixtures."""
    known = current("quality", args.results)
    enough = (
        known[known["mixtures"] >= args.mixtures] if len(known) and not args.again else known[:0]
    )
    done = set(enough[KEYS].itertuples(index=False, name=None)) if len(enough) else set()
    asked = [
        (f, d, n, s) for n in args.sizes for d in args.dims for f in args.families for s in samplers
    ]
    return [cell for cell in asked if cell not in done]


def report(table: pd.DataFrame) -> None:
    """Print the medians, and in how many cells herding reaches its targets."""
    wide = table.pivot_table(
        index=["family", "d", "n"], columns="sampler", values="median", sort=False
    )
    show(
        "Energy distance over that of independent draws, medians over mixtures",
        wide.reset_index(),
        160,
    )
    for sampler in ("kh", "chg"):
        ours = table[table["sampler"] == sampler]
        missed = ours["median"] > ours["d"].map(TARGETS)
        print(
            f"{sampler}: median target missed in {missed.sum()} of {len(ours)} cells; "
            f"worst case above 1 in {(ours['worst'] > 1).sum()}"
        )


def hostile(args: argparse.Namespace) -> None:
    """Measure on mixtures that samplers may fail on."""
    far = far_modes(HOSTILE, [d for d in args.dims if d <= 8])
    table = save("far", far, args.results)
    for value in ("farthest", "energy"):
        wide = table.pivot_table(
            index=["sampler", "d"], columns="distance", values=value, sort=False
        )
        show(f"Two modes so many standard deviations apart: {value}", wide.reset_index(), 160)
    table = random_mixtures(HOSTILE, args.hostile, CLAIMS + args.seed, args.workers)
    show("Random mixtures", save("hostile", table, args.results), 160)


def points(args: argparse.Namespace) -> None:
    """Measure samplers beside each other, in turn."""
    reason = use_checkout(args.pcd, args.compiled)
    if reason and any(name.startswith("pcd") for name in args.points):
        print(f"without PCD: {reason}")
    names = [name for name in args.points if not (reason and name.startswith("pcd"))]
    if args.compiled:
        cells = [
            (f, d, n, s)
            for f in args.families
            for d in args.dims
            for n in args.sizes
            for s in names
        ]
        for cell in cells:
            family, dim, n, name = cell
            ms = measure_compiled(case(family, dim, args.seed), n, sampler_named(name))
            row = pd.DataFrame([dict(zip(KEYS, cell, strict=True)) | {"ms": ms}])
            table = save("mixtures_compiled", row, args.results, KEYS)
        return show("PCD compiled by torch", table)
    for family in args.families:
        for dim in args.dims:
            mixtures = [case(family, dim, args.seed + k) for k in range(args.mixtures)]
            for n in args.sizes:
                ratios, ms = measure_together(mixtures, n, [*map(sampler_named, names)], args.seed)
                numbers = {
                    "median": np.median(ratios, axis=0),
                    "worst": ratios.max(axis=0),
                    "ms": np.median(ms, axis=0),
                }
                cell = dict(zip(KEYS, (family, dim, n, names), strict=True))
                table = pd.DataFrame(cell | {"mixtures": args.mixtures} | numbers)
                table = save("mixtures", table, args.results, KEYS)
    for value in ("median", "worst", "ms"):
        wide = table.pivot_table(value, ["family", "d", "n"], "sampler", sort=False)
        show(f"Points of mixtures: {value}", wide.reset_index(), 180)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--dims", type=int, nargs="+", default=list(TARGETS))
    options.add_argument("--sizes", type=int, nargs="+", default=[20, 100, 300, 1000])
    options.add_argument("--families", nargs="+", choices=FAMILIES)
    options.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    options.add_argument("--factors", type=float, nargs="+", help="in place of the samplers")
    options.add_argument("--mixtures", type=int, default=40)
    options.add_argument("--workers", type=int, default=cpu_count())
    options.add_argument("--again", action="store_true", help="measure what is there, too")
    options.add_argument(
        "--hostile", type=int, metavar="N", help="only these: far modes, and N random mixtures"
    )
    options.add_argument(
        "--kernels", nargs="+", metavar="NAME", help="only these, of OpenBLAS: are points the same?"
    )
    options.add_argument("--points", nargs="+", metavar="NAME", help="only these, in turn")
    options.add_argument(
        "--pcd", type=Path, default=os.environ.get(CHECKOUT), help="a checkout of PCD_sampling_py"
    )
    options.add_argument(
        "--compiled", action="store_true", help="only the times of PCD as torch compiles it"
    )
    options.add_argument("--compute", type=Path, help=argparse.SUPPRESS)
    args = options.parse_args(arguments)
    args.families = args.families or (OF_POINTS if args.points else OF_QUALITY)
    if args.compute:
        return compute(args.compute, case, args.families, args.mixtures)
    announce(args.seed)
    if args.hostile:
        return hostile(args)
    if args.points:
        return points(args)
    if args.kernels:
        table = compare(__file__, args.kernels, args.mixtures)
        return show("Kernels of OpenBLAS", save("kernels", table, args.results), 160)
    samplers = [f"kh-{c:g}" for c in args.factors] if args.factors else args.samplers
    with Parallel(args.workers) as pool:
        for cell in cells(args, samplers):
            seeds = range(args.seed, args.seed + args.mixtures)
            ratios, ms = np.transpose(pool(delayed(measured)(*cell, seed) for seed in seeds))
            numbers = {"median": np.median(ratios), "worst": ratios.max(), "ms": np.median(ms)}
            row = dict(zip(KEYS, cell, strict=True)) | {"mixtures": args.mixtures} | numbers
            save("quality", pd.DataFrame([row]), args.results, KEYS)
    table = current("quality", args.results)
    if len(table):
        report(table[table["d"].isin(args.dims) & table["n"].isin(args.sizes)])


if __name__ == "__main__":
    main()
