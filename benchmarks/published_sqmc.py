"""Quasi-Monte Carlo and textbook: Gerber and Chopin (2015), Chopin and Papaspiliopoulos (2020), Guarniero and others (2017).

The first two print curves, whose numbers could not be read. Their figures are computed here with the library `particles`, by
Chopin, at the settings of the authors' programs. Those of the third are printed; they are read in a transcription.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from unittest import mock

import numpy as np
import particles
from as_published import row
from particles import datasets, kalman
from particles import state_space_models as ssms
from particles.collectors import Moments
from particles.distributions import MvNormal, Normal
from scipy.stats import qmc

import herdfilter as hf
from herdfilter.adapters.particles import from_particles

SEED = 6_000_000
GERBER = "Gerber and Chopin (2015), by their library"
TEXTBOOK = "Chopin and Papaspiliopoulos (2020), by their library"
GUARNIERO = "Guarniero, Johansen and Lee (2017)"
ALONE = {"verdict": "ours alone"}
"""In place of the verdict, where theirs has no counterpart."""
OTHER = {"verdict": "other filter"}
"""In place of the verdict, where the two are not the same filter: the figures say how far apart they are."""

RANDOMISED = hf.RankedProposal(randomised=True)
ADAPTED = hf.RankedProposal(hf.RandomSampling(), defensive_share=0.0, randomised=True)
"""The fully adapted auxiliary particle filter, where the model is linear and Gaussian, with stratified ancestors."""


def rows(args) -> Iterator[dict]:
    """Return the rows of all papers of this module."""
    for paper in (gerber, chopin, guarniero):
        yield from paper(args)


def gerber(args) -> Iterator[dict]:
    """Return gains of quasi-Monte Carlo: on the toy model, and on log-variances of two and four returns."""
    # the toy's first 20 series showed that single outliers rule mean squares of log-likelihoods: medians are compared
    yield from gains("toy model", Toy(), toy_reference, (256, 1024, 4096), range(100, 132))
    for d in (2, 4):
        yield from gains(
            f"volatility, d = {d}", volatilities(d), many_points, (1024,), range(100, 112), steps=50
        )


def chopin(args) -> Iterator[dict]:
    """Return two figures of chapter 10: bootstrap, guided and auxiliary filters on a linear model and on volatility."""
    yield from linear()
    yield from volatility()


def guarniero(args) -> Iterator[dict]:
    """Return the spread of the likelihood of a linear Gaussian model by dimension."""
    yield from dimensions()


@dataclass(frozen=True)
class Estimates:
    """Estimates of runs: log-likelihoods (series, runs) and means (series, runs, T, d)."""

    log_likelihoods: np.ndarray
    means: np.ndarray


def ours(model, proposal, n: int, data: list[np.ndarray], runs: int) -> Estimates:
    """Filter each series `runs` times."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hf.DegeneracyWarning)
        for s, y in enumerate(data):
            z = np.reshape(y, (len(y), -1))
            rngs = [np.random.default_rng([SEED, 1 + r, s]) for r in range(runs)]
            found.append(
                [hf.ParticleFilter(model, n, proposal=proposal, rng=rng).run(z) for rng in rngs]
            )
    return Estimates(
        np.array([[run.log_likelihood for run in runs] for runs in found]),
        np.array([[run.means for run in runs] for runs in found]),
    )


def theirs(kind: Callable, ssm, n: int, data: list[np.ndarray], runs: int, **options) -> Estimates:
    """Filter each series `runs` times with the library."""
    levels, means = [], []
    for s, y in enumerate(data):
        for r in range(runs):
            with seeded([SEED, 1 + r, s]):
                smc = particles.SMC(fk=kind(ssm=ssm, data=y), N=n, collect=[Moments()], **options)
                smc.run()
            levels.append(smc.logLt)
            means.append([np.ravel(moments["mean"]) for moments in smc.summaries.moments])
    shape = len(data), runs
    return Estimates(np.reshape(levels, shape), np.reshape(means, (*shape, *np.shape(means[0]))))


@contextmanager
def seeded(seed: list[int]) -> Iterator[None]:
    """Let the library draw from a stream of this seed, its Sobol points as well, which it scrambles with fresh entropy."""
    rng = np.random.default_rng(seed)
    np.random.seed(rng.integers(2**32))  # noqa: NPY002  its generator
    points = partial(particles.rqmc.safe_generate, engine_cls=partial(qmc.Sobol, seed=rng))
    with mock.patch.object(particles.rqmc, "sobol", points):
        yield


