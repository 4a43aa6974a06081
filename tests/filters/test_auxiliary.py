"""The auxiliary particle filter, and what any proposal that looks at the observation owes the filter."""

import numpy as np
import pytest
from helpers import kalman

from herdfilter.filters import AuxiliaryProposal, ParticleFilter
from herdfilter.models import LinearGaussian
from herdfilter.models.simulation import simulate


def test_it_converges_to_the_kalman_filter_where_bootstrap_struggles():
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


def test_two_predictions_in_a_row_go_two_steps(walk):
    pf = ParticleFilter(walk, 4000, AuxiliaryProposal(), rng=4)
    pf.predict()
    pf.predict()
    assert pf.step == 2
    assert pf.mean == pytest.approx([0.5], abs=0.12)
    assert pf.covariance[0, 0] == pytest.approx(3.0, abs=0.3)
