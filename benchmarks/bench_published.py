"""Figures of the literature beside ours: every ``[[published]]`` entry of every scenario is run as it says.

``python benchmarks/bench_published.py [scenario ...]``; all unless some are named. The last column says whether ours is
within the entry's tolerance; the exit code is 1 if any is not.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import repeat

import numpy as np
from common import announce

from herdfilter.evaluation.metrics import squared_error
from herdfilter.evaluation.recording import record
from herdfilter.evaluation.reference import compute_reference
from herdfilter.evaluation.scenario import Published, Scenario, load_scenario, scenario_files
from herdfilter.evaluation.study import plan_study
from herdfilter.models.contract import circular_dims


def measured(scenario: Scenario, entry: Published, run: int) -> float:
    """Return the entry's measure in one run."""
    own = replace(scenario, model=scenario.model | entry.model, steps=entry.steps or scenario.steps)
    is_reference = entry.filter == "reference"
    filters = None if is_reference else [entry.filter]
    study = plan_study(own, filters, entry.n_particles, entry.runs)
    model = study.build_model()
    recording = record(own, model, study.data, study.recording_rng(run))
    if is_reference:
        result = compute_reference(own, model, recording, study.reference_rng(run))
    else:
        key = (entry.filter, entry.n_particles)
        built = study.filters[entry.filter](model, entry.n_particles, study.filter_rng(run, key))
        result = built.run(recording.observations, dt=recording.dt, controls=recording.controls)
    dims = study.dims(model)
    squared = squared_error(result.means, recording.truth, dims, circular_dims(model))[entry.skip :]
    if entry.measure == "mean_component_rmse":
        return float(np.sqrt(squared / len(dims)).mean())
    return float(np.sqrt(squared.mean()))


STATISTICS = {"mean": np.mean, "median": np.median, "rms": lambda values: np.sqrt(np.mean(np.square(values)))}


def main(names: list[str]) -> int:
    announce(seed=0)
    print(
        f"{'scenario':12} {'filter':18} {'n':>5} {'runs':>5} {'theirs':>8} {'ours':>8} {'lowest':>8} {'highest':>8}"
    )
    missed = 0
    with ProcessPoolExecutor() as pool:
        for name in names or scenario_files():
            scenario = load_scenario(name)
            for entry in scenario.published:
                values = list(pool.map(measured, repeat(scenario), repeat(entry), range(entry.runs)))
                ours = STATISTICS[entry.statistic](values)
                holds = abs(ours - entry.value) <= entry.tolerance
                missed += not holds
                print(
                    f"{name:12} {entry.filter:18} {entry.n_particles:5} {entry.runs:5} {entry.value:8.3g} {ours:8.3g} "
                    f"{min(values):8.3g} {max(values):8.3g}  {'holds' if holds else 'MISSED'} (within "
                    f"{entry.tolerance:g}; {entry.statistic} of {entry.measure}; {entry.source})",
                    flush=True,
                )
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
