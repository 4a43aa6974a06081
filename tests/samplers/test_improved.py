"""Points that are placed again in turn, polished together, or weighted anew."""

import numpy as np
from helpers import cases, refusal
from numpy.random import default_rng

from herdfilter import kernels
from herdfilter.bandwidths import kernel_covariance
from herdfilter.discrepancy import herding_error
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers import (
    ContinuousHerdedGibbs,
    KernelHerding,
    Polished,
    RandomSampling,
    Reweighted,
    SobolSampling,
)
from herdfilter.samplers.herding.frame import KernelFrame
from herdfilter.samplers.herding.greedy import place_again
from herdfilter.testing import random_mixture

STARTS = [
    KernelHerding(1.0),
    ContinuousHerdedGibbs(bandwidth=1.0),
    SobolSampling(),
    RandomSampling(),
]
IMPROVED = [Polished, Reweighted]
every_kernel = cases("kernel", kernels.Gaussian(), kernels.Matern(1.5), kernels.Energy(), ids=repr)


@cases(
    "kinds arguments error_type message",
    (
        IMPROVED,
        {"sampler": KernelHerding},
        TypeError,
        "sampler: expected an instance, got the class KernelHerding",
    ),
    (IMPROVED, {"kernel": None}, TypeError, "kernel: expected an object with value"),
)
def test_bad_arguments_are_named(kinds, arguments, error_type, message):
    for kind in kinds:
        with refusal(message, error_type):
            kind(**({"sampler": KernelHerding()} | arguments))


# Placed again


def placing_error(x, mixture, kernel):
    """Squared herding errors in kernels half and one and a half times as wide, in proportion to these widths."""
    return sum(
        w * herding_error(Points(x), mixture, w**2 * kernel, kernels.Gaussian()) ** 2
        for w in (0.5, 1.5)
    )


def family(seed, d, shared):
    mixture = random_mixture(seed, d)
    return (
        GaussianMixture(mixture.weights, mixture.means, mixture.covariances[0])
        if shared
        else mixture
    )


@cases("start d shared", *zip(STARTS, (1, 2, 5, 2), (False, True, False, True), strict=True))
def test_the_first_placing_lowers_the_error_and_none_raises_it(start, d, shared):
    mixture = family(42, d, shared)
    kernel = kernel_covariance("auto", mixture, 20)
    frame = KernelFrame.of(mixture, kernel, turn=True)
    z = frame.forward(start.sample(mixture, 20, default_rng(0)).x)
    errors = [placing_error(frame.back(z), mixture, kernel)]
    for _ in range(3):
        z = place_again(frame, z)
        errors.append(placing_error(frame.back(z), mixture, kernel))
    assert errors[1] < 0.9 * errors[0]
    assert (np.diff(errors) <= 1e-13).all()


# Polished


@cases(
    "sampler d share",
    (KernelHerding(0.7), 1, 0.8),
    (ContinuousHerdedGibbs(bandwidth=0.7), 4, 0.95),
    (RandomSampling(), 2, 0.8),
)
def test_polishing_lowers_the_herding_error(sampler, d, share):
    mixture = random_mixture(2, d)
    before = herding_error(sampler.sample(mixture, 60, default_rng(0)), mixture, 0.7)
    after = herding_error(Polished(sampler, 0.7).sample(mixture, 60, default_rng(0)), mixture, 0.7)
    assert after < share * before


# Weighted anew


@every_kernel
@cases("constraint", "simplex", "sum")
def test_no_other_weights_do_better(kernel, constraint):
    """The error is convex in the weights: small moves between any two of them do not lower it."""
    mixture = random_mixture(0, 2)
    points = Reweighted(RandomSampling(), constraint, 1.0, kernel).sample(
        mixture, 12, default_rng(0)
    )
    least = herding_error(points, mixture, 1.0, kernel) ** 2
    equal = herding_error(Points(points.x), mixture, 1.0, kernel) ** 2
    assert least < 0.7 * equal
    for s in range(0, 12, 3):
        for t in range(1, 12, 2):
            moved = points.weights.copy()
            step = 1e-3 if constraint == "sum" else min(1e-3, moved[s])
            moved[s] -= step
            moved[t] += step
            assert (
                herding_error(Points(points.x, moved, signed=True), mixture, 1.0, kernel) ** 2
                >= least - 1e-9
            )
