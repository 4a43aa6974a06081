"""What the Monte Carlo engine costs and keeps: overhead, two workers, SIGKILL, 10,000 runs in a store, and odd calls.

python benchmarks/bench_engine.py [overhead] [summary] [speed] [kill] [calls] [--quick]    all parts unless some are named
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from common import announce, parser, save, show

import herdfilter as hf
from herdfilter.study.engine import run_study
from herdfilter.study.plan import Study, plan_study
from herdfilter.study.recording import DataSet, Recording
from herdfilter.study.scenario import Scenario
from herdfilter.study.store import open_for_reading

TIMES = ["ms_per_step", "seconds"]
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
REAL = ["bootstrap", "sqmc", "augmented-kh", "mixture-kh"]
"""Filters of the study that two workers share."""
SSP = {"resampling": "SSPResampling()"}
KILLED: tuple[str, dict[str, Any], list[int]] = (
    "linear_gaussian",
    {"bootstrap-ssp": SSP, "sqmc": "sqmc"},
    [50, 100],
)
"""Scenario, filters, particles of the study that is killed: each filter has a little to compile."""
BEGUN = f"""
import sys
import herdfilter as hf
hf.compare(*{KILLED!r}, int(sys.argv[2]), store=sys.argv[1], resume=True, workers=2)
"""
SUMMARISED = """
import resource, sys, time
import herdfilter as hf
from herdfilter.study import summarise
from herdfilter.study.store import open_for_reading
import pandas, scipy.stats
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
with open_for_reading(sys.argv[1]) as store:
    result = store.result()
summarise(result.runs)
read = time.perf_counter() - start
for key in result.series:
    result.series[key]
