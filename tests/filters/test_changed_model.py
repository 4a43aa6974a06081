"""A model that changes between `predict` and `update`: the step is made with the transition that it had at `predict`."""

import copy

import numpy as np
import pytest
from helpers import Walk, assert_same, cases
from numpy.testing import assert_array_equal

import herdfilter as hf
from herdfilter.filters import AutomaticProposal, ParticleFilter


class Changeable(Walk):
    def __init__(self, slope=0.9, noise=0.5):
        self.slope = slope
        self.noise = np.array([[noise]])

    def transition_mean(self, x, dt, control, step):
        return self.slope * x

    def transition_covariance(self, dt, step):
        return self.noise


def replaced(model):
    model.slope = -3.0
    model.noise = np.array([[100.0]])


def in_place(model):
    model.noise *= 200.0


@cases("change", replaced, in_place)
def test_a_change_after_predict_is_not_seen_by_this_step(typical, change):
    changed, plain = (ParticleFilter(Changeable(), 20, typical.make(), rng=3) for _ in range(2))
    for pf in (changed, plain):
        pf.run([[0.3]])
        pf.predict()
        if pf is changed:
            change(pf.model)
    assert_array_equal(changed.covariance, plain.covariance)  # a look at the prediction
    for pf in (changed, plain):
        pf.update([0.8])
    assert_same(changed, plain, "particles", "weights")


def test_a_copy_of_a_model_does_not_keep_what_was_computed_of_the_other():
    model = hf.models.CoordinatedTurn()
    before = model.observation_covariance(1)
    other = copy.copy(model)
    object.__setattr__(other, "range_sd", 2 * model.range_sd)
    assert other.observation_covariance(1)[0, 0] == 4 * before[0, 0]


def test_what_is_observed_is_that_of_the_update(typical):
    """The observation belongs to `update`: a sensor may be told then where it stands."""

    def moved(z, x, step):
        return -0.5 * (z[0] - 3.0 - x[:, 0]) ** 2

    early, late = (ParticleFilter(Changeable(), 30, typical.make(), rng=3) for _ in range(2))
    for pf in (early, late):
        if pf is early:
            pf.model.log_likelihood = moved
        pf.predict()
        pf.model.log_likelihood = moved
        pf.update([0.8])
    assert_array_equal(late.mean, early.mean)


def test_a_module_may_be_a_model(tmp_path, monkeypatch):
    """What it holds is taken where a copy cannot be made."""
    (tmp_path / "walk_in_a_module.py").write_text(
        "import numpy as np\n"
        "from herdfilter.mixture import GaussianMixture\n"
        "dim, initial = 1, GaussianMixture([1.0], [[0.5]], [[2.0]])\n"
        "def transition_mean(x, dt, control, step): return x\n"
        "def transition_covariance(dt, step): return np.eye(1)\n"
        "def observation_mean(x, step): return x\n"
        "def observation_covariance(step): return np.eye(1)\n"
        "def log_likelihood(z, x, step): return -0.5 * (z[0] - x[:, 0]) ** 2\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = pytest.importorskip("walk_in_a_module")
    assert np.isfinite(
        ParticleFilter(module, 20, AutomaticProposal(), rng=3).run([[0.4], [0.6]]).means
    ).all()
