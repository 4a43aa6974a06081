"""Filters of other libraries beside ours on the same recordings of a scenario; those in JAX run in a Python of their own."""

from __future__ import annotations

import subprocess
import tempfile
from argparse import Namespace
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from over_random import debiased
from peers import FILTERS
from studies import BASELINE, COMPILED, RIVAL, measured

from herdfilter.study.plan import plan_study
from herdfilter.study.recording import record
from herdfilter.study.reference import compute_reference
from herdfilter.study.run_record import RunRecord
from herdfilter.study.scenario import load_scenario

OURS = (BASELINE, COMPILED, RIVAL, "ranked")


def measured_peers(name: str, args) -> pd.DataFrame:
    """Return a row for each filter and count: debiased errors, medians over runs; the least times; and their ratios."""
    base, runs = load_scenario(name), max(6, args.scenario_runs)
    base = replace(base, error_dims=None)  # all, as the errors of the others
    filters = [*OURS, args.default, *FILTERS]
    alone = Namespace(**vars(args) | {"workers": 1})  # since times are compared
    tables = [measured(name, product(filters, args.peer_particles), runs, np.inf, alone, base)]
    if args.jax_python is not None:
        tables.append(_of_jax(name, base, runs, args))
    table = debiased(pd.concat(tables, ignore_index=True))
    groups = table.groupby(["filter", "n_particles"], sort=False)
    found = groups[["reference_error_sd"]].median().join(groups["ms_per_step"].min())
    own = found.xs(BASELINE, level="filter").reindex(found.index.get_level_values("n_particles")).to_numpy()
    found = found.assign(error_ratio=found["reference_error_sd"] / own[:, 0], time_ratio=found["ms_per_step"] / own[:, 1])
    found["product"] = found["error_ratio"] * np.sqrt(found["time_ratio"])
    found = found.reset_index().rename(columns={"n_particles": "n", "reference_error_sd": "error"})
    found.insert(0, "scenario", name)
    return found


def _of_jax(name: str, base, runs: int, args) -> pd.DataFrame:
    """Run the filters of smcx and cuthbert on the recordings that `compare` makes, and measure their errors likewise."""
    study = plan_study(base, BASELINE, list(args.peer_particles), runs, args.seed)
    model = study.build_model()
    recordings = [record(base, model, None, study.recording_rng(run)) for run in range(runs)]
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "in.npz", Path(folder) / "out.npz"
        observations = np.array([one.observations for one in recordings])
        np.savez(given, model=name, dt=base.dt, n=np.array(args.peer_particles), observations=observations)
        script = Path(__file__).with_name("peers_jax.py")
        subprocess.run([args.jax_python, script, given, found], check=True, env={"OMP_NUM_THREADS": "1"})
        results = dict(np.load(found))
    rows = []
    for run, recording in enumerate(recordings):
        reference = compute_reference(base, model, recording, study.reference_rng(run))
        for key in [key for key in results if key.endswith("/means")]:
            library = key.removesuffix("/means")
            for i, n in enumerate(args.peer_particles):
                estimate = SimpleNamespace(means=results[key][i, run].astype(float))
                one = RunRecord(base, model, recording, reference, estimate)
                row = {"filter": f"{library}-bootstrap", "n_particles": n, "run": run, "error": ""}
                row |= {"ms_per_step": results[f"{library}/ms"][i, run]}
                names = ("reference_error_sd", "reference_uncertainty")
                rows.append(row | {column: getattr(one, column) for column in names})
    return pd.DataFrame(rows)