def simulated(ssm, steps: int, series: Iterable[int]) -> list[np.ndarray]:
    """Simulate observations of a model of the library, for each number of a series."""
    data = []
    for s in series:
        with seeded([SEED, 0, s]):
            data.append(ssm.simulate(steps)[1])
    return data


def interval(statistic: Callable[..., float], *samples: np.ndarray) -> tuple[float, float, float]:
    """Return a statistic of samples (n, ...), with the 95 % interval of 1,000 bootstrap samples of their first axis."""
    n, rng = len(samples[0]), np.random.default_rng(0)
    picks = rng.integers(n, size=(1000, n))
    found = [statistic(*(sample[pick] for sample in samples)) for pick in picks]
    low, high = np.quantile(found, (0.025, 0.975))
    return float(statistic(*samples)), float(low), float(high)


def their_figure(value: tuple[float, float, float]) -> dict[str, object]:
    """Return a figure that was computed with the library, as the arguments of `row`."""
    return {"theirs": f"{value[0]:.3g}", "their_error": (value[2] - value[1]) / (2 * 1.96)}


# Gerber and Chopin (2015): gain in mean squared error over a particle filter, with the parameters of the authors' program


class Toy(ssms.Gordon_etal):
    """Growth model of the paper: the first state N(0, 2) is observed, and the cosine has the phase of the new state."""

    def PX0(self):  # noqa: N802
        """See `StateSpaceModel`."""
        return Normal(scale=np.sqrt(2.0))

    def PX(self, t, xp):  # noqa: N802
        """See `StateSpaceModel`."""
        return Normal(0.5 * xp + 25.0 * xp / (1.0 + xp**2) + 8.0 * np.cos(1.2 * t), np.sqrt(10.0))


class Volatilities(ssms.MVStochVol):
    """Log-variances that are stationary from the start; without the paper's leverage, which the library does not have."""

    def PX0(self):  # noqa: N802
        """See `StateSpaceModel`."""
        return MvNormal(loc=self.mu, cov=self.covX / (1.0 - self.F[0, 0] ** 2))

    @cached_property
    def model(self) -> VolatilityModel:
        """The same model for our filters."""
        return VolatilityModel(self)


class VolatilityModel:
    """`Volatilities` as a model of ours."""

    def __init__(self, ssm: Volatilities) -> None:
        self.mu, self.covariance, self.dim = ssm.mu, ssm.covX, len(ssm.mu)
        self.initial = hf.GaussianMixture([1.0], [ssm.mu], ssm.PX0().cov)
        self.precision, self.log_peak = (
            np.linalg.inv(ssm.corY),
            -0.5 * np.linalg.slogdet(2 * np.pi * ssm.corY)[1],
        )

    def transition_mean(self, x, dt, control, step):
        """States (n, d) to the mean of the next."""
        return self.mu + 0.9 * (x - self.mu)

    def transition_covariance(self, dt, step):
        """Covariance (d, d) of the noise."""
        return self.covariance

    def log_likelihood(self, z, x, step):
        """Log-density of the returns, (n,)."""
        e = z * np.exp(-0.5 * x)
        return (
            self.log_peak
            - 0.5 * np.einsum("ni,ij,nj->n", e, self.precision, e)
            - 0.5 * x.sum(axis=1)
        )


def volatilities(d: int) -> Volatilities:
    """Return the paper's model of d returns."""
    one = np.eye(d)
    return Volatilities(
        mu=np.full(d, -9.0), F=0.9 * one, covX=0.1 * (0.8 + 0.2 * one), corY=0.6 + 0.4 * one
    )


def toy_reference(model, z: np.ndarray):
    """Return the exact filter."""
    return hf.GridFilter(model, -60.0, 60.0, 801).run(z)


def many_points(model, z: np.ndarray):
    """Return randomised ranked particles, eight times as many; their error is a small part of that of the others."""
    return hf.ParticleFilter(model, 2**13, proposal=RANDOMISED, rng=SEED).run(z)


GAINS = {
    "sqmc": hf.SequentialQuasiMonteCarlo(),
    "randomised ranked": RANDOMISED,
    "ranked": hf.RankedProposal(),
    "ranked, unguided": hf.RankedProposal(guided=False),
    "auto": hf.AutomaticProposal(),
}
AVERAGES = {"log-likelihood": np.median, "means": np.mean}
"""How squared errors of series are averaged."""


