"""What every smoother refuses, and that it knows angles."""

from functools import partial

import numpy as np
from helpers import Simulated, assert_turns, cases, plane, refusal
from numpy.testing import assert_allclose

import herdfilter as hf
from herdfilter.angles import wrap_angles

Z = np.array([[2.0], [3.5], [np.nan], [-4.0], [1.0], [2.0]])
OF_PARTICLES = {
    "fixed_lag_smoother": partial(hf.fixed_lag_smoother, lag=2),
    "marginal_smoother": hf.marginal_smoother,
    "backward_simulation": partial(hf.backward_simulation, n_trajectories=60, rng=0),
}
SMOOTHERS = {"rts_smoother": hf.rts_smoother} | OF_PARTICLES
every = cases("name smoother", *SMOOTHERS.items(), ids=SMOOTHERS)
every_of_particles = cases("name smoother", *OF_PARTICLES.items(), ids=OF_PARTICLES)


def ran(name, model, z=Z, n=60):
    if name == "rts_smoother":
        kf = hf.ExtendedKalmanFilter(model)
        return kf, kf.run(z)
    pf = hf.ParticleFilter(model, n, rng=0)
    return pf, pf.run(z, keep_particles=True)


@every
def test_where_zero_lies_on_the_circle_does_not_matter(name, smoother):
    """Headings that go from 2.6 to 4, and the same from 0.1 to 1.5."""
    turn = 2.5
    plain, turned = assert_turns(lambda model, z: smoother(*ran(name, model, z)), turn, 1e-9)
    assert turned.circular == (1,)
    if name == "backward_simulation":
        assert (np.abs(turned.x[..., 1]) <= np.pi).all()
        assert_allclose(wrap_angles(turned.x - plain.x - [0.0, turn], (1,)), 0, atol=1e-9)
    elif name != "rts_smoother":
        assert_allclose(turned.weights, plain.weights, atol=1e-9)


def test_a_grid_smooths_as_do_sums_over_all_pairs(growth):
    model, x, z, marginal, _ = growth
    result = hf.GridFilter(model, -45, 45, 901).smooth(z, keep_masses=True)
    assert_allclose(result.masses, marginal, atol=1e-8)
    assert_allclose(result.means[:, 0], marginal @ x, atol=1e-6)


@cases(
    "given message",
    ({"dt": 0.0}, "dt: expected a positive finite number, got 0"),
    ({"controls": [None] * 9}, "controls: expected one per step, 6, got 9"),
)
@every
def test_series_that_do_not_fit_are_named(name, smoother, given, message):
    with refusal(message):
        smoother(*ran(name, plane()), **given)


@every
def test_results_that_do_not_fit_are_named(name, smoother):
    online, result = ran(name, plane())
    with refusal("result: expected a FilterResult, got str", TypeError):
        smoother(online, "run")
    with refusal(r"result: expected .* dimension, 1, got 2"):
        smoother(ran(name, hf.models.UNGM(), [])[0], result)
    with refusal("result: expected at least one step, got none"):
        smoother(*ran(name, plane(), []))
    if name != "rts_smoother":
        with refusal(r"result: expected particles, .*keep_particles=True"):
            smoother(online, online.run(Z))


@every_of_particles
def test_a_model_without_a_density_is_named(name, smoother):
    message = f"{name} needs transition_mean and transition_covariance, or transition_log_density; Simulated has no"
    with refusal(message, TypeError):
        smoother(*ran(name, Simulated()))


@cases("Q rank", ([[1.0, 2.0], [2.0, 4.0]], 1), (np.zeros((2, 2)), 0))
@every_of_particles
def test_noise_of_deficient_rank_is_named(name, smoother, Q, rank):
    message = f"transition_covariance: particle smoothing needs .* covariance of full rank, 2; got rank {rank} at step 6"
    with refusal(message):
        smoother(*ran(name, plane(Q=Q)))
