"""Angle-valued states, at the seam of the circle and elsewhere."""

import copy

import numpy as np
from helpers import compass
from numpy.testing import assert_allclose

from herdfilter.angles import wrap_angles
from herdfilter.filters import ParticleFilter


def test_where_zero_lies_on_the_circle_does_not_matter(turning):
    z = np.column_stack([np.zeros(6), [0.1, -0.3, 0.2, 0.4, 0.1, 0.5]])
    plain = ParticleFilter(compass(0.0, 0.05), 40, copy.deepcopy(turning), rng=16).run(z)
    for turn in (np.pi, -1.5):
        shift, case = np.array([0.0, turn]), f"turned by {turn}"
        pf = ParticleFilter(compass(turn, 0.05), 40, copy.deepcopy(turning), rng=16)
        turned = pf.run(wrap_angles(z + shift, (1,)))
        apart = wrap_angles(turned.means - plain.means - shift, (1,))
        assert_allclose(apart, 0, atol=1e-3, err_msg=case)
        assert_allclose(turned.covariances, plain.covariances, atol=1e-3, err_msg=case)
        assert_allclose(turned.log_likelihoods, plain.log_likelihoods, atol=1e-3, err_msg=case)


def test_headings_at_the_seam_are_estimated_there(typical):
    pf = ParticleFilter(compass(np.pi, 0.05), 40, typical.make(), rng=17)
    result = pf.run([[0.0, np.pi - 0.1], [0.0, -np.pi + 0.1]] * 3, keep_particles=True)
    assert (np.abs(result.means[:, 1]) > 2.9).all()
    assert (np.abs(result.particles[..., 1]) <= np.pi).all()
    assert (result.covariances[:, 1, 1] < 0.3).all()
