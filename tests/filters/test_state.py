"""Where a filter stands: put away and taken up again, reset, gated, and started by its first measurement."""

import re
import warnings

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.catalogue.specifications import of_one_target

TURN = hf.models.CoordinatedTurn()
MODES = hf.models.JumpMarkov(
    [hf.models.ConstantVelocity(q, 0.5, [0, 1], 0.1 * np.eye(2)) for q in (1e-3, 10.0)], [[0.95, 0.05], [0.1, 0.9]]
)
NAMES = [name for name in of_one_target() if "quantile" not in name and not name.startswith("rb-")]


def series_of(model, steps=6):
    return hf.simulate(model, steps, rng=3)[1]


def same_end(one, other, z):
    """Both filters take the rest of a series, and end with equal bits."""
    for online in (one, other):
        online.update(z[0])
        for later in z[1:]:
            online.predict(0.5)
            online.update(later)
    np.testing.assert_array_equal(other.mean, one.mean)
    np.testing.assert_array_equal(other.covariance, one.covariance)
    assert (other.step, other.time, other.log_likelihood) == (one.step, one.time, one.log_likelihood)


@pytest.mark.parametrize("name", NAMES)
def test_a_restored_filter_goes_on_with_equal_bits(name, tmp_path):
    """Also between a prediction and its update, through a file, and after looking at what is predicted."""
    z = series_of(TURN)
    one, other = (hf.make_filter(name, TURN, 25, rng=seed) for seed in (1, 2))
    one.run(z[:3], dt=0.5)
    one.predict(0.5)
    assert np.isfinite(one.mean).all()
    np.savez(tmp_path / "state.npz", **one.state)
    other.restore(np.load(tmp_path / "state.npz"))
    same_end(one, other, z[3:])


@pytest.mark.parametrize("name", ["bootstrap", "auto", "imm", "mkf"])
def test_the_modes_of_a_state_come_along(name):
    z = series_of(MODES)
    one, other = (hf.make_filter(name, MODES, 25, rng=seed) for seed in (1, 2))
    one.run(z[:3])
    one.predict(0.5)
    other.restore(one.state)
    same_end(one, other, z[3:])


@pytest.mark.parametrize("stream", [np.random.MT19937, np.random.Philox, np.random.SFC64, np.random.PCG64DXSM])
def test_any_generator_is_restored(stream):
    z = series_of(TURN)
    one, other = (hf.ParticleFilter(TURN, 25, rng=np.random.Generator(stream(seed))) for seed in (1, 2))
    one.run(z[:2])
    one.predict()
    other.restore(one.state)
    same_end(one, other, z[2:])


def test_a_prediction_with_a_control_waits_in_the_state():
    robot = hf.models.LandmarkLocalisation()
    one, other = (hf.make_filter("auto", robot, 30) for _ in range(2))
    one.predict(0.5, control=[1.0, 0.3])
    state = one.state
    assert state["pending_control"].tolist() == [1.0, 0.3]
    other.restore(state)
    np.testing.assert_array_equal(other.mean, one.mean)
    assert other.time == 0.5


def test_a_state_is_plain_arrays_that_do_not_change():
    pf = hf.ParticleFilter(TURN, 30, rng=1)
    state = pf.state
    assert all(isinstance(value, np.ndarray) and value.dtype != object for value in state.values())
    assert (state["particles"].shape, state["weights"].shape, int(state["step"])) == ((30, 5), (30,), 0)
    kept = {name: value.copy() for name, value in state.items()}
    pf.run(series_of(TURN))
    for name, value in kept.items():
        np.testing.assert_array_equal(state[name], value)


def test_dates_come_along():
    pf = hf.ParticleFilter(TURN, 30, rng=1)
    days = np.array(["2024-02-28", "2024-02-29", "2024-03-01"], "M8[D]")
    pf.run([None] * 2, times=days[1:], start=days[0])
    other = hf.ParticleFilter(TURN, 30, rng=1)
    other.restore(pf.state)
    assert other.time == pf.time == days[-1]
    assert other.run([None], times=[days[-1] + np.timedelta64(60, "s")]).steps.tolist() == [3]


@pytest.mark.parametrize("name", ["bootstrap", "auto", "herded-kh", "ukf", "imm", "edh"])
def test_a_filter_that_is_reset_is_as_good_as_new(name):
    z = series_of(TURN)
    online, fresh = (hf.make_filter(name, TURN, 30, rng=5) for _ in range(2))
    start = online.state
    online.run(z)
    online.reset()
    assert (online.step, online.time, online.log_likelihood, online.record) == (0, 0.0, 0.0, None)
    online.restore(start)
    np.testing.assert_array_equal(online.run(z).means, fresh.run(z).means)


