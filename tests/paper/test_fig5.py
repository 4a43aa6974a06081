import numpy as np
import pytest
from scipy.optimize import minimize

from herdfilter.paper.common import CHG, KH, rotated_mixture
from herdfilter.paper.fig5 import TimePerPoint, idle_starts, published_times


@pytest.fixture(scope="module")
def result():
    return TimePerPoint.compute(dims=(2, 10), n=30, mixtures=2)


def test_the_published_times_run_from_2_to_50_dimensions():
    times = published_times()
    assert list(times.index) == list(range(2, 51))
    assert list(times.columns) == ["kernel_herding", "continuous_herded_gibbs"]
    assert (times > 0).all(axis=None)
    dip = times["kernel_herding"]
    assert dip[7] > 8  # rises to d = 7 and falls from there to d = 10
    assert dip[7] > dip[8] > dip[9] > dip[10]
    assert dip[10] < 0.1 * dip[7]


def test_the_table_pairs_dimensions_with_the_published_ones(result):
    table, paper = result.table().set_index("d"), published_times()
    assert list(table.index) == [2, 10]
    for short, name, column in (("KH", KH, "kernel_herding"), ("CHG", CHG, "continuous_herded_gibbs")):
        assert list(table[f"paper:\n{short} (s)"]) == list(paper.loc[[2, 10], column])
        ratio = paper.loc[[2, 10], column] / result.ours[name]
        assert table[f"{short}: paper\nover ours"].to_numpy() == pytest.approx(ratio.to_numpy(), abs=50)
    assert set(TimePerPoint.dims) <= set(paper.index)


def test_a_point_takes_a_thousandth_of_the_published_time(result):
    for name, column in ((KH, "kernel_herding"), (CHG, "continuous_herded_gibbs")):
        assert (result.ours[name] < 1e-3 * result.published.loc[[2, 10], column]).all()


def test_numbers_hold_every_published_dimension(result):
    numbers = result.numbers().set_index("dimension")
    assert len(numbers) == 49
    assert numbers[KH].notna().sum() == 2


def test_idle_starts_are_those_from_which_bfgs_takes_no_step():
    mixture = rotated_mixture(8, np.random.default_rng(1))
    smoothed = mixture.convolve(TimePerPoint.sigma_k**2 * np.eye(8))
    starts = [
        mean + sign * row
        for mean, cov in zip(mixture.means, mixture.covariances, strict=True)
        for row in cov
        for sign in (1, -1)
    ]

    def objective(x):
        return -float(np.exp(smoothed.log_density(x[None]))[0])

    idle = np.mean([minimize(objective, x0, method="BFGS").nit == 0 for x0 in starts])
    assert 0.2 < idle < 0.95
    assert idle_starts(mixture, TimePerPoint.sigma_k) == pytest.approx(idle)


def test_the_published_ascent_moves_in_few_dimensions_and_stands_still_in_many(result):
    assert result.idle[2] == 0
    assert result.idle[10] > 0.95
