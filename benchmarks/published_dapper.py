"""Three settings of DAPPER (Raanes, Chen and Grudzien 2024) without transition noise: two Lorenz systems and a pendulum.

Figures and settings are read in the package's own files, in the version of 26 June 2026: `Lorenz63/ramgraber2022.py`,
`Lorenz96/bocquet2010.py` and `DoublePendulum/settings101.py` in `dapper/mods`. Each lists an error `rmse.a` for methods that
the authors tuned to the setting. Ours are tuned in one number, the rate of the noise that they assume, on other runs than
those of the rows, which have the seeds SEED + k.

python benchmarks/published_dapper.py            the mean errors from which `RATES` was chosen
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from as_published import row
from numba import njit

import herdfilter as hf

SEED = 8_900_000
TUNING_SEEDS = range(100, 112)
"""Seeds of the runs on which the rates of noise were chosen."""
RUNS = 24
PAPER = "DAPPER (Raanes, Chen and Grudzien 2024)"
OTHER = {"verdict": "other filter"}
"""In place of the verdict, where the two are not the same filter."""
NOISELESS = 1e-10
"""Rate of noise of DAPPER's own filter: none, but for a covariance that can be factorised."""
PENDULUM_RATES = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.03)


@dataclass(frozen=True)
class Setting:
    """A system without noise, observed at even times, and what one run of it is."""

    model: Callable[[float], object]
    """From the rate of the noise that a filter assumes, variance for each unit of time."""
    dt: float
    """Time between observations."""
    steps: int
    """Observations of a run."""
    skip: int
    """Of these, as many at the beginning do not count: DAPPER's burn-in."""
    lost_above: float
    """A run with a larger error has lost the track: half the error of the climatology."""
    rates: tuple[float, ...]
    """Rates of noise that are tried out."""


@dataclass(frozen=True)
class Entry:
    """A filter of ours with so many particles, and the figure of DAPPER that it is set beside."""

    setting: str
    n_particles: int
    filter: str
    name: str
    """DAPPER's name of the method that has this figure."""
    theirs: str
    """The figure as it is printed."""
    regularised: tuple[float, float] | None = None
    """Of DAPPER's own particle filter: its `reg` and `NER`."""


def rows(args) -> Iterator[dict]:
    """Return the rows of all settings."""
    for entry in ENTRIES:
        setting = SETTINGS[entry.setting]
        key = entry.setting, entry.n_particles, entry.filter
        rate = NOISELESS if entry.regularised else RATES[key]
        errors = run_errors(setting, entry, rate, range(SEED, SEED + min(RUNS, args.most)))
        lost = np.count_nonzero(errors > setting.lost_above)
        note = (
            ""
            if entry.regularised
            else f"It assumes noise of variance {rate:g} for each unit of time."
        )
        cells = row(
            PAPER,
            f"{entry.setting}, n = {entry.n_particles}",
            f"{entry.filter}, theirs {entry.name}",
            entry.theirs,
            median_with_interval(errors),
            len(errors),
            note,
            their_runs=1,
        )
        yield (cells if entry.regularised else cells | OTHER) | {"lost": lost}


def run_errors(setting: Setting, entry: Entry, rate: float, seeds: Sequence[int]) -> np.ndarray:
    """Return DAPPER's `rmse.a` of each run: the root mean square over components, averaged over the steps that count."""
    errors = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hf.DegeneracyWarning)  # without noise few particles survive
        for seed in seeds:
            truth, z = simulated(setting, np.random.default_rng([seed, 0]))
            filter_rng = np.random.default_rng([seed, 1])
            try:
                result = build(entry, setting.model(rate), filter_rng).run(z, dt=setting.dt)
            except (ValueError, RuntimeError) as error:
                # members are thrown so far that Runge-Kutta overflows, or that a covariance is indefinite by rounding
                if not any(
                    words in str(error) for words in ("finite numbers", "not positive definite")
                ):
                    raise
                errors.append(np.inf)
                continue
            squares = np.mean((result.means - truth)[setting.skip :] ** 2, axis=1)
            errors.append(np.sqrt(squares).mean())
    return np.array(errors)


def build(entry: Entry, model, rng: np.random.Generator):
    """Return the filter of an entry."""
    if entry.regularised:
        reg, ner = entry.regularised
        resampling = hf.RegularisedResampling(reg)
        return hf.ParticleFilter(
            model, entry.n_particles, resampling=resampling, resample_below=ner, rng=rng
        )
    return hf.make_filter(entry.filter, model, n_particles=entry.n_particles, rng=rng)


