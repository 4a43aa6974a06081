"""Speed of samplers and of filter steps: one core, compiled, median CPU times; calls that are compared take turns.

samplers     microseconds per point against the dimension
plain        the same beside the plain scipy version of `naive.py`, and how well the points of the two agree
components   milliseconds per sample where there are as many components as points
growth       seconds and memory against the number of points, up to 100,000; a process for each size
step         milliseconds of one filter step on two cheap models, d = 4, beside the package `particles`
sqmc         milliseconds of one step of sequential quasi-Monte Carlo beside the package `particles`, against n
compiled     microseconds of a step of bootstrap and auto, of models in NumPy and of compiled functions, in runs
tracks       milliseconds to build a filter, for many tracks
together     microseconds per track and step of many tracks, one filter after the other and in one batch
tracker      milliseconds and memory of one step of a tracker, up to 100 tracks and 200 detections

python benchmarks/bench_speed.py [PARTS] [--quick]    all parts unless some are named
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads
os.environ.setdefault("MKL_NUM_THREADS", "1")

import argparse
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import crowd
import growth
import naive
import numpy as np
import pandas as pd
import peers
from common import announce, cpu_seconds, parser, particle_mixture, save, show, timed

from herdfilter import (
    ContinuousHerdedGibbs,
    ExtendedKalmanFilter,
    KernelHerding,
    Points,
    UnscentedKalmanFilter,
    herding_error,
    make_filter,
    run_many,
    simulate,
)
from herdfilter.catalogue.specifications import resolve_filters
from herdfilter.models import UNGM, LinearGaussian, from_functions
from herdfilter.paper.common import rotated_mixture
from herdfilter.study.scenario import load_scenario

SIGMA_K = 0.1
SAMPLERS = {
    "CHG, as published": ContinuousHerdedGibbs(target="paper", bandwidth=SIGMA_K),
    "CHG": ContinuousHerdedGibbs(bandwidth=SIGMA_K),
    "KH": KernelHerding(bandwidth=SIGMA_K),
    "CHG, auto bandwidth": ContinuousHerdedGibbs(),
    "KH, auto bandwidth": KernelHerding(),
}
NAIVE = {
    "CHG, as published": naive.herded_gibbs,
    "KH": naive.kernel_herding,
}
# by which the herding errors may differ: ties between maxima may be broken differently
AGREEMENT = 0.03
MANY = {"CHG": ContinuousHerdedGibbs(), "KH": KernelHerding()}
FILTERS = ["bootstrap", "sqmc", "ekf", "ukf", "ckf", "augmented-gauss-kh", "augmented-kh", "auto"]
FILTERS += ["herded-kh", "herded-chg", "mixture-kh", "kalman-mixture-kh"]
PARTICLES = {
    "particles, bootstrap, as a state-space model": ("model", False),
    "particles, bootstrap, plain functions": ("functions", False),
    "particles, SQMC, as a state-space model": ("model", True),
    "particles, SQMC, plain functions": ("functions", True),
}


def samplers(args: argparse.Namespace) -> pd.DataFrame:
    """Microseconds per point, medians over mixtures of five unequal components."""
    rows = []
    for dim in (2,) if args.quick else (2, 3, 5, 10, 50):
        mixtures = [
            rotated_mixture(dim, np.random.default_rng([args.seed, k]))
            for k in range(args.mixtures)
        ]
        for name, sampler in SAMPLERS.items():
            calls = [lambda s=sampler, m=m: s.sample(m, args.points) for m in mixtures]
            times = 1e6 * cpu_seconds(calls, args.repeats) / args.points
            numbers = {"median": np.median(times), "least": times.min(), "greatest": times.max()}
            rows.append({"sampler": name, "d": dim, "n": args.points} | numbers)
    return pd.DataFrame(rows)


def plain(args: argparse.Namespace) -> pd.DataFrame:
    """Compare times, herding errors, and the points that agree before the first that does not, for one mixture."""
    rows = []
    for dim in (2,) if args.quick else (2, 5):
        mixture = rotated_mixture(dim, np.random.default_rng([args.seed, 0]))
        for name, slow in NAIVE.items():
            seconds, x = timed(lambda m=mixture, f=slow: f(m, args.points, SIGMA_K))
            sampler = SAMPLERS[name]
            fast = cpu_seconds(
                [lambda m=mixture, s=sampler: s.sample(m, args.points)], args.repeats
            )[0]
            points = sampler.sample(mixture, args.points)
            apart = np.abs(points.x - x).max(axis=1) > 0.01 * SIGMA_K
            same = int(np.argmax(apart)) if apart.any() else args.points
            errors = [herding_error(p, mixture, SIGMA_K) for p in (points, Points(x))]
            times = {"us": 1e6 * fast / args.points, "scipy_ms": 1e3 * seconds / args.points}
            numbers = times | {"ratio": seconds / fast, "same_first": same, "n": args.points}
            numbers |= {"herding_error": errors[0], "scipy_error": errors[1]}
            row = {"sampler": name, "d": dim} | numbers
            rows.append(row | {"agree": abs(errors[1] / errors[0] - 1) < AGREEMENT})
    return pd.DataFrame(rows)


def components(args: argparse.Namespace) -> pd.DataFrame:
    """Milliseconds per sample of n points from n components with one covariance, d = 4, automatic bandwidth."""
    rows = []
    for n in (6,) if args.quick else (100, 1000):
        for modes in (1, 2):
            mixtures = [
                particle_mixture(4, n, modes, np.random.default_rng([args.seed, n, k]))
                for k in range(args.mixtures if n <= 200 else 2)
            ]
            for name, sampler in MANY.items():
                calls = [lambda s=sampler, m=m, n=n: s.sample(m, n) for m in mixtures]
                times = 1e3 * cpu_seconds(calls, args.repeats if n <= 200 else 5)
                rows.append({"sampler": name, "n": n, "modes": modes, "ms": np.median(times)})
    return pd.DataFrame(rows)


def step(args: argparse.Namespace) -> pd.DataFrame:
    """Milliseconds of one step, predict and update.

    The first step of every run, which may compile or herd points that are kept, is not counted. "the model alone" is what
    the model's transition and likelihood cost, which every particle filter pays.
    """
    rows = []
    filters = ["bootstrap", "ekf"] if args.quick else FILTERS
    for name, (model, dt) in models().items():
        steps = 3 if args.quick else 50
        _, observations = simulate(model, steps + 1, np.random.default_rng(args.seed), dt)
        problem = model, dt, observations, 20 if args.quick else 100
        starts: dict[str, Callable[[], Callable[[], None]]] = {
            "the model alone": partial(model_alone, *problem)
        }
        starts |= {
            key: partial(started, f, *problem) for key, f in resolve_filters(filters).items()
        }
        if peers.particles is not None:
            starts |= {
                key: partial(started_peer, *options, *problem) for key, options in PARTICLES.items()
            }
        rounds = [
            [timed(start())[0] for start in starts.values()] for _ in range(args.repeats + 1)
        ][1:]
        for key, ms in zip(starts, 1e3 / steps * np.median(rounds, axis=0), strict=True):
            rows.append({"filter": key, "model": name, "n": problem[3], "ms": ms})
    return pd.DataFrame(rows)


def sqmc(args: argparse.Namespace) -> pd.DataFrame:
    """Milliseconds of one step of sequential quasi-Monte Carlo, and of that of `particles` with plain functions."""
    rows = []
    for name, (model, dt) in ({"ungm": (UNGM(), 1.0)} | models()).items():
        for n in (128,) if args.quick else (128, 1024, 8192, 65_536):
            steps = 3 if n > 2000 or args.quick else 20
            _, observations = simulate(model, steps + 1, np.random.default_rng(args.seed), dt)
            problem = model, dt, observations, n
            starts = [partial(started, resolve_filters(["sqmc"])["sqmc"], *problem)]
            if peers.particles is not None:
                starts.append(partial(started_peer, "functions", True, *problem))
            rounds = (
                1e3
                / steps
                * np.array(
                    [[timed(start())[0] for start in starts] for _ in range(args.repeats + 1)][1:]
                )
            )
            row = {"model": name, "n": n, "ms": np.median(rounds[:, 0])}
            if peers.particles is not None:
                row |= {
                    "particles_ms": np.median(rounds[:, 1]),
                    "ratio": np.median(rounds[:, 0] / rounds[:, 1]),
                }
            rows.append(row)
    return pd.DataFrame(rows)


def compiled(args: argparse.Namespace) -> pd.DataFrame:
    """Microseconds of a step of bootstrap and auto in a run, by a NumPy model and by the same one compiled."""
    rows = []
    bearings = load_scenario("bearings")
    for name, model, dt in (
        ("ungm", UNGM(), 1.0),
        ("bearings", bearings.build_model(), bearings.dt),
    ):
        steps = 20 if args.quick else 500
        _, observations = simulate(model, steps, np.random.default_rng(args.seed), dt)
        forms = model, model.compiled()
        for key, n in itertools.product(
            ("bootstrap", "auto"), (100,) if args.quick else (100, 1_000, 10_000)
        ):

            def seconds(
                form: Any, key: str = key, n: int = n, z: np.ndarray = observations, dt: float = dt
            ) -> float:
                pf = make_filter(key, form, n, rng=0, on_degeneracy="predict")
                return timed(lambda: pf.run(z, dt))[0]

            rounds = np.array(
                [[seconds(form) for form in forms] for _ in range(args.repeats + 1)][1:]
            )
            numpy_us, compiled_us = 1e6 / steps * np.median(rounds, axis=0)
            numbers = {"numpy_us": numpy_us, "compiled_us": compiled_us}
            row = {"filter": key, "model": name, "n": n}
            rows.append(row | numbers | {"ratio": np.median(rounds[:, 1] / rounds[:, 0])})
    return pd.DataFrame(rows)


def tracks(args: argparse.Namespace) -> pd.DataFrame:
    """Milliseconds to build a filter for one more track; the particles are drawn when they are first needed."""
    problems = {name: model for name, (model, _) in models().items()}
    problems["from functions"] = from_functions(
        lambda x: x, lambda x: x[:, 0], np.eye(2), [[1.0]], [0.0, 0.0], np.eye(2)
    )
    rows = []
    for name, model in problems.items():
        calls = [partial(make_filter, key, model, 100, 0) for key in FILTERS]
        for key, seconds in zip(FILTERS, cpu_seconds(calls, 10 * args.repeats), strict=True):
            rows.append({"filter": key, "model": name, "ms": 1e3 * seconds})
    return pd.DataFrame(rows)


def together(args: argparse.Namespace) -> pd.DataFrame:
    """Microseconds per track and step of `run_many`, the building of filters included, and of filters one by one."""
    rows, steps = [], 20
    kinds = {"ekf": ExtendedKalmanFilter, "ukf": UnscentedKalmanFilter}
    for name, (model, dt) in models().items():
        for count in (10,) if args.quick else (10, 100, 1000):
            z = [
                simulate(model, steps, np.random.default_rng([args.seed, k]), dt)[1]
                for k in range(count)
            ]
            few = z[: min(count, 50)]
            for key, kind in kinds.items():
                calls = [
                    lambda c=kind, m=model, z=z, dt=dt: run_many(
                        lambda k: c(m), z, progress=False, dt=dt
                    )
                ]
                calls.append(lambda c=kind, m=model, z=few, dt=dt: [c(m).run(own, dt) for own in z])
                rounds = [[timed(call)[0] for call in calls] for _ in range(args.repeats // 4 + 2)][
                    1:
                ]
                us = 1e6 / steps * np.array(rounds) / [count, len(few)]
                row = {"filter": key, "model": name, "tracks": count, "us": np.median(us[:, 0])}
                rows.append(
                    row
                    | {
                        "one_by_one_us": np.median(us[:, 1]),
                        "ratio": np.median(us[:, 0] / us[:, 1]),
                    }
                )
    return pd.DataFrame(rows)


def models() -> dict[str, tuple[Any, float]]:
    """Return the models and their time steps: two-sensor bearings; constant velocity in the plane, position observed."""
    one, none = np.eye(2), np.zeros((2, 2))
    noise = 0.3 * np.block([[one / 3, one / 2], [one / 2, one]])
    linear = LinearGaussian(
        np.block([[one, one], [none, one]]),
        np.hstack([one, none]),
        noise,
        one,
        np.zeros(4),
        np.eye(4),
    )
    bearings = load_scenario("bearings")
    return {"bearings": (bearings.build_model(), bearings.dt), "linear Gaussian": (linear, 1.0)}


def started(
    factory: Any, model: Any, dt: float, observations: np.ndarray, n: int
) -> Callable[[], None]:
    """Return a filter's remaining steps after its first."""
    pf = factory(model, n, np.random.default_rng(1))
    if hasattr(pf, "on_degeneracy"):
        pf.on_degeneracy = "predict"

    def run(part: np.ndarray) -> None:
        for z in part:
            pf.predict(dt)
            pf.update(z)

    run(observations[:1])
    return partial(run, observations[1:])


