"""Peers side by side, in six parts: samplers, thinning, large samples, filters, the adapters' filters, and trackers.

`samplers`: herding error and energy distance against the number of points and against seconds. Targets: 5 components,
whitened, and N(0, I), both at d = 2 and 4. Every method with a kernel is run twice: with the kernel in which the herding
error is measured, sigma_k = 0.5, and with the width of `herdfilter.bandwidths.scale_rule`, which suits the energy distance.
Thinning starts from n^2 independent draws, whose time is its own. Random methods: medians over seeds. Times are CPU times of
one thread, compiled, points computed anew.

`thin`: members of a sample that represent it, beside every k-th point and goodpoints; see thinning.py.

`large`: members of large samples, beside a random subset and, up to `--whole` points, the choice among all points.

`adapters`: the library's own filters, and ours on the models that the adapters make of theirs, on the same data in one run;
see adapters.py. Errors are to a reference posterior mean, in posterior standard deviations; ratios are medians of those of
runs to the library's first filter.

`filters`: the filters of `particles`, smcx, cuthbert, filterpy, Stone Soup and plain JAX, each in an environment that this
command makes, and ours, at equal counts and at equal time; see peer_filters.py. Errors are debiased, to the exact or
reference posterior mean in posterior standard deviations. Seeds below 10,000 are for trying, from 6,000,000 on for figures.

`trackers`: ours, labelled multi-Bernoulli, beside those of other libraries, on the same scans of the scenarios of many
targets; see trackers.py. Means over runs, with 95 % intervals.

python benchmarks/bench_peers.py [samplers] [--sizes 16 64 256 1024] [--dims 2 4] [--seeds 3] [--patience 30]
python benchmarks/bench_peers.py thin [--sample 10000] [--thin-dims 2 5 10 20]
python benchmarks/bench_peers.py large [--large 80000 1000000] [--members 100 1000]
python benchmarks/bench_peers.py adapters [--libraries filterpy particles stonesoup] [--runs 50]
python benchmarks/bench_peers.py filters [--seed 6000000] [--models ungm bearings linear_chain] [--counts 100 1000 ...]
python benchmarks/bench_peers.py trackers [--scenarios crossing meeting] [--trackers lmb-ukf ...] [--peers LMB ...]
"""

from __future__ import annotations

import os

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # before the peers load: deterministic-gaussian-sampling uses OpenMP

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import adapters as libraries
import numpy as np
import pandas as pd
import peer_filters
import peers
import thinning
import trackers as sets
from common import announce, parser, save, show, timed, whitened

import herdfilter as hf
from herdfilter.bandwidths import scale_rule
from herdfilter.paper.common import rotated_mixture

SIGMA_K = 0.5


@dataclass(frozen=True)
class Method:
    """One line of the comparison: how points are drawn, and on what."""

    draw: Callable[[hf.GaussianMixture, int, float, np.random.Generator], hf.Points]
    kernel: bool = True  # depends on a kernel width
    random: bool = False  # depends on the generator
    one_gaussian: bool = False
    largest: int = 10**9  # number of points that a run of a few minutes allows


def ours(sampler: Callable[[float], hf.samplers.Sampler]) -> Callable[..., hf.Points]:
    """Return the drawing function of a sampler that is built anew for every call, so that nothing is kept."""
    return lambda mixture, n, width, rng: sampler(width).sample(mixture, n, rng)


def peer(draw: Callable[..., np.ndarray]) -> Callable[..., hf.Points]:
    """Return the drawing function of a peer, with equal weights."""
    return lambda *arguments: hf.Points(draw(*arguments))


