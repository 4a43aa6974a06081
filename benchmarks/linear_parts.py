"""Conditionally linear models: particles for the nonlinear part alone, against particles for the whole state.

Data of the scenarios below, simulated with seeds that filters were tuned on; the reference is the mean of four
Rao-Blackwellised filters of random particles. Plain filters have up to 16 times as many particles, too: their error at the
time of a step of the Rao-Blackwellised one is interpolated, in logarithms.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from common import timed

import herdfilter as hf
from herdfilter.study.scenario import load_scenario
from herdfilter.study.statistics import bootstrap_interval

SCENARIOS = ("arctangent", "inertial_terrain")
STEPS = 100
LADDER = (1, 4, 16)
PROPOSALS = {
    "bootstrap": hf.BootstrapProposal(),
    "herded": hf.RankedProposal(hf.MappedSampling(hf.KernelHerding())),
    "ranked": hf.RankedProposal(),
    "auto": hf.AutomaticProposal(),
}


def errors(name: str, seed: int, particles: list[int], reference: int) -> list[dict[str, Any]]:
    """One row for each filter and number of particles, of one run."""
    model = load_scenario(name).build_model()
    _, z = hf.simulate(model, STEPS, rng=[seed, 21])
    controls = [model.control(k + 1) for k in range(STEPS)] if hasattr(model, "control") else None
    runs = [
        hf.make_filter("rb-bootstrap", model, reference, rng=[seed, 22, k]).run(
            z, controls=controls
        )
        for k in range(4)
    ]
    exact = np.mean([run.means for run in runs], axis=0)
    sd = np.sqrt(
        np.mean([np.diagonal(run.covariances, axis1=1, axis2=2) for run in runs], axis=(0, 1))
    )
    rows = []
    for inner, proposal in PROPOSALS.items():
        for n in particles:
            for count in (n * step for step in LADDER):
                rows.append({"filter": inner, "plain": True, "n": count})
            rows.append({"filter": inner, "plain": False, "n": n})
        for row in [row for row in rows if row["filter"] == inner]:
            part = proposal if row["plain"] else hf.RaoBlackwellisedProposal(proposal)
            pf = hf.ParticleFilter(model, row["n"], part, rng=[seed, 23], on_degeneracy="predict")
            seconds, result = timed(lambda pf=pf: pf.run(z, controls=controls))
            row["error"] = float(np.sqrt(np.mean(((result.means - exact) / sd) ** 2)))
            row |= {"scenario": name, "seed": seed, "ms": 1e3 * seconds / STEPS}
    return rows


def overview(name: str, seeds: range, particles: list[int], reference: int = 5000) -> pd.DataFrame:
    """Errors, medians over runs; the ratios are geometric means over runs, with 95 % intervals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        table = pd.DataFrame(
            [row for seed in seeds for row in errors(name, seed, particles, reference)]
        )
    table = table.drop_duplicates(["filter", "plain", "n", "seed"])
    made = []
    for inner in PROPOSALS:
        own = table[table["filter"] == inner]
        ladder = own[own["plain"]].pivot_table(index="seed", columns="n", values=["error", "ms"])
        times, logs = np.log(ladder["ms"].median()), np.log(ladder["error"])
        for n in particles:
            marginal = own[~own["plain"] & (own["n"] == n)].set_index("seed")
            row = {"scenario": name, "filter": inner, "n": n, "runs": len(marginal)}
            row |= {"plain": ladder["error"][n].median(), "error": marginal["error"].median()}
            time = np.log(marginal["ms"].median())
            in_time = np.array([np.interp(time, times, run) for run in logs.to_numpy()])
            for key, rival in (("ratio", logs[n]), ("in_time", in_time)):
                gain = (np.log(marginal["error"]) - rival).to_numpy()
                row[key] = np.exp(gain.mean())
                row[f"{key}_low"], row[f"{key}_high"] = np.exp(bootstrap_interval(gain, np.mean))
            row |= {"ms_plain": ladder["ms"][n].median(), "ms": marginal["ms"].median()}
            made.append(row)
    return pd.DataFrame(made)
