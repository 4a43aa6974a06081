"""Samplers side by side: herding error and energy distance against the number of points and against seconds.

Targets: a 5-component mixture, whitened, and N(0, I), both at d = 2 and 4. Every method with a kernel is run twice: with the
kernel in which the herding error is measured, sigma_k = 0.5, and with the width of `herdfilter.bandwidths.scale_rule`, which
suits the energy distance. Thinning starts from n^2 independent draws, whose time is its own. Random methods: medians over
seeds. Times are CPU times of one thread, compiled, points computed anew. Figures go to `--out`.

python benchmarks/bench_peers.py [--sizes 16 64 256 1024] [--dims 2 4] [--seeds 3] [--patience 30] [--out results]
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

import matplotlib
import numpy as np
import peers
from common import announce, random_mixture, show, timed, whitened
from threadpoolctl import threadpool_limits

import herdfilter as hf
from herdfilter.bandwidths import scale_rule

matplotlib.use("Agg")
from matplotlib import pyplot as plt

SIGMA_K = 0.5


@dataclass(frozen=True)
class Method:
    """One line of the comparison: how points are drawn, and on what."""

    draw: Callable[[hf.GaussianMixture, int, float, np.random.Generator], hf.Points]
    kernel: bool = True  # depends on a kernel width
    random: bool = False  # depends on the generator
    one_gaussian: bool = False
    largest: int = 10**9  # number of points that a run of a few minutes allows
    style: str = "-"


def ours(sampler: Callable[[float], hf.samplers.Sampler]) -> Callable[..., hf.Points]:
    """Return the drawing function of a sampler that is built anew for every call, so that nothing is kept."""
    return lambda mixture, n, width, rng: sampler(width).sample(mixture, n, rng)


def peer(draw: Callable[..., np.ndarray]) -> Callable[..., hf.Points]:
    """Return the drawing function of a peer, with equal weights."""
    return lambda *arguments: hf.Points(draw(*arguments))


METHODS = {
    "i.i.d. random": Method(ours(lambda h: hf.RandomSampling()), kernel=False, random=True, style=":"),
    "Sobol (scipy)": Method(peer(peers.sobol), kernel=False, random=True, style="--"),
    "kernel thinning (goodpoints)": Method(peer(peers.kernel_thinning), random=True, largest=64, style="--"),
    "Compress++ (goodpoints)": Method(peer(peers.compress_pp), random=True, style="--"),
    "LCD (deterministic-gaussian-sampling)": Method(
        peer(peers.lcd), kernel=False, one_gaussian=True, largest=256, style="--"
    ),
    "KH": Method(ours(lambda h: hf.KernelHerding(bandwidth=h))),
    "CHG": Method(ours(lambda h: hf.ContinuousHerdedGibbs(bandwidth=h))),
    "KH, mapped": Method(ours(lambda h: hf.MappedSampling(hf.KernelHerding(bandwidth=h)))),
    "KH, polished": Method(ours(lambda h: hf.Polished(hf.KernelHerding(bandwidth=h), bandwidth=h))),
    "SobolSampling": Method(ours(lambda h: hf.SobolSampling()), kernel=False),
    "LCDSampling": Method(ours(lambda h: hf.LCDSampling()), kernel=False, largest=256),
}
if "weights" in hf.KernelHerding.__dataclass_fields__:
    METHODS["KH, weighted"] = Method(
        ours(lambda h: hf.KernelHerding(bandwidth=h, weights="fully-corrective")), largest=256
    )
NEEDS = {
    "kernel thinning (goodpoints)": peers.kt,
    "Compress++ (goodpoints)": peers.compress,
    "LCD (deterministic-gaussian-sampling)": peers.dgs,
}


def targets(dims: Sequence[int], seed: int) -> dict[str, hf.GaussianMixture]:
    """Return the mixtures by name, all of covariance I."""
    named = {}
    for dim in dims:
        named[f"5 components, d = {dim}"] = whitened(random_mixture(dim, np.random.default_rng([seed, dim])))
        named[f"N(0, I), d = {dim}"] = hf.GaussianMixture([1.0], np.zeros((1, dim)), np.eye(dim))
    return named


def compare(name: str, mixture: hf.GaussianMixture, args: argparse.Namespace) -> list[dict]:
    """Measure all methods on one target."""
    records = []
    for label, method in METHODS.items():
        if NEEDS.get(label, method) is None or (method.one_gaussian and len(mixture) > 1):
            continue
        for rule in (False, True) if method.kernel else (False,):
            last, before = 0.0, 0
            for n in (n for n in sorted(args.sizes) if n <= max(method.largest, min(args.sizes))):
                if before and last * (n / before) ** 2 > args.patience:
                    print(f"{name}: {label} with {n} points left out, {before} took {last:.1f} s")
                    break
                width = scale_rule(n, mixture.dim) if rule else SIGMA_K
                rngs = [
                    np.random.default_rng([args.seed, n, k])
                    for k in range(args.seeds if method.random else 1)
                ]
                method.draw(mixture, min(args.sizes), width, np.random.default_rng(0))  # compiles
                runs = [timed(lambda r=r, w=width, n=n, m=method: m.draw(mixture, n, w, r)) for r in rngs]
                last, before = float(np.median([seconds for seconds, _ in runs])), n
                errors = np.median(
                    [
                        [hf.herding_error(p, mixture, SIGMA_K), hf.energy_distance(p, mixture)]
                        for _, p in runs
                    ],
                    axis=0,
                )
                kernel = ("rule" if rule else f"{SIGMA_K}") if method.kernel else ""
                records.append(
                    {"method": label, "kernel": kernel, "n": n, "seconds": last, "herding": float(errors[0]),
                     "energy": float(errors[1])}
                )  # fmt: skip
    return records


def draw_figure(name: str, records: list[dict], path: Path) -> None:
    """Herding error and energy distance against points and seconds; each with the kernel that suits it."""
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), sharey="row", layout="constrained")
    for k, label in enumerate(METHODS):
        for row, (error, other) in enumerate((("herding", "rule"), ("energy", f"{SIGMA_K}"))):
            line = [r for r in records if r["method"] == label and r["kernel"] != other]
            for column, x in enumerate(("n", "seconds")):
                if line:
                    axes[row, column].loglog(
                        [r[x] for r in line], [r[error] for r in line], METHODS[label].style, marker="o", ms=3,
                        color=f"C{k}", label=label,
                    )  # fmt: skip
    axes[0, 0].set_ylabel(f"herding error, sigma_k = {SIGMA_K} (kernels: the same)")
    axes[1, 0].set_ylabel("energy distance (kernels: the rule's width)")
    axes[1, 0].set_xlabel("points")
    axes[1, 1].set_xlabel("CPU seconds")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize="small"
    )
    figure.suptitle(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 64, 256, 1024], help="powers of two")
    parser.add_argument("--dims", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--seeds", type=int, default=3, help="runs of a random method")
    parser.add_argument(
        "--patience", type=float, default=30.0, help="seconds that one run may be expected to take"
    )
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    announce(args.seed)
    for line in peers.missing():
        print("left out,", line)
    with threadpool_limits(1):
        for name, mixture in targets(args.dims, args.seed).items():
            records = compare(name, mixture, args)
            rows = [list(r.values()) for r in sorted(records, key=lambda r: r["n"])]
            columns = ["method", "kernel", "n", "seconds", f"herding error at {SIGMA_K}", "energy distance"]
            show(name, columns, rows)
            path = args.out / f"peers_{len(mixture)}_components_d{mixture.dim}.png"
            draw_figure(name, records, path)
            print(f"figure: {path}", flush=True)


if __name__ == "__main__":
    main()
