"""Angle-valued states, at the seam of the circle and elsewhere."""

import copy

import numpy as np
import pytest
from helpers import EYE, cases, compass
from numpy.testing import assert_allclose

import herdfilter as hf
from herdfilter.angles import wrap_angles


def test_where_zero_lies_on_the_circle_does_not_matter(turning):
    z = np.column_stack([np.zeros(6), [0.1, -0.3, 0.2, 0.4, 0.1, 0.5]])
    plain = hf.ParticleFilter(compass(0.0, 0.05), 40, copy.deepcopy(turning), rng=16).run(z)
    for turn in (np.pi, -1.5):
        shift = np.array([0.0, turn])
        case = f"turned by {turn}"
        pf = hf.ParticleFilter(compass(turn, 0.05), 40, copy.deepcopy(turning), rng=16)
        turned = pf.run(wrap_angles(z + shift, (1,)))
        apart = wrap_angles(turned.means - plain.means - shift, (1,))
        assert_allclose(apart, 0, atol=1e-3, err_msg=case)
        assert_allclose(turned.covariances, plain.covariances, atol=1e-3, err_msg=case)
        assert_allclose(turned.log_likelihoods, plain.log_likelihoods, atol=1e-3, err_msg=case)


def vehicle(sd, h=lambda x: x[:, :2], R=None, circular=()):
    """One that drives on at the speed 1, in a direction that is known to `sd`."""
    return hf.models.from_functions(
        lambda x, dt: np.column_stack(
            [x[:, 0] + dt * np.cos(x[:, 2]), x[:, 1] + dt * np.sin(x[:, 2]), x[:, 2]]
        ),
        h,
        0.01 * np.eye(3),
        EYE if R is None else R,
        [0, 0, 0],
        np.diag([0.25, 0.25, sd**2]),
        circular=[2],
        observation_circular=circular,
    )


@cases("rule", "ekf", "ukf", "ckf", "imm", "mkf")
@cases("sd", 0.2, 1.571, np.pi, 20.0)
def test_an_angle_stays_as_unknown_as_it_is(rule, sd):
    """Sigma points beyond half a turn come back on the other side: they do not make it a certain one."""
    model = vehicle(sd)
    kf = hf.make_filter(
        rule, hf.models.JumpMarkov([model], [[1.0]]) if rule in ("imm", "mkf") else model
    )
    kf.predict()
    assert kf.covariance[2, 2] == pytest.approx(sd**2 + 0.01, rel=1e-9)
    assert kf.mean[2] == pytest.approx(0.0, abs=1e-9)
    kf.predict()
    assert kf.covariance[2, 2] == pytest.approx(sd**2 + 0.02, rel=1e-9)


@cases("rule", "ekf", "ukf", "ckf")
def test_a_compass_tells_an_unknown_direction(rule):
    kf = hf.make_filter(rule, vehicle(np.pi, lambda x: x[:, 2:], [[0.01]], circular=[0]))
    kf.predict()
    kf.update([2.5])
    gain = (np.pi**2 + 0.01) / (np.pi**2 + 0.02)
    assert kf.mean[2] == pytest.approx(2.5 * gain, rel=1e-6)
    assert kf.covariance[2, 2] == pytest.approx(0.01 * gain, rel=1e-6)


@cases("direction", -2.5, 0.0, 1.0, 3.0)
def test_positions_tell_an_unknown_direction(direction):
    """As many particles find it; the density of the readings, -1,129 with points beyond half a turn, is not absurd."""
    rng = np.random.default_rng(5)
    model = vehicle(np.pi)
    x = np.array([[0.0, 0.0, direction]])
    z = []
    for t in range(40):
        x = model.transition_mean(x, 1.0, None, t) + 0.1 * rng.standard_normal(3)
        z.append(x[0, :2] + rng.standard_normal(2))
    exact = hf.make_filter("auto", model, 1000, rng=0).run(z)
    for rule in ("ukf", "ckf"):
        found = hf.make_filter(rule, model).run(z)
        assert abs(wrap_angles(found.means[-1:] - exact.means[-1:], [2])[0, 2]) < 0.1
        assert found.log_likelihood > exact.log_likelihood - 150