def gains(
    place: str, ssm, exact: Callable, counts: Iterable[int], series: Sequence[int], steps: int = 100
) -> Iterator[dict]:
    """Return gains over the bootstrap filter, of log-likelihoods and of filtered means: ratios of squared errors."""
    model = getattr(ssm, "model", None) or from_particles(ssm)
    data = simulated(ssm, steps, series)
    references = [exact(model, np.reshape(y, (steps, -1))) for y in data]

    def squares(found: Estimates) -> dict[str, np.ndarray]:
        """Squared errors of each series, averaged over steps and dimensions."""
        levels = np.array([reference.log_likelihood for reference in references])
        means = np.array([reference.means for reference in references])
        log_likelihood = (found.log_likelihoods[:, 0] - levels) ** 2
        return {
            "log-likelihood": log_likelihood,
            "means": ((found.means[:, 0] - means) ** 2).mean(axis=(1, 2)),
        }

    for n in counts:
        smc, sqmc = (
            squares(theirs(ssms.Bootstrap, ssm, n, data, 1, qmc=quasi)) for quasi in (False, True)
        )
        base = squares(ours(model, hf.BootstrapProposal(), n, data, 1))
        for name, proposal in GAINS.items():
            own = squares(ours(model, proposal, n, data, 1))
            for measure, average in AVERAGES.items():

                def ratio(a: np.ndarray, b: np.ndarray, average=average) -> float:
                    return float(average(a) / average(b))

                label, gain = (
                    f"gain of {name} in the {measure}",
                    interval(ratio, base[measure], own[measure]),
                )
                if name == "sqmc":
                    figure = their_figure(interval(ratio, smc[measure], sqmc[measure]))
                    yield row(
                        GERBER, f"{place}, n = {n}", label, ours=gain, runs=len(data), **figure
                    )
                else:
                    yield row(GERBER, f"{place}, n = {n}", label, None, gain, len(data)) | ALONE


# Chopin and Papaspiliopoulos (2020), figures 10.2 and 10.3


def compared(
    place: str,
    pairs: dict[str, tuple],
    ssm,
    model,
    n: int,
    data: list[np.ndarray],
    truth: np.ndarray,
    runs: int,
) -> Iterator[dict]:
    """Return the spread of log-likelihoods and the error of means, against `truth` (series, T, d).

    A pair holds a filter of theirs, or None, a proposal of ours, and a note.
    """

    def spread(found: Estimates) -> tuple[float, float, float]:
        value, low, high = interval(
            lambda v: float(np.sqrt(v.var(axis=0, ddof=1).mean())), found.log_likelihoods.T
        )
        wider = np.sqrt(runs / (runs - 1))  # runs drawn with repetition spread less
        return value, wider * low, wider * high

    def error(found: Estimates) -> tuple[float, float, float]:
        squares = ((found.means - truth[:, None]) ** 2).mean(axis=(2, 3)).T
        return interval(lambda v: float(np.sqrt(v.mean())), squares)

    for name, (kind, proposal, note) in pairs.items():
        us = ours(model, proposal, n, data, runs)
        them = None if kind is None else theirs(kind, ssm, n, data, runs)
        for quantity, measure in (
            ("log-likelihood, standard deviation", spread),
            ("means, RMS error", error),
        ):
            figure = {"theirs": None} if them is None else their_figure(measure(them))
            label = f"{name}: {quantity}"
            found = row(
                TEXTBOOK,
                place,
                label,
                ours=measure(us),
                runs=us.log_likelihoods.size,
                note=note,
                **figure,
            )
            yield found if them is not None else found | ALONE


def linear(n: int = 1000, steps: int = 100, series: int = 4, runs: int = 25) -> Iterator[dict]:
    """Return figure 10.2: bootstrap, guided and auxiliary filter on an autoregression with noise, against Kalman."""
    ssm = kalman.LinearGauss(sigmaX=1.0, sigmaY=0.2, rho=0.9)
    one, start = [[1.0]], [[1.0 / 0.19]]
    model = hf.models.LinearGaussian(
        [[0.9]], one, one, [[0.04]], initial_mean=[0.0], initial_covariance=start
    )
    data = simulated(ssm, steps, range(series))
    truth = np.array(
        [hf.ExtendedKalmanFilter(model).run(np.reshape(y, (steps, 1))).means for y in data]
    )
    pairs = {
        "bootstrap": (ssms.Bootstrap, hf.BootstrapProposal(), ""),
        "guided": (ssms.GuidedPF, hf.GuidedProposal(), ""),
        "auxiliary": (
            ssms.AuxiliaryPF,
            ADAPTED,
            "Ours sorts the particles and takes stratified ancestors at every step.",
        ),
        "randomised ranked": (None, RANDOMISED, ""),
    }
    yield from compared("linear, figure 10.2", pairs, ssm, model, n, data, truth, runs)


