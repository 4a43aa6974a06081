import pytest

from herdfilter.paper.common import CHG, KH
from herdfilter.paper.fig5 import TimePerPoint, published_times


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
    assert result.idle[2] == 0 < 0.95 < result.idle[10]  # the published ascent stands still in many dimensions
