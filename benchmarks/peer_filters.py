"""Filters of other libraries and ours on the same recordings: errors, log-likelihoods, times, and errors at equal time.

Each library runs in an environment of its own, by a script that needs no herdfilter: `peers_NAME.py`. The environment is
made under `results/environments` and kept. Ours runs by such a script in this Python. All run on one core with one thread.
The filters of a library take turns. A library that cannot be installed is named and left out. So is a count at which a run
would take too long.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
from over_random import debiased, least_error

from herdfilter import __version__
from herdfilter.study.plan import plan_study
from herdfilter.study.recording import record
from herdfilter.study.reference import compute_reference
from herdfilter.study.run_record import RunRecord
from herdfilter.study.scenario import load_scenario
from herdfilter.study.statistics import mean_interval


class Library(NamedTuple):
    """What is installed for it, the script that runs it, and the filters of the script that are its own."""

    requirement: str
    script: str
    filters: tuple[str, ...]


OURS = ("bootstrap", "compiled-bootstrap", "sqmc", "ranked", "auto", "ekf", "ukf")
LIBRARIES = {
    "herdfilter": Library("", "peers_herdfilter.py", OURS),
    "particles": Library(
        "particles==0.4", "peers_particles.py", ("particles-bootstrap", "particles-sqmc")
    ),
    "smcx": Library("smcx==2.1.0", "peers_jax.py", ("jax-bootstrap", "smcx-bootstrap")),
    "cuthbert": Library("cuthbert==0.1.1", "peers_jax.py", ("cuthbert-bootstrap",)),
    "filterpy": Library(
        "filterpy==2.0.0",
        "peers_filterpy.py",
        ("filterpy-bootstrap", "filterpy-ekf", "filterpy-ukf"),
    ),
    "stonesoup": Library(
        "stonesoup==1.9.1",
        "peers_stonesoup.py",
        ("stonesoup-bootstrap", "stonesoup-ekf", "stonesoup-ukf"),
    ),
}
SCENARIOS = ("ungm", "bearings", "linear_chain")
BUDGETS = (0.1, 1.0, 10.0)
"""Milliseconds a step."""
RESAMPLED = 500
"""Bootstrap samples of the runs, for intervals."""
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
ONE_THREAD["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def environment(name: str, requirement: str, folder: Path) -> Path:
    """Return the Python of the library's environment, which is made if it is not there or holds another requirement."""
    own = folder / name
    python, note = own / "bin" / "python", own / "installed.txt"
    if not note.is_file() or note.read_text(encoding="utf-8") != requirement:
        print(f"installing {requirement} in {own}", flush=True)
        subprocess.run(
            [sys.executable, "-m", "venv", "--clear", own], check=True, capture_output=True
        )
        pip = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            requirement,
        ]
        subprocess.run(pip, check=True, capture_output=True, text=True)
        note.write_text(requirement, encoding="utf-8")
    return python


def outputs(
    library: Library, python: Path | str, given: dict[str, object]
) -> dict[str, np.ndarray]:
    """Run the filters of a library on recordings, on one core; see peer_runs.py."""
    own = not library.requirement
    known = {key: value for key, value in os.environ.items() if own or not key.startswith("PYTHON")}
    one_core = {"preexec_fn": _on_one_core} if hasattr(os, "sched_setaffinity") else {}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, **given)
        command = [
            python,
            "-W",
            "ignore",
            Path(__file__).with_name(library.script),
            source,
            target,
            *library.filters,
        ]
        subprocess.run(command, check=True, env=known | ONE_THREAD, **one_core)
        return dict(np.load(target))


def _on_one_core() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def of_scenario(name: str, args) -> pd.DataFrame:
    """Return the runs of all filters of all libraries on a scenario: a row for each filter, count and run."""
    base = replace(load_scenario(name), error_dims=None)  # all dimensions
    if base.reference["type"] == "large":
        base = replace(
            base, reference={"type": "large", "n": args.reference, "repeats": 4, "filter": "sqmc"}
        )
    study = plan_study(base, "bootstrap", list(args.counts), args.peer_runs, args.seed)
    model = study.build_model()
    recordings = [
        record(base, model, None, study.recording_rng(run)) for run in range(args.peer_runs)
    ]
    observations = np.array([one.observations for one in recordings])
    given = {
        "model": name,
        "dt": base.dt,
        "n": args.counts,
        "seconds": args.seconds,
        "observations": observations,
    }
    references = [
        compute_reference(base, model, one, study.reference_rng(k))
        for k, one in enumerate(recordings)
    ]
    rows = []
    for library_name in args.of:
        library = LIBRARIES[library_name]
        try:
            python = sys.executable
            if library.requirement:
                python = environment(library_name, library.requirement, args.environments)
            found = outputs(library, python, given)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
            print(f"{name}: left out, {library_name}: {reason}", flush=True)
            continue
        for line in found["left_out"]:
            print(f"{name}: left out, {line}", flush=True)
        for key in [key for key in found if key.endswith("/means")]:
            filter_name = key.removesuffix("/means")
            of_filter = {
                column: found[f"{filter_name}/{column}"]
                for column in ("log_likelihoods", "ms", "compile_seconds")
            }
            for i, n in enumerate(found[f"{filter_name}/counts"]):
                for run, (recording, reference) in enumerate(
                    zip(recordings, references, strict=True)
                ):
                    estimate = SimpleNamespace(
                        means=found[key][i, run],
                        log_likelihood=of_filter["log_likelihoods"][i, run],
                    )
                    one = RunRecord(base, model, recording, reference, estimate)
                    row = {
                        "scenario": name,
                        "library": library_name,
                        "filter": filter_name,
                        "n": int(n),
                        "run": run,
                    }
                    row["version"] = library.requirement.partition("==")[2] or __version__
                    row |= {
                        "ms": of_filter["ms"][i, run],
                        "compile_seconds": of_filter["compile_seconds"][i],
                    }
                    row["log_likelihood_error"] = estimate.log_likelihood - reference.log_likelihood
                    names = ("reference_error_sd", "reference_uncertainty")
                    rows.append(row | {column: getattr(one, column) for column in names})
    return debiased(pd.DataFrame(rows))


