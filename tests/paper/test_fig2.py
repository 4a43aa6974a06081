import numpy as np
import pytest
from scipy.integrate import quad

import herdfilter as hf
from herdfilter.paper.common import rotated_mixture
from herdfilter.paper.fig2 import HerdingWeights, WeightFunction


def test_the_maximum_is_the_samplers_coordinate():
    for t in (1, 5, 19):
        result = HerdingWeights.compute(t=t)
        assert result.maximum == pytest.approx(result.chosen, abs=1e-6)


@pytest.mark.parametrize("coordinate", [0, 1, 2])
def test_every_coordinate_of_a_point_is_the_maximum_given_the_others(coordinate):
    mixture = rotated_mixture(3, np.random.default_rng(4))
    x = hf.ContinuousHerdedGibbs(target="paper", bandwidth=0.7).sample(mixture, 12).x
    current = np.concatenate([x[11, :coordinate], x[10, coordinate:]])  # coordinates before it have moved
    function = WeightFunction(mixture, x[:11], current, coordinate, 0.7)
    assert function.maximum(np.linspace(-12, 12, 4001)) == pytest.approx(x[11, coordinate], abs=1e-6)


def test_the_expectation_is_that_over_the_conditional_density():
    mixture = rotated_mixture(3, np.random.default_rng(2))
    current = mixture.means[0] + 0.3
    function = WeightFunction(mixture, mixture.means, current, 1, 0.4)

    def density(y):
        return float(np.exp(mixture.log_density(np.array([[current[0], y, current[2]]])))[0])

    total = quad(density, -20, 20, limit=400, points=list(mixture.means[:, 1]))[0]
    for x in (-1.0, current[1], 2.5):
        smooth = quad(
            lambda y, x=x: density(y) * np.exp(-0.5 * ((x - y) / 0.4) ** 2),
            -20, 20, limit=400, points=[x, *mixture.means[:, 1]],
        )[0]  # fmt: skip
        assert function.expectation(np.array([x]))[0] == pytest.approx(smooth / total, rel=1e-5)


def test_the_kernel_sum_is_a_weighted_mean_of_kernels():
    result = HerdingWeights.compute(quick=True)
    f = result.function
    assert f.weights.max() == pytest.approx(1.0)  # the latest point lies in the slice
    assert 0 <= f.kernel_sum(result.grid).min() <= f.kernel_sum(result.grid).max() <= 1
