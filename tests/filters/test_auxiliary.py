"""The auxiliary particle filter, and what any proposal that looks at the observation owes the filter."""

import copy

import numpy as np
import pytest

from herdfilter.filters import (
    AuxiliaryProposal,
    MixtureResampling,
    MultinomialResampling,
    ParticleFilter,
    StratifiedResampling,
)
from herdfilter.fitting import GaussianFit
from herdfilter.models import UNGM, LinearGaussian
from herdfilter.models.simulation import simulate
from herdfilter.samplers import RandomSampling

OBSERVATIONS = [[0.4], [1.1], None, [2.0]]


def evidence(walk, observations):
    """Exact log-likelihood of the walk's observations, by the scalar Kalman filter."""
    mean, variance, total = 0.5, 2.0, 0.0
    for z in observations:
        variance += 0.5
        if z is None:
            continue
        s = variance + 1.0
        total -= 0.5 * ((z[0] - mean) ** 2 / s + np.log(2 * np.pi * s))
        mean, variance = mean + variance / s * (z[0] - mean), variance / s
    return total


@pytest.mark.parametrize("scheme", [None, MultinomialResampling(), StratifiedResampling()])
def test_the_estimate_of_the_evidence_is_unbiased(walk, scheme):
    proposal = AuxiliaryProposal() if scheme is None else AuxiliaryProposal(scheme)
    exact = evidence(walk, OBSERVATIONS)
    ratios = np.exp(
        [ParticleFilter(walk, 40, proposal, rng=seed).run(OBSERVATIONS).log_likelihood - exact for seed in range(400)]
    )
    assert abs(ratios.mean() - 1) < 3.5 * ratios.std() / 20


def test_it_converges_to_the_kalman_filter_where_bootstrap_struggles():
    """Small transition noise and a sharp observation: the look ahead pays."""
    model = LinearGaussian([[1.0]], [[1.0]], [[0.01]], [[0.01]], [0.0], [[4.0]])
    _, observations = simulate(model, 30, 5)
    mean, variance, means = 0.0, 4.0, []
    for z in observations[:, 0]:
        variance += 0.01
        mean, variance = mean + variance / (variance + 0.01) * (z - mean), variance * 0.01 / (variance + 0.01)
        means.append(mean)
    error = {}
    for name, proposal in (("auxiliary", AuxiliaryProposal()), ("bootstrap", None)):
        runs = [
            ParticleFilter(model, 100, proposal, resample_below=1.0, rng=seed).run(observations).means[:, 0]
            for seed in range(20)
        ]
        error[name] = np.sqrt(np.mean((np.array(runs) - means) ** 2))
    assert error["auxiliary"] < 0.9 * error["bootstrap"]


def test_an_observation_that_excludes_every_centre_is_survived(walk_class):
    """The likelihood is flat on an interval that no centre lies in, but some successors do."""

    class Window(walk_class):
        def transition_mean(self, x, dt, control, step):
            return 0 * x

        def log_likelihood(self, z, x, step):
            return np.where(np.abs(x[:, 0] - z[0]) < 0.5, 0.0, -np.inf)

    pf = ParticleFilter(Window(), 200, AuxiliaryProposal(), rng=1)
    pf.predict()
    record = pf.update([1.0])
    assert 0.5 < record.mean[0] < 1.5
    assert record.log_likelihood == pytest.approx(np.log(0.2229), abs=0.4)  # P(0.5 < N(0, 0.5) < 1.5) = 0.2229


def test_noise_that_is_not_additive_is_taken(walk_class):
    class Multiplied(walk_class):
        transition_mean = None
        noise_dim = 1

        def transition(self, x, noise, dt, control, step):
            return x + np.sqrt(0.5) * noise

    del Multiplied.transition_mean
    pf = ParticleFilter(Multiplied(), 500, AuxiliaryProposal(), rng=1)
    assert pf.run(OBSERVATIONS).log_likelihood == pytest.approx(evidence(None, OBSERVATIONS), abs=0.15)


def test_a_scheme_that_does_not_copy_is_refused():
    with pytest.raises(TypeError, match="resampling: expected a scheme that copies particles"):
        AuxiliaryProposal(MixtureResampling(GaussianFit(), RandomSampling()))


def test_looking_at_the_prediction_changes_nothing():
    """A guided filter draws its prediction only when it is asked for; asking leaves no trace."""
    model = UNGM()
    observations = [*simulate(model, 4, 2)[1], None, [3.0]]
    blind, curious = (ParticleFilter(model, 30, AuxiliaryProposal(), rng=3) for _ in range(2))
    for z in observations:
        blind.predict()
        curious.predict()
        looked_at = curious.particles, curious.mean, curious.ess
        np.testing.assert_array_equal(curious.particles, looked_at[0])
        blind.update(z)
        curious.update(z)
        if z is None:
            np.testing.assert_array_equal(curious.particles, looked_at[0])
        np.testing.assert_array_equal(blind.particles, curious.particles)
        np.testing.assert_array_equal(blind.weights, curious.weights)
    assert blind.log_likelihood == curious.log_likelihood


def test_two_predictions_in_a_row_go_two_steps(walk):
    pf = ParticleFilter(walk, 4000, AuxiliaryProposal(), rng=4)
    pf.predict()
    pf.predict()
    assert pf.step == 2
    assert pf.mean == pytest.approx([0.5], abs=0.12)
    assert pf.covariance[0, 0] == pytest.approx(3.0, abs=0.3)


def test_an_impossible_observation_can_be_replaced(walk_class):
    class Strict(walk_class):
        def log_likelihood(self, z, x, step):
            return np.where(np.abs(x[:, 0] - z[0]) < 5.0, 0.0, -np.inf)

    pf = ParticleFilter(Strict(), 50, AuxiliaryProposal(), rng=5)
    pf.predict()
    with pytest.raises(RuntimeError, match="step 1: the likelihood vanishes at all 50 particles"):
        pf.update([1e6])
    again = copy.deepcopy(pf)
    assert pf.update([0.5]).log_likelihood <= 0
    assert again.update(None).step == 1
    assert again.step == pf.step == 1
