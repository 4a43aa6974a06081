"""Placing points again: each in turn, given all others, in a kernel of two widths."""

import numpy as np
import pytest

from herdfilter import kernels
from herdfilter.bandwidths import Whitened, kernel_covariance
from herdfilter.discrepancy import energy_distance, herding_error
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers import (
    ContinuousHerdedGibbs,
    KernelHerding,
    MappedSampling,
    PlacedAgain,
    RandomSampling,
    Reweighted,
    SobolSampling,
)

STARTS = [KernelHerding(1.0), ContinuousHerdedGibbs(bandwidth=1.0), SobolSampling(), RandomSampling()]
HERDING = [KernelHerding, ContinuousHerdedGibbs]


def error(x, mixture, kernel):
    """Squared herding errors in kernels half and one and a half times as wide, in proportion to these widths."""
    return sum(w * herding_error(Points(x), mixture, w**2 * kernel, kernels.Gaussian()) ** 2 for w in (0.5, 1.5))


@pytest.fixture(params=[False, True], ids=["own covariances", "one covariance"])
def family(request, random_mixture):
    def build(seed, d):
        mixture = random_mixture(seed, d)
        if request.param:
            mixture = GaussianMixture(mixture.weights, mixture.means, mixture.covariances[0])
        return mixture

    return build


@pytest.mark.parametrize("start", STARTS, ids=repr)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_no_pass_raises_the_error_and_the_first_lowers_it(family, start, d):
    mixture = family(42, d)
    kernel = kernel_covariance("auto", mixture, 20)
    errors = [error(start.sample(mixture, 20, np.random.default_rng(0)).x, mixture, kernel)]
    for passes in range(1, 7):
        x = PlacedAgain(start, passes, kernel).sample(mixture, 20, np.random.default_rng(0)).x
        errors.append(error(x, mixture, kernel))
    assert errors[1] < 0.9 * errors[0]
    assert (np.diff(errors) <= 1e-13).all()


@pytest.mark.parametrize("start", STARTS[:2], ids=repr)
def test_after_many_passes_the_error_is_at_a_minimum(family, start):
    """Where single moves gain nothing, its gradient over all points vanishes."""
    mixture, kernel, step = family(43, 3), 1.5**2 * np.eye(3), 1e-4
    x = PlacedAgain(start, 3000, kernel).sample(mixture, 6).x
    slopes = np.empty_like(x)
    for place in np.ndindex(x.shape):
        shift = np.zeros_like(x)
        shift[place] = step
        slopes[place] = (error(x + shift, mixture, kernel) - error(x - shift, mixture, kernel)) / (2 * step)
    drawn = np.median([error(mixture.sample(6, np.random.default_rng(s)), mixture, kernel) for s in range(9)])
    assert error(x, mixture, kernel) < 0.4 * drawn  # of 200 draws the nearest has 0.46
    assert np.abs(slopes).max() < 1e-4 * drawn


@pytest.mark.parametrize("start", STARTS[:2], ids=repr)
def test_components_of_one_covariance_may_be_told_one_by_one(random_mixture, start):
    """Two ways through the compiled loops."""
    mixture = random_mixture(44, 3)
    one = mixture.covariances[0]
    x, y = (
        PlacedAgain(start, 1, 0.8).sample(GaussianMixture(mixture.weights, mixture.means, covariances), 15).x
        for covariances in (one, np.tile(one, (len(mixture.weights), 1, 1)))
    )
    kernel = 0.8**2 * np.eye(3)
    assert error(x, mixture, kernel) == pytest.approx(error(y, mixture, kernel), rel=0.3)


@pytest.mark.parametrize("herding", HERDING)
@pytest.mark.parametrize("n", [20, 60, 150])
@pytest.mark.parametrize(("d", "at_most"), [(1, 0.9), (2, 0.9), (4, 0.9), (8, 1.0)])
def test_herded_points_gain_in_energy_distance(family, herding, d, at_most, n):
    """With the automatic bandwidth points are placed again; with the same one, given as a rule, they are not."""
    gains = []
    for seed in range(46, 51):
        mixture = family(seed, d)
        after, before = (
            energy_distance(sampler.sample(mixture, n), mixture) for sampler in (herding(), herding(bandwidth=Whitened()))
        )
        gains.append(after / before)
    assert np.exp(np.mean(np.log(gains))) < at_most
    assert n > 20 or np.median(gains) < 0.9


def test_points_next_in_number_come_from_one_method(random_mixture):
    """The quality of the default has no step in the number of points, as it had between 49 and 50."""
    ratios = {n: [] for n in (49, 50, 119, 121)}
    for seed in range(12):
        mixture = random_mixture(70 + seed, 2)
        for n, found in ratios.items():
            found.append(n * energy_distance(KernelHerding().sample(mixture, n), mixture))
    medians = {n: np.median(found) for n, found in ratios.items()}
    assert medians[49] == pytest.approx(medians[50], rel=0.15)
    assert medians[119] == pytest.approx(medians[121], rel=0.15)


def test_a_start_that_is_given_stays(random_mixture):
    points = ContinuousHerdedGibbs().sample(random_mixture(60, 2), 20, start=[1.0, 1.0])
    np.testing.assert_allclose(points.x[0], [1.0, 1.0], rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "error_type", "message"),
    [
        ({"sampler": KernelHerding}, TypeError, "sampler: expected an instance, got the class KernelHerding"),
        ({"passes": 0}, ValueError, "passes: expected an integer of at least 1, got 0"),
        ({"bandwidth": -1.0}, ValueError, "bandwidth: expected a positive finite number"),
    ],
)
def test_bad_arguments_are_named(arguments, error_type, message):
    with pytest.raises(error_type, match=message):
        PlacedAgain(**({"sampler": KernelHerding()} | arguments))


def test_points_of_unequal_weight_are_refused(random_mixture):
    with pytest.raises(ValueError, match="sampler: expected points of equal weight from Reweighted, got weights"):
        PlacedAgain(Reweighted(SobolSampling())).sample(random_mixture(61, 2), 16)


def test_it_goes_into_other_samplers(random_mixture):
    mixture = random_mixture(62, 3)
    mapped = MappedSampling(PlacedAgain(SobolSampling(), 3)).sample(mixture, 64)
    drawn = np.median([energy_distance(Points(mixture.sample(64, s)), mixture) for s in range(9)])
    assert energy_distance(mapped, mixture) < 0.2 * drawn
