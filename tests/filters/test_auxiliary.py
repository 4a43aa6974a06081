"""The auxiliary particle filter, and what any proposal that looks at the observation owes the filter."""

import numpy as np
import pytest

from herdfilter.filters import AuxiliaryProposal, ParticleFilter, Particles, SystematicResampling


def test_an_observation_that_excludes_every_centre_is_survived(walk):
    """The likelihood is flat on an interval that no centre lies in, but some successors do."""
    walk.transition_mean = lambda x, dt, control, step: 0 * x
    walk.log_likelihood = lambda z, x, step: np.where(np.abs(x[:, 0] - z[0]) < 0.5, 0.0, -np.inf)
    pf = ParticleFilter(walk, 200, AuxiliaryProposal(), rng=1)
    pf.predict()
    record = pf.update([1.0])
    assert 0.5 < record.mean[0] < 1.5
    # P(0.5 < N(0, 0.5) < 1.5) = 0.2229
    assert record.log_likelihood == pytest.approx(np.log(0.2229), abs=0.4)


class Unlabelled(SystematicResampling):
    """A scheme whose particles do not say from which they were copied."""

    def resample(self, particles, rng, circular=()):
        return Particles.equal(super().resample(particles, rng, circular).x)


def test_a_scheme_may_resample_by_a_method_of_its_own(walk):
    runs = [
        ParticleFilter(walk, 50, AuxiliaryProposal(scheme), rng=1).run([[1.0], [2.0]])
        for scheme in (Unlabelled(), SystematicResampling())
    ]
    np.testing.assert_array_equal(runs[0].means, runs[1].means)
