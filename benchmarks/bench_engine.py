"""What the Monte Carlo engine costs and what it keeps: overhead, two workers against one, SIGKILL, 10,000 runs in a store.

python benchmarks/bench_engine.py [--quick]
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from common import announce, show

import herdfilter as hf
from herdfilter.evaluation.engine import run_study
from herdfilter.evaluation.measures import TIMES
from herdfilter.evaluation.recording import DataSet, Recording
from herdfilter.evaluation.scenario import Scenario
from herdfilter.evaluation.store import open_for_reading
from herdfilter.evaluation.study import Study, plan_study

WALK = Scenario(
    name="walk",
    title="Random walk",
    model={
        "type": "LinearGaussian",
        "F": [[0.9]],
        "H": [[1.0]],
        "Q": [[1.0]],
        "R": [[0.5]],
        "initial_mean": [0.0],
        "initial_covariance": [[1.0]],
    },
    steps=100,
)
KILLED = """
import sys
import herdfilter as hf
hf.compare("linear_gaussian", ["bootstrap", "augmented-random"], [50, 100], int(sys.argv[2]),
           store=sys.argv[1], resume=True, workers=2)
"""
SUMMARISED = """
import resource, sys, time
import herdfilter as hf
from herdfilter.evaluation import summarise
from herdfilter.evaluation.store import open_for_reading
import pandas, scipy.stats
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
with open_for_reading(sys.argv[1]) as store:
    result = store.result()
summarise(result.runs)
read = time.perf_counter() - start
result.traces
print(len(result.runs), read, time.perf_counter() - start, before / 1024,
      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


class Trivial:
    """A filter that computes nothing."""

    def __init__(self, model: Any, n_particles: int, rng: np.random.Generator) -> None:
        self.dim = model.dim

    def run(self, observations: np.ndarray, dt: float = 1.0, controls: object = None) -> SimpleNamespace:
        """Return zeros."""
        return SimpleNamespace(means=np.zeros((len(observations), self.dim)))


def trivial_study(runs: int) -> Study:
    """Return 100 steps with four filters that do nothing, on a recording that is there: all that remains is overhead."""
    study = plan_study(WALK, {f"trivial-{i}": Trivial for i in range(4)}, [10], runs)
    steps = np.zeros((WALK.steps, 1))
    return replace(study, data=DataSet(Recording(steps, steps)))


def overhead(runs: int, folder: Path) -> None:
    """Wall-clock milliseconds a task, all told, for filters that take none."""
    rows = []
    for workers in (1, 2):
        for name in (None, f"overhead{workers}.sqlite"):
            run_study(trivial_study(8), workers)  # starts and warms the processes
            study = trivial_study(runs)
            start = time.perf_counter()
            run_study(study, workers, store=None if name is None else folder / name)
            ms = 1e3 * (time.perf_counter() - start) / len(study.tasks)
            rows.append([workers, "memory" if name is None else "file", len(study.tasks), ms])
    show("Engine overhead", ["workers", "store", "runs of a filter", "ms each"], rows)


def speed_up(runs: int, rounds: int, folder: Path) -> None:
    """Wall-clock time of the same study with one worker and with two, turn about."""
    study = plan_study("linear_gaussian", ["bootstrap", "herded-kh"], [100], runs)
    for workers in (1, 2):
        run_study(replace(study, runs=4), workers)
    seconds = np.empty((rounds, 2))
    tables: list[pd.DataFrame] = []
    for i in range(rounds):
        for workers in (1, 2):
            start = time.perf_counter()
            result = run_study(study, workers, store=folder / f"speed{i}{workers}.sqlite")
            seconds[i, workers - 1] = time.perf_counter() - start
            tables.append(result.runs.drop(columns=list(TIMES)))
    same = all(table.equals(tables[0]) for table in tables)
    one, two = np.median(seconds, axis=0)
    ratio = float(np.median(seconds[:, 0] / seconds[:, 1]))
    show(
        "Two workers against one",
        ["runs", "s, one", "s, two", "speed-up", "tables identical"],
        [[runs, float(one), float(two), ratio, same]],
    )


def killed(kills: int, runs: int, folder: Path) -> None:
    """SIGKILL at random moments, each time resumed; then the table against that of an undisturbed study."""
    store = folder / "killed.sqlite"
    rng = np.random.default_rng()
    done = []
    for _ in range(kills):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(store), str(runs)])
        while process.poll() is None and not store.exists():
            time.sleep(0.01)
        try:
            process.wait(rng.uniform(0.0, 6.0))  # importing takes up to half of it
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        ended = process.wait()
        with open_for_reading(store, empty=True) as kept:
            done.append([len(kept.finished()) if kept.begun() else 0, ended == -signal.SIGKILL])
    arguments: Any = ("linear_gaussian", ["bootstrap", "augmented-random"], [50, 100], runs)
    resumed = hf.compare(*arguments, store=store, resume=True)
    whole = hf.compare(*arguments)
    same = resumed.drop(columns=list(TIMES)).equals(whole.drop(columns=list(TIMES)))
    finished = " ".join(str(count) for count, _ in done)
    print(f"SIGKILL {sum(k for _, k in done)} times; finished after each: {finished} of {len(whole)}")
    print(f"final table identical to that of an undisturbed study: {same}\n", flush=True)


def summarised(folder: Path) -> None:
    """Time and memory to read and summarise 10,000 runs of a filter, in a process of its own."""
    store = folder / "many.sqlite"
    run_study(trivial_study(2500), 2, store=store)
    output = subprocess.run(
        [sys.executable, "-c", SUMMARISED, str(store)], capture_output=True, text=True, check=True
    ).stdout
    rows, *numbers = map(float, output.split())
    show(
        f"{int(rows)} runs in one store of {os.path.getsize(store) / 2**20:.0f} MB",
        ["", "s, summary", "s, and traces", "MB, imports", "MB, peak"],
        [["", *numbers]],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer runs and kills")
    quick = parser.parse_args().quick
    os.environ["HERDFILTER_CACHE"] = "off"
    announce()
    with tempfile.TemporaryDirectory() as name:
        overhead(100 if quick else 500, Path(name))
        summarised(Path(name))
        speed_up(40 if quick else 200, 3 if quick else 7, Path(name))
        killed(4 if quick else 20, 400 if quick else 1500, Path(name))
