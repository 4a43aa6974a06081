"""Covariances that a model gives: what passes, what is refused, by whomever it is used."""

import numpy as np
from helpers import EYE, Walk, cases, normal, refusal
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter.filters.kalman.gaussian import kalman_mixture
from herdfilter.models.simulation import simulate_observations

WRONG = {
    "negative": (-EYE, "positive semi-definite matrices, got an eigenvalue of -1"),
    "negative in the smaller unit": (np.diag([1e10, -1e-3]), "an eigenvalue of -0.001"),
    "indefinite in units far apart": ([[1e10, 1.5e5], [1.5e5, 1.0]], "an eigenvalue of"),
    "asymmetric in units far apart": ([[1e10, 1e4], [0.0, 1.0]], "an asymmetry of 10000"),
    "complex": (1j * EYE, r"numbers of shape \(2, 2\), got complex numbers"),
    "NaN": (np.full((2, 2), np.nan), "finite numbers, got 4 non-finite"),
    "too large": (1e301 * EYE, "variances up to 1e.300, got 1e.301; choose larger units"),
}


class Plane(Walk):
    """A walk in a plane, whose covariances are these attributes since a step."""

    dim = 2
    initial = normal(np.zeros(2))
    Q = R = EYE
    since = 1

    def transition_covariance(self, dt, step):
        return self.Q if step >= self.since else EYE

    def observation_covariance(self, step):
        return self.R if step >= self.since else EYE


Z = [[0.1, 0.2], [0.3, 0.1], [0.2, 0.2]]


def smoothed(model):
    result = hf.ParticleFilter(Plane(), 5, rng=1).run(Z, keep_particles=True)
    return hf.backward_simulation(model, result, 3, 1)


def simulated(model):
    hf.simulate(model, 3, 1)


MOVES = [
    smoothed,
    lambda model: hf.GridFilter(model, -10, 10, 90).run(Z),
    lambda model: hf.ParticleFilter(model, 5, rng=1).run(Z),
    lambda model: hf.ExtendedKalmanFilter(model).run(Z),
]
LOOKS = [
    lambda model: simulate_observations(model, np.array(Z), np.random.default_rng(1)),
    lambda model: kalman_mixture(hf.Observation.read(model, Z[0], 3), Plane.initial),
    lambda model: hf.EnsembleKalmanFilter(model, 5, rng=1).run(Z),
    MOVES[-1],
    lambda model: hf.DaumHuangFilter(model, 5, rng=1).run(Z),
]


@cases("wrong", *WRONG)
def test_a_wrong_covariance_is_named_with_its_step(wrong):
    """All of them where the state is simulated, one in each place that asks for one."""
    matrix, message = WRONG[wrong]
    everywhere = wrong == "NaN"
    for use in [simulated, *MOVES * everywhere]:
        with refusal(rf"^transition_covariance: expected .*{message}.* at step 3$"):
            use(Plane(Q=matrix, since=3))
    for use in [simulated, *LOOKS * everywhere]:
        with refusal(f"^observation_covariance: expected .*{message}.* at step 3$"):
            use(Plane(R=matrix, since=3))


def test_a_wrong_covariance_of_the_initial_state_is_named():
    matrix, message = WRONG["negative"]

    class Guess:
        mean = np.zeros(2)
        covariance = matrix

    model = Plane()
    model.initial = Guess()
    with refusal(f"^initial.covariance: expected .*{message}"):
        hf.ExtendedKalmanFilter(model)


def of_rank_one(scale, dtype=np.float64):
    """Noise of a constant velocity, which a product leaves singular up to rounding."""
    gain = np.array([scale * 0.7**2 / 2, 0.7], dtype=dtype)
    return np.outer(gain, gain)


RIGHT = {
    "one direction": np.diag([0.0, 1.0]),
    "constant velocity in small units": of_rank_one(1e7),
    "single precision": of_rank_one(3.0, np.float32),
    "sum of products": sum(np.outer(g, g) for g in (np.array([0.1, 0.3]), np.array([0.2, 0.6]))),
    "negative by rounding": [[1.0, 0.0], [0.0, -1e-17]],
    "asymmetric by rounding": [[1.0, 0.1], [np.nextafter(0.1, 1.0), 1.0]],
    "tiny": 1e-200 * EYE,
    "large": 1e290 * EYE,
}


@cases("right", *RIGHT)
def test_what_is_semi_definite_up_to_rounding_passes(right):
    """It stays what it is, but for rounding: a symmetric matrix to the last digit, its factor a factor of it."""
    given = np.array(RIGHT[right], dtype=float)
    model = Plane(Q=RIGHT[right])
    Q = hf.Transition(model).noise.matrix
    size = np.abs(given).max()
    assert_array_equal(Q, Q.T)
    assert_allclose(Q, given, rtol=1e-15, atol=1e-15 * size)
    if (given == given.T).all() and (np.diag(given) >= 0).all():
        assert_array_equal(Q, given)
    noise = EYE
    moved = hf.Transition(model).propagate(np.zeros((2, 2)), noise)
    assert_allclose(moved.T @ moved, given, atol=1e-6 * size)
    assert np.isfinite(hf.ExtendedKalmanFilter(model).run([None] * 2).covariances).all()
