import numpy as np
import pytest

import herdfilter as hf
from herdfilter.paper.common import PrefixErrors, rotated_mixture


@pytest.mark.parametrize("dim", [1, 5])
def test_errors_of_prefixes_are_the_direct_ones(dim):
    rng = np.random.default_rng(dim)
    mixture = rotated_mixture(dim, rng)
    a = rng.standard_normal((dim, dim))
    kernel = 0.3 * np.eye(dim) + 0.2 * a @ a.T
    x = mixture.sample(40, rng)
    herding, l2 = PrefixErrors(mixture, kernel)(x)
    for t in (1, 2, 17, 40):
        points = hf.Points(x[:t])
        assert herding[t - 1] == pytest.approx(hf.herding_error(points, mixture, kernel), rel=1e-9)
        assert l2[t - 1] == pytest.approx(hf.normalised_l2(points, mixture, kernel), rel=1e-9, abs=1e-12)
