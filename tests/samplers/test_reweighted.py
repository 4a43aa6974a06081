"""Optimal weights for finished points."""

import numpy as np
import pytest

from herdfilter import kernels
from herdfilter.bandwidths import kernel_covariance
from herdfilter.discrepancy import herding_error
from herdfilter.points import Points
from herdfilter.samplers import KernelHerding, RandomSampling, Reweighted

KERNELS = [kernels.Gaussian(), kernels.Matern(1.5), kernels.InverseMultiquadric(), kernels.Energy()]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("constraint", ["simplex", "sum"])
def test_no_other_weights_do_better(random_mixture, kernel, constraint):
    """The error is convex in the weights: small moves between any two of them do not lower it."""
    mixture = random_mixture(0, 2)
    points = Reweighted(RandomSampling(), constraint, 1.0, kernel).sample(mixture, 12, np.random.default_rng(0))
    least = herding_error(points, mixture, 1.0, kernel) ** 2
    equal = herding_error(Points(points.x), mixture, 1.0, kernel) ** 2
    assert least < 0.7 * equal
    for s in range(12):
        for t in range(12):
            moved = points.weights.copy()
            step = 1e-3 if constraint == "sum" else min(1e-3, moved[s])
            moved[s] -= step
            moved[t] += step
            assert herding_error(Points(points.x, moved, signed=True), mixture, 1.0, kernel) ** 2 >= least - 1e-9


def test_signs_and_sums(random_mixture):
    mixture, rng = random_mixture(1, 1), np.random.default_rng
    simplex = Reweighted(RandomSampling(), "simplex", 2.0).sample(mixture, 40, rng(0))
    signed = Reweighted(RandomSampling(), "sum", 2.0).sample(mixture, 40, rng(0))
    assert (simplex.weights >= 0).all()
    assert (signed.weights < 0).any()
    assert simplex.weights.sum() == pytest.approx(1, abs=1e-12)
    assert signed.weights.sum() == pytest.approx(1, abs=1e-9)
    assert herding_error(signed, mixture, 2.0) <= herding_error(simplex, mixture, 2.0) + 1e-7


def test_equal_points_share_their_weight(random_mixture):
    """Points that lie on each other make the Gram matrix singular; the error is that of the distinct ones."""
    mixture = random_mixture(2, 2)

    class Twice:
        def sample(self, mixture, n, rng=None):
            x = KernelHerding(1.0).sample(mixture, n // 2).x
            return Points(np.concatenate([x, x]))

    twice = Reweighted(Twice(), bandwidth=1.0).sample(mixture, 20)
    once = Reweighted(KernelHerding(1.0), bandwidth=1.0).sample(mixture, 10)
    error = herding_error(once, mixture, 1.0)
    assert herding_error(twice, mixture, 1.0) == pytest.approx(error, abs=1e-6)


def test_automatic_bandwidth(random_mixture):
    mixture = random_mixture(3, 2)
    by_rule = Reweighted(KernelHerding()).sample(mixture, 15)
    by_matrix = Reweighted(KernelHerding(), bandwidth=kernel_covariance("auto", mixture, 15)).sample(mixture, 15)
    np.testing.assert_allclose(by_rule.weights, by_matrix.weights, atol=1e-9)


def test_signed_weights_have_no_logarithm():
    points = Points([[0.0], [1.0], [2.0]], [1.0, -0.5, 0.5], signed=True)
    assert points.mean[0] == pytest.approx(0.5)
    with pytest.raises(ValueError, match=r"weights: expected non-negative weights, got -0\.5"):
        _ = points.log_weights
    with pytest.raises(ValueError, match=r"weights: expected a positive finite sum, got 0"):
        Points([[0.0], [1.0]], [1.0, -1.0], signed=True)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sampler": KernelHerding}, TypeError, "sampler: expected an instance, got the class KernelHerding"),
        ({"constraint": "none"}, ValueError, "constraint: unknown 'none'"),
        ({"kernel": None}, TypeError, "kernel: expected a kernel with value"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        Reweighted(**({"sampler": KernelHerding()} | arguments))
