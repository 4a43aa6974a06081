"""The auxiliary particle filter, and what any proposal that looks at the observation owes the filter."""

import copy

import numpy as np
import pytest
from helpers import LINE, kalman, of_inner_noise

from herdfilter.filters import AuxiliaryProposal, ParticleFilter
from herdfilter.models import UNGM, LinearGaussian
from herdfilter.models.simulation import simulate


def test_it_converges_to_the_kalman_filter_where_bootstrap_struggles():
    """Small transition noise and a sharp observation: the look ahead pays."""
    model = LinearGaussian([[1.0]], [[1.0]], [[0.01]], [[0.01]], [0.0], [[4.0]])
    _, z = simulate(model, 30, 5)
    exact, error = kalman(model, z)[0], {}
    for name, proposal in (("auxiliary", AuxiliaryProposal()), ("bootstrap", None)):
        runs = [ParticleFilter(model, 100, proposal, resample_below=1.0, rng=seed).run(z).means for seed in range(20)]
        error[name] = np.sqrt(np.mean((np.array(runs) - exact) ** 2))
    assert error["auxiliary"] < 0.9 * error["bootstrap"]


def test_an_observation_that_excludes_every_centre_is_survived(walk):
    """The likelihood is flat on an interval that no centre lies in, but some successors do."""
    walk.transition_mean = lambda x, dt, control, step: 0 * x
    walk.log_likelihood = lambda z, x, step: np.where(np.abs(x[:, 0] - z[0]) < 0.5, 0.0, -np.inf)
    pf = ParticleFilter(walk, 200, AuxiliaryProposal(), rng=1)
    pf.predict()
    record = pf.update([1.0])
    assert 0.5 < record.mean[0] < 1.5
    assert record.log_likelihood == pytest.approx(np.log(0.2229), abs=0.4)  # P(0.5 < N(0, 0.5) < 1.5) = 0.2229


def test_noise_that_is_not_additive_is_taken():
    z = np.array([[0.4], [1.1], [np.nan], [2.0]])
    pf = ParticleFilter(of_inner_noise(LINE), 500, AuxiliaryProposal(), rng=1)
    assert pf.run(z).log_likelihood == pytest.approx(kalman(LINE, z)[2].sum(), abs=0.15)


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


def test_an_impossible_observation_can_be_replaced(walk):
    walk.log_likelihood = lambda z, x, step: np.where(np.abs(x[:, 0] - z[0]) < 5.0, 0.0, -np.inf)
    pf = ParticleFilter(walk, 50, AuxiliaryProposal(), rng=5)
    pf.predict()
    with pytest.raises(RuntimeError, match="step 1: the likelihood vanishes at all 50 particles"):
        pf.update([1e6])
    again = copy.deepcopy(pf)
    assert pf.update([0.5]).log_likelihood <= 0
    assert again.update(None).step == 1
    assert again.step == pf.step == 1
