"""Filters that stand for several hypotheses about what was seen."""

import copy

import numpy as np
import pytest
from helpers import assert_same, cases, model_of, normal, position_and_speed
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter.models.resolved import Measurement
from herdfilter.tracking import Birth, LMBTracker
from herdfilter.tracking.bank import Detections, ListedFilters

SPEED = position_and_speed([[0.3, 0.2], [0.2, 0.3]], 0.5, [0.0, 0.5])
LIVELY = position_and_speed(9 * SPEED.Q, 0.5, [0.0, 0.5])
JUMPING = hf.models.JumpMarkov([SPEED, LIVELY], [[0.9, 0.1], [0.3, 0.7]])
WEIGHTS = np.array([0.2, 0.5, 0.3])


def suppose(online, z):
    """Copies of a filter: one that has missed its target, and one for each of these observations; with log-densities."""
    detections = Detections(np.array(z), online.step, Measurement(online.model), None)
    log_densities = np.full((1, len(z)), -np.inf)
    merge = ListedFilters([online]).hypotheses(
        detections, None, np.ones((1, len(z)), dtype=bool), log_densities
    )
    return merge, log_densities[0]


def hypotheses(name):
    """A filter after two steps, copies of it by three hypotheses (a miss, and two observations), and their merger."""
    model = JUMPING if name in ("imm", "mkf") else SPEED
    online = hf.make_filter(name, model, n_particles=60, rng=1)
    online.run([[0.4]])
    online.predict()
    merge, _ = suppose(online, [[0.0], [2.5]])
    alone = [merge(np.array([0]), row[None])[0] for row in np.eye(3)]
    return online, alone, merge(np.array([0]), WEIGHTS[None])[0]


@cases("name", "ekf", "imm", "mkf", "bootstrap", "auto")
def test_the_combination_has_the_moments_of_the_mixture(name):
    _, filters, whole = hypotheses(name)
    means, covariances = (
        np.array([getattr(online, part) for online in filters]) for part in ("mean", "covariance")
    )
    expected = hf.GaussianMixture(WEIGHTS, means, covariances)
    assert_same(whole, expected, "mean", "covariance", atol=1e-12)
    if name in ("imm", "mkf"):
        modes = WEIGHTS @ [online.mode_probabilities for online in filters]
        assert_allclose(whole.mode_probabilities, modes, rtol=1e-12)


@cases("name", "enkf", "edh")
def test_an_ensemble_has_its_share_of_the_members_of_each(name):
    _, filters, whole = hypotheses(name)
    members = [set(online.particles[:, 0]) for online in filters]
    assert [sum(x in own for x in whole.particles[:, 0]) for own in members] == [12, 30, 18]


@cases("name", "ekf", "mkf", "enkf", "bootstrap", "auto")
def test_a_combination_goes_on_with_as_many_particles_as_before(name):
    online, _, whole = hypotheses(name)
    for _ in range(2):
        whole.predict()
        whole.update([3.0])
    assert whole.step == online.step + 2
    assert np.shape(getattr(whole, "particles", np.empty((60, 2)))) == (60, 2)
    assert whole.mean[0] == pytest.approx(3, abs=1)


@cases("name", "auto", "ekf")
def test_the_evidence_is_that_of_the_update_and_the_filter_stays(name):
    online, filters, _ = hypotheses(name)
    before = online.mean
    _, log_densities = suppose(online, [[0.0], [2.5]])
    for z, log_density, supposed in zip(
        (None, [0.0], [2.5]), (0.0, *log_densities), filters, strict=True
    ):
        updated = copy.deepcopy(online)
        updated.update(z)
        assert log_density == updated.record.log_likelihood
        assert_array_equal(supposed.mean, updated.mean)
        assert supposed.log_likelihood == updated.log_likelihood
    assert_array_equal(online.mean, before)


@cases("kind", hf.ParticleFilter, type("Own", (hf.ParticleFilter,), {}))
@cases("on_degeneracy", "raise", "predict")
def test_an_observation_out_of_reach_has_no_evidence(on_degeneracy, kind):
    window = model_of(
        normal([0.0]),
        sample_transition=lambda x, rng, dt, control, step: x + rng.normal(size=x.shape),
        log_likelihood=lambda z, x, step: np.where(np.abs(x[:, 0] - z[0]) < 1, 0.0, -np.inf),
    )
    online = kind(window, 20, rng=1, on_degeneracy=on_degeneracy)
    online.predict()
    assert suppose(online, [[100.0]])[1] == -np.inf


def test_particles_are_spared_for_hypotheses_too_light_to_be_merged(monkeypatch):
    """Nine targets 4 m apart: all detections are in all gates; each track gives particles to few, and loses nothing."""
    model = hf.models.ConstantVelocity(
        0.05, 1.0, initial_mean=np.zeros(4), initial_covariance=np.eye(4)
    )
    places = 4.0 * np.array([(i, j) for i in range(3) for j in range(3)])
    starts = [Birth(0.9, normal([*place, 0, 0])) for place in places]
    cluttered = hf.models.WithClutter(model, 0.9, 1e-3)
    scan = places + np.random.default_rng(3).normal(size=(9, 2))
    updates = []
    means = []
    suppose = hf.ParticleFilter.suppose
    monkeypatch.setattr(
        hf.ParticleFilter, "suppose", lambda self, z: updates.append(z) or suppose(self, z)
    )
    for count in (9, 1):  # one of them alone, too
        means.clear()
        for gate in (1 - 1e-9, 1.0):
            tracker = LMBTracker(
                cluttered, filter="auto", initial=starts[:count], gate_probability=gate
            )
            tracker.predict()
            updates.clear()
            tracker.update(scan)
            means.append(np.array([track.mean for track in tracker.tracks]))
            used = sum(z is not None for z in updates)
            assert used == 9 * count if gate == 1 else count <= used <= 60 * count / 9
        assert_allclose(means[0], means[1], atol=2e-3)