print(len(result.runs), read, time.perf_counter() - start, before / 1024,
      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


class Trivial:
    """A filter that computes nothing: its estimates are noise, as hard to compress as any."""

    def __init__(self, model: Any, n_particles: int, rng: np.random.Generator) -> None:
        self.dim, self.rng = model.dim, rng

    def run(
        self, observations: np.ndarray, dt: float = 1.0, controls: object = None
    ) -> SimpleNamespace:
        """Return noise."""
        return SimpleNamespace(means=self.rng.standard_normal((len(observations), self.dim)))


def trivial_study(runs: int) -> Study:
    """Return 100 steps with four filters that do nothing, on a recording that is there: all that remains is overhead."""
    study = plan_study(WALK, {f"trivial-{i}": Trivial for i in range(4)}, [10], runs)
    steps = np.zeros((WALK.steps, 1))
    return replace(study, data=DataSet(Recording(steps, steps)))


def overhead(folder: Path, quick: bool) -> pd.DataFrame:
    """Wall-clock milliseconds a task, all told, for filters that take none."""
    rows = []
    for workers in (1, 2):
        for name in (None, f"overhead{workers}.sqlite"):
            run_study(trivial_study(2 if quick else 8), workers)  # starts and warms the processes
            study = trivial_study(10 if quick else 500)
            start = time.perf_counter()
            run_study(study, workers, store=None if name is None else folder / name)
            ms = 1e3 * (time.perf_counter() - start) / len(study.tasks)
            kept = "memory" if name is None else "file"
            rows.append(
                {"workers": workers, "store": kept, "tasks": len(study.tasks), "ms_per_task": ms}
            )
    return pd.DataFrame(rows)


def summary(folder: Path, quick: bool) -> pd.DataFrame:
    """Time and memory to read and summarise 10,000 runs of a filter, in a process of its own."""
    store = folder / "many.sqlite"
    run_study(trivial_study(25 if quick else 2500), 2, store=store)
    output = subprocess.run(
        [sys.executable, "-c", SUMMARISED, str(store)], capture_output=True, text=True, check=True
    ).stdout
    names = ("tasks", "s_summary", "s_and_traces", "mb_imports", "mb_peak")
    numbers = dict(zip(names, map(float, output.split()), strict=True))
    return pd.DataFrame([numbers | {"mb_file": os.path.getsize(store) / 2**20}])


def speed(folder: Path, quick: bool) -> pd.DataFrame:
    """Wall-clock time of one study with one worker and with two, turn about, each in processes that are warm.

    Beside it the share of their time that workers were at a filter; the rest is the engine's. Where others use the cores,
    only this share tells something.
    """
    study = plan_study("linear_gaussian", REAL, [100], 2 if quick else 30)
    rounds = 1 if quick else 5
    for workers in (1, 2):
        run_study(replace(study, runs=4), workers)
    wall, busy = np.empty((2, rounds, 2))
    tables: list[pd.DataFrame] = []
    for i in range(rounds):
        for workers in (1, 2) if i % 2 == 0 else (2, 1):
            start = time.perf_counter()
            store = folder / f"speed{i}{workers}.sqlite"
            result = run_study(study, workers, store=store)
            wall[i, workers - 1] = time.perf_counter() - start
            busy[i, workers - 1] = at_filters(store) / workers / wall[i, workers - 1]
            tables.append(result.runs)
    same = all(equal(table, tables[0]) for table in tables)
    ratios = wall[:, 0] / wall[:, 1]
    numbers = dict(zip(("s_one", "s_two"), np.median(wall, axis=0), strict=True))
    numbers |= dict(zip(("busy_one", "busy_two"), np.median(busy, axis=0), strict=True))
    numbers |= {"speed_up": np.median(ratios), "least": ratios.min(), "most": ratios.max()}
    return pd.DataFrame(
        [{"tasks": len(study.tasks), "rounds": rounds} | numbers | {"tables_identical": same}]
    )


def at_filters(store: Path) -> float:
    """Return the seconds that all tasks of a store took together."""
    with closing(sqlite3.connect(store)) as connection:
        return float(connection.execute("SELECT sum(seconds) FROM runs").fetchone()[0])


def kill(folder: Path, quick: bool) -> pd.DataFrame:
    """SIGKILLs of a study, survived if what it had finished is still there and right; the same study is resumed each time.

    Four kinds of moment take turns. Three times the main process is killed: within 20 ms of the first write into the
    store or its opening; at any moment, up to what a whole process with one run takes; and when a random number of
    further runs is finished, so that a machine under load gets on, too. The fourth time a worker is killed, and the study
    must go on by itself until further runs are finished; then the main process ends. The compiled code is kept in a
    folder that is empty at first.
    """
    rng = np.random.default_rng()
    kills, runs = (4, 40) if quick else (20, 400)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "compiled")}
    store, counts = folder / "killed.sqlite", []

    def begin(path: Path, count: int) -> subprocess.Popen[bytes]:
        arguments = [sys.executable, "-c", BEGUN, str(path), str(count)]
        return subprocess.Popen(arguments, env=environment, stderr=subprocess.DEVNULL)

    def go_on(process: subprocess.Popen[bytes], further: int) -> None:
        enough = finished(store) + further
        while process.poll() is None and finished(store) < enough:
            time.sleep(0.01)

    whole = hf.compare(*KILLED, runs, workers=2)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", BEGUN, str(folder / "first.sqlite"), "1"], check=True)
    warm, start = time.perf_counter() - start, time.perf_counter()
    tried, survived = dict.fromkeys(("main", "worker"), 0), dict.fromkeys(("main", "worker"), 0)
    for k in range(kills):
        before, target = finished(store), "worker" if k % 4 == 3 else "main"
        process = begin(store, runs)
        if k % 4 == 0:
            seen = stamp(store)
            while process.poll() is None and stamp(store) == seen:
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.02))
        elif k % 4 == 1:
            time.sleep(rng.uniform(0, warm))
        else:
            go_on(process, int(rng.integers(1, runs // 8)))
            time.sleep(rng.uniform(0, 0.2))
        went_on = True
        if target == "worker":
            os.kill(int(rng.choice(workers_of(process.pid))), signal.SIGKILL)
            at = finished(store)
            go_on(process, 20)
            went_on = finished(store) >= min(at + 20, len(whole))
        process.kill()
        if process.wait() == -signal.SIGKILL or target == "worker":
            counts.append(finished(store))
            tried[target] += 1
            survived[target] += went_on and counts[-1] >= before and right(store, whole)
    seconds, ended = time.perf_counter() - start, begin(store, runs).wait()
    with open_for_reading(store) as kept:
        identical = equal(kept.table(), whole)
    print(f"finished of {len(whole)} after each kill: {counts}")
    numbers = [{"killed": one, "tried": tried[one], "survived": survived[one]} for one in tried]
    return pd.DataFrame(numbers).assign(seconds=seconds, exit_code=ended, table_identical=identical)


def workers_of(process: int) -> list[int]:
    """Return the processes that work for one."""
    found = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(maxsplit=2) for line in found.stdout.splitlines()]
    return [int(pid) for pid, parent, text in rows if int(parent) == process and "loky" in text]


def right(store: Path, whole: pd.DataFrame) -> bool:
    """Whether every finished run in a store is that of the undisturbed study."""
    if not finished(store):
        return True
    with open_for_reading(store) as kept:
        table = kept.table()
    keys = ["filter", "n_particles", "run"]
    return equal(table, table[keys].merge(whole, on=keys)[list(table)])


def stamp(store: Path) -> tuple[int, int]:
    """Tell whether a store, or what was written beside it, was touched."""
    paths = [path for path in (store, store.with_name(f"{store.name}-wal")) if path.exists()]
    return len(paths), max((path.stat().st_mtime_ns for path in paths), default=0)


def finished(store: Path) -> int:
    """Return the number of runs of a filter that a store holds, 0 if it is not there."""
    if not store.exists():
        return 0
    with open_for_reading(store, empty=True) as kept:
        return len(kept.finished()) if kept.begun() else 0


def equal(a: pd.DataFrame, b: pd.DataFrame) -> bool:
    """Whether two tables are identical but for their times."""
    return a.drop(columns=TIMES).equals(b.drop(columns=TIMES))


def calls(folder: Path, quick: bool) -> pd.DataFrame:
    """Odd calls of all that is public, one argument at a time of another kind, by what came of them."""
    import calls as odd

    table = odd.measured(most=500 if quick else None)
    bad = table[table["class"].isin(odd.BAD)]
    if len(bad):
        show("Neither an answer nor an error that names what is wrong", bad)
    return odd.counted(table)


PARTS = {"overhead": overhead, "summary": summary, "speed": speed, "kill": kill, "calls": calls}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all unless some are named")
    options.add_argument("--quick", action="store_true", help="fewer runs, rounds and kills")
    args = options.parse_args(arguments)
    os.environ["HERDFILTER_CACHE"] = "off"
    announce()
    for part in args.parts or PARTS:
        with tempfile.TemporaryDirectory() as name:
            table = PARTS[part](Path(name), args.quick)
        save(f"engine_{part}", table, args.results)
        show((PARTS[part].__doc__ or "").split("\n")[0], table)


if __name__ == "__main__":
    main()
