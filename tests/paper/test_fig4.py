import pytest

from herdfilter.paper.common import CHG, KH, SMOOTHED
from herdfilter.paper.fig4 import ConvergingAndStalling


@pytest.fixture(scope="module")
def cases():
    return ConvergingAndStalling.compute().cases


def fall(errors):
    """Factor by which an error falls from 100 points to 1000."""
    return errors[99] / errors[999]


def test_on_the_narrow_component_the_published_recursion_stalls_and_the_smoothed_one_does_not(cases):
    herding = cases[1].herding
    assert fall(herding[CHG]) < 2
    assert min(fall(herding[KH]), fall(herding[SMOOTHED])) > 6
    assert herding[CHG][999] > 4 * herding[SMOOTHED][999]


def test_while_its_herding_error_stalls_its_l2_error_falls_below_the_floor_of_the_others(cases):
    narrow = cases[1]
    assert narrow.l2[CHG][999] < 0.7 * narrow.floor
    for name in (KH, SMOOTHED):
        assert narrow.l2[name][999] == pytest.approx(narrow.floor, rel=0.05)


def test_what_the_paper_states_stands_beside_its_own_recursion_only(cases):
    table = ConvergingAndStalling(cases).table().set_index(["mixture", "sampler"])["paper"]
    assert table[cases[0].name, CHG] == "converges"
    assert table[cases[1].name, CHG] == "E stalls"
    assert (table.drop(CHG, level="sampler") == "not stated").all()