def volatility(n: int = 1000, steps: int = 201, runs: int = 40) -> Iterator[dict]:
    """Return figure 10.3: the same on returns of pound against dollar, with stochastic volatility."""
    ssm = ssms.StochVol(mu=2 * np.log(0.5992), sigma=0.178, rho=0.9702)
    model = hf.models.StochasticVolatility(ssm.mu, ssm.rho, ssm.sigma)
    data = [datasets.GBP_vs_USD_9798().data[:steps]]
    spread = ssm.sigma / np.sqrt(1 - ssm.rho**2)
    grid = hf.GridFilter(model, ssm.mu - 7 * spread, ssm.mu + 7 * spread, 401)
    truth = np.array([grid.run(np.reshape(data[0], (steps, 1))).means])
    pairs = {
        "bootstrap": (ssms.Bootstrap, hf.BootstrapProposal(), ""),
        "auxiliary": (
            ssms.AuxiliaryPF,
            hf.AuxiliaryProposal(),
            "Some runs of theirs lose the track. Ours draws from the transition, theirs is guided as well.",
        ),
        "randomised ranked": (None, RANDOMISED, ""),
    }
    yield from compared("volatility, figure 10.3", pairs, ssm, model, n, data, truth, runs)


# Guarniero, Johansen and Lee (2017), section 5.2: standard deviation of the estimated over the exact likelihood


ITERATED = {5: "0.09", 10: "0.14", 20: "0.19", 40: "0.23", 80: "0.35"}
"""Standard deviations of theirs by dimension, tables 1 and 2; with 1,000 to 1,142 particles after the iterations."""

GAUSSIAN = hf.GuidedAugmentedProposal(hf.GaussianFit(), hf.MappedSampling(hf.SobolSampling()))
HILBERT = 62  # most dimensions of particles that are sorted
AHEAD = "Theirs looks at the whole series, ours one step ahead."
EXACT = "Ours is exact where the model is linear and Gaussian."
RATIO = "standard deviation of likelihood over exact"


def dimensions(steps: int = 100, series: int = 4, runs: int = 5) -> Iterator[dict]:
    """Return the spread of the likelihood by dimension, of filters with 1,000 particles, and of 10,000 random ones."""
    for d, printed in ITERATED.items():
        chain = hf.models.linear_chain(d)
        # their first state is N(0, I): here one transition from zero
        model = hf.models.LinearGaussian(
            chain.F, chain.H, chain.Q, chain.R, np.zeros(d), 1e-12 * np.eye(d)
        )
        data = [
            hf.simulate(model, steps, np.random.default_rng([SEED, 0, s]))[1] for s in range(series)
        ]
        exact = np.array([hf.ExtendedKalmanFilter(model).run(z).log_likelihood for z in data])

        def ratios(
            proposal, runs: int, n: int = 1000, data=data, model=model, exact=exact
        ) -> np.ndarray:
            found = ours(model, proposal, n, data, runs).log_likelihoods
            return np.exp(found - exact[:, None]).ravel()

        def spread(values: np.ndarray) -> tuple[float, float, float]:
            return interval(lambda v: float(np.sqrt(np.mean((v - 1.0) ** 2))), values)

        place = f"d = {d}"
        if d <= HILBERT:
            values = ratios(ADAPTED, runs)
            yield (
                row(
                    GUARNIERO,
                    place,
                    f"fully adapted: {RATIO}",
                    printed,
                    spread(values),
                    len(values),
                    AHEAD,
                )
                | OTHER
            )
        name, proposal = (
            ("auto", hf.AutomaticProposal()) if d <= HILBERT else ("one Gaussian, guided", GAUSSIAN)
        )
        values = ratios(proposal, 1)
        yield (
            row(
                GUARNIERO,
                place,
                f"{name}: {RATIO}",
                printed,
                (spread(values)[0],) * 3,
                len(values),
                EXACT,
            )
            | OTHER
        )
        if d <= 10:
            values = np.log(ratios(hf.BootstrapProposal(), runs, 10_000))
            found = interval(lambda v: float(v.std(ddof=1)), values)
            yield row(
                GUARNIERO,
                place,
                "bootstrap: standard deviation of log-likelihood",
                None,
                found,
                len(values),
            )