STATE = hf.ParticleFilter(TURN, 30, rng=1).state


@pytest.mark.parametrize(
    ("state", "error", "said"),
    [
        (3, TypeError, "state: expected a mapping as the attribute state of a filter has it, got 3"),
        ({**STATE, "step": -1}, ValueError, "state: expected a step from 0 on, got -1"),
        (
            {**STATE, "weights": 0 * STATE["weights"]},
            ValueError,
            "state: expected finite particles and weights that sum to 1",
        ),
        ({**STATE, "particles": np.nan * STATE["particles"]}, ValueError, "state: expected finite particles and weights"),
        (
            {**STATE, "generator": "abc"},
            ValueError,
            "state: expected the arrays that the attribute state has, got Expecting",
        ),
        ({**STATE, "origin": "today"}, ValueError, "state: expected the arrays that the attribute state has, got ufunc"),
        ({}, ValueError, "state: expected what the attribute state of a filter has, got none of filter, step"),
        (hf.UnscentedKalmanFilter(TURN).state, ValueError, "expected that of a ParticleFilter, got that of a Unscented"),
        ({k: v for k, v in STATE.items() if k != "weights"}, ValueError, "state: expected weights, as this filter has it"),
        (hf.ParticleFilter(TURN, 20, rng=1).state, ValueError, "state: expected particles (30, 5) with as many weights"),
        (hf.ParticleFilter(hf.models.UNGM(), 30).state, ValueError, "expected particles (30, 5) with as many weights"),
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
    np.testing.assert_array_equal(pf.mean, before)


def test_a_state_of_another_kalman_filter_is_named():
    with pytest.raises(ValueError, match=r"state: expected covariance of shape \(5, 5\), got \(1, 1\)"):
        hf.UnscentedKalmanFilter(TURN).restore(hf.UnscentedKalmanFilter(hf.models.UNGM()).state)


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


@pytest.mark.parametrize("name", ["bootstrap", "ranked", "auto", "herded-kh", "ukf", "ekf", "ckf"])
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
        np.testing.assert_allclose(record.covariance[:2, :2], spread, atol=0.2 * np.trace(spread))
        np.testing.assert_allclose(np.sqrt(np.diagonal(record.covariance)[2:]), 30.0, rtol=0.15)
        assert not record.ess < 200


@pytest.mark.parametrize("name", ["auto", "ranked", "ekf", "ukf"])
def test_the_first_measurement_of_a_linear_model_is_taken_up_exactly(name):
    model = hf.models.linear_chain(2)
    mean, P, H, R = model.initial.mean, model.initial.covariance, model.H, model.R
    gain = P @ H.T @ np.linalg.inv(H @ P @ H.T + R)
    online = hf.make_filter(name, model, 100)
    record = online.update([1.5, -2.0])
    np.testing.assert_allclose(record.mean, mean + gain @ ([1.5, -2.0] - H @ mean), atol=1e-6)
    np.testing.assert_allclose(record.covariance, P - gain @ H @ P, atol=2e-2)
    log_density = hf.GaussianMixture([1.0], [H @ mean], H @ P @ H.T + R).log_density([[1.5, -2.0]])[0]
    np.testing.assert_allclose(record.log_likelihood, log_density, atol=1e-6)


@pytest.mark.parametrize("name", ["bootstrap", "ranked", "auto", "ukf"])
def test_sensors_follow_one_another_at_the_initial_state(name):
    """What comes of them is the posterior of both, whichever looks first; a missing one changes nothing."""
    model = hf.models.from_functions(lambda x: x, None, np.eye(2), None, [0.0, 0.0], 4 * np.eye(2))
    one, other = hf.Sensor(lambda x: x[:, :1], [[1.0]]), hf.Sensor(lambda x: x.sum(axis=1), [[4.0]])
    both = hf.Sensor(lambda x: np.column_stack([x[:, 0], x.sum(axis=1)]), np.diag([1.0, 4.0]))
    exact = hf.ExtendedKalmanFilter(model).update([1.0, 3.0], both)
    online = hf.make_filter(name, model, 2000, rng=1)
    for z, sensor in ((None, one), ([1.0], one), ([3.0], other)):
        record = online.update(z, sensor)
    np.testing.assert_allclose(record.mean, exact.mean, atol=0.15 if name == "bootstrap" else 0.03)
    np.testing.assert_allclose(online.log_likelihood, exact.log_likelihood, atol=0.1 if name == "bootstrap" else 0.02)


def test_a_prior_of_several_components_weighs_them_by_the_first_measurement():
    prior = hf.GaussianMixture([0.5, 0.5], [[-5.0], [5.0]], [[[1.0]], [[4.0]]])
    model = hf.models.from_functions(lambda x: x, lambda x: x, [[1.0]], [[1.0]], [0.0], [[1.0]])
    model.initial = prior
    exact, _ = hf.filters.kalman.kalman_mixture(model, prior, np.array([1.0]), step=0)
    online = hf.make_filter("ranked", model, 400)
    record = online.update([1.0])
    np.testing.assert_allclose(record.mean, exact.mean, atol=0.02)
    np.testing.assert_allclose(record.covariance, exact.covariance, rtol=0.05)


@pytest.mark.parametrize("name", ["bootstrap", "auto"])
def test_a_likelihood_alone_and_modes_weigh_the_initial_particles(name):
    model = hf.models.from_functions(lambda x: x, None, [[1.0]], None, [0.0], [[4.0]])
    alone = hf.Sensor(None, None, log_likelihood=lambda z, x: -np.abs(x[:, 0] - z[0]))
    pf = hf.make_filter(name, model, 200, rng=1)
    before = pf.particles
    pf.update([1.0], sensor=alone)
    np.testing.assert_array_equal(pf.particles, before)
    assert np.ptp(pf.weights) > 0
    jumping = hf.make_filter(name, MODES, 200, rng=1)
    assert jumping.update([0.3]).mode_probabilities.shape == (2,)


# The gate


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("edh", "ledh")])
def test_what_lies_outside_the_gate_is_left_out_and_recorded(name):
    model = hf.models.linear_chain(2)
    z = hf.simulate(model, 6, rng=2)[1]
    spoilt = z.copy()
    spoilt[3] += 50.0
    gated = hf.make_filter(name, model, 60, rng=1).run(spoilt, gate=0.9999)
    missing = hf.make_filter(name, model, 60, rng=1).run([*z[:3], None, *z[4:]])
    assert [outcome.name for outcome in gated.outcomes] == ["UPDATED"] * 3 + ["GATED"] + ["UPDATED"] * 2
    np.testing.assert_array_equal(gated.means, missing.means)
    assert gated.log_likelihood == missing.log_likelihood
    assert list(gated.to_dataframe()["outcome"])[3] == "gated"