METHODS = {
    "i.i.d. random": Method(ours(lambda h: hf.RandomSampling()), kernel=False, random=True),
    "Sobol (scipy)": Method(peer(peers.sobol), kernel=False, random=True),
    "kernel thinning (goodpoints)": Method(peer(peers.kernel_thinning), random=True, largest=64),
    "Compress++ (goodpoints)": Method(peer(peers.compress_pp), random=True),
    "LCD (deterministic-gaussian-sampling)": Method(
        peer(peers.lcd), kernel=False, one_gaussian=True, largest=256
    ),
    "KH": Method(ours(lambda h: hf.KernelHerding(bandwidth=h))),
    "CHG": Method(ours(lambda h: hf.ContinuousHerdedGibbs(bandwidth=h))),
    "KH, mapped": Method(ours(lambda h: hf.MappedSampling(hf.KernelHerding(bandwidth=h)))),
    "KH, polished": Method(ours(lambda h: hf.Polished(hf.KernelHerding(bandwidth=h), bandwidth=h))),
    "KH, weighted": Method(
        ours(lambda h: hf.KernelHerding(bandwidth=h, weights="fully-corrective")), largest=256
    ),
    "SobolSampling": Method(ours(lambda h: hf.SobolSampling()), kernel=False),
    "LCDSampling": Method(ours(lambda h: hf.LCDSampling()), kernel=False, largest=256),
}
NEEDS = {
    "kernel thinning (goodpoints)": peers.kt,
    "Compress++ (goodpoints)": peers.compress,
    "LCD (deterministic-gaussian-sampling)": peers.dgs,
}


def targets(dims: Sequence[int], seed: int) -> dict[str, hf.GaussianMixture]:
    """Return the mixtures by name, all of covariance I."""
    named = {}
    for dim in dims:
        named[f"5 components, d = {dim}"] = whitened(
            rotated_mixture(dim, np.random.default_rng([seed, dim]))
        )
        named[f"N(0, I), d = {dim}"] = hf.GaussianMixture([1.0], np.zeros((1, dim)), np.eye(dim))
    return named


def compare(name: str, mixture: hf.GaussianMixture, args: argparse.Namespace) -> list[dict]:
    """Measure all methods on one target."""
    records = []
    for label, method in METHODS.items():
        if NEEDS.get(label, method) is None or (method.one_gaussian and len(mixture) > 1):
            continue
        for rule in (False, True) if method.kernel else (False,):
            kernel = ("rule" if rule else f"{SIGMA_K}") if method.kernel else ""
            last, before = 0.0, 0
            for n in (n for n in sorted(args.sizes) if n <= max(method.largest, min(args.sizes))):
                if before and last * (n / before) ** 2 > args.patience:
                    print(f"{name}: {label} with {n} points left out, {before} took {last:.1f} s")
                    break
                numbers = measure(
                    method, mixture, n, scale_rule(n, mixture.dim) if rule else SIGMA_K, args
                )
                last, before = numbers["seconds"], n
                records.append(
                    {"target": name, "method": label, "kernel": kernel, "n": n} | numbers
                )
    return records


def measure(
    method: Method, mixture: hf.GaussianMixture, n: int, width: float, args
) -> dict[str, float]:
    """Return medians of seconds, herding error and energy distance."""
    method.draw(mixture, min(args.sizes), width, np.random.default_rng(0))  # compiles
    runs = []
    for k in range(args.seeds if method.random else 1):
        rng = np.random.default_rng([args.seed, n, k])
        seconds, points = timed(lambda rng=rng: method.draw(mixture, n, width, rng))
        errors = hf.herding_error(points, mixture, SIGMA_K), hf.energy_distance(points, mixture)
        runs.append((seconds, *errors))
    return dict(
        zip(("seconds", "herding_error", "energy_distance"), np.median(runs, axis=0), strict=True)
    )


def samplers(args: argparse.Namespace) -> None:
    """Measure all samplers on all targets."""
    for name, mixture in targets(args.dims, args.seed).items():
        records = pd.DataFrame(compare(name, mixture, args))
        save("peers", records, args.results, ["target", "method", "kernel", "n"])
        show(name, records.drop(columns="target"))


def thin(args: argparse.Namespace) -> None:
    """Measure all ways to thin a sample."""
    for dim in args.thin_dims:
        table = thinning.measured(dim, args)
        save("thinning", table, args.results, ["sample", "d", "n", "m", "method"])
        show(f"Energy distance of members to their sample, d = {dim}", table)


def large(args: argparse.Namespace) -> None:
    """Measure thinning of large samples."""
    for n in args.large:
        table = thinning.measured_large(n, args)
        save("thinning_large", table, args.results, ["sample", "d", "n", "m"])
        show(f"Members of {n} points", table)


def adapters(args: argparse.Namespace) -> None:
    """Measure the filters of all libraries."""
    for records in libraries.measured(args):
        save("adapters", records, args.results, libraries.KEYS)
        for model, rows in records.groupby("model", sort=False):
            show(model, rows.drop(columns="model"))


