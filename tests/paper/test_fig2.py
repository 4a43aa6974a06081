import numpy as np
import pytest

import herdfilter as hf
from herdfilter.paper.common import rotated_mixture
from herdfilter.paper.fig2 import HerdingWeights, WeightFunction


def test_the_maximum_is_the_samplers_coordinate():
    for t in (1, 5, 19):
        result = HerdingWeights.compute(t=t)
        assert result.maximum == pytest.approx(result.chosen, abs=1e-6)


def test_every_coordinate_of_a_point_is_the_maximum_given_the_others():
    coordinate = 1
    mixture = rotated_mixture(3, np.random.default_rng(4))
    x = hf.ContinuousHerdedGibbs(target="paper", bandwidth=0.7).sample(mixture, 12).x
    current = np.concatenate([x[11, :coordinate], x[10, coordinate:]])  # coordinates before it have moved
    function = WeightFunction(mixture, x[:11], current, coordinate, 0.7)
    assert function.maximum(np.linspace(-12, 12, 4001)) == pytest.approx(x[11, coordinate], abs=1e-6)
