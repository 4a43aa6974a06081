"""Filters of the library `particles` on its own models, and filters of ours on what `from_particles` makes of those."""

from __future__ import annotations

from functools import partial

import numpy as np
import particles
from adapters import Reference, beside
from particles import kalman
from particles import state_space_models as ssms

import herdfilter as hf
from herdfilter.adapters.particles import HerdedFilter, from_particles

STEPS, N = 50, 100
OF_TWO = 128  # particles of sequential quasi-Monte Carlo, which asks for powers of two
MODELS = {
    "StochVol, d = 1": ssms.StochVol(),
    "Gordon_etal, d = 1": ssms.Gordon_etal(),
    "DiscreteCox, d = 1": ssms.DiscreteCox(),
    "ThetaLogistic, d = 1": ssms.ThetaLogistic(),
    "MVLinearGauss_Guarniero_etal, d = 4": kalman.MVLinearGauss_Guarniero_etal(alpha=0.4, dx=4),
}
GRIDS = {
    ssms.StochVol: (-10, 8),
    ssms.Gordon_etal: (-80, 80),
    ssms.DiscreteCox: (-30, 30),
    ssms.ThetaLogistic: (-12, 20),
}
"""Where the grids of the exact posteriors begin and end."""
POINTS = 2001
GUIDED = (ssms.StochVol, kalman.MVLinearGauss_Guarniero_etal)
"""Models with a proposal of the library that serves many particles; that of ThetaLogistic averages over them."""


def smc(fk, k: int, n: int = N, **options) -> np.ndarray:
    """Means of the library's SMC."""
    np.random.seed(k)  # noqa: NPY002  its generator
    run = particles.SMC(fk=fk, N=n, collect=[particles.collectors.Moments()], **options)
    run.run()
    return np.array([moments["mean"] for moments in run.summaries.moments])


def reference(ssm, model, data) -> Reference:
    """Return the exact posterior: the library's own where it is linear, else that on a grid."""
    if isinstance(ssm, kalman.MVLinearGauss):
        kf = kalman.Kalman(ssm=ssm, data=data)
        kf.filter()
        return Reference(
            np.array([np.ravel(f.mean) for f in kf.filt]),
            np.sqrt([np.diag(f.cov) for f in kf.filt]),
        )
    found = hf.GridFilter(model, *GRIDS[type(ssm)], POINTS).run(vectors(data))
    return Reference(found.means, np.sqrt(found.covariances[:, :, 0]))


def vectors(data) -> np.ndarray:
    """Return observations as ours."""
    return np.reshape(data, (len(data), -1))


def measured(args) -> list[dict[str, object]]:
    """Rows of all models."""
    rows: list[dict[str, object]] = []
    for label, ssm in MODELS.items():
        model, data = from_particles(ssm), []
        for k in range(args.runs):
            np.random.seed(1_000_000 + args.seed + k)  # noqa: NPY002
            data.append(ssm.simulate(STEPS)[1])
        references = [reference(ssm, model, y) for y in data]

        def theirs(kind, k, data=data, ssm=ssm, **options):
            return smc(kind(ssm=ssm, data=data[k]), k, **options)

        def ours(name, k, data=data, model=model):
            n = OF_TWO if name == "sqmc" else N
            return hf.make_filter(name, model, n_particles=n, rng=k).run(vectors(data[k])).means

        filters = {"particles, bootstrap": partial(theirs, ssms.Bootstrap)}
        if isinstance(ssm, GUIDED):
            filters["particles, guided"] = partial(theirs, ssms.GuidedPF)
        filters["particles, SQMC"] = partial(theirs, ssms.Bootstrap, qmc=True, n=OF_TWO)
        filters["HerdedFilter in SMC"] = partial(theirs, HerdedFilter)
        for name in ("bootstrap", "sqmc", "ranked", "auto"):
            filters[name] = partial(ours, name)
        counts = {name: OF_TWO if "sqmc" in name.lower() else N for name in filters}
        rows += beside("particles", label, counts, filters, references)
    return rows
