"""A model whose evaluation is dear: filters of the scenario `lidar`, by the rays that they cast and by the clock.

Nearly all of a step's time is for rays from so many poses. The reference is the mean of four bootstrap filters; its own
error, which their spread tells, is taken out of the squared errors. The error of `bootstrap` for the rays, and for the CPU
time, of another filter's step is interpolated over its numbers of particles, in logarithms, in each run. Times are of one
run more while nothing else runs. Seeds are those that filters are tuned on.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from common import timed
from herdfilter.study.data.lidar import LidarRobot
from joblib import Memory, Parallel, delayed

import herdfilter as hf
from herdfilter.angles import wrap_angles
from herdfilter.study.recording import Recording, feed, record
from herdfilter.study.scenario import load_scenario
from herdfilter.study.statistics import bootstrap_interval

LADDER = [50, 100, 200, 400, 800]
COUNTS = {
    "bootstrap": [*LADDER, 1600, 3200],
    "sqmc": LADDER,
    "herded-kh": LADDER,
    "herded-chg": LADDER,
    "auto": LADDER[:4],
    "ranked": LADDER[:4],
}
"""Filter -> numbers of particles; with more than 400, `auto` and `ranked` take longer than `bootstrap` with 3,200."""
REPEATS = 4
"""Filters of the reference."""


class CountingRobot(LidarRobot):
    """The scenario's robot, which counts the poses from which it casts rays."""

    poses = 0

    def observation_mean(self, x: np.ndarray, step: int) -> np.ndarray:
        """Ranges of the map, (n, 3) -> (n, B)."""
        CountingRobot.poses += len(x)
        return super().observation_mean(x, step)


def recorded(beams: int, seed: int) -> tuple[LidarRobot, Recording]:
    """Return the model with so many rays, and the recording of a run."""
    scenario = load_scenario("lidar")
    parameters = {key: value for key, value in scenario.model.items() if key != "type"}
    model = CountingRobot(**parameters | {"beams": beams})
    return model, record(scenario, model, None, np.random.default_rng([seed, 31]))


def estimated(
    beams: int, seed: int, repeat: int, name: str, n: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return a filter's means and variances (T, d) in a run, and the poses that it asks the model at in a step."""
    model, recording = recorded(beams, seed)
    CountingRobot.poses = 0
    result = feed(hf.make_filter(name, model, n, rng=[seed, 32, repeat]), recording)
    variances = np.diagonal(result.covariances, axis1=1, axis2=2)
    return result.means, variances, CountingRobot.poses / len(recording)


def errors(
    seed: int, beams: int, counts: dict[str, list[int]], reference: int, folder: Path
) -> pd.DataFrame:
    """Return one row for each filter and number of particles, of one run; what is in the folder is not run again."""
    model, recording = recorded(beams, seed)
    estimate = partial(Memory(folder, verbose=0).cache(estimated), beams, seed)
    runs = [estimate(repeat, "bootstrap", reference) for repeat in range(1, REPEATS + 1)]
    deviations = wrap_angles(np.array([run[0] - runs[0][0] for run in runs]), model.circular)
    centre = runs[0][0] + deviations.mean(axis=0)
    sd = np.sqrt(np.mean([run[1] for run in runs], axis=0))
    own = np.mean(((deviations - deviations.mean(axis=0)) / sd) ** 2) / (REPEATS - 1)
    rows = []
    for name, n in ((name, n) for name, sizes in counts.items() for n in sizes):
        means, _, poses = estimate(0, name, n)
        squared = np.mean((wrap_angles(means - centre, model.circular) / sd) ** 2)
        offset = (means - recording.truth)[:, :2]
        row = {"filter": name, "n": n, "seed": seed, "poses": poses}
        # a reference that is not good enough to tell bounds the error from below
        row |= {"error": np.sqrt(max(squared - own, own)), "reference": np.sqrt(own)}
        rows.append(row | {"rmse": np.sqrt(np.mean(np.sum(offset**2, axis=1)))})
    return pd.DataFrame(rows)


def times(beams: int, seed: int, counts: dict[str, list[int]]) -> pd.Series:
    """Return milliseconds of CPU a step, the mean over a run, by filter and number of particles."""
    model, recording = recorded(beams, seed)
    cells = [(name, n) for name, sizes in counts.items() for n in sizes]
    for name in counts:  # loads what is compiled
        feed(hf.make_filter(name, model, 20, rng=0), recording.first(3))
    seconds = [
        timed(lambda name=name, n=n: feed(hf.make_filter(name, model, n, rng=0), recording))[0]
        for name, n in cells
    ]
    index = pd.MultiIndex.from_tuples(cells, names=["filter", "n"])
    return pd.Series(1e3 * np.array(seconds) / len(recording), index)


def overview(
    beams: int, most: int, seeds: range, reference: int, folder: Path, workers: int
) -> pd.DataFrame:
    """Errors, geometric means over runs, and their ratios to bootstrap's with 95 % intervals over runs."""
    counts = {name: [n for n in sizes if n <= most] for name, sizes in COUNTS.items()}
    run = delayed(partial(errors, beams=beams, counts=counts, reference=reference, folder=folder))
    table = pd.concat(Parallel(n_jobs=workers)(run(seed) for seed in seeds))
    ms = times(beams, seeds[0], counts)
    logs = np.log(table.pivot(index="seed", columns=["filter", "n"], values="error"))
    poses = table.groupby(["filter", "n"])["poses"].mean()
    rmse = table.groupby(["filter", "n"])["rmse"].median()
    rows = []
    for cell in ms.index:
        row = {"beams": beams, "filter": cell[0], "n": cell[1], "runs": len(logs)}
        row |= {"poses": poses[cell], "ms": ms[cell], "rmse": rmse[cell]}
        row["error"] = np.exp(logs[cell].mean())
        for key, cost in (("at_poses", poses), ("at_time", ms)):
            ratio = logs[cell] - bootstrap_at(cost[cell], cost["bootstrap"], logs["bootstrap"])
            row[key] = np.exp(ratio.mean())
            interval = bootstrap_interval(ratio.to_numpy(), np.mean)
            row[f"{key}_low"], row[f"{key}_high"] = np.exp(interval)
        rows.append(row)
    return pd.DataFrame(rows)


def bootstrap_at(cost: float, costs: pd.Series, logs: pd.DataFrame) -> np.ndarray:
    """Return the log-errors (runs,) of bootstrap at a cost, NaN outside those of its numbers of particles.

    Up to a fifth beyond their ends the error is that at the end.
    """
    if not costs.min() / 1.2 <= cost <= 1.2 * costs.max():
        return np.full(len(logs), np.nan)
    known = np.log(costs[logs.columns])
    return np.array([np.interp(np.log(cost), known, run) for run in logs.to_numpy()])