def filters(args: argparse.Namespace) -> None:
    """Measure the filters of other libraries, each in its environment."""
    for name in args.models:
        runs = peer_filters.of_scenario(name, args)
        counts = save(
            "peers_filters", peer_filters.at_counts(runs), args.results, ["scenario", "filter", "n"]
        )
        times = peer_filters.at_equal_time(runs)
        times = save("peers_budget", times, args.results, ["scenario", "filter", "budget"])
        alike = peer_filters.agreement(runs)
        alike = save("peers_agreement", alike, args.results, ["scenario", "filter"])
        for title, rows in {
            "equal counts": counts,
            "equal time": times,
            "over ours": alike,
        }.items():
            own = rows[rows["scenario"] == name].drop(
                columns=["scenario", "library", "version"], errors="ignore"
            )
            show(f"{name}: {title}", own, 200)


def trackers(args: argparse.Namespace) -> None:
    """Measure the trackers of many targets."""
    for records in sets.measured(args):
        save("trackers", records, args.results, sets.KEYS)
        show(records["scenario"].iloc[0], records.drop(columns="scenario"))


PARTS = {part.__name__: part for part in (samplers, thin, large, filters, adapters, trackers)}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all unless one is named")
    options.add_argument(
        "--sizes", type=int, nargs="+", default=[16, 64, 256, 1024], help="powers of two"
    )
    options.add_argument("--dims", type=int, nargs="+", default=[2, 4])
    options.add_argument("--seeds", type=int, default=3, help="runs of a random method")
    options.add_argument(
        "--patience", type=float, default=30.0, help="seconds that one run may take"
    )
    options.add_argument("--sample", type=int, default=10_000, help="points that are thinned")
    options.add_argument("--thin-dims", type=int, nargs="+", default=[2, 5, 10, 20])
    options.add_argument(
        "--large", type=int, nargs="+", default=[80_000, 1_000_000], help="points, with large"
    )
    options.add_argument("--large-dim", type=int, default=5)
    options.add_argument("--members", type=int, nargs="+", default=[100, 1000], help="with large")
    options.add_argument(
        "--whole", type=int, default=80_000, help="most points that are thinned as a whole, too"
    )
    options.add_argument(
        "--directions", type=int, default=20, help="of the projections that measure errors"
    )
    known = libraries.LIBRARIES
    options.add_argument(
        "--libraries", nargs="+", choices=known, default=list(known), help="with adapters"
    )
    options.add_argument(
        "--runs", type=int, default=50, help="of the adapters' filters, and of trackers"
    )
    options.add_argument(
        "--many", type=int, default=2**14, help="particles of filterpy's references"
    )
    models, others = peer_filters.SCENARIOS, peer_filters.LIBRARIES
    options.add_argument(
        "--models", nargs="+", choices=models, default=list(models), help="with filters"
    )
    options.add_argument(
        "--of", nargs="+", choices=others, default=list(others), help="libraries, with filters"
    )
    options.add_argument(
        "--counts", type=int, nargs="+", default=[100, 1000, 10_000, 100_000], help="with filters"
    )
    options.add_argument("--peer-runs", type=int, default=10, help="of each filter, with filters")
    options.add_argument(
        "--seconds", type=float, default=20.0, help="that a run may take, with filters"
    )
    options.add_argument(
        "--reference", type=int, default=2**17, help="particles of a reference, with filters"
    )
    options.add_argument(
        "--environments", type=Path, default=Path("results") / "environments", help="with filters"
    )
    options.add_argument(
        "--scenarios", nargs="+", default=["crossing", "meeting"], help="with trackers"
    )
    options.add_argument("--trackers", nargs="*", default=list(sets.OURS), help="of ours")
    options.add_argument(
        "--peers", nargs="+", default=[""], help="trackers of others whose names begin so"
    )
    options.add_argument("--particles", type=int, default=100, help="of each track of ours")
    options.add_argument("--workers", type=int, default=1)
    args = options.parse_args(arguments)
    announce(args.seed)
    for line in peers.missing():
        print("left out,", line)
    for part in args.parts or PARTS:
        PARTS[part](args)


if __name__ == "__main__":
    main()
