"""What a fresh environment pays: seconds of import, CPU seconds of compilation, and the functions that are compiled.

`compile` is the CPU time of the first call of a process with an empty cache of compiled code, `first` that with the code on
disk, `again` that of the same call in the same process.

python benchmarks/bench_startup.py [--repeats 3]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

import numpy as np
import pandas as pd
from common import announce, parser, save, show

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
def run(model, n, proposal):
    observations = hf.simulate(model, 20, rng=0)[1]
    hf.ParticleFilter(model, n, proposal, rng=0).run(observations)
with event.install_recorder("numba:compile") as compiled:
    seconds = []
    for _ in range(2):
        start = time.process_time()
        {call}
        seconds.append(time.process_time() - start)
print(json.dumps([*seconds, sum(e.is_start for _, e in compiled.buffer)]))
"""
CALLS = {
    "KernelHerding, d = 1": "hf.KernelHerding().sample(mixture(1), 100)",
    "KernelHerding, d = 4": "hf.KernelHerding().sample(mixture(4), 100)",
    "ContinuousHerdedGibbs, d = 1": "hf.ContinuousHerdedGibbs().sample(mixture(1), 100)",
    "ContinuousHerdedGibbs, d = 4": "hf.ContinuousHerdedGibbs().sample(mixture(4), 100)",
    "auto on UNGM": "run(hf.models.UNGM(), 100, hf.AutomaticProposal())",
}


def run(code: str, **settings: str) -> list[float]:
    """Run code in a fresh process; return the numbers that it prints."""
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | settings, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def measured(call: str, repeats: int) -> dict[str, float]:
    """Medians over processes for one call."""
    code, cold, warm = CALL.replace("{call}", call), [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(run(code, NUMBA_CACHE_DIR=cache))
            warm.append(run(code, NUMBA_CACHE_DIR=cache))
    (compile_, again, functions), (first, _, _) = np.median(cold, axis=0), np.median(warm, axis=0)
    return {"functions": int(functions), "compile": compile_, "first": first, "again": again}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--calls", nargs="*", choices=CALLS, default=list(CALLS))
    args = options.parse_args(arguments)
    announce()
    run(IMPORT)
    wall, cpu, packages = np.median([run(IMPORT) for _ in range(2 * args.repeats + 1)], axis=0)
    table = pd.DataFrame([{"wall": wall, "cpu": cpu, "packages": int(packages)}])
    save("import", table, args.results)
    show("import herdfilter: seconds, CPU seconds, packages from outside the standard library", table)
    if args.calls:
        table = pd.DataFrame([{"call": name, **measured(CALLS[name], args.repeats)} for name in args.calls])
        save("startup", table, args.results)
        show("First call: functions compiled, and CPU seconds", table)


if __name__ == "__main__":
    main()