def started_peer(
    form: str, qmc: bool, model: Any, dt: float, observations: np.ndarray, n: int
) -> Callable[[], None]:
    """Return the remaining steps of a filter of `particles` after its first."""
    smc = peers.smc(model, form, observations, dt, n, qmc)
    next(smc)
    return lambda: [None for _ in smc]


def model_alone(model: Any, dt: float, observations: np.ndarray, n: int) -> Callable[[], None]:
    """Return as many calls of the transition and the likelihood."""
    x = model.initial.sample(n, 0)

    def run() -> None:
        for k, z in enumerate(observations[1:], start=2):
            model.transition_mean(x, dt, None, k)
            model.transition_covariance(dt, k)
            model.log_likelihood(z, x, k)

    return run


PARTS: dict[str, tuple[Callable[[argparse.Namespace], pd.DataFrame], list[str]]] = {
    "samplers": (samplers, ["sampler", "d"]),
    "plain": (plain, ["sampler", "d"]),
    "components": (components, ["sampler", "n", "modes"]),
    "growth": (growth.measured, ["sampler", "bandwidth", "n"]),
    "step": (step, ["filter", "model"]),
    "sqmc": (sqmc, ["model", "n"]),
    "compiled": (compiled, ["filter", "model", "n"]),
    "tracks": (tracks, ["filter", "model"]),
    "together": (together, ["filter", "model", "tracks"]),
    "tracker": (crowd.measured, ["filter", "association", "tracks"]),
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all unless some are named")
    options.add_argument("--points", type=int, default=100)
    options.add_argument("--mixtures", type=int, default=5)
    options.add_argument("--repeats", type=int, default=21)
    options.add_argument("--largest", type=int, default=100_000, help="most points of the growth")
    options.add_argument(
        "--patience", type=float, default=120.0, help="seconds that one size may take"
    )
    options.add_argument("--quick", action="store_true", help="small sizes only")
    args = options.parse_args(arguments)
    announce(args.seed)
    for line in peers.missing():
        print("left out,", line)
    for part in args.parts or PARTS:
        measure, keys = PARTS[part]
        table = measure(args)
        save(f"speed_{part}", table, args.results, keys)
        show(" ".join((measure.__doc__ or "").split("\n")[0].split()), table)


if __name__ == "__main__":
    main()
