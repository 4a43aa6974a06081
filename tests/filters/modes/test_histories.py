"""Histories of modes and associations: Gaussians as in the mixture Kalman filter, and particles where these are refused."""

import numpy as np
import pytest
from helpers import assert_same, cases, on_a_line, refusal
from numpy.testing import assert_allclose
from scipy.stats import norm

import herdfilter as hf
from herdfilter.filters.proposals.histories import Histories

SCANS = [[[0.3], [2.0]], [], None, [[1.1], [-4.0], [0.2]], [[-0.4]]]
BENT = hf.models.UNGM()


class Shifted:
    """The model of Kitagawa, shifted: its observation, a square, leaves two modes of the state."""

    dim = BENT.dim
    initial = BENT.initial
    observation_mean = BENT.observation_mean
    observation_covariance = BENT.observation_covariance
    transition_covariance = BENT.transition_covariance

    def transition_mean(self, x, dt, control, step):
        return BENT.transition_mean(x, dt, control, step) + 8.0


SQUARES = hf.models.JumpMarkov([BENT, Shifted()], [[0.8, 0.2], [0.2, 0.8]])


@cases("count clutter", (2, False), (3, True), (1, True))
def test_on_linear_modes_and_scans_it_is_the_mixture_kalman_filter(linear_modes, count, clutter):
    model = linear_modes(count, count=count)
    fields = ["means", "covariances", "log_likelihoods"]
    z = SCANS if clutter else hf.simulate(model, 6, rng=1)[1]
    model, fields = (
        (model.models[0], fields) if count == 1 else (model, [*fields, "mode_probabilities"])
    )
    model = hf.models.WithClutter(model, 0.9, 0.05) if clutter else model
    # room for all: of too many, ties between equal weights are decided by the last bit
    auto, mkf = (hf.make_filter(name, model, 1000).run(z) for name in ("auto", "mkf"))
    assert_same(auto, mkf, *fields, atol=1e-8, rtol=1e-7)
    assert auto.ess[0] == pytest.approx(1000, rel=0.05)  # particles that a Gaussian counts for


def test_particles_follow_two_modes_that_no_gaussian_of_a_history_has():
    """Median errors of means against many particles, in posterior standard deviations."""
    found = {"auto": [], "mkf": []}
    for seed in range(3):
        _, z = hf.simulate(SQUARES, 15, rng=[seed, 3])
        exact = hf.make_filter("sqmc", SQUARES, 4000, rng=seed).run(z)
        for name, errors in found.items():
            gap = hf.make_filter(name, SQUARES, 100, rng=seed).run(z).means - exact.means
            errors.append(np.sqrt(np.mean(gap**2 / exact.covariances[:, 0])))
    assert np.median(found["auto"]) < 0.25 * np.median(found["mkf"])


def test_a_second_sensor_updates_the_gaussians(linear_modes):
    model = linear_modes(2, count=2)
    sensor = hf.Sensor(lambda x: x[:, 1:], [[0.3]])
    scanning = hf.Sensor(
        lambda x: x[:, :1], [[0.5]], detection_probability=0.8, clutter_density=0.1
    )
    auto, mkf = (hf.make_filter(name, model, 60) for name in ("auto", "mkf"))
    for z in ([0.4], [1.1]):
        for pf in (auto, mkf):
            pf.predict()
            pf.update(z)
            pf.update([0.7], sensor)
            pf.update([[0.1], [2.0]], scanning)
        assert_same(auto, mkf, "mean", "log_likelihood", atol=1e-08)
        assert_allclose(auto.predicted_observation()[1], mkf.predicted_observation()[1], atol=1e-8)


def test_only_auto_is_wrapped():
    with refusal("proposal: expected an AutomaticProposal", TypeError):
        hf.HistoryProposal(hf.RankedProposal())


@cases("gaussian", [True, True, False, False], [True] * 4, [False] * 4)
def test_gaussians_are_updated_and_points_weighted_by_one_observation(gaussian):
    """The evidence is the sum over both, ``N(z; x, C + R)`` of a Gaussian and ``N(z; x, R)`` of a point."""
    model = on_a_line(R=0.5)
    x = np.array([[0.0], [1.0], [2.0], [3.0]])
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    z = 1.2
    variances = np.where(gaussian, [0.3, 0.2, 0.4, 0.6], 0.0)
    about = variances[:, None, None], np.array(gaussian)
    observation = hf.Observation.read(model, [z], 1)
    histories = Histories.unchecked(x, np.log(weights))
    histories.covariances, histories.gaussian = about
    updated, total = histories.updated(observation).normalised()
    likelihood = norm(x[:, 0], np.sqrt(variances + 0.5)).pdf(z)
    assert total + observation.log_offset == pytest.approx(np.log(weights @ likelihood), abs=1e-12)
    order = updated.x[:, 0].argsort()
    expected = x[:, 0] + variances / (variances + 0.5) * (z - x[:, 0])
    assert_allclose(updated.x[order, 0], expected, rtol=1e-12)
    assert_allclose(
        updated.weights[order], weights * likelihood / (weights @ likelihood), rtol=1e-12
    )
    assert_allclose(
        updated.covariances[order, 0, 0], 0.5 * variances / (variances + 0.5), rtol=1e-9, atol=1e-15
    )
