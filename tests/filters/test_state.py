"""Where a filter stands: put away and taken up again, reset, gated, and started by its first measurement."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf

TURN = hf.models.CoordinatedTurn()
MODES = hf.models.JumpMarkov(
    [hf.models.ConstantVelocity(q, 0.5, [0, 1], 0.1 * np.eye(2)) for q in (1e-3, 10.0)], [[0.95, 0.05], [0.1, 0.9]]
)
NAMES = ["bootstrap", "sqmc", "ranked", "auto", "herded-kh", "mixture-kh", "augmented-gauss-kh", "ledh-weighted"]
NAMES += ["ukf", "enkf", "imm", "mkf"]


def series_of(model, steps=6):
    return hf.simulate(model, steps, rng=3)[1]


def same_end(one, other, z):
    """Both filters take the rest of a series, and end with equal bits."""
    for online in (one, other):
        online.update(z[0])
        for later in z[1:]:
            online.predict(0.5)
            online.update(later)
    assert_array_equal(other.mean, one.mean)
    assert_array_equal(other.covariance, one.covariance)
    assert (other.step, other.time, other.log_likelihood) == (one.step, one.time, one.log_likelihood)


@pytest.mark.parametrize("name", [*NAMES, "edh"])
def test_a_filter_that_is_restored_goes_on_with_equal_bits_and_one_that_is_reset_is_as_new(name, tmp_path):
    """Also between a prediction and its update, through a file, and after looking at what is predicted."""
    model = MODES if name in ("bootstrap", "auto", "imm", "mkf") else TURN
    z = series_of(model)
    one, other = (hf.make_filter(name, model, 25, rng=np.random.Generator(np.random.Philox(seed))) for seed in (1, 2))
    start = one.state
    one.run(z[:3], dt=0.5)
    one.predict(0.5, [1.0])
    assert np.isfinite(one.mean).all()
    np.savez(tmp_path / "state.npz", **one.state)
    other.restore(np.load(tmp_path / "state.npz"))
    same_end(one, other, z[3:])
    other.reset()
    assert (other.step, other.time, other.log_likelihood, other.record) == (0, 0.0, 0.0, None)
    one.restore(start)
    other.restore(start)
    same_end(one, other, z)


STATE = hf.ParticleFilter(TURN, 30, rng=1).state


@pytest.mark.parametrize(
    ("state", "error", "said"),
    [
        (3, TypeError, "state: expected a mapping as the attribute state of a filter has it, got 3"),
        ({**STATE, "weights": 0 * STATE["weights"]}, ValueError, "state: expected finite particles and weights that sum"),
        ({}, ValueError, "state: expected what the attribute state of a filter has, got none of filter, step"),
        (hf.UnscentedKalmanFilter(TURN).state, ValueError, "expected that of a ParticleFilter, got that of a Unscented"),
        (hf.ParticleFilter(TURN, 20, rng=1).state, ValueError, "state: expected particles (30, 5) with as many weights"),
        (
            hf.ParticleFilter(TURN, 30, rng=np.random.Generator(np.random.MT19937(1))).state,
            ValueError,
            "state: expected a generator PCG64, as this filter has, got MT19937",
        ),
    ],
)
def test_a_state_that_does_not_fit_is_named_and_changes_nothing(state, error, said):
    pf = hf.ParticleFilter(TURN, 30, rng=1)
    before = pf.mean
    with pytest.raises(error, match=re.escape(said)):
        pf.restore(state)
    assert_array_equal(pf.mean, before)


# A track that starts from its first measurement


def wide_radar():
    """Range and bearing of a target somewhere within kilometres; nothing is known of its velocity."""
    sd = np.array([1500.0, 1500.0, 30.0, 30.0])
    return hf.models.from_functions(
        f=lambda x, dt: x + dt * np.column_stack([x[:, 2:], 0 * x[:, 2:]]),
        h=lambda x: np.column_stack([np.hypot(x[:, 0], x[:, 1]), np.arctan2(x[:, 1], x[:, 0])]),
        Q=np.diag([0.1, 0.1, 0.1, 0.1]),
        R=np.diag([10.0, 0.002]) ** 2,
        initial_mean=[2000.0, 1000.0, 0.0, 0.0],
        initial_covariance=np.diag(sd**2),
        observation_circular=[1],
    )


@pytest.mark.parametrize("name", ["bootstrap", "ranked", "auto", "herded-kh", "ukf", "ekf"])
def test_a_track_starts_from_its_first_measurement(name):
    """The posterior of the position is that of the measurement, turned into the plane; the velocity is as before."""
    model = wide_radar()
    for distance, bearing in ((1400.0, 1.2), (3000.0, 0.1), (2500.0, -0.3)):
        online = hf.make_filter(name, model, 300, rng=1)
        record = online.update([distance, bearing])
        turned = np.array([[np.cos(bearing), -np.sin(bearing)], [np.sin(bearing), np.cos(bearing)]])
        spread = turned @ np.diag([10.0, 0.002 * distance]) ** 2 @ turned.T
        away = record.mean[:2] - distance * turned[:, 0]
        assert away @ np.linalg.solve(spread, away) < 0.15**2 if name != "bootstrap" else 0.3**2
        assert_allclose(record.covariance[:2, :2], spread, atol=0.2 * np.trace(spread))
        assert_allclose(np.sqrt(np.diagonal(record.covariance)[2:]), 30.0, rtol=0.15)
        assert not record.ess < 200


# The gate


@pytest.mark.parametrize("name", NAMES)
def test_what_lies_outside_the_gate_is_left_out_and_recorded(name):
    model = hf.models.linear_chain(2)
    z = hf.simulate(model, 6, rng=2)[1]
    spoilt = z.copy()
    spoilt[3] += 50.0
    gated = hf.make_filter(name, model, 60, rng=1).run(spoilt, gate=0.9999)
    missing = hf.make_filter(name, model, 60, rng=1).run([*z[:3], None, *z[4:]])
    assert [outcome.name for outcome in gated.outcomes] == ["UPDATED"] * 3 + ["GATED"] + ["UPDATED"] * 2
    assert_array_equal(gated.means, missing.means)
    assert gated.log_likelihood == missing.log_likelihood
    assert list(gated.to_dataframe()["outcome"])[3] == "gated"


def test_missing_entries_and_angles_do_not_count_in_the_gate():
    model = wide_radar()
    for z, outcome in (
        ([np.nan, 0.46 + 2 * np.pi], hf.Outcome.UPDATED),
        ([2230.0, np.nan], hf.Outcome.UPDATED),
        ([2e5, np.nan], hf.Outcome.GATED),
        ([np.nan, np.nan], hf.Outcome.MISSING),
    ):
        kf = hf.UnscentedKalmanFilter(model)
        kf.predict()
        assert kf.update(z, gate=0.999).outcome is outcome


def test_a_gate_that_cannot_be_is_named():
    pf = hf.ParticleFilter(hf.models.linear_chain(1), 20, rng=0)
    pf.predict()
    with pytest.raises(ValueError, match=r"^gate: expected a probability such as 0.999, got"):
        pf.update([0.0], gate=1.0)
    alone = hf.Sensor(None, None, log_likelihood=lambda z, x: np.zeros(len(x)))
    with pytest.raises(TypeError, match=r"^gate: expected None, as LinearGaussian with this sensor has no mean and cov"):
        pf.update([0.0], sensor=alone, gate=0.9)


def test_without_a_gate_an_outlier_that_leaves_one_particle_is_warned_of():
    model = hf.models.linear_chain(1)
    pf, z = hf.ParticleFilter(model, 100, rng=0), [[0.3], [0.1], [400.0]]
    with pytest.warns(hf.DegeneracyWarning, match=r"^1 of 3 steps, first at step 3: one of 100 particles has all the weig"):
        pf.run(z)
    quick = hf.ParticleFilter(hf.models.UNGM().compiled(), 2000, rng=0)
    with pytest.warns(hf.DegeneracyWarning, match=r"^1 of 10 steps, first at step 2"):
        quick.run([[0.5], [1e4], *[None] * 8])
    pf.reset()
    pf.predict()
    with pytest.warns(hf.DegeneracyWarning, match=r"^step 1: one of 100 particles has all the weight"):
        pf.update([400.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hf.ParticleFilter(model, 100, rng=0).run(z, gate=0.999)
