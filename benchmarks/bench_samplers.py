"""Speed of kernel herding (KH) and continuous herded Gibbs sampling (CHG): one core, compiled, median CPU times.

Three tables: microseconds a point against the dimension; the same samplers beside the plain scipy version of `naive.py`,
and how well the points of the two agree; milliseconds a sample where there are as many components as points. The last
columns set the time against that of the exponentials alone (`kernel_count.py`).

python benchmarks/bench_samplers.py [--dims 2 5 10 20 50] [--naive 2 5] [--count 2 5] [--components 100 1000] ...
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import naive
import numpy as np
from common import announce, cpu_seconds, particle_mixture, random_mixture, show, timed
from kernel_count import cost_of_exp, exponentials, needed
from threadpoolctl import threadpool_limits

from herdfilter import ContinuousHerdedGibbs, GaussianMixture, KernelHerding, Points, herding_error

SIGMA_K = 0.1
SAMPLERS = {
    'CHG, target="paper"': ContinuousHerdedGibbs(target="paper", bandwidth=SIGMA_K),
    "CHG, one sweep": ContinuousHerdedGibbs(bandwidth=SIGMA_K, sweeps=1),
    "CHG, default (two sweeps)": ContinuousHerdedGibbs(bandwidth=SIGMA_K),
    "KH": KernelHerding(bandwidth=SIGMA_K),
    "CHG, auto bandwidth": ContinuousHerdedGibbs(),
    "KH, auto bandwidth": KernelHerding(),
}
TARGETS = {
    ("CHG", 2): 10,
    ("CHG", 50): 70,
    ("KH", 2): 25,
    ("KH", 50): 100,
}  # microseconds a point, at SIGMA_K
NAIVE = {
    "CHG": (SAMPLERS['CHG, target="paper"'], naive.herded_gibbs, 5000),
    "KH": (SAMPLERS["KH"], naive.kernel_herding, 1000),
}
AGREEMENT = 0.03  # by which the herding errors may differ: ties between maxima may be broken differently
MANY = {"CHG": ContinuousHerdedGibbs(), "KH": KernelHerding()}
MANY_DIM = 4
MANY_TARGETS = {100: 1.5, 1000: 120}  # milliseconds a sample
LIMIT_COLUMNS = ["exps needed", "% of time", "exps done", "% of time"]


def limits(sampler: object, mixture: GaussianMixture, n: int, time: float, exp: float, count: bool) -> list:
    """Exponentials needed and done for one sample, and the percentage of `time` that they account for."""
    least = needed(sampler, mixture, n)
    done = exponentials(sampler, mixture, n) if count else None
    return [least, 100 * least * exp / time, *(["", ""] if done is None else [done, 100 * done * exp / time])]


def by_dimension(args: argparse.Namespace, exp: float) -> None:
    rows = []
    for dim in args.dims:
        mixtures = [random_mixture(dim, np.random.default_rng([args.seed, k])) for k in range(args.mixtures)]
        for name, sampler in SAMPLERS.items():
            calls = [lambda s=sampler, m=m: s.sample(m, args.points) for m in mixtures]
            times = 1e6 * cpu_seconds(calls, args.repeats) / args.points
            target = "" if "auto" in name else TARGETS.get((name.split(",")[0], dim), "")
            seconds = 1e-6 * times[0] * args.points
            limit = limits(sampler, mixtures[0], args.points, seconds, exp, dim in args.count)
            rows.append([name, dim, float(np.median(times)), times.min(), times.max(), target, *limit])
    title = f"CPU microseconds a point: 5 components, {args.points} points, sigma_k = {SIGMA_K}; {args.mixtures} mixtures, "
    columns = ["sampler", "d", "median", "min", "max", "target", *LIMIT_COLUMNS]
    show(title + f"medians of {args.repeats} calls; exponentials in the first mixture", columns, rows)


def against_naive(args: argparse.Namespace) -> None:
    rows = []
    for dim in args.naive:
        mixture = random_mixture(dim, np.random.default_rng([args.seed, 0]))
        for name, (sampler, plain, target) in NAIVE.items():
            slow, x = timed(lambda m=mixture, f=plain: f(m, args.points, SIGMA_K))
            fast = cpu_seconds([lambda m=mixture, s=sampler: s.sample(m, args.points)], args.repeats)[0]
            points = sampler.sample(mixture, args.points)
            apart = np.abs(points.x - x).max(axis=1) > 0.01 * SIGMA_K
            same = int(np.argmax(apart)) if apart.any() else args.points
            errors = [herding_error(p, mixture, SIGMA_K) for p in (points, Points(x))]
            per_point = [1e6 * fast / args.points, 1e3 * slow / args.points]
            close = "yes" if abs(errors[1] / errors[0] - 1) < AGREEMENT else "NO"
            target = target if dim == 2 else ""
            rows.append([name, dim, *per_point, slow / fast, target, same, *errors, close])
    columns = ["sampler", "d", "here, us/pt", "scipy, ms/pt", "ratio", "target", "same first points"]
    columns += ["error here", "error scipy", f"within {AGREEMENT:.0%}"]
    title = f"Beside scipy's BFGS from many starts (naive.py): {args.points} points, sigma_k = {SIGMA_K}, one mixture; "
    show(
        title + "the points that agree before the first that does not, and both herding errors", columns, rows
    )


def many_components(args: argparse.Namespace, exp: float) -> None:
    rows = []
    for n in args.components:
        for modes in (1, 2):
            mixtures = [
                particle_mixture(MANY_DIM, n, modes, np.random.default_rng([args.seed, n, k]))
                for k in range(args.mixtures if n <= 200 else 2)
            ]
            for name, sampler in MANY.items():
                calls = [lambda s=sampler, m=m, n=n: s.sample(m, n) for m in mixtures]
                times = 1e3 * cpu_seconds(calls, args.repeats if n <= 200 else 5)
                limit = limits(sampler, mixtures[0], n, 1e-3 * times[0], exp, bool(args.count) and n <= 200)
                target = MANY_TARGETS.get(n, "")
                rows.append(
                    [name, n, modes, float(np.median(times)), times.min(), times.max(), target, *limit]
                )
    columns = ["sampler", "M = n", "modes", "median", "min", "max", "target", *LIMIT_COLUMNS]
    title = f"CPU milliseconds a sample of n points from n components with one covariance, d = {MANY_DIM}"
    show(title + ", auto bandwidth", columns, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dims", type=int, nargs="*", default=[2, 5, 10, 20, 50])
    parser.add_argument("--naive", type=int, nargs="*", default=[2, 5], help="dimensions for naive.py; slow")
    parser.add_argument("--count", type=int, nargs="*", default=[2, 5], help="dimensions to count in; slow")
    parser.add_argument("--components", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--mixtures", type=int, default=9)
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    announce(args.seed)
    with threadpool_limits(1):
        costs = cost_of_exp()
        print("one exponential:", ", ".join(f"{name} {1e9 * cost:.2f} ns" for name, cost in costs.items()))
        print("the cheaper counts in the columns '% of time'")
        exp = min(costs.values())
        if args.dims:
            by_dimension(args, exp)
        if args.naive:
            against_naive(args)
        if args.components:
            many_components(args, exp)


if __name__ == "__main__":
    main()
