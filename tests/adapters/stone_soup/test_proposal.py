"""The library's particle filter with our proposals, beside our own filters and the library's Kalman filter."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from helpers import assert_same, cases, refuses
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

import herdfilter as hf

pytest.importorskip("stonesoup", reason="the optional library Stone Soup is not installed")

from stonesoup.models.measurement.linear import LinearGaussian
from stonesoup.models.transition.linear import (
    CombinedLinearGaussianTransitionModel,
    ConstantVelocity,
    RandomWalk,
)
from stonesoup.predictor.kalman import KalmanPredictor
from stonesoup.types.angle import Bearing
from stonesoup.types.array import StateVector, StateVectors
from stonesoup.types.detection import Detection
from stonesoup.types.hypothesis import SingleHypothesis
from stonesoup.types.state import BernoulliParticleState, GaussianState, ParticleState
from stonesoup.updater.kalman import KalmanUpdater

from herdfilter.adapters.stone_soup import HerdfilterProposal, from_stonesoup

START = datetime(2030, 1, 1)
SECOND = timedelta(seconds=1)
SOBOL = hf.SobolSampling()
PROPOSALS = [
    hf.AutomaticProposal(),
    hf.RankedProposal(),
    hf.HerdedProposal(SOBOL),
    hf.AugmentedProposal(hf.GaussianFit(), SOBOL),
    hf.KalmanMixtureProposal(SOBOL),
    hf.GuidedProposal(),
    hf.BootstrapProposal(),
]


def tracked(tutorial, measurements, n):
    """States after each measurement, by our default proposal and n particles."""
    ours = HerdfilterProposal(tutorial.motion)
    return tutorial.track(ours, ours.initial(tutorial.prior, n), measurements)[0]


def means(states):
    return np.hstack([np.asarray(state.mean, dtype=float) for state in states]).T


@cases(
    "proposal look",
    *((proposal, True) for proposal in PROPOSALS),
    (PROPOSALS[0], False),
    (PROPOSALS[2], False),
)
def test_their_filter_with_our_proposal_is_our_filter(tutorial, proposal, look):
    """Particles, weights and evidence, after their updater has multiplied the weights by the likelihood."""
    measurements = tutorial.detections()
    ours = HerdfilterProposal(tutorial.motion, proposal=proposal, rng=4)
    posteriors, predictions = tutorial.track(
        ours, ours.initial(tutorial.prior, 30), measurements, look
    )
    model = from_stonesoup(tutorial.motion, tutorial.radar, tutorial.prior)
    pf = hf.ParticleFilter(model, 30, proposal, resample_below=0.0, rng=4)
    evidence = 0.0
    for measurement, posterior, prediction in zip(
        measurements, posteriors, predictions, strict=True
    ):
        pf.predict()
        if not look:
            pf.update(None)  # so that the particles are moved before the observation comes
        pf.update(np.asarray(measurement.state_vector, dtype=float)[:, 0])
        assert_allclose(posterior.state_vector.T, pf.particles, rtol=1e-9, atol=1e-9)
        assert_allclose(np.exp(posterior.log_weight), pf.weights, rtol=1e-7, atol=1e-12)
        likelihood = tutorial.radar.logpdf(measurement, prediction)
        evidence += logsumexp(prediction.log_weight + likelihood)
    assert_allclose(evidence, pf.log_likelihood, rtol=1e-8)


def test_on_a_linear_model_it_is_their_kalman_filter(tutorial):
    sensor = LinearGaussian(4, (0, 2), np.diag([1.0, 2.0]))
    measurements = tutorial.detections(sensor=sensor)
    posteriors = tracked(tutorial, measurements, 32)
    predictor = KalmanPredictor(tutorial.motion)
    updater = KalmanUpdater(sensor)
    state = tutorial.prior
    for measurement, posterior in zip(measurements, posteriors, strict=True):
        state = updater.update(
            SingleHypothesis(predictor.predict(state, measurement.timestamp), measurement)
        )
        assert_same(posterior, state, "mean", "covar", atol=1e-07)


def test_runs_are_bit_identical_whatever_the_hour_and_the_global_stream(tutorial):
    runs = []
    for seed, start in ((0, tutorial.start), (1, datetime(2031, 5, 6, 7, 8, 9, 17, tzinfo=UTC))):
        np.random.seed(seed)  # noqa: NPY002  the stream that the library draws from
        prior = GaussianState(tutorial.prior.state_vector, tutorial.prior.covar, timestamp=start)
        ours = HerdfilterProposal(tutorial.motion)
        for _ in range(2):  # nothing is kept in the proposal
            states = tutorial.track(
                ours, ours.initial(prior, 30), tutorial.detections(start=start)
            )[0]
            runs.append(means(states))
    for run in runs[1:]:
        assert_array_equal(run, runs[0])


def test_second_detection_at_the_same_time_moves_nothing(tutorial):
    first = tutorial.detections(1)[0]
    second = Detection(first.state_vector, first.timestamp, measurement_model=tutorial.radar)
    posteriors = tracked(tutorial, [first, second], 30)
    assert_array_equal(posteriors[1].state_vector, posteriors[0].state_vector)
    twice = posteriors[0].log_weight + tutorial.radar.logpdf(second, posteriors[0])
    assert_allclose(posteriors[1].log_weight, twice - logsumexp(twice))


def test_bearings_in_the_state_stay_what_they_are():
    """A heading near half a turn, seen across the cut."""
    turning = RandomWalk(0.01)
    compass = LinearGaussian(1, [0], np.array([[0.04]]))
    prior = GaussianState(StateVector([[Bearing(3.1)]]), [[0.01]], timestamp=START)
    ours = HerdfilterProposal(turning, compass)
    state = ours.initial(prior, 50)
    assert isinstance(state.state_vector[0, 0], Bearing)
    moved = ours.rvs(state, time_interval=SECOND)
    assert isinstance(moved.state_vector[0, 0], Bearing)
    assert_allclose(np.cos(float(moved.mean[0, 0]) - 3.1), 1.0, atol=1e-6)
    assert_allclose(moved.covar[0, 0], 0.02, rtol=0.1)
    assert from_stonesoup(turning, prior=state).circular == (0,)


def particles(kind=ParticleState, log_weight=(-1.6, -1.2, -0.7)):
    vectors = StateVectors(np.ones((4, 3)))
    return kind(vectors, log_weight=np.array(log_weight), timestamp=START)


test_what_cannot_be_predicted_is_named = refuses(
    lambda prior, seconds, measurement: HerdfilterProposal(
        CombinedLinearGaussianTransitionModel([ConstantVelocity(0.05), ConstantVelocity(0.05)])
    ).rvs(prior, measurement, seconds),
    (particles(BernoulliParticleState), None, None, "BernoulliParticleState: its target may"),
    (
        particles(), None, Detection([1.0, 2.0], datetime(2030, 1, 1, tzinfo=UTC)),
        "offset-naive and offset-aware",
    ),
    (particles(log_weight=np.full(3, -np.inf)), SECOND, None, "log_weight: .* weight z"),
    error=(TypeError, ValueError),
)  # fmt: skip
