"""Means, covariances and likelihoods are the library's own, for representative classes of its."""

import pickle
from datetime import timedelta

import numpy as np
import pytest
from helpers import EYE, cases, refuses
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter.models.resolved import Measurement

pytest.importorskip("stonesoup", reason="the optional library Stone Soup is not installed")

from stonesoup.models.measurement import nonlinear as seen
from stonesoup.models.measurement.gas import IsotropicPlume
from stonesoup.models.measurement.linear import LinearGaussian
from stonesoup.models.transition import linear as moved_linearly
from stonesoup.models.transition import nonlinear as moved
from stonesoup.models.transition.base import CombinedGaussianTransitionModel
from stonesoup.models.transition.categorical import MarkovianTransitionModel
from stonesoup.models.transition.linear import ConstantVelocity
from stonesoup.types.array import StateVector, StateVectors
from stonesoup.types.mixture import GaussianMixture
from stonesoup.types.state import (
    EnsembleState,
    GaussianState,
    InformationState,
    MultiModelParticleState,
    ParticleState,
    SqrtGaussianState,
    State,
    WeightedGaussianState,
)

from herdfilter.adapters.stone_soup import from_stonesoup

WALK = moved_linearly.RandomWalk(0.4)
TURN = moved.ConstantTurn([0.3, 0.2], 0.01)
VELOCITIES = [ConstantVelocity(0.2), ConstantVelocity(0.5)]

TRANSITIONS = [
    VELOCITIES[0],
    moved_linearly.Singer(0.3, 0.7),
    moved_linearly.KnownTurnRateSandwich([0.3, 0.2], 0.05, VELOCITIES),
    moved_linearly.LinearGaussianTimeInvariantTransitionModel(
        transition_matrix=np.array([[1.0, 0.5], [0.0, 0.9]]), covariance_matrix=np.diag([0.1, 0.2])
    ),
    CombinedGaussianTransitionModel([TURN, WALK]),
    TURN,
    moved.ConstantTurnSandwich([0.3, 0.2], 0.01, [ConstantVelocity(0.1)]),
]


def noise(*sds):
    return np.diag(np.square(sds))


AT = {
    "translation_offset": StateVector([[5.0], [-3.0], [2.0]]),
    "rotation_offset": StateVector([[0.1], [0.2], [0.4]]),
}
FLAT = {
    "translation_offset": StateVector([[5.0], [-3.0]]),
    "rotation_offset": StateVector([[0.0], [0.0], [0.4]]),
}
MOVING = {**AT, "velocity_mapping": (1, 3, 5), "velocity": StateVector([[0.3], [0.1], [-0.2]])}
SPACE = (6, (0, 2, 4))
PLANE = (4, (0, 2))
POSITION = LinearGaussian(4, (0, None, 2), noise(1, 2, 3))
BEARING = seen.Cartesian2DToBearing(*PLANE, noise(0.1), **FLAT)
EVERYTHING = {**MOVING, "range_res": 0.5, "range_rate_res": 0.2}

MEASUREMENTS = [
    (POSITION, ()),
    (seen.CartesianToElevationBearingRange(*SPACE, noise(0.1, 0.2, 1), **AT), (1,)),
    (seen.CartesianToBearingRange(*PLANE, noise(0.1, 1), **FLAT), (0,)),
    (seen.CartesianToElevationBearing(*SPACE, noise(0.1, 0.2), **AT), (1,)),
    (BEARING, (0,)),
    (seen.CartesianToBearingRangeRate(*SPACE, noise(0.1, 1, 0.5), **MOVING), (0,)),
    (seen.CartesianToElevationBearingRangeRate(*SPACE, noise(0.1, 0.2, 1, 0.5), **MOVING), (1,)),
    (seen.RangeRangeRateBinning(*SPACE, noise(0.1, 0.2, 1, 0.5), **EVERYTHING), (1,)),
    (seen.CartesianToAzimuthElevationRange(*SPACE, noise(0.1, 0.2, 1), **AT), (0,)),
    (seen.CombinedReversibleGaussianMeasurementModel([POSITION, BEARING]), (3,)),
    (seen.CartesianToBearingRangeRate2D(*PLANE, noise(0.1, 1, 0.5), **FLAT), (0,)),
]
if hasattr(seen, "CartesianToElevationRateBearingRateRangeRate"):  # since 1.9
    rates = noise(0.1, 0.2, 1, 1, 1, 0.5)
    MEASUREMENTS += [
        (seen.CartesianToElevationRateBearingRateRangeRate(*SPACE, rates, **MOVING), (1,))
    ]


