"""The systems without noise that are set beside DAPPER's figures."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytestmark = pytest.mark.slow


@pytest.fixture
def dapper(scripts):
    return scripts("benchmarks/published_dapper")


def test_the_pendulum_keeps_its_energy(dapper):
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (20, 4))

    def energy(x):
        first, first_speed, second, second_speed = x.T
        potential = -9.8 * (2 * np.cos(first) + np.cos(second))
        product = first_speed * second_speed * np.cos(first - second)
        return potential + first_speed**2 + 0.5 * second_speed**2 + product

    assert_allclose(energy(dapper.swing(x, 1.0)), energy(x), atol=1e-3)


def test_truth_has_no_noise_and_the_observations_have_theirs(dapper):
    setting = dapper.SETTINGS["pendulum, dko = 10"]
    truth, z = dapper.simulated(setting, np.random.default_rng(0))
    assert_allclose(truth[1:], dapper.swing(truth[:-1], setting.dt))
    assert np.std(z - truth[:, [0, 2]]) == pytest.approx(0.1, rel=0.1)


def test_dapper_s_particle_filter_has_its_figure(dapper, monkeypatch):
    """On the pendulum, where a run is short."""
    checks = [entry for entry in dapper.ENTRIES if entry.regularised and "100" in entry.setting]
    monkeypatch.setattr(dapper, "ENTRIES", checks)
    (row,) = dapper.rows(SimpleNamespace(most=4))
    assert row["verdict"] == "agrees"
    assert row["lost"] == 0


def test_every_filter_of_ours_has_a_rate(dapper):
    ours = {
        (entry.setting, entry.n_particles, entry.filter)
        for entry in dapper.ENTRIES
        if not entry.regularised
    }
    assert set(dapper.RATES) == ours
