"""A target seen by its distances from sensors on a line."""

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.models import BearingsTracking, RangeTracking

MIRROR = np.array([1.0, -1.0, 1.0, -1.0])


def test_it_moves_as_the_target_of_bearings():
    x = np.random.default_rng(0).normal(size=(5, 4))
    ranges, bearings = RangeTracking(spectral_density=0.3), BearingsTracking(spectral_density=0.3)
    np.testing.assert_allclose(ranges.transition_mean(x, 0.4, None, 1), bearings.transition_mean(x, 0.4, None, 1))
    np.testing.assert_allclose(ranges.transition_covariance(0.4, 1), bearings.transition_covariance(0.4, 1))


def test_nothing_tells_the_target_from_its_mirror_image():
    model, x = RangeTracking(), np.random.default_rng(0).normal(size=(20, 4))
    np.testing.assert_array_equal(model.log_likelihood([2.0, 3.0], x, 1), model.log_likelihood([2.0, 3.0], x * MIRROR, 1))
    np.testing.assert_allclose(model.initial.log_density(x), model.initial.log_density(x * MIRROR))
    np.testing.assert_allclose(
        model.transition_mean(x * MIRROR, 1.0, None, 1), model.transition_mean(x, 1.0, None, 1) * MIRROR
    )
    Q = model.transition_covariance(1.0, 1)
    np.testing.assert_array_equal(Q * np.outer(MIRROR, MIRROR), Q)


def test_many_particles_keep_both_modes():
    """The exact mean of y is 0; the target is far from it, and so are both modes."""
    model = RangeTracking()
    _, z = hf.simulate(model, 8, 3, initial=[-1.5, 3.0, 0.08, 0.0])
    pf = hf.ParticleFilter(model, 20_000, rng=1)
    result = pf.run(z)
    sd = np.sqrt(result.covariances[:, 1, 1])
    assert (sd > 2).all()
    assert (np.abs(result.means[:, 1]) < 0.15 * sd).all()


def test_a_missing_range_is_left_out():
    model, x = RangeTracking(), np.random.default_rng(0).normal(size=(5, 4))
    one = RangeTracking(sensors=[[-1.0, 0.0]])
    np.testing.assert_allclose(model.log_likelihood([2.0, np.nan], x, 1), one.log_likelihood([2.0], x, 1), rtol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sensors": np.empty((0, 2))}, "sensors: expected at least 1 positions, got 0"),
        ({"sensors": [1.0, 2.0]}, r"sensors: expected shape \(\*, 2\)"),
        ({"range_sd": -1}, "range_sd: expected a positive"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        RangeTracking(**arguments)
