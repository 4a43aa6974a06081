"""Observations of random models: the view of a state, its noise and its schedule, and their distribution."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from herdfilter._checks import Array, RowFunction
from herdfilter.angles import moments, wrap_angles
from herdfilter.mixture import GaussianMixture
from herdfilter.models.parts import as_observation, student_peak
from herdfilter.models.random import drifts
from herdfilter.models.random.noises import LongRun, NoisyDrift

# View -> probability; in one dimension there is no bearing, and no part of the coordinates
VIEWS = {
    "linear sensor": 0.22,
    "partial": 0.18,
    "range": 0.17,
    "bearing": 0.1,
    "square": 0.13,
    "saturating sensor": 0.1,
    "counts": 0.1,
}
HEAVY_TAILED_SHARE = 0.15  # probability, except of counts
SHARP_SHARE = 0.12  # probability of sharp noise, except of counts
MISSING_SHARE = 0.2  # probability of long stretches without observation
NOISE_RANGE = (0.03, 3.0)  # range of the observation noise, in units of the spread of the view
SHARP_RATIO = 0.01  # noise of a sharp entry, in units of its predicted spread

COUNT_RANGE = (0.02, 300.0)  # smallest and largest mean of a count
# range of the slope of a view, in units of the system's spread
SLOPES = {"saturating sensor": (0.7, 3.0), "counts": (0.4, 1.5)}


class View(NamedTuple):
    """A function h of states, (n, d) -> (n, k): an observation without its noise."""

    kind: str
    size: int
    h: RowFunction
    words: str

    @property
    def circular(self) -> tuple[int, ...]:
        """Indices of the angle-valued entries: all entries of bearings, else none."""
        return tuple(range(self.size)) if self.kind == "bearing" else ()


def combine_words(matrix: Array, offset: Array) -> str:
    """Write linear combinations of the coordinates, such as ``0.3 x1 - 1.2 x2 + 0.5``, one per row."""
    rows = []
    for row, constant in zip(matrix, offset, strict=True):
        terms = [f"{value:+.3g} x{i + 1}" for i, value in enumerate(row) if value]
        terms += [f"{constant:+.3g}"] if constant else []
        text = " ".join(f"{term[0]} {term[1:]}" for term in terms)
        rows.append(text.removeprefix("+ ").replace(" 1 x", " x").removeprefix("1 "))
    return "; ".join(rows)


def linear_view(kind: str, matrix: Array, offset: Array) -> View:
    """Return ``H x + b`` or a function of it: its square, which hides signs, its tanh, or exp, the mean of counts."""
    combination = combine_words(matrix, offset)
    lowest, highest = COUNT_RANGE
    functions: dict[str, tuple[Any, str]] = {
        "linear sensor": (np.asarray, combination),
        "square": (np.square, f"squares of {combination}"),
        "saturating sensor": (np.tanh, f"tanh of {combination}"),
        "counts": (
            lambda y: np.exp(np.clip(y, np.log(lowest), np.log(highest))),
            f"exp of {combination}, between {lowest:g} and {highest:g}",
        ),
    }
    function, words = functions[kind]
    return View(kind, len(offset), lambda x: function(x @ matrix.T + offset), words)


def sensor_view(kind: str, matrix: Array, offset: Array, sensors: Array) -> View:
    """Return ranges, or in a plane bearings, of the position ``P x + b`` in m dimensions from sensors (k, m)."""

    def h(x: Array) -> Array:
        away = (x @ matrix.T + offset)[:, None] - sensors
        if kind == "bearing":
            return np.arctan2(away[..., 1], away[..., 0])
        return np.sqrt(np.einsum("nkm,nkm->nk", away, away))

    measured = "bearing" if kind == "bearing" else "distance"
    words = f"the {measured} of the place ({combine_words(matrix, offset)}) from sensors at {drifts.listed(sensors)}"
    return View(kind, len(sensors), h, words)


class ObservedSteps(NamedTuple):
    """The steps with an observation: `length` steps in every `period`, from step `first` on; by default every step."""

    period: int = 1
    length: int = 1
    first: int = 1

    def missing(self, step: int) -> bool:
        """Return True if there is no observation at a step."""
        return (step - self.first) % self.period >= self.length

    @property
    def words(self) -> str:
        """The schedule in words."""
        if self.period == 1:
            return "at every step"
        steps = f"step {self.first}"
        if self.length > 1:
            steps = f"steps {self.first} to {self.first + self.length - 1}"
        return f"at {steps} and every {self.period} steps later, else missing"


class Sensing:
    """A view with its noise and its schedule: an object with the functions of the model contract that the noise allows.

    `scaled` is the view in units of the noise: a grid must resolve it.
    """

    sample_observation: Any
    observation_mean: Any  # missing for counts

    def __init__(
        self,
        view: View,
        schedule: ObservedSteps,
        noise_words: str,
        draw: Any = None,
        scaled: Any = None,
        **functions: Any,
    ) -> None:
        def sample_observation(x: Array, rng: Generator, step: int) -> Array:
            if schedule.missing(step):
                return np.full((len(x), view.size), np.nan)
            return draw(view.h(x), rng)

        self.view = view
        self.schedule = schedule
        self.noise_words = noise_words
        self.scaled = scaled
        self.functions = {"sample_observation": sample_observation} | functions
        self.words = f"{view.words}; {schedule.words}"
        vars(self).update(self.functions)


class Parts(NamedTuple):
    """The parts of a random model."""

    dim: int
    initial: GaussianMixture
    steps: int
    spread: Array
    labels: tuple[str, ...]
    motion: NoisyDrift
    sensing: Sensing


def gaussian_noise(
    view: View, sd: Array, schedule: ObservedSteps, freedom: float | None = None
) -> Sensing:
    """Return a view with independent noise of scales `sd`, (k,): Gaussian, or Student's t with `freedom` above 2 degrees.

    Differences of bearings, and simulated bearings, are wrapped to within pi.
    """
    size = view.size
    words = f"Gaussian, standard deviation {drifts.listed(sd)}"
    variances = sd**2
    if freedom is not None:
        words = f"Student's t with {freedom:.3g} degrees of freedom, scale {drifts.listed(sd)}"
        # the variance of Student's t, for Kalman filters
        variances = sd**2 * freedom / (freedom - 2)

    def log_likelihood(z: ArrayLike, x: Array, step: int) -> Array:
        scaled = wrap_angles(as_observation(z, size) - view.h(x), view.circular) / sd
        if freedom is None:
            peak = np.log(sd).sum() + 0.5 * size * math.log(2 * math.pi)
            return -0.5 * np.einsum("ij,ij->i", scaled, scaled) - peak
        peak = size * student_peak(freedom) - np.log(sd).sum()
        return peak - 0.5 * (freedom + 1) * np.log1p(scaled**2 / freedom).sum(axis=1)

    def draw(mean: Array, rng: Generator) -> Array:
        shape = mean.shape
        noise = rng.standard_t(freedom, shape) if freedom else rng.standard_normal(shape)
        return wrap_angles(mean + sd * noise, view.circular)

    return Sensing(
        view,
        schedule,
        words,
        draw,
        lambda x: view.h(x) / sd,
        log_likelihood=log_likelihood,
        observation_mean=lambda x, step: view.h(x),
        observation_covariance=lambda step: np.diag(variances),
        **({"observation_circular": view.circular} if view.circular else {}),
    )


def counts(view: View, schedule: ObservedSteps) -> Sensing:
    """Return independent Poisson counts, whose means are the view.

    Their variance equals their mean and differs from state to state: there is no single ``observation_covariance``. For lack
    of it there is no ``observation_mean`` either, so that no Kalman filter uses a wrong one.
    """

    def log_likelihood(z: ArrayLike, x: Array, step: int) -> Array:
        z = as_observation(z, view.size)
        # log of mean^z exp(-mean) / z!
        if not (z >= 0).all():
            raise ValueError(f"z: expected counts of at least 0, got {z}")
        mean = view.h(x)
        return np.log(mean) @ z - mean.sum(axis=1) - sum(math.lgamma(count + 1) for count in z)

    return Sensing(
        view._replace(words=f"counts with mean {view.words}"),
        schedule,
        "Poisson",
        lambda mean, rng: rng.poisson(mean).astype(np.float64),
        lambda x: 2 * np.sqrt(view.h(x)),  # 2 sqrt(count) has a variance of about one
        log_likelihood=log_likelihood,
    )


# The distribution


def draw_view(rng: Generator, system: LongRun) -> View:
    """Draw a view, in units of the system's own spread."""

    def standardise(directions: Array, offset: Array | float = 0.0) -> tuple[Array, Array]:
        matrix = drifts.rounded(directions / system.spread)
        return matrix, drifts.rounded(offset - matrix @ system.states.mean(axis=0))

    dim = system.states.shape[1]
    kind = drifts.draw_key(
        rng, {k: share for k, share in VIEWS.items() if dim > 1 or k not in ("bearing", "partial")}
    )
    if kind == "partial":
        dims = np.sort(rng.permutation(dim)[: drifts.draw_count(rng, 1, min(3, dim - 1))])
        words = f"the coordinates {drifts.coordinates(dims)}"
        return View(kind, len(dims), lambda x: np.take(x, dims, axis=1), words)
    if kind in ("range", "bearing"):
        m = 2 if kind == "bearing" else min(dim, drifts.draw_count(rng, 1, 3))
        matrix, offset = standardise(np.eye(dim)[np.sort(rng.permutation(dim)[:m])])
        count = drifts.draw_count(rng, 1, 3 if kind == "range" else 2)
        sensors = drifts.draw_vectors(rng, count, m, 1.5 if kind == "bearing" else 0.3, 4.0)
        return sensor_view(kind, matrix, offset, drifts.rounded(sensors))
    rows = drifts.draw_count(rng, 1, min(dim, 3))
    directions = rng.standard_normal((rows, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    offsets: Array | float = 0.0
    if kind in SLOPES:
        directions *= rng.uniform(*SLOPES[kind], (rows, 1))
    if kind in ("square", "saturating sensor"):
        offsets = 0.3 * rng.standard_normal(rows)
    elif kind == "counts":
        offsets = np.log(drifts.log_uniform(rng, 0.5, 30.0, rows))
    return linear_view(kind, *standardise(directions, offsets))


def draw_schedule(rng: Generator) -> ObservedSteps:
    """Draw the steps with an observation: all of them, or a few at the start of every period."""
    if rng.random() >= MISSING_SHARE:
        return ObservedSteps()
    period = drifts.draw_count(rng, 6, 25)
    length = drifts.draw_count(rng, 1, max(2, period // 5))
    return ObservedSteps(period, length, drifts.draw_count(rng, 1, period - length + 1))


def draw_observation(rng: Generator, system: LongRun) -> tuple[Sensing, tuple[str, ...]]:
    """Draw an observation, and return it with its special labels."""
    view = draw_view(rng, system)
    schedule = draw_schedule(rng)
    special = rng.random(2)
    missing = ("missing",) if schedule.period > 1 else ()
    if view.kind == "counts":
        return counts(view, schedule), missing
    observed = view.h(system.states)
    n = len(observed)
    spread = np.sqrt(np.diagonal(moments(observed, np.full(n, 1 / n), view.circular)[1]))
    ratio = drifts.log_uniform(rng, *NOISE_RANGE, view.size)
    sharp = special[0] < SHARP_SHARE
    if sharp:
        first, second = map(view.h, system.successors)
        # spread of the view within one step: half the mean square of the difference of two draws is the variance
        step_spread = np.sqrt((wrap_angles(first - second, view.circular) ** 2).mean(axis=0) / 2)
        ratio = np.maximum(ratio, 1.0)
        ratio[0] = SHARP_RATIO * max(step_spread[0] / spread[0], 0.2)
    else:
        # The product of the small ratios is about the share of particles that survive an observation: they are raised to a
        # common power that makes it large enough.
        small = np.minimum(ratio, 1.0)
        log_smallest = np.log(NOISE_RANGE[0])
        power = log_smallest / min(np.log(small).sum(), log_smallest)
        ratio = np.where(ratio < 1, small**power, ratio)
    # bearings with more noise than half a radian would hardly say anything
    sd = np.minimum(drifts.rounded(ratio * spread), 0.5 if view.circular else np.inf)
    labels = ("sharp", *missing) if sharp else missing
    freedom = None
    if not view.circular and not sharp and special[1] < HEAVY_TAILED_SHARE:
        freedom = drifts.draw_number(rng, 2.5, 6.0)
        labels = ("heavy-tailed", *missing)
    return gaussian_noise(view, sd, schedule, freedom), labels
