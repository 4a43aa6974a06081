"""Filters of the library `particles`: a `StateSpaceModel` of its distributions, `Bootstrap` and `SMC` with its defaults.

The state before the first step is its time 0, at which nothing is observed. See peer_runs.py.
"""

from __future__ import annotations

import numpy as np
import particles
from particles import collectors, distributions, state_space_models
from peer_runs import BEARING_SD, CHAIN, PRIOR, SENSORS, main, power_of_two, velocity, wrapped


class Bearing(distributions.ProbDist):
    """A normal law on the circle."""

    def __init__(self, loc: np.ndarray) -> None:
        self.loc = loc

    def logpdf(self, x: float) -> np.ndarray:
        return -0.5 * (wrapped(x - self.loc) / BEARING_SD) ** 2 - np.log(
            BEARING_SD * np.sqrt(2 * np.pi)
        )


class Growth(state_space_models.StateSpaceModel):
    """The univariate growth model."""

    def PX0(self):  # noqa: N802
        return distributions.Normal(scale=np.sqrt(PRIOR["ungm"][0]))

    def PX(self, t, xp):  # noqa: N802
        loc = 0.5 * xp + 25 * xp / (1 + xp**2) + 8 * np.cos(1.2 * t)
        return distributions.Normal(loc=loc, scale=np.sqrt(10.0))

    def PY(self, t, xp, x):  # noqa: N802
        return distributions.FlatNormal(loc=x) if t == 0 else distributions.Normal(loc=x**2 / 20)


class InThePlane(state_space_models.StateSpaceModel):
    """Nearly constant velocity, seen by two bearings; `motion` is its transition matrix and noise covariance."""

    def PX0(self):  # noqa: N802
        return distributions.MvNormal(loc=np.zeros(4), cov=np.diag(PRIOR["bearings"]))

    def PX(self, t, xp):  # noqa: N802
        F, Q = self.motion
        return distributions.MvNormal(loc=xp @ F.T, cov=Q)

    def PY(self, t, xp, x):  # noqa: N802
        if t == 0:
            return distributions.FlatNormal(loc=x[:, 0])
        away = [x[:, :2] - place for place in SENSORS]
        return distributions.IndepProd(*(Bearing(np.arctan2(a[:, 1], a[:, 0])) for a in away))


class Chain(state_space_models.StateSpaceModel):
    """The linear chain."""

    def PX0(self):  # noqa: N802
        return distributions.MvNormal(loc=np.zeros(4), cov=np.eye(4))

    def PX(self, t, xp):  # noqa: N802
        return distributions.MvNormal(loc=xp @ CHAIN.T, cov=np.eye(4))

    def PY(self, t, xp, x):  # noqa: N802
        return (
            distributions.FlatNormal(loc=x[:, 0])
            if t == 0
            else distributions.MvNormal(loc=x, cov=np.eye(4))
        )


def of_particles(model: str, dt: float, n: int, *, qmc: bool):
    made = {"ungm": Growth, "linear_chain": Chain}.get(model)
    ssm = InThePlane(motion=velocity(dt)) if made is None else made()

    def run(z, seed):
        np.random.seed(seed)  # noqa: NPY002  its generator
        data = [0.0, *(z[:, 0] if model == "ungm" else z)]
        fk = state_space_models.Bootstrap(ssm=ssm, data=data)
        smc = particles.SMC(fk=fk, N=n, qmc=qmc, collect=[collectors.Moments()])
        smc.run()
        return np.array(
            [np.atleast_1d(one["mean"]) for one in smc.summaries.moments[1:]]
        ), smc.logLt

    return run


if __name__ == "__main__":
    main(
        {
            "particles-bootstrap": lambda *given: of_particles(*given, qmc=False),
            "particles-sqmc": lambda model, dt, n: of_particles(
                model, dt, power_of_two(n), qmc=True
            ),
        },
        {},
    )
