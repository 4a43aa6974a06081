"""CPU time of one filter step, predict and update, on two cheap models with d = 4, beside the package `particles`.

Every filter runs over the same observations; its first step, which may compile or herd points that it keeps, is not counted.
The runs take turns, so that ratios hold even where other work disturbs the times. "the model alone" is what the model's
transition and likelihood cost, which every particle filter pays.

python benchmarks/bench_step.py [--particles 100] [--filters bootstrap herded-kh ...] [--steps 50] [--repeats 15]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import step_peers
from common import announce, show, timed
from threadpoolctl import threadpool_limits

from herdfilter.evaluation.filters import catalogue, resolve_filters
from herdfilter.evaluation.scenario import load_scenario
from herdfilter.models import LinearGaussian
from herdfilter.models.contract import simulate

FILTERS = ["bootstrap", "augmented-kh", "herded-kh", "herded-chg", "mixture-kh", "ekf", "ukf", "ckf", "sqmc"]
TARGETS = {"bootstrap": 0.05, "augmented-kh": 0.06, "herded-kh": 2.0, "herded-chg": 2.0}  # ms, 100 particles
PEERS = {
    "particles, bootstrap, systematic": ("model", False),
    "the same, plain functions": ("functions", False),
    "particles, SQMC": ("model", True),
    "SQMC, plain functions": ("functions", True),
}
YARDSTICK = "the same, plain functions"


def models() -> dict[str, tuple[Any, float]]:
    """Return the models and their time steps: two-sensor bearings; constant velocity in the plane, position observed."""
    one, none = np.eye(2), np.zeros((2, 2))
    noise = 0.3 * np.block([[one / 3, one / 2], [one / 2, one]])
    linear = LinearGaussian(
        np.block([[one, one], [none, one]]), np.hstack([one, none]), noise, one, np.zeros(4), np.eye(4)
    )
    bearings = load_scenario("bearings")
    return {"bearings": (bearings.build_model(), bearings.dt), "linear Gaussian": (linear, 1.0)}


def started(factory: Any, model: Any, dt: float, observations: np.ndarray, n: int) -> Callable[[], None]:
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
    smc = step_peers.smc(model, form, observations, dt, n, qmc)
    next(smc)

    def run() -> None:
        for _ in smc:
            pass

    return run


def model_alone(model: Any, dt: float, observations: np.ndarray, n: int) -> Callable[[], None]:
    """Return as many calls of the transition and the likelihood."""
    x = model.initial.sample(n, 0)

    def run() -> None:
        for step, z in enumerate(observations[1:], start=2):
            model.transition_mean(x, dt, None, step)
            model.transition_covariance(dt, step)
            model.log_likelihood(z, x, step)

    return run


def study(name: str, args: argparse.Namespace) -> None:
    model, dt = models()[name]
    _, observations = simulate(model, args.steps + 1, np.random.default_rng(args.seed), dt)
    problem = model, dt, observations, args.particles
    contenders: dict[str, Callable[[], Callable[[], None]]] = {
        "the model alone": partial(model_alone, *problem)
    }
    for key, factory in resolve_filters(args.filters).items():
        contenders[key] = partial(started, factory, *problem)
    if not step_peers.MISSING:
        contenders |= {key: partial(started_peer, *options, *problem) for key, options in PEERS.items()}
    times = np.array(
        [[timed(start())[0] for start in contenders.values()] for _ in range(args.repeats + 1)][1:]
    )
    times *= 1e3 / args.steps
    rows = []
    for key, column in zip(contenders, times.T, strict=True):
        ratio = (
            ""
            if step_peers.MISSING
            else float(np.median(column / times[:, list(contenders).index(YARDSTICK)]))
        )
        target = TARGETS.get(key, "") if args.particles == 100 else ""
        rows.append([key, float(np.median(column)), float(column.min()), ratio, target])
    columns = ["filter", "median", "min", f"over «{YARDSTICK}»", "target"]
    title = f"{name}, d = 4, {args.particles} particles: CPU milliseconds a step, {args.repeats} runs of {args.steps} steps"
    show(title, columns, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--particles", type=int, default=100)
    parser.add_argument("--filters", nargs="+", default=[name for name in FILTERS if name in catalogue()])
    parser.add_argument("--models", nargs="+", default=list(models()))
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    announce(args.seed)
    if step_peers.MISSING:
        print("left out,", step_peers.MISSING)
    with threadpool_limits(1):
        for name in args.models:
            study(name, args)


if __name__ == "__main__":
    main()
