import pytest

from herdfilter.paper.common import CHG, KH, RANDOM, SMOOTHED
from herdfilter.paper.fig3 import ErrorCurves


@pytest.fixture(scope="module")
def result():
    return ErrorCurves.compute(n=200, mixtures=2, runs=4)


def test_herding_beats_random_draws_in_two_dimensions(result):
    end = {name: values[-1] for name, values in result.curves[0].herding.items()}
    assert max(end[KH], end[SMOOTHED]) < 0.4 * end[RANDOM]
    assert end[SMOOTHED] < end[CHG] < end[RANDOM]


def test_a_narrow_kernel_tells_no_sampler_from_another_in_ten_dimensions(result):
    narrow, automatic = result.curves[1:]
    ends = [values[-1] for values in narrow.herding.values()]
    assert max(ends) < 1.01 * min(ends)
    assert automatic.herding[KH][-1] < 0.7 * automatic.herding[RANDOM][-1] < automatic.herding[CHG][-1]
