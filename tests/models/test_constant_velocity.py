"""Nearly constant velocity: its noise is that of a white acceleration, whatever the steps."""

import numpy as np
import pytest

from herdfilter.models import ConstantVelocity


def model(m=2):
    return ConstantVelocity(0.3, 2.0, np.arange(2.0 * m), np.eye(2 * m))


@pytest.mark.parametrize("m", [1, 3])
def test_two_short_steps_are_one_long_one(m):
    """In mean and covariance: the process does not depend on when it is looked at."""
    cv, x = model(m), np.random.default_rng(0).standard_normal((5, 2 * m))
    F, G = (cv.transition_jacobian(x, dt, None, 1)[0] for dt in (0.7, 1.6))
    np.testing.assert_allclose(F @ G, cv.transition_jacobian(x, 2.3, None, 1)[0], rtol=1e-12)
    np.testing.assert_allclose(cv.transition_mean(x, 2.3, None, 1), x @ (F @ G).T, rtol=1e-12)
    both = F @ cv.transition_covariance(1.6, 1) @ F.T + cv.transition_covariance(0.7, 2)
    np.testing.assert_allclose(both, cv.transition_covariance(2.3, 1), rtol=1e-12)


def test_the_velocity_changes_by_the_root_of_density_and_time():
    Q = model().transition_covariance(5.0, 1)
    np.testing.assert_allclose(Q[2:, 2:], 1.5 * np.eye(2), rtol=1e-12)
    np.testing.assert_allclose(Q[:2, :2], 0.3 * 125 / 3 * np.eye(2), rtol=1e-12)


def test_a_part_of_a_position_tells_about_that_part():
    """The likelihood of both entries is the product of those of each alone."""
    cv, x = model(), np.random.default_rng(1).standard_normal((4, 4))
    parts = [cv.log_likelihood(z, x, 1) for z in ([1.0, np.nan], [np.nan, -2.0])]
    np.testing.assert_allclose(cv.log_likelihood([1.0, -2.0], x, 1), sum(parts), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spectral_density": 0.0}, "spectral_density: expected a positive finite number, got 0.0"),
        ({"initial_mean": [1.0, 2.0, 3.0]}, "initial_mean: expected positions and as many velocities, got 3"),
        ({"initial_covariance": np.eye(2)}, r"initial_covariance: expected shape \(4, 4\), got \(2, 2\)"),
    ],
)
def test_bad_arguments_are_named(change, message):
    given = {"spectral_density": 1.0, "position_sd": 1.0, "initial_mean": np.zeros(4), "initial_covariance": np.eye(4)}
    with pytest.raises(ValueError, match=message):
        ConstantVelocity(**given | change)
