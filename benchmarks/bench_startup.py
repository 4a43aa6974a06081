"""What a fresh environment pays: seconds of import, CPU seconds of compilation, and whole commands from a fresh clone.

`compile` is the CPU time of the first call of a process with an empty cache of compiled code, `first` that with the code on
disk, `again` that of the same call in the same process. Machines differ threefold, so times also stand in yards: a yard is
the CPU time of a loop of plain Python on the same machine, 1.3 s on a usual one.

python benchmarks/bench_startup.py [--repeats 3]
python benchmarks/bench_startup.py --commands demo test     (half an hour; clones this repository)
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from common import announce, parser, save, show

YARD = "s = 0\nfor i in range(20_000_000): s += i * i % 7"
IMPORT = """
import json, sys, time
wall, cpu = time.perf_counter(), time.process_time()
import herdfilter
own = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, len(own)]))
"""
CALL = """
import json, time, numpy as np, herdfilter as hf
from numba.core import event
def mixture(d):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((5, d, d))
    return hf.GaussianMixture(np.full(5, 0.2), 2 * rng.standard_normal((5, d)), a @ a.swapaxes(1, 2) / d + 0.1 * np.eye(d))
def run(name, model):
    observations = hf.simulate(model, 20, rng=0)[1]
    hf.make_filter(name, model, n_particles=100, rng=0).run(observations)
with event.install_recorder("numba:compile") as compiled:
    seconds = []
    for _ in range(2):
        start = time.process_time()
        {call}
        seconds.append(time.process_time() - start)
print(json.dumps([*seconds, sum(e.is_start for _, e in compiled.buffer)]))
"""
CALLS = {
    "auto on UNGM": 'run("auto", hf.models.UNGM())',
    "auto on a turn, d = 5": 'run("auto", hf.models.CoordinatedTurn())',
    "herded-kh on UNGM": 'run("herded-kh", hf.models.UNGM())',
    "herded-chg on UNGM": 'run("herded-chg", hf.models.UNGM())',
    "KernelHerding, d = 4": "hf.KernelHerding().sample(mixture(4), 100)",
    "ContinuousHerdedGibbs, d = 4": "hf.ContinuousHerdedGibbs().sample(mixture(4), 100)",
}


def run(code: str, **settings: str) -> list[float]:
    """Run code in a fresh process; return the numbers that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | settings, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def spent(command: Sequence[str], folder: Path | None = None) -> np.ndarray:
    """Run a command; return its seconds on the clock, and its CPU seconds with those of all its children."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return np.array(
        [
            time.perf_counter() - start,
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        ]
    )


def yard() -> float:
    """CPU seconds of a yard, here and now: the median of three."""
    return float(np.median([spent([sys.executable, "-c", YARD])[1] for _ in range(3)]))


def measured(call: str, repeats: int, seconds: float) -> dict[str, float]:
    """Medians over processes for one call."""
    code, cold, warm = CALL.replace("{call}", call), [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(run(code, NUMBA_CACHE_DIR=cache))
            warm.append(run(code, NUMBA_CACHE_DIR=cache))
    (compile_, again, functions), (first, _, _) = np.median(cold, axis=0), np.median(warm, axis=0)
    return {
        "functions": int(functions),
        "compile": compile_,
        "yards": compile_ / seconds,
        "first": first,
        "again": again,
    }


def commands(targets: Sequence[str], seconds: float) -> pd.DataFrame:
    """Targets of make, each in a fresh clone without compiled code, beside the installation alone; and each once more."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("installation", *targets):
            clone = Path(folder) / name
            spent(["git", "clone", "--quiet", str(Path(__file__).parents[1]), str(clone)])
            install = f"{sys.executable} -m venv .venv && .venv/bin/pip install --quiet ."
            command = (
                ["sh", "-c", install]
                if name == "installation"
                else ["make", name, f"PYTHON={sys.executable}"]
            )
            for again in ("", " again") if name != "installation" else ("",):
                wall, cpu = spent(command, clone)
                rows.append({"command": name + again, "wall": wall, "cpu": cpu})
    table = pd.DataFrame(rows)
    return table.assign(wall_yards=table["wall"] / seconds, cpu_yards=table["cpu"] / seconds)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--calls", nargs="*", choices=CALLS, default=list(CALLS))
    options.add_argument(
        "--commands",
        nargs="*",
        default=[],
        metavar="TARGET",
        help="targets of make, such as demo and test",
    )
    args = options.parse_args(arguments)
    announce()
    seconds = yard()
    print(f"a yard is {seconds:.2f} s of CPU time here", flush=True)
    if args.commands:
        table = commands(args.commands, seconds)
        save("commands", table, args.results)
        show("Whole commands from a fresh clone: seconds, CPU seconds, and both in yards", table)
        return
    run(IMPORT)
    wall, cpu, packages = np.median([run(IMPORT) for _ in range(2 * args.repeats + 1)], axis=0)
    table = pd.DataFrame([{"wall": wall, "cpu": cpu, "packages": int(packages)}])
    save("import", table, args.results)
    show(
        "import herdfilter: seconds, CPU seconds, packages from outside the standard library", table
    )
    if args.calls:
        table = pd.DataFrame(
            [{"call": name, **measured(CALLS[name], args.repeats, seconds)} for name in args.calls]
        )
        save("startup", table, args.results)
        show("First call: functions compiled, CPU seconds, and those of the first in yards", table)


if __name__ == "__main__":
    main()
