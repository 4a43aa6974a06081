import numpy as np
import pytest

import herdfilter as hf
from herdfilter.paper.common import CHG, KH, RANDOM, SMOOTHED, rotated_mixture
from herdfilter.paper.fig3 import ErrorCurves


@pytest.fixture(scope="module")
def result():
    return ErrorCurves.compute(n=200, mixtures=2, runs=4)


def test_curves_are_means_of_direct_errors(result):
    curves = result.curves[0]
    mixtures = [rotated_mixture(2, np.random.default_rng([0, 2, k])) for k in range(2)]
    points = [hf.KernelHerding(bandwidth=0.5).sample(mixture, 200).x for mixture in mixtures]
    for t in (3, 200):
        pairs = [(hf.Points(x[:t]), mixture) for x, mixture in zip(points, mixtures, strict=True)]
        herding = np.mean([hf.herding_error(*pair, 0.5) for pair in pairs])
        assert curves.herding[KH][t - 1] == pytest.approx(herding, rel=1e-9)
        assert curves.l2[KH][t - 1] == pytest.approx(np.mean([hf.normalised_l2(*pair, 0.5) for pair in pairs]))


def test_herding_beats_random_draws_in_two_dimensions(result):
    end = {name: values[-1] for name, values in result.curves[0].herding.items()}
    assert max(end[KH], end[SMOOTHED]) < 0.4 * end[RANDOM]
    assert end[SMOOTHED] < end[CHG] < end[RANDOM]


def test_random_draws_keep_the_rate_of_monte_carlo(result):
    for curves in result.curves:
        ratio = curves.herding[RANDOM][19] / curves.herding[RANDOM][-1]
        assert np.log10(ratio) == pytest.approx(0.5, abs=0.1)


def test_a_narrow_kernel_tells_no_sampler_from_another_in_ten_dimensions(result):
    narrow, automatic = result.curves[1:]
    ends = [values[-1] for values in narrow.herding.values()]
    assert max(ends) < 1.01 * min(ends)
    assert automatic.herding[KH][-1] < 0.7 * automatic.herding[RANDOM][-1] < automatic.herding[CHG][-1]


def test_a_broad_kernel_leaves_the_l2_error_at_its_floor(result):
    narrow, automatic = result.curves[1:]
    assert automatic.floor > 1.5
    assert automatic.l2[KH][-1] == pytest.approx(automatic.floor, rel=0.02)
    assert narrow.l2[KH][-1] < narrow.l2[SMOOTHED][-1] < narrow.l2[RANDOM][-1]