def simulated(setting: Setting, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Simulate states (T, d), without any noise of the transition, and their observations (T, k)."""
    model = setting.model(NOISELESS)
    x = model.initial.sample(1, rng)
    truth = []
    for step in range(1, setting.steps + 1):
        x = model.transition_mean(x, setting.dt, None, step)
        truth.append(x[0])
    truth = np.array(truth)
    clean = model.observation_mean(truth, 1)
    covariance = model.observation_covariance(1)
    noise = rng.standard_normal(clean.shape) @ np.linalg.cholesky(covariance).T
    return truth, clean + noise


def median_with_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Median over runs (n,), which a lost track does not rule, with the 95 % interval of 2,000 bootstrap samples."""
    picks = np.random.default_rng(0).integers(len(values), size=(2000, len(values)))
    low, high = np.quantile(np.median(values[picks], axis=1), (0.025, 0.975))
    return float(np.median(values)), float(low), float(high)


# The double pendulum: two masses of 1 on rods of length 1


def double_pendulum(rate: float):
    """Return the pendulum with both angles observed; its angles are not wrapped, as in DAPPER."""
    return hf.models.from_functions(
        f=swing,
        h=lambda x: x[:, [0, 2]],
        Q=lambda dt: rate * dt * np.eye(4),
        R=0.01 * np.eye(2),
        initial_mean=np.radians([130.0, 0.0, -10.0, 0.0]),
        initial_covariance=1e-4 * np.eye(4),
    )


def swing(x: np.ndarray, dt: float) -> np.ndarray:
    """States (n, 4), angles and angular velocities in turn, after Runge-Kutta steps of 0.01."""
    return integrated(np.ascontiguousarray(x), 0.01, round(dt / 0.01))


@njit(cache=True, nogil=True)
def integrated(x, h, steps):
    """Advance each state by the classical Runge-Kutta method."""
    advanced = np.empty_like(x)
    for i in range(len(x)):
        state = x[i].copy()
        for _ in range(steps):
            a = slopes(state)
            b = slopes(state + 0.5 * h * a)
            c = slopes(state + 0.5 * h * b)
            d = slopes(state + h * c)
            state = state + h / 6.0 * (a + 2.0 * (b + c) + d)
        advanced[i] = state
    return advanced


@njit(cache=True, nogil=True)
def slopes(x):
    """Return the derivatives of angle and angular velocity of the first rod and of the second."""
    g = 9.8
    first, second = np.sin(x[0]), np.sin(x[2])
    sine, cosine = np.sin(x[2] - x[0]), np.cos(x[2] - x[0])
    denominator = 2.0 - cosine**2
    out = np.empty(4)
    out[0] = x[1]
    out[2] = x[3]
    inner = x[1] ** 2 * sine
    outer = x[3] ** 2 * sine
    out[1] = (inner * cosine + g * second * cosine + outer - 2.0 * g * first) / denominator
    out[3] = (
        -outer * cosine + 2.0 * g * first * cosine - 2.0 * inner - 2.0 * g * second
    ) / denominator
    return out


def lorenz63(rate: float):
    """Return the system of `ramgraber2022.py`."""
    return hf.models.Lorenz63(
        noise_rate=rate,
        observation_variance=4.0,
        integration_step=0.05,
        initial_mean=np.zeros(3),
        initial_variance=1.0,
    )


def lorenz96(rate: float):
    """Return the system of `bocquet2010.py`; its observations have a standard deviation of 1.5."""
    return hf.models.Lorenz96(
        noise_rate=rate,
        observation_variance=2.25,
        initial_mean=np.zeros(10),
        initial_variance=0.001,
    )


SETTINGS = {
    "Lorenz-63": Setting(lorenz63, 0.1, 1000, 160, 3.8, (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)),
    "Lorenz-96": Setting(lorenz96, 0.05, 1280, 400, 1.8, (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)),
    "pendulum, dko = 10": Setting(double_pendulum, 0.1, 300, 100, 2.5, PENDULUM_RATES),
    "pendulum, dko = 60": Setting(double_pendulum, 0.6, 50, 16, 2.5, PENDULUM_RATES),
    "pendulum, dko = 100": Setting(double_pendulum, 1.0, 30, 10, 2.5, PENDULUM_RATES),
}


def entries(
    setting: str, n: int, filters: Sequence[str], name: str, theirs: str, **options
) -> list[Entry]:
    """Return entries that are set beside the same figure."""
    return [Entry(setting, n, label, name, theirs, **options) for label in filters]


def particle_filters(
    setting: str, n: int, theirs: str, regularised: tuple[float, float]
) -> list[Entry]:
    """Return the entry of DAPPER's own particle filter with us, which checks that the setting is the same."""
    return entries(setting, n, ["regularised"], "PartFilt", theirs, regularised=regularised)


RANKED = ("auto", "ranked")
ALL = ("auto", "ranked", "enkf")
ENTRIES = [
    *entries("Lorenz-63", 10, ["enkf"], "EnKF_N", "0.43"),
    *entries("Lorenz-63", 10, ["auto"], "iEnKS", "0.32"),
    *particle_filters("Lorenz-63", 100, "0.39", (2.4, 0.3)),
    *entries("Lorenz-63", 100, ALL, "PartFilt", "0.39"),
    *particle_filters("Lorenz-63", 800, "0.28", (0.9, 0.2)),
    *entries("Lorenz-63", 800, RANKED, "PartFilt", "0.28"),
    *particle_filters("Lorenz-63", 4000, "0.24", (0.7, 0.05)),
    *entries("Lorenz-63", 4000, RANKED, "PartFilt", "0.24"),
    *entries("Lorenz-96", 8, ["auto", "enkf"], "EnKF_N", "0.44"),
    *particle_filters("Lorenz-96", 100, "0.43", (1.3, 0.2)),
    *entries("Lorenz-96", 100, ALL, "PFxN_EnKF", "0.36"),
    *particle_filters("Lorenz-96", 800, "0.29", (0.8, 0.2)),
    *entries("Lorenz-96", 800, RANKED, "OptPF", "0.28"),
    *entries("pendulum, dko = 10", 5, ["auto", "enkf"], "EnKF", "0.10"),
    *particle_filters("pendulum, dko = 10", 40, "0.12", (1.0, 0.9)),
    *entries("pendulum, dko = 10", 40, ALL, "PartFilt", "0.12"),
    *entries("pendulum, dko = 60", 10, ["auto"], "iEnKS", "0.14"),
    *entries("pendulum, dko = 60", 20, ["enkf"], "EnKF", "0.41"),
    *particle_filters("pendulum, dko = 60", 400, "0.15", (1.0, 0.9)),
    *entries("pendulum, dko = 60", 400, RANKED, "PartFilt", "0.15"),
    *entries("pendulum, dko = 100", 10, ["auto"], "iEnKS", "0.19"),
    *entries("pendulum, dko = 100", 40, ["enkf"], "EnKF", "1.9"),
    *particle_filters("pendulum, dko = 100", 1000, "0.19", (1.0, 0.9)),
    *entries("pendulum, dko = 100", 1000, RANKED, "PartFilt", "0.19"),
]

RATES = {
    ("Lorenz-63", 10, "enkf"): 0.1,
    ("Lorenz-63", 10, "auto"): 0.001,
    ("Lorenz-63", 100, "auto"): 0.003,
    ("Lorenz-63", 100, "ranked"): 0.1,
    ("Lorenz-63", 100, "enkf"): 0.001,
    ("Lorenz-63", 800, "auto"): 0.003,
    ("Lorenz-63", 800, "ranked"): 0.003,
    ("Lorenz-63", 4000, "auto"): 0.0003,
    ("Lorenz-63", 4000, "ranked"): 0.0003,
    ("Lorenz-96", 8, "auto"): 3.0,
    ("Lorenz-96", 8, "enkf"): 1.0,
    ("Lorenz-96", 100, "auto"): 0.1,
    ("Lorenz-96", 100, "ranked"): 1.0,
    ("Lorenz-96", 100, "enkf"): 0.01,
    ("Lorenz-96", 800, "auto"): 0.3,
    ("Lorenz-96", 800, "ranked"): 0.3,
    ("pendulum, dko = 10", 5, "auto"): 0.03,
    ("pendulum, dko = 10", 5, "enkf"): 0.01,
    ("pendulum, dko = 10", 40, "auto"): 1e-6,
    ("pendulum, dko = 10", 40, "ranked"): 0.01,
    ("pendulum, dko = 10", 40, "enkf"): 1e-6,
    ("pendulum, dko = 60", 10, "auto"): 0.01,
    ("pendulum, dko = 60", 20, "enkf"): 1e-6,
    ("pendulum, dko = 60", 400, "auto"): 1e-4,
    ("pendulum, dko = 60", 400, "ranked"): 0.001,
    ("pendulum, dko = 100", 10, "auto"): 0.01,
    ("pendulum, dko = 100", 40, "enkf"): 1e-6,
    ("pendulum, dko = 100", 1000, "auto"): 1e-4,
    ("pendulum, dko = 100", 1000, "ranked"): 1e-4,
}
"""Rate of noise that a filter assumes, by setting, number of particles and filter: the one with the smallest mean error."""


def tune() -> None:
    """Print the mean error of each entry's tuning runs by rate of noise, and the rate that has the smallest."""
    for entry in ENTRIES:
        if entry.regularised:
            continue
        setting = SETTINGS[entry.setting]
        errors = {
            rate: float(run_errors(setting, entry, rate, TUNING_SEEDS).mean())
            for rate in setting.rates
        }
        best = min(errors, key=errors.get)
        key = entry.setting, entry.n_particles, entry.filter
        print(
            f"    {key}: {best:g},  #",
            {f"{r:g}": round(e, 3) for r, e in errors.items()},
            flush=True,
        )


if __name__ == "__main__":
    tune()
