"""Quantiles in place of a search, in filters of a state of one dimension."""

from functools import partial

import numpy as np
import pytest
from helpers import cases
from numpy.testing import assert_array_equal

import herdfilter as hf
from herdfilter.models import linear_chain


@pytest.fixture(scope="module")
def seen():
    model = linear_chain(1)
    observations = hf.simulate(model, 30, 3)[1]
    return model, observations, hf.ExtendedKalmanFilter(model).run(observations)


@cases(
    "proposal",
    hf.HerdedProposal,
    partial(hf.HerdedProposal, defensive_share=0.0),
    hf.KalmanMixtureProposal,
)
def test_the_error_falls_with_the_number_of_particles(seen, proposal):
    """As one over it, or faster: ten times as many particles, less than a sixth of the error."""
    model, observations, exact = seen
    errors = []
    for n in (60, 600):
        result = hf.ParticleFilter(model, n, proposal(hf.QuantileSampling()), rng=0).run(
            observations
        )
        errors.append(np.abs(result.means - exact.means).mean())
        assert abs(result.log_likelihood - exact.log_likelihood) < 6 / n
    assert errors[0] < 0.01
    assert errors[1] < errors[0] / 6


@cases("proposal", hf.HerdedProposal, hf.KalmanMixtureProposal)
def test_what_takes_weights_up_needs_no_resampling_however_uneven_they_are(proposal):
    """Weights are not even, resampling is asked for at every step, and still no random number is used."""
    model = hf.models.UNGM()
    _, z = hf.simulate(model, 20, rng=2)
    results = [
        hf.ParticleFilter(
            model, 30, proposal(hf.QuantileSampling()), resample_below=1.0, rng=seed
        ).run(z)
        for seed in (1, 2)
    ]
    assert results[0].ess.min() < 29
    assert_array_equal(results[0].means, results[1].means)
