"""Tracking by radar."""

import numpy as np
import pytest

from herdfilter.models import RadarTracking


def seen(position, radar=(0.0, 0.0, 0.0)):
    x = np.array([[*position, 0.0, 0.0, 0.0]], dtype=float)
    return RadarTracking(radar=radar).observation_mean(x, 1)[0]


def test_measurements_are_spherical_coordinates():
    np.testing.assert_allclose(seen([3, 4, 0]), [5, np.arctan2(4, 3), 0])
    np.testing.assert_allclose(seen([0, 2, 2]), [np.sqrt(8), np.pi / 2, np.pi / 4])
    np.testing.assert_allclose(seen([-7, 0, 0], radar=(-6, 0, 1)), [np.sqrt(2), np.pi, -np.pi / 4])


def test_measurements_name_the_place():
    position = np.array([-120.0, 340.0, 560.0])
    r, azimuth, elevation = seen(position + np.array([10, 20, 30]), radar=(10, 20, 30))
    back = r * np.array([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)])
    np.testing.assert_allclose(back, position, rtol=1e-12)


def test_azimuth_knows_no_seam():
    model = RadarTracking()
    x = np.array([[-1000.0, 0.1, 50.0, 0, 0, 0], [-1000.0, -0.1, 50.0, 0, 0, 0]])
    z = model.observation_mean(x[:1], 1)[0]
    near, far = model.log_likelihood(z, x, 1)
    assert near - far < 1e-2
    np.testing.assert_allclose(model.log_likelihood(z - [0, 2 * np.pi, 0], x, 1), [near, far])


def test_motion_splits_into_shorter_ones():
    """Two steps of a second make one of two: the noise is that of a continuous acceleration."""
    model = RadarTracking(spectral_density=0.7)
    F = model.transition_mean(np.eye(6), 1.0, None, 1).T
    Q = model.transition_covariance(1.0, 1)
    np.testing.assert_allclose(F @ Q @ F.T + Q, model.transition_covariance(2.0, 1))
    np.testing.assert_allclose(F @ F, model.transition_mean(np.eye(6), 2.0, None, 1).T)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radar": [1.0, 2.0]}, r"radar: expected shape \(3,\), got \(2,\)"),
        ({"range_sd": 0.0}, "range_sd: expected a positive"),
        ({"azimuth_sd": -1.0}, "azimuth_sd: expected a positive"),
        ({"elevation_sd": np.nan}, "elevation_sd: expected a positive"),
        ({"spectral_density": 0.0}, "spectral_density: expected a positive"),
        ({"initial_mean": np.zeros(4)}, r"initial_mean: expected shape \(6,\), got \(4,\)"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        RadarTracking(**arguments)
