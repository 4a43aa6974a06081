"""The uniform box."""

import numpy as np
import pytest

from herdfilter.models import UniformBox


def test_density_is_flat_inside_and_integrates_to_one():
    box = UniformBox([0.0, -1.0], [2.0, 3.0])
    grid = np.stack(np.meshgrid(np.arange(-0.95, 4, 0.1), np.arange(-1.95, 4, 0.1)), axis=-1).reshape(-1, 2)
    density = np.exp(box.log_density(grid))
    assert density.sum() * 0.01 == pytest.approx(1.0)
    np.testing.assert_allclose(np.unique(density), [0.0, 1 / 8], rtol=1e-12)


def test_draws_fill_the_box_evenly():
    box = UniformBox([0.0, -1.0], [2.0, 3.0])
    x = box.sample(40_000, np.random.default_rng(0))
    counts, *_ = np.histogram2d(x[:, 0], x[:, 1], bins=(4, 4), range=((0, 2), (-1, 3)))
    assert counts.sum() == 40_000
    assert np.abs(counts - 2500).max() < 5 * np.sqrt(2500)


def test_draws_repeat_with_their_seed():
    box = UniformBox([0.0], [1.0])
    np.testing.assert_array_equal(box.sample(5, 7), box.sample(5, 7))


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([0.0, 0.0], [1.0], r"upper: expected shape \(2,\), got \(1,\)"),
        ([0.0, 1.0], [1.0, 1.0], "upper: expected more than lower"),
        ([0.0, np.nan], [1.0, 1.0], "lower: expected finite"),
    ],
)
def test_bad_corners_are_named(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        UniformBox(lower, upper)


def test_number_of_draws_must_be_positive():
    with pytest.raises(ValueError, match="n: expected an integer of at least 1, got 0"):
        UniformBox([0.0], [1.0]).sample(0, 1)
