"""Filters of herdfilter, run as those of the other libraries are; see peer_runs.py."""

from __future__ import annotations

from functools import partial

import numpy as np
from peer_runs import CHAIN, main, power_of_two

import herdfilter as hf
from herdfilter.models import CompiledModel
from herdfilter.study.scenario import load_scenario


def chain(x, parameters, out):
    for i in range(4):
        out[i] = 0.0
        for j in range(4):
            out[i] += parameters[4 * i + j] * x[j]


def itself(x, out):
    for i in range(4):
        out[i] = x[i]


def of_catalogue(scenario, dt, n, *, name, compiled=False):
    model = load_scenario(scenario).build_model()
    if compiled and scenario == "linear_chain":
        model = CompiledModel(
            chain,
            itself,
            np.eye(4),
            np.eye(4),
            initial_mean=np.zeros(4),
            initial_covariance=np.eye(4),
            parameters=CHAIN.ravel(),
        )
    elif compiled:
        model = model.compiled()

    def run(z, seed):
        result = hf.make_filter(name, model, n_particles=max(n, 1), rng=seed).run(z, dt=dt)
        return result.means, result.log_likelihood

    return run


def sqmc(scenario, dt, n):
    return of_catalogue(scenario, dt, power_of_two(n), name="sqmc")


if __name__ == "__main__":
    compiled = partial(of_catalogue, name="bootstrap", compiled=True)
    bootstrap, ranked, auto, ekf, ukf = (
        partial(of_catalogue, name=name) for name in ("bootstrap", "ranked", "auto", "ekf", "ukf")
    )
    main(
        {
            "bootstrap": bootstrap,
            "compiled-bootstrap": compiled,
            "sqmc": sqmc,
            "ranked": ranked,
            "auto": auto,
        },
        {"ekf": ekf, "ukf": ukf},
    )
