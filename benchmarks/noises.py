"""Noise that is fitted to simulated series: how often its intervals cover the truth, and the time beside other ways.

The model that is fitted has Q ten times too large and R ten times too small. Other ways are a search by hand, Nelder and
Mead's over two logarithms with the same filter from the same start, and pykalman's EM where the model is linear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from common import timed
from scipy.optimize import minimize
from scipy.stats import binomtest

import herdfilter as hf

CLAIMS = 9_000_000
WRONG = (10.0, 0.1)
"""Factors by which Q and R of the fitted model are wrong."""
TOLERANCE = 0.05
"""Of the search by hand: in its logarithms, and in the log-likelihood."""
PARTICLES = 500
ROUNDS = 50
MOST_ROUNDS = 1000
"""Rounds of EM after which it is looked at, and the last one."""


class Case(NamedTuple):
    """A model as a function of Q and R, relative to the true ones, with the length of its series."""

    build: Callable[[float, float], object]
    steps: int
    dt: float = 1.0


def chain(q: float, r: float) -> hf.models.LinearGaussian:
    model = hf.models.linear_chain(2)
    parts = (model.F, model.H, q * model.Q, r * model.R, np.zeros(2), np.eye(2))
    return hf.models.LinearGaussian(*parts)


def pendulum(q: float, r: float) -> object:
    """Return the pendulum of the first page, observed a little better."""
    return hf.models.from_functions(
        lambda x, dt: x + dt * np.column_stack([x[:, 1], -9.81 * np.sin(x[:, 0])]),
        lambda x: np.sin(x[:, 0]),
        lambda dt: q * dt * np.diag([1e-3, 0.2]),
        [[0.01 * r]],
        [1.5, 0.0],
        0.1 * np.eye(2),
    )


def bearings(q: float, r: float) -> hf.models.BearingsTracking:
    return hf.models.BearingsTracking(
        sensors=[[-10.0, -10.0], [10.0, -10.0]],
        bearing_sd=0.02 * np.sqrt(r),
        spectral_density=0.1 * q,
        initial_covariance=0.1 * np.eye(4),
    )


def growth(q: float, r: float) -> hf.models.UNGM:
    return hf.models.UNGM(process_variance=10.0 * q, observation_variance=r)


def range_and_bearing(q: float, r: float) -> object:
    """Return a target of nearly constant velocity, seen by a radar at the origin."""
    motion = hf.models.ConstantVelocity(
        0.05, 1.0, [50.0, 50.0, -1.0, 0.5], np.diag([4.0, 4.0, 0.25, 0.25])
    )
    return hf.models.from_functions(
        lambda x, dt: motion.transition_mean(x, dt, None, 1),
        lambda x: np.column_stack([np.hypot(x[:, 0], x[:, 1]), np.arctan2(x[:, 1], x[:, 0])]),
        lambda dt: q * motion.transition_covariance(dt, 1),
        r * np.diag([1.0, 0.02**2]),
        motion.initial_mean,
        motion.initial_covariance,
        observation_circular=[1],
    )


CASES = {
    "linear chain": Case(chain, 100),
    "pendulum": Case(pendulum, 150, 0.05),
    "bearings": Case(bearings, 100),
    "growth": Case(growth, 60),
    "range and bearing": Case(range_and_bearing, 100),
}


def fits(name: str, seeds: Sequence[int], others: int) -> pd.DataFrame:
    """Return a row for each series: factors over the true ones with their intervals, CPU seconds, and what other ways find.

    Other ways are tried on the first series only, so many of them.
    """
    build, steps, dt = CASES[name]
    rows = []
    for k, seed in enumerate(seeds):
        z = hf.simulate(build(1.0, 1.0), steps, np.random.default_rng(seed), dt=dt)[1]
        seconds, fit = timed(
            lambda z=z: hf.fit_noise(build(*WRONG), z, n_particles=PARTICLES, dt=dt)
        )
        row = {"model": name, "seed": seed, "steps": steps, "seconds": seconds}
        for key, wrong in zip("QR", WRONG, strict=True):
            factor, lower, upper = fit.factors[key] * wrong
            row |= {key: factor, f"{key}_low": lower, f"{key}_high": upper}
            row[f"{key}_told"] = key not in fit.unidentified
        row |= {"evaluations": fit.maximum.evaluations, "message": fit.maximum.message}
        if k < others:
            row |= by_hand(name, z, fit)
            row |= by_em(z) if name == "linear chain" else {}
        rows.append(row)
        print(row, flush=True)
    return pd.DataFrame(rows)


def by_hand(name: str, z: np.ndarray, fit: hf.FittedNoise) -> dict[str, float]:
    """Search the maximum as one does without this function; return its time, its calls, and how far from ours it ends."""
    build, _, dt = CASES[name]
    filters = {"linear chain": "ekf"}

    def loss(logs: np.ndarray) -> float:
        online = hf.make_filter(filters.get(name, "auto"), build(*np.exp(logs)), PARTICLES, 0)
        try:
            return -online.run(z, dt=dt).log_likelihood
        except hf.DegenerateWeightsError:
            return 1e10

    start = np.log(WRONG)
    # SciPy's own first steps, a twentieth of the start, end far from the maximum.
    simplex = np.vstack([start, start + np.eye(2)])
    options = {"xatol": TOLERANCE, "fatol": TOLERANCE, "initial_simplex": simplex}
    seconds, found = timed(lambda: minimize(loss, start, method="Nelder-Mead", options=options))
    ours = np.log([fit.factors[key][0] * wrong for key, wrong in zip("QR", WRONG, strict=True)])
    off = np.max(np.abs(found.x - ours) / fit.maximum.standard_errors)
    return {"hand_seconds": seconds, "hand_calls": found.nfev, "hand_off": off}


def by_em(z: np.ndarray) -> dict[str, float]:
    """Let pykalman's EM find both covariances whole; return our time, its time and how far it comes.

    It stops once its log-likelihood is within `TOLERANCE` of ours. Its first state is our second one: it starts from the
    covariance that ours has there in the end.
    """
    from pykalman import KalmanFilter

    model = chain(*WRONG)
    own, fit = timed(lambda: hf.fit_noise(model, z, "full"))
    names = ["transition_covariance", "observation_covariance"]
    theirs = KalmanFilter(
        model.F,
        model.H,
        model.Q,
        model.R,
        initial_state_mean=np.zeros(2),
        initial_state_covariance=model.F @ model.F.T + fit.covariances["Q"],
        em_vars=names,
    )
    seconds = 0.0
    rounds = 0
    short = np.inf
    while short > TOLERANCE and rounds < MOST_ROUNDS:
        seconds += timed(lambda: theirs.em(z, n_iter=ROUNDS))[0]
        rounds += ROUNDS
        short = fit.log_likelihood - theirs.loglikelihood(z)
    return {"full_seconds": own, "em_seconds": seconds, "em_rounds": rounds, "em_short": short}


def overview(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each model: the share of intervals that cover the truth, errors, and times over ours."""
    rows = []
    for name, part in [*table.groupby("model", sort=False), ("all", table)]:
        covered = [part[f"{key}_low"].le(1).sum() - part[f"{key}_high"].lt(1).sum() for key in "QR"]
        # At a bound there is no interval.
        count = int(part[["Q_low", "R_low"]].notna().sum().sum())
        share = binomtest(int(sum(covered)), count).proportion_ci(method="wilson")
        row = {"model": name, "series": len(part), "cover_Q": covered[0], "cover_R": covered[1]}
        row |= {"intervals": count, "covered": sum(covered) / count}
        row |= {"covered_low": share.low, "covered_high": share.high}
        for key in "QR":
            row[f"{key}_off"] = np.exp(np.abs(np.log(part[key])).median())
            row[f"{key}_untold"] = int((~part[f"{key}_told"].astype(bool)).sum())
        row |= {"evaluations": part["evaluations"].median(), "seconds": part["seconds"].median()}
        for other, own in (("hand", "seconds"), ("em", "full_seconds")):
            if own in part and f"{other}_seconds" in part:
                row[f"{other}_time"] = np.exp(np.log(part[f"{other}_seconds"] / part[own]).mean())
        row |= (
            part[[c for c in ("hand_off", "hand_calls", "em_rounds", "em_short") if c in part]]
            .median()
            .to_dict()
        )
        rows.append(row)
    return pd.DataFrame(rows)
