"""The yardstick of samplers: energy distance to the target over that of as many independent draws, nothing tuned per case.

Families of mixtures, seeded, in coordinates in which their covariance is I; independent draws are known exactly. Below
1 a sampler beats them; the worst case counts as much as the median. Each finished cell (family, d, n, sampler) goes to
`<out>/quality.csv`, and what is there is not measured again.

python benchmarks/bench_quality.py [--dims 1 2 4 8 16] [--sizes 20 100 300 1000] [--families NAMES] [--samplers NAMES]
                                   [--mixtures 40] [--workers W] [--out results/quality] [--report]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from common import announce, random_mixture, show, timed, whitened
from joblib import Parallel, delayed

import herdfilter as hf

TARGETS = {1: 0.15, 2: 0.15, 4: 0.2, 8: 0.3, 16: 0.45}  # medians of herding; the worst case: 1
SAMPLERS: dict[str, hf.samplers.Sampler] = {
    "kh": hf.KernelHerding(),
    "chg": hf.ContinuousHerdedGibbs(),
    "sobol": hf.SobolSampling(),
    "mapped-kh": hf.MappedSampling(hf.KernelHerding()),
    "kh-polished": hf.Polished(hf.KernelHerding()),
    "sobol-polished": hf.Polished(hf.SobolSampling()),
    "random": hf.RandomSampling(),
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
    return random_mixture(dim, rng, components=50)


def two_far_modes(dim: int, rng: np.random.Generator) -> hf.GaussianMixture:
    """Two unit components of weights 0.95 and 0.05, twelve apart in a random direction."""
    towards = rng.standard_normal(dim)
    means = np.outer([0.0, 12.0], towards / np.linalg.norm(towards))
    return hf.GaussianMixture([0.95, 0.05], means, np.eye(dim))


def particles(dim: int, rng: np.random.Generator) -> hf.GaussianMixture:
    """Give what a filter predicts: a hundred uneven weights, every component a tenth of the whole covariance."""
    x = random_mixture(dim, rng).sample(100, rng)
    return hf.GaussianMixture(rng.dirichlet(np.ones(100)), x, 0.1 * np.cov(x.T).reshape(dim, dim))


FAMILIES: dict[str, Callable[[int, np.random.Generator], hf.GaussianMixture]] = {
    "5 components": random_mixture,
    "long and narrow": long_component,
    "50 components": fifty_components,
    "two far modes": two_far_modes,
    "100 particles": particles,
}


def case(family: str, dim: int, seed: int) -> hf.GaussianMixture:
    """Return one mixture of a family."""
    return whitened(FAMILIES[family](dim, np.random.default_rng([seed, dim, list(FAMILIES).index(family)])))


def measured(family: str, dim: int, n: int, sampler: str, seed: int) -> dict[str, object]:
    """Energy distance over what n independent draws have in the mean, and milliseconds."""
    mixture = case(family, dim, seed)
    seconds, points = timed(lambda: SAMPLERS[sampler].sample(mixture, n, np.random.default_rng(seed)))
    assert isinstance(points, hf.Points)
    ratio = hf.energy_distance(points, mixture) / hf.expected_energy_distance(mixture, n)
    where = {"family": family, "d": dim, "n": n, "sampler": sampler, "mixture": seed}
    return where | {"ratio": ratio, "ms": 1e3 * seconds}


def report(table: pd.DataFrame) -> None:
    """Print medians and worst cases, and whether herding reaches its targets."""
    rows = []
    for (family, dim, n), cell in table.groupby(["family", "d", "n"], sort=False):
        row: list[object] = [family, dim, n]
        for sampler in SAMPLERS:
            ratios = cell.loc[cell["sampler"] == sampler, "ratio"]
            row.append(f"{ratios.median():.3f} ({ratios.max():.2f})" if len(ratios) else "-")
        rows.append([*row, f"{TARGETS.get(dim, np.nan):g}"])
    show(
        f"Energy distance over that of independent draws: median (worst) of {table['mixture'].nunique()} mixtures a cell",
        ["family", "d", "n", *SAMPLERS, "target"],
        rows,
        160,
    )
    for sampler in ("kh", "chg"):
        ours = table[table["sampler"] == sampler]
        cells = ours.groupby(["family", "d", "n"], sort=False)["ratio"].median().reset_index()
        missed = cells[cells["ratio"] > cells["d"].map(TARGETS)]
        print(
            f"{sampler}: median target missed in {len(missed)} of {len(cells)} cells; "
            f"above 1 in {(ours['ratio'] > 1).sum()} of {len(ours)} cases, worst {ours['ratio'].max():.2f}"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dims", type=int, nargs="+", default=list(TARGETS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 100, 300, 1000])
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    parser.add_argument("--mixtures", type=int, default=40)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("results/quality"))
    parser.add_argument("--report", action="store_true", help="print what was measured")
    args = parser.parse_args(arguments)
    announce(0)
    path = args.out / "quality.csv"
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame()
    with Parallel(args.workers) as pool:
        for n, dim, family, sampler in [] if args.report else _cells(args):
            if len(table):
                here = (table["family"] == family) & (table["d"] == dim) & (table["n"] == n)
                if (here & (table["sampler"] == sampler)).sum() >= args.mixtures:
                    continue
                table = table[~(here & (table["sampler"] == sampler))]
            rows = pool(delayed(measured)(family, dim, n, sampler, seed) for seed in range(args.mixtures))
            table = pd.concat([table, pd.DataFrame(rows)], ignore_index=True)
            args.out.mkdir(parents=True, exist_ok=True)
            table.to_csv(path.with_suffix(".part"), index=False)
            path.with_suffix(".part").replace(path)
    if len(table):
        chosen = (
            table["family"].isin(args.families) & table["d"].isin(args.dims) & table["n"].isin(args.sizes)
        )
        report(table[chosen].sort_values(["family", "d", "n"], kind="stable"))


def _cells(args: argparse.Namespace) -> list[tuple[int, int, str, str]]:
    return [
        (n, dim, family, sampler)
        for n in args.sizes
        for dim in args.dims
        for family in args.families
        for sampler in args.samplers
    ]


if __name__ == "__main__":
    main()