def test_the_gate_holds_its_probability_of_what_is_predicted():
    model = hf.models.linear_chain(2)
    online = hf.ExtendedKalmanFilter(model)
    online.predict()
    mean, covariance = online.predicted_observation()
    for gate in (0.5, 0.9):
        drawn = np.random.default_rng(0).multivariate_normal(mean, covariance, 500)
        out = 0
        for z in drawn:
            kf = hf.ExtendedKalmanFilter(model)
            kf.predict()
            out += kf.update(z, gate=gate).outcome is hf.Outcome.GATED
        assert abs(out / 500 - (1 - gate)) < 4 * np.sqrt(gate * (1 - gate) / 500)


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
    for gate in (3, 0, 1.0, True, "high"):
        with pytest.raises(ValueError, match=r"^gate: expected a probability such as 0.999, got"):
            pf.update([0.0], gate=gate)
    alone = hf.Sensor(None, None, log_likelihood=lambda z, x: np.zeros(len(x)))
    with pytest.raises(TypeError, match=r"^gate: expected None, as LinearGaussian with this sensor has no mean and cov"):
        pf.update([0.0], sensor=alone, gate=0.9)
    cluttered = hf.ParticleFilter(hf.models.WithClutter(hf.models.linear_chain(1), 0.9, 0.01), 20, rng=0)
    cluttered.predict()
    with pytest.raises(TypeError, match=r"^gate: expected None, as .* has no mean and covariance of one observation"):
        cluttered.update([[0.0]], gate=0.9)


def test_without_a_gate_an_outlier_that_leaves_one_particle_is_warned_of():
    model = hf.models.linear_chain(1)
    z = hf.simulate(model, 5, rng=1)[1]
    z[3] = 400.0
    pf = hf.ParticleFilter(model, 100, rng=0)
    with pytest.warns(
        hf.DegeneracyWarning, match=r"^1 of 5 steps, first at step 4: one of 100 particles has all the weight"
    ):
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
