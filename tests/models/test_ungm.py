"""The univariate nonstationary growth model."""

import numpy as np
import pytest

from herdfilter.models import UNGM


def test_transition_by_hand():
    model = UNGM()
    x = np.array([[0.0], [1.0], [-2.0]])
    expected = np.array([0.0, 0.5 + 12.5, -1.0 - 10.0]) + 8 * np.cos(1.2 * 3)
    np.testing.assert_allclose(model.transition_mean(x, 1.0, None, 3)[:, 0], expected, rtol=1e-14)


def test_likelihood_cannot_tell_the_sign():
    x = np.linspace(0.1, 20, 40)[:, None]
    np.testing.assert_array_equal(UNGM().log_likelihood([3.0], x, 1), UNGM().log_likelihood([3.0], -x, 1))


def test_likelihood_peaks_where_the_square_fits():
    x = np.linspace(0, 20, 20_001)[:, None]
    best = x[UNGM().log_likelihood([5.0], x, 1).argmax(), 0]
    assert best == pytest.approx(10.0, abs=1e-3)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "1"])
@pytest.mark.parametrize("name", ["process_variance", "observation_variance", "initial_variance"])
def test_variance_must_be_positive(name, value):
    with pytest.raises(ValueError, match=f"{name}: expected a positive finite number, got"):
        UNGM(**{name: value})
