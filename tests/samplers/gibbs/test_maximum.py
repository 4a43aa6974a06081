"""The exact one-dimensional maximum against a dense grid and scipy; herded Gibbs points show most of it already."""

from itertools import product

import numpy as np
import pytest
from numba import njit
from scipy.optimize import minimize_scalar

from herdfilter.samplers.gibbs import maximum as compiled

pytestmark = pytest.mark.slow

LEFT_OUT = 2e-8  # of all subtracted height: what samples out of reach may contribute


@njit
def maximise(bumps, positive, count, guess, near, table, stack):
    return compiled.maximise_bumps(bumps, positive, count, guess, near, table, stack)


class Bumps:
    """A sum of bumps as herding has them: broad positive ones, and samples of width 1 with total height -1."""

    def __init__(self, share, deviation, centre, samples=(), sample_share=None, factor=None):
        deviation, samples = np.asarray(deviation, float), np.asarray(samples, float)
        t = len(samples)
        self.positive = len(deviation)
        subtracted = np.full(t, 1 / max(t, 1)) if sample_share is None else sample_share
        self.height = np.concatenate([(factor or 1 + 1 / max(t, 1)) * np.asarray(share) / deviation, -subtracted])
        self.centre = np.concatenate([np.asarray(centre, float), samples])
        self.narrowness = np.concatenate([deviation**-2.0, np.ones(t)])

    @classmethod
    def random(cls, rng):
        components, t = rng.integers(1, 6), rng.integers(0, 40)
        spread = np.exp(rng.uniform(0, 6))
        deviation = np.sqrt(1 + np.exp(rng.uniform(-8, 2, components)) * spread ** rng.uniform(0, 2))
        if rng.random() < 0.3:
            deviation[:] = deviation[0]
        share, centre = rng.dirichlet(np.ones(components)), spread * rng.standard_normal(components)
        near = rng.choice(components, t, p=share)
        samples = centre[near] + rng.choice([0.3, 1.0]) * deviation[near] * rng.standard_normal(t)
        sample_share = rng.dirichlet(np.full(t, rng.choice([0.1, 1.0, 10.0]))) if t else np.empty(0)
        return cls(share, deviation, centre, samples, sample_share, 1 + rng.choice([1 / max(t, 1), rng.uniform(0, 1)]))

    def __call__(self, x):
        u = np.asarray(x)[..., None] - self.centre
        return np.exp(-0.5 * self.narrowness * u * u) @ self.height

    def argmax(self, guess):
        n = len(self.height)
        bumps, search = compiled.empty_bumps(n), compiled.empty_search(n)
        bumps[compiled.HEIGHT, :n], bumps[compiled.CENTRE, :n] = self.height, self.centre
        bumps[compiled.NARROWNESS, :n], bumps[compiled.WIDTH, :n] = self.narrowness, self.narrowness**-0.5
        return maximise(bumps, self.positive, n, float(guess), *search)

    def highest(self, grid):
        f = self(grid)
        peaks = 1 + np.flatnonzero((f[1:-1] >= f[:-2]) & (f[1:-1] >= f[2:]))
        peaks = peaks[f[peaks] > 0.99 * f.max()]
        brackets = [(grid[k - 1], grid[k + 1]) for k in peaks]
        tops = (-minimize_scalar(lambda v: -self(v), bounds=b, method="bounded").fun for b in brackets)
        return max(tops, default=f.max())

    def dense_grid(self):
        deviation = self.narrowness[: self.positive] ** -0.5
        centre = self.centre[: self.positive]
        low, high = (centre - 7 * deviation).min(), (centre + 7 * deviation).max()
        return np.linspace(low, high, int((high - low) / 0.1) + 10)


def test_random_sums_whatever_the_guess():
    rng = np.random.default_rng(0)
    for _ in range(100):
        bumps = Bumps.random(rng)
        guided, misled = (bumps(bumps.argmax(guess)) for guess in (rng.choice(bumps.centre), 1e7))
        assert guided >= bumps.highest(bumps.dense_grid()) - LEFT_OUT
        assert misled == pytest.approx(guided, abs=LEFT_OUT)


@pytest.mark.parametrize(("gap", "distance"), [(1e-3, 3.0), (1e-7, 10.0), (1e-7, 1000.0)])
def test_near_ties_go_to_the_higher_peak(gap, distance):
    """Two like peaks that lie differently to the cells of any grid, the second a little heavier, or the first."""
    for offset, sign in product(np.linspace(0, 1, 4), (-1, 1)):
        share = np.array([1.0 - sign * gap, 1.0 + sign * gap]) / 2
        bumps = Bumps(share, [1.0, 1.0], [offset, offset + distance])
        nearest = offset + (distance if sign > 0 else 0)
        for guess in (offset, offset + distance):
            assert bumps.argmax(guess) == pytest.approx(nearest, abs=0.1)


def test_near_ties_between_the_gaps_of_samples():
    """Many almost equal peaks: a broad bump, with samples spaced unevenly to one part in 1e4."""
    rng = np.random.default_rng(1)
    for _ in range(15):
        samples = np.arange(-60, 61, 3.0) * (1 + 1e-4 * rng.standard_normal(41))
        bumps = Bumps([1.0], [200.0], [rng.uniform(-20, 20)], samples)
        reached = bumps(bumps.argmax(guess=rng.choice(samples)))
        assert reached >= bumps.highest(bumps.dense_grid()) - LEFT_OUT


@pytest.mark.parametrize("spread", [1e2, 1e5])
def test_bumps_far_apart(spread):
    rng = np.random.default_rng(2)
    for k in range(20):
        components = rng.integers(2, 6)
        deviation = rng.choice([1.0, 2.0, 30.0], components) if k % 2 else np.full(components, 1.5)
        centre, share = spread * rng.standard_normal(components), rng.dirichlet(np.ones(components))
        samples = centre[rng.choice(components, 6, p=share)] + rng.standard_normal(6)
        bumps = Bumps(share, deviation, centre, samples)
        best = max(bumps.highest(np.linspace(c - 7 * s, c + 7 * s, 3001)) for c, s in zip(centre, deviation, strict=True))
        assert bumps(bumps.argmax(guess=centre[-1])) >= best - LEFT_OUT