def at_counts(runs: pd.DataFrame) -> pd.DataFrame:
    """Errors (medians over runs with 95 % intervals), errors of the log-likelihood, and the least times; a row a count."""
    rows = []
    keys = ["scenario", "library", "version", "filter", "n"]
    for key, own in runs.groupby(keys, sort=False):
        errors, logs = own["reference_error_sd"].to_numpy(), own["log_likelihood_error"].to_numpy()
        low, high = np.quantile(_resampled(errors[None])[:, 0], (0.025, 0.975))
        row = dict(zip(keys, key, strict=True)) | {"runs": len(own)}
        row |= {"error": np.median(errors), "error_low": low, "error_high": high}
        row["reference_uncertainty"] = own["reference_uncertainty"].median()
        row |= {
            "log_likelihood_error": np.median(np.abs(logs)),
            "log_likelihood_rmse": np.sqrt(np.mean(logs**2)),
        }
        rows.append(
            row
            | {"ms_per_step": own["ms"].min(), "compile_seconds": own["compile_seconds"].iloc[0]}
        )
    return pd.DataFrame(rows)


def at_equal_time(runs: pd.DataFrame, budgets: Sequence[float] = BUDGETS) -> pd.DataFrame:
    """Least error of each filter within a budget of milliseconds a step, with its 95 % interval over runs.

    Between counts the error is that of `least_error`. `to_spare` says that the largest count takes less than the budget.
    """
    rows = []
    for (scenario, library, name), own in runs.groupby(
        ["scenario", "library", "filter"], sort=False
    ):
        errors = own.pivot(index="n", columns="run", values="reference_error_sd").sort_index()
        ms = own.groupby("n")["ms"].min().reindex(errors.index).to_numpy()
        counts = np.maximum(errors.index.to_numpy(), 1)
        samples = _resampled(errors.to_numpy())
        for budget in budgets:
            least = least_error(counts, errors.median(axis=1), ms, budget)
            row = {
                "scenario": scenario,
                "library": library,
                "filter": name,
                "budget": budget,
                "error": least,
            }
            if np.isfinite(least):
                many = [least_error(counts, one, ms, budget) for one in samples]
                row["error_low"], row["error_high"] = np.quantile(many, (0.025, 0.975))
            rows.append(row | {"to_spare": bool(ms.max() < budget)})
    return pd.DataFrame(rows)


def agreement(runs: pd.DataFrame) -> pd.DataFrame:
    """Errors of the other bootstrap filters over those of ours, in the same runs: geometric means over runs and counts.

    All of them are one algorithm: an interval that leaves out 1 by far shows a mistake in a script. The smallest count is
    left out, at which some runs lose the target and their errors hang on luck.
    """
    counts = sorted(set(runs["n"]) - {0})
    runs = runs[runs["n"].isin(counts[1:] or counts)]
    logs = runs.assign(error=np.log(runs["reference_error_sd"]))
    logs = logs.pivot(index=["scenario", "n", "run"], columns="filter", values="error")
    rows = []
    for scenario, own in logs.groupby("scenario", sort=False):
        for name in [
            name for name in own if name.endswith("-bootstrap") and own[name].notna().any()
        ]:
            away = (own[name] - own["bootstrap"]).dropna().groupby("run").mean()
            low, high = mean_interval(away.to_numpy())
            rows.append(
                {
                    "scenario": scenario,
                    "filter": name,
                    "ratio": away.mean(),
                    "ratio_low": low,
                    "ratio_high": high,
                }
            )
    found = pd.DataFrame(rows, columns=["scenario", "filter", "ratio", "ratio_low", "ratio_high"])
    return found.assign(**np.exp(found[["ratio", "ratio_low", "ratio_high"]]))


def _resampled(errors: np.ndarray) -> np.ndarray:
    """Medians over bootstrap samples of the runs: (counts, runs) -> (RESAMPLED, counts)."""
    chosen = np.random.default_rng(0).integers(errors.shape[1], size=(RESAMPLED, errors.shape[1]))
    return np.median(errors[:, chosen], axis=2).T