def class_name(value):
    return None if isinstance(value, tuple) else type(value).__name__


def one_by_one(model, x, **given):
    return np.hstack(
        [
            np.asarray(
                model.function(State(StateVector(row.copy())), noise=False, **given), dtype=float
            )
            for row in x
        ]
    ).T


@cases("model", *TRANSITIONS, ids=class_name)
def test_transitions_are_the_librarys(model):
    dt = 0.5
    ours = from_stonesoup(model)
    given = {"time_interval": timedelta(seconds=dt)}
    x = default_rng(5).standard_normal((7, ours.dim))
    x[0] = 0.0  # a turn rate of zero, too
    before = x.copy()
    assert_allclose(
        ours.transition_mean(x, dt, None, 1), one_by_one(model, x, **given), rtol=1e-12, atol=1e-12
    )
    assert_array_equal(x, before)
    assert_allclose(ours.transition_covariance(dt, 1), model.covar(**given), rtol=1e-12)
    if hasattr(ours, "transition_jacobian"):
        jacobian = ours.transition_jacobian(x, dt, None, 1)
        assert_allclose((jacobian @ x[:, :, None])[..., 0], ours.transition_mean(x, dt, None, 1))


@cases("model circular", *MEASUREMENTS, ids=class_name)
def test_measurements_are_the_librarys(model, circular):
    sensor = from_stonesoup(measurement_model=model)
    x = 3 * default_rng(5).standard_normal((7, model.ndim_state))
    assert_allclose(sensor.mean(x), one_by_one(model, x), rtol=1e-12, atol=1e-12)
    assert_allclose(sensor.covariance, model.covar(), rtol=1e-12)
    assert sensor.circular == circular
    z = sensor.mean(x[:1])[0] + 0.1
    if isinstance(model, seen.RangeRangeRateBinning):  # in the middle of their bins
        z[2:] = 0.5 * np.floor(z[2] / 0.5) + 0.25, 0.2 * np.floor(z[3] / 0.2) + 0.1
    state = State(StateVector(z))
    # elevations less than a quarter turn apart
    near = x[0] + 0.3 * default_rng(5).standard_normal((3, model.ndim_state))
    theirs = [float(model.logpdf(state, State(StateVector(row)))) for row in near]
    likelihood = Measurement(sensor.on(None)).log_likelihood(z, near, 1)
    assert_allclose(likelihood, theirs, rtol=1e-10)


def test_times_are_not_rounded_to_microseconds():
    model = from_stonesoup(ConstantVelocity(2.0))
    dt = 1e-7 / 3
    covariance = np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]]) * 2.0
    assert_allclose(model.transition_covariance(dt, 1), covariance, rtol=1e-12)
    assert_allclose(
        model.transition_mean(np.array([[1.0, 3.0]]), dt, None, 1)[0, 0] - 1, 3 * dt, rtol=1e-8
    )


