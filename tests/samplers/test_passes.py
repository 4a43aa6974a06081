"""Passes: points are placed again, each given all others, in a kernel of two widths."""

import numpy as np
import pytest

from herdfilter import kernels
from herdfilter.bandwidths import kernel_covariance
from herdfilter.discrepancy import energy_distance, herding_error
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding

HERDING = [KernelHerding, ContinuousHerdedGibbs]


def error(x, mixture, kernel):
    """Squared herding errors in kernels half and one and a half times as wide, in proportion to these widths."""
    return sum(
        w * herding_error(Points(x), mixture, w**2 * kernel, kernels.Gaussian()) ** 2 for w in (0.5, 1.5)
    )


@pytest.fixture(params=[False, True], ids=["own covariances", "one covariance"])
def family(request, random_mixture):
    def build(seed, d):
        mixture = random_mixture(seed, d)
        if request.param:
            mixture = GaussianMixture(mixture.weights, mixture.means, mixture.covariances[0])
        return mixture

    return build


@pytest.mark.parametrize("herding", HERDING)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_no_pass_raises_the_error_and_the_first_lowers_it(family, herding, d):
    mixture = family(42, d)
    kernel = kernel_covariance("auto", mixture, 20)

    def after(passes, **options):
        return error(
            herding(bandwidth=kernel, passes=passes, **options).sample(mixture, 20).x, mixture, kernel
        )

    assert after(1) < 0.9 * after(0)
    assert (np.diff([after(k) for k in range(2, 7)]) <= 1e-13).all()


@pytest.mark.parametrize("herding", HERDING)
def test_after_many_passes_the_error_is_at_a_minimum(family, herding):
    """Where single moves gain nothing, its gradient over all points vanishes."""
    mixture, kernel, step = family(43, 3), 1.5**2 * np.eye(3), 1e-4
    x = herding(bandwidth=kernel, passes=3000).sample(mixture, 6).x
    slopes = np.empty_like(x)
    for place in np.ndindex(x.shape):
        shift = np.zeros_like(x)
        shift[place] = step
        slopes[place] = (error(x + shift, mixture, kernel) - error(x - shift, mixture, kernel)) / (2 * step)
    drawn = mixture.sample(6, np.random.default_rng(0))
    assert error(x, mixture, kernel) < 0.5 * error(drawn, mixture, kernel)
    assert np.abs(slopes).max() < 1e-4 * error(drawn, mixture, kernel)


@pytest.mark.parametrize("herding", HERDING)
def test_components_of_one_covariance_may_be_told_one_by_one(random_mixture, herding):
    """Two ways through the compiled loops."""
    mixture = random_mixture(44, 3)
    one = mixture.covariances[0]
    x, y = (
        herding(bandwidth=0.8, passes=1).sample(GaussianMixture(mixture.weights, mixture.means, c), 15).x
        for c in (one, np.tile(one, (len(mixture.weights), 1, 1)))
    )
    kernel = 0.8**2 * np.eye(3)
    assert error(x, mixture, kernel) == pytest.approx(error(y, mixture, kernel), rel=0.3)


def test_axes_of_the_sweeps_do_not_restrict_the_passes(family):
    """A bandwidth that is a number means sweeps along the axes of the state."""
    mixture = family(45, 3)
    before, after = (
        error(ContinuousHerdedGibbs(bandwidth=1.0, passes=passes).sample(mixture, 12).x, mixture, np.eye(3))
        for passes in (0, 2)
    )
    assert after < 0.9 * before


@pytest.mark.parametrize("herding", HERDING)
@pytest.mark.parametrize("d", [1, 2, 4, 8])
def test_few_points_gain_in_energy_distance(family, herding, d):
    gains = []
    for seed in range(46, 51):
        mixture = family(seed, d)
        after, before = (
            energy_distance(sampler.sample(mixture, 20), mixture)
            for sampler in (herding(), herding(passes=0))
        )
        gains.append(after / before)
    assert np.median(gains) < 0.9


@pytest.mark.parametrize(
    ("herding", "options", "d", "n", "same"),
    [(herding, {}, 2, 20, 3) for herding in HERDING]
    + [(herding, {}, 3, 20, 6) for herding in HERDING]
    + [(herding, {}, 3, 60, 0) for herding in HERDING]
    + [(herding, {}, 8, 60, 1) for herding in HERDING]
    + [(herding, {"bandwidth": 0.5}, 2, 20, 0) for herding in HERDING]
    + [
        (KernelHerding, {"weights": "line-search"}, 2, 20, 0),
        (ContinuousHerdedGibbs, {"target": "paper"}, 2, 20, 0),
    ],
)
def test_few_points_are_placed_again_unless_the_bandwidth_is_given(
    random_mixture, herding, options, d, n, same
):
    mixture = random_mixture(36, d)
    expected = herding(**options, passes=same).sample(mixture, n).x
    np.testing.assert_array_equal(herding(**options).sample(mixture, n).x, expected)


def test_a_start_that_is_given_stays(random_mixture):
    points = ContinuousHerdedGibbs().sample(random_mixture(60, 2), 20, start=[1.0, 1.0])
    np.testing.assert_allclose(points.x[0], [1.0, 1.0], rtol=1e-12)


@pytest.mark.parametrize("options", [{"weights": "line-search"}, {"kernel": kernels.Laplace()}])
def test_passes_are_for_equal_weights_and_the_gaussian_kernel(options):
    with pytest.raises(
        ValueError, match="passes: expected 0 or None unless weights are equal and the kernel"
    ):
        KernelHerding(passes=1, **options)


def test_passes_are_for_the_smoothed_target():
    with pytest.raises(ValueError, match="passes: expected 0 or None with the target 'paper', got 1"):
        ContinuousHerdedGibbs("paper", passes=1)


@pytest.mark.parametrize("herding", HERDING)
def test_a_negative_number_of_passes_is_an_error(herding):
    with pytest.raises(ValueError, match="passes: expected an integer of at least 0, got -1"):
        herding(passes=-1)
