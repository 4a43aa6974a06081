"""Filters that stand for several hypotheses about what was seen."""

import copy

import numpy as np
import pytest
from helpers import assert_same, model_of, normal

import herdfilter as hf
from herdfilter.tracking import Birth, LMBTracker
from herdfilter.tracking.track import combine_filters, hypothesis_given

SPEED = hf.models.LinearGaussian(
    [[1.0, 1.0], [0.0, 1.0]], [[1.0, 0.0]], [[0.3, 0.2], [0.2, 0.3]], [[0.5]], [0.0, 0.5], np.eye(2)
)
LIVELY = hf.models.LinearGaussian(SPEED.F, SPEED.H, 9 * SPEED.Q, SPEED.R, [0.0, 0.5], np.eye(2))
JUMPING = hf.models.JumpMarkov([SPEED, LIVELY], [[0.9, 0.1], [0.3, 0.7]])
WEIGHTS = np.array([0.2, 0.5, 0.3])


def hypotheses(name):
    """Of a filter after two steps: that it has seen nothing, and two observations."""
    model = JUMPING if name in ("imm", "mkf") else SPEED
    online = hf.make_filter(name, model, n_particles=60, rng=1)
    online.run([[0.4]])
    online.predict()
    return online, [hypothesis_given(online, z) for z in (None, [0.0], [2.5])]


@pytest.mark.parametrize("name", ["ekf", "imm", "mkf", "bootstrap", "auto"])
def test_the_combination_has_the_moments_of_the_mixture(name):
    _, suppositions = hypotheses(name)
    filters = [one.filter for one in suppositions]
    means, covariances = (np.array([getattr(one, part) for one in filters]) for part in ("mean", "covariance"))
    expected = hf.GaussianMixture(WEIGHTS, means, covariances)
    whole = combine_filters(filters, WEIGHTS)
    assert_same(whole, expected, "mean", "covariance", atol=1e-12)
    if name in ("imm", "mkf"):
        modes = WEIGHTS @ [one.mode_probabilities for one in filters]
        np.testing.assert_allclose(whole.mode_probabilities, modes, rtol=1e-12)


@pytest.mark.parametrize("name", ["enkf", "edh"])
def test_an_ensemble_has_its_share_of_the_members_of_each(name):
    _, suppositions = hypotheses(name)
    filters = [one.filter for one in suppositions]
    members = [set(one.particles[:, 0]) for one in filters]
    taken = combine_filters(filters, WEIGHTS).particles[:, 0]
    assert [sum(x in own for x in taken) for own in members] == [12, 30, 18]


@pytest.mark.parametrize("name", ["ekf", "mkf", "enkf", "bootstrap", "auto"])
def test_a_combination_goes_on_with_as_many_particles_as_before(name):
    online, suppositions = hypotheses(name)
    whole = combine_filters([one.filter for one in suppositions], WEIGHTS)
    for _ in range(2):
        whole.predict()
        whole.update([3.0])
    assert whole.step == online.step + 2
    assert np.shape(getattr(whole, "particles", np.empty((60, 2)))) == (60, 2)
    assert whole.mean[0] == pytest.approx(3, abs=1)


def test_the_evidence_is_that_of_the_update_and_the_filter_stays():
    online, suppositions = hypotheses("auto")
    before = online.mean
    for z, one in zip((None, [0.0], [2.5]), suppositions, strict=True):
        updated = copy.deepcopy(online)
        updated.update(z)
        assert one.log_evidence == updated.record.log_likelihood
        np.testing.assert_array_equal(one.filter.mean, updated.mean)
    np.testing.assert_array_equal(online.mean, before)


@pytest.mark.parametrize("on_degeneracy", ["raise", "predict"])
def test_an_observation_out_of_reach_has_no_evidence(on_degeneracy):
    window = model_of(
        normal([0.0]),
        sample_transition=lambda x, rng, dt, control, step: x + rng.normal(size=x.shape),
        log_likelihood=lambda z, x, step: np.where(np.abs(x[:, 0] - z[0]) < 1, 0.0, -np.inf),
    )
    online = hf.ParticleFilter(window, 20, rng=1, on_degeneracy=on_degeneracy)
    online.predict()
    assert hypothesis_given(online, [100.0]).log_evidence == -np.inf


def test_a_hypothesis_with_all_the_weight_is_the_filter():
    _, suppositions = hypotheses("ekf")
    filters = [one.filter for one in suppositions]
    assert combine_filters(filters, np.array([0.0, 1.0, 0.0])) is filters[1]


def test_particles_are_spared_for_hypotheses_too_light_to_be_merged(monkeypatch):
    """Nine targets 4 m apart: all detections are in all gates; each track gives particles to few, and loses nothing."""
    model = hf.models.ConstantVelocity(0.05, 1.0, initial_mean=np.zeros(4), initial_covariance=np.eye(4))
    places = 4.0 * np.array([(i, j) for i in range(3) for j in range(3)])
    starts = [Birth(0.9, hf.GaussianMixture([1.0], [[*place, 0, 0]], np.eye(4))) for place in places]
    cluttered = hf.models.WithClutter(model, 0.9, 1e-3)
    scan = places + np.random.default_rng(3).normal(size=(9, 2))
    updates, means = [], []
    update = hf.ParticleFilter.update
    monkeypatch.setattr(hf.ParticleFilter, "update", lambda self, z, *rest: updates.append(z) or update(self, z, *rest))
    for count in (9, 1):  # one of them alone, too
        means.clear()
        for gate in (1 - 1e-9, 1.0):
            tracker = LMBTracker(cluttered, filter="auto", initial=starts[:count], gate_probability=gate)
            tracker.predict()
            updates.clear()
            tracker.update(scan)
            means.append(np.array([track.mean for track in tracker.tracks]))
            used = sum(z is not None for z in updates)
            assert used == 9 * count if gate == 1 else count <= used <= 60 * count / 9
        np.testing.assert_allclose(means[0], means[1], atol=2e-3)