def test_whole_model_is_a_copy_that_can_be_sent_to_another_process():
    radar = seen.CartesianToBearingRange(*PLANE, noise(0.1, 1), **FLAT)
    motion = moved_linearly.CombinedLinearGaussianTransitionModel(
        [ConstantVelocity(0.2), ConstantVelocity(0.5)]
    )
    model = from_stonesoup(motion, radar, GaussianState([0, 1, 0, 1], np.eye(4)))
    z = np.array([[3.0, 5.0]] * 4)
    before = hf.ParticleFilter(model, 20, hf.RankedProposal()).run(z)
    motion.model_list[0].noise_diff_coeff = 99.0
    radar.noise_covar = 99 * radar.noise_covar
    again = hf.ParticleFilter(pickle.loads(pickle.dumps(model)), 20, hf.RankedProposal()).run(z)
    assert_array_equal(again.means, before.means)
    assert "CartesianToBearingRange" in repr(model)


class Sine(ConstantVelocity):
    """Another function, and additive noise."""

    def function(self, state, noise=False, **kwargs):
        moved = np.sin(state.state_vector)
        return moved if noise is False else moved + noise


def test_a_function_of_its_own_is_taken():
    x = np.array([[0.1, 0.2], [0.3, 0.4]])
    patched = ConstantVelocity(1.0)
    patched.function = Sine(1.0).function
    for model in (Sine(1.0), patched):
        assert_allclose(from_stonesoup(model).transition_mean(x, 1.0, None, 1), np.sin(x))


def test_model_weighs_states_by_its_own_likelihood_where_that_is_not_gaussian():
    plume = IsotropicPlume()
    x = np.array([[3.0, 4, 1, 5, 2, 0.3, 1, 8], [5.0, 1, 1, 5, 2, 0.3, 1, 8]])
    sensor = from_stonesoup(plume)
    theirs = plume.logpdf(State(StateVector([0.3])), State(StateVectors(x.T)))
    assert_allclose(sensor.log_likelihood(np.array([0.3]), x), theirs)
    assert sensor.mean is None


PRIOR = GaussianState([[1.0], [2.0]], [[2.0, 0.5], [0.5, 1.0]])


@cases(
    "prior",
    SqrtGaussianState(PRIOR.mean, np.linalg.cholesky(PRIOR.covar)),
    InformationState.from_gaussian_state(PRIOR),
    ids=lambda prior: type(prior).__name__,
)
def test_gaussian_priors(prior):
    initial = from_stonesoup(ConstantVelocity(1.0), prior=prior).initial
    assert_allclose(initial.mean, [1.0, 2.0], rtol=1e-12)
    assert_allclose(initial.covariance, PRIOR.covar, rtol=1e-12)


def test_mixtures_and_particles_as_priors():
    parts = [WeightedGaussianState([k, 0.0], EYE, weight=w) for k, w in ((0.0, 0.25), (4.0, 0.75))]
    mixture = from_stonesoup(ConstantVelocity(1.0), prior=GaussianMixture(parts)).initial
    assert_allclose(mixture.weights, [0.25, 0.75])
    assert_allclose(mixture.mean, [3.0, 0.0])
    x = np.array([[0.0, 1], [1, 2], [2, 3], [3, 4]])
    for prior in (
        EnsembleState(StateVectors(x.T)),
        ParticleState(StateVectors(x.T), weight=[0.25] * 4),
    ):
        model = from_stonesoup(ConstantVelocity(1.0), prior=prior)
        assert_array_equal(np.unique(hf.ParticleFilter(model, 8, rng=0).particles, axis=0), x)
        assert_allclose(model.initial.mean, [1.5, 2.5])


test_what_cannot_be_converted_is_named_with_the_reason = refuses(
    from_stonesoup,
    (MarkovianTransitionModel(EYE), "transition_model: MarkovianTransitionModel cannot be converted.*Gaussian"),
    (ConstantVelocity(1.0), POSITION, "LinearGaussian: expected states of 2 dimensions, got 4"),
    (ConstantVelocity(1.0), None, State([1.0, 2.0]), "prior: .*got State, which has neither; give a Gauss"),
    (
        ConstantVelocity(1.0), None, MultiModelParticleState(StateVectors(np.ones((2, 3)))),
        "prior: .*MultiModelParticleState: each of its particles moves by",
    ),
    error=(TypeError, ValueError),
)  # fmt: skip
