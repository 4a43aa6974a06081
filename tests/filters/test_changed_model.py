"""A model that changes between `predict` and `update`: the step is made with the transition that it had at `predict`."""

import copy

import numpy as np
import pytest

from herdfilter.filters import ParticleFilter, UnscentedKalmanFilter
from herdfilter.mixture import GaussianMixture


class Changeable:
    dim = 1
    initial = GaussianMixture([1.0], [[0.5]], [[2.0]])

    def __init__(self, slope=0.9, noise=0.5):
        self.slope, self.noise = slope, np.array([[noise]])

    def transition_mean(self, x, dt, control, step):
        return self.slope * x

    def transition_covariance(self, dt, step):
        return self.noise

    def observation_mean(self, x, step):
        return x

    def observation_covariance(self, step):
        return np.eye(1)

    def log_likelihood(self, z, x, step):
        return -0.5 * (z[0] - x[:, 0]) ** 2


class Bent(Changeable):
    noise_dim = 1
    transition_mean = transition_covariance = property()

    def transition(self, x, noise, dt, control, step):
        return self.slope * x + np.sqrt(self.noise[0, 0]) * np.sinh(noise)


def replaced(model):
    model.slope, model.noise = -3.0, np.array([[100.0]])


def by_a_function(model):
    if hasattr(model, "transition"):
        model.transition = lambda x, noise, dt, control, step: x + 50.0
    else:
        model.transition_mean = lambda x, dt, control, step: x + 50.0


def in_place(model):
    model.noise *= 200.0


CHANGES = [(Changeable, replaced), (Changeable, by_a_function), (Changeable, in_place)]
CHANGES += [(Bent, replaced), (Bent, by_a_function)]


def test_a_change_after_predict_is_not_seen_by_this_step(promised):
    for make, change in CHANGES:
        if make is Bent and promised.additive:
            continue  # a change of the other model is the same one
        changed, plain = (ParticleFilter(make(), 20, promised.make(), rng=3) for _ in range(2))
        for pf in (changed, plain):
            pf.run([[0.3]])
            pf.predict()
            if pf is changed:
                change(pf.model)
        case = f"{make.__name__}, {change.__name__}"
        np.testing.assert_array_equal(changed.covariance, plain.covariance, case)  # a look at the prediction
        for pf in (changed, plain):
            pf.update([0.8])
        np.testing.assert_array_equal(changed.particles, plain.particles, case)
        np.testing.assert_array_equal(changed.weights, plain.weights, case)


def test_a_change_after_predict_is_seen_by_the_next_step(proposal):
    changed, plain = (ParticleFilter(Changeable(), 30, copy.deepcopy(proposal), rng=3) for _ in range(2))
    for pf in (changed, plain):
        pf.predict()
        replaced(changed.model)
        pf.update([0.8])
        pf.predict()
    assert changed.covariance[0, 0] > 20 > plain.covariance[0, 0]


def test_what_is_observed_is_that_of_the_update(proposal):
    """The observation belongs to `update`: a sensor may be told then where it stands."""

    def moved(z, x, step):
        return -0.5 * (z[0] - 3.0 - x[:, 0]) ** 2

    early, late = (ParticleFilter(Changeable(), 30, copy.deepcopy(proposal), rng=3) for _ in range(2))
    for pf in (early, late):
        if pf is early:
            pf.model.log_likelihood = moved
        pf.predict()
        pf.model.log_likelihood = moved
        pf.update([0.8])
    np.testing.assert_array_equal(late.mean, early.mean)


def test_a_kalman_filter_predicts_at_once():
    kf, plain = UnscentedKalmanFilter(Changeable()), UnscentedKalmanFilter(Changeable())
    kf.predict()
    plain.predict()
    replaced(kf.model)
    np.testing.assert_array_equal(kf.update([0.8]).covariance, plain.update([0.8]).covariance)


def test_a_module_may_be_a_model(tmp_path, monkeypatch, observing):
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
    assert np.isfinite(ParticleFilter(module, 20, observing, rng=3).run([[0.4], [0.6]]).means).all()
