"""Fixed-lag smoothing: by definition the smoother of the series cut off at the lag; in a batch and step by step."""

from helpers import CONTROLS, Simulated, cases, refusal
from helpers import DURATIONS as DT
from helpers import READINGS as Z
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf


def kalman(model):
    return hf.UnscentedKalmanFilter(model)


def particles(model):
    return hf.ParticleFilter(model, 30, rng=0)


def ran(pf, z=Z, **options):
    more = {"keep_particles": True} if isinstance(pf, hf.ParticleFilter) else {}
    return pf.run(z, **more, **options)


def whole(pf, *arguments):
    return (hf.marginal_smoother if isinstance(pf, hf.ParticleFilter) else hf.rts_smoother)(
        pf, *arguments
    )


def same(one, other, rows, of_other, tolerance=1e-12):
    for name in ("means", "covariances", "weights", "particles"):
        a = getattr(one, name)
        b = getattr(other, name)
        if b is None:
            assert a is None
        else:
            assert_allclose(a[rows], b[of_other], rtol=0, atol=tolerance)


@cases("build", kalman, particles)
@cases("lag", 0, 3, 1000)
def test_a_state_is_smoothed_by_what_is_seen_up_to_the_lag(driven, build, lag):
    pf = build(driven)
    found = hf.fixed_lag_smoother(pf, ran(pf, dt=DT, controls=CONTROLS), lag, DT, CONTROLS)
    for k in range(len(Z)):
        upto = slice(min(k + lag + 1, len(Z)))
        cut = ran(build(driven), Z[upto], dt=DT[upto], controls=CONTROLS[upto])
        same(found, whole(pf, cut, DT[upto], CONTROLS[upto]), k, k)


@cases("build", kalman, particles)
@cases("lag", 0, 2, 20)
def test_step_by_step_is_as_in_a_batch(driven, build, lag):
    pf = build(driven)
    batch = hf.fixed_lag_smoother(pf, ran(pf, dt=DT, controls=CONTROLS), lag, controls=CONTROLS)
    online = hf.FixedLagSmoother(build(driven), lag)
    plain = build(driven)
    for k, (z, dt, control) in enumerate(zip(Z, DT, CONTROLS, strict=True)):
        online.predict(dt, control)
        plain.predict(dt, control)
        record = online.update(z)
        expected = plain.update(z)
        assert record.step == expected.step == online.filter.step
        assert_array_equal(record.mean, expected.mean)
        assert online.step == max(k + 1 - lag, 1)
        if k >= lag:
            assert_allclose(online.mean, batch.means[k - lag], atol=1e-12)
            assert_allclose(online.covariance, batch.covariances[k - lag], atol=1e-12)
    rest = slice(max(len(Z) - 1 - lag, 0), None)
    same(online.window, batch, slice(None), rest)
    assert_array_equal(online.window.steps, batch.steps[rest])


def test_sensors_and_several_updates_at_a_step(driven, readings):
    for build in (kalman, particles):
        pf = build(driven)
        batch = hf.fixed_lag_smoother(pf, ran(pf, readings), 1)
        online = hf.FixedLagSmoother(build(driven), 1)
        found = []
        for time, before in ((1.0, 0.0), (2.5, 1.0), (3.0, 2.5)):
            online.predict(time - before)
            for at, sensor, z in readings:
                if at == time:
                    online.update(z, sensor=sensor)
            found.append(online.mean)
        assert_allclose(found[1:], batch.means[[1, 2]], atol=1e-12)
        assert_array_equal(batch.means[[0, 3]], batch.means[[1, 4]])


def test_a_model_may_be_changed_between_steps(driven):
    Q = driven.Q
    found = []
    for changed in (False, True):
        driven.Q = Q.copy()
        online = hf.FixedLagSmoother(kalman(driven), 2)
        for z in Z[:2]:
            online.predict()
            online.update(z)
        if changed:
            driven.Q *= 10.0
        found.append(online.mean)
    assert_array_equal(*found)


def test_bad_arguments_are_named(driven):
    pf = kalman(driven)
    result = ran(pf)
    for name, smoother in (
        ("fixed_lag_smoother", lambda pf, lag: hf.fixed_lag_smoother(pf, result, lag)),
        ("FixedLagSmoother", hf.FixedLagSmoother),
    ):
        for lag in (-1, 1.5, True):
            with refusal("lag: expected an integer of at least 0, got"):
                smoother(pf, lag)
        with refusal(
            rf"filter: {name} expected a ParticleFilter, or a Kalman .*, got EnsembleKalm",
            TypeError,
        ):
            smoother(hf.EnsembleKalmanFilter(driven, 10, rng=0), 2)
        with refusal(rf"model: {name} needs .*, or transition_log_density", TypeError):
            smoother(hf.ParticleFilter(Simulated(), 10, rng=0), 2)
    with refusal(
        "the filter stands at the initial state, step 0; call predict first", RuntimeError
    ):
        _ = hf.FixedLagSmoother(kalman(driven), 2).mean
