"""Marginal smoothing by backward weights: against all paths of a chain, Rauch-Tung-Striebel, a grid, and trajectories."""

import pickle
from itertools import product

import numpy as np
from helpers import EYE, assert_same, cases, on_a_line, refusal
from numpy.testing import assert_allclose

import herdfilter as hf


def of(model, z, n=50, seed=0, proposal=None, **options):
    pf = hf.ParticleFilter(model, n, proposal, rng=seed)
    result = pf.run(z, keep_particles=True, **options)
    return hf.marginal_smoother(model, result), result


def kept(particles, weights):
    steps, _, d = particles.shape
    none = np.zeros(steps)
    return hf.FilterResult(
        np.zeros((steps, d)), np.zeros((steps, d, d)), none, none, none, (), particles, weights
    )


class Chain:
    """A walk among three states by a matrix of probabilities, one of them zero."""

    dim = 1
    matrix = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.6, 0.1, 0.3]])

    def transition_log_density(self, x_next, x, dt, control, step):
        with np.errstate(divide="ignore"):
            return np.log(self.matrix[x[:, 0].astype(int)][:, x_next[:, 0].astype(int)]).T


def test_particles_that_are_all_states_have_their_exact_probabilities():
    """By adding up all paths; the particles are shuffled, and one state is two particles at some steps."""
    rng = np.random.default_rng(0)
    start = np.array([0.2, 0.5, 0.3])
    likelihood = rng.random((5, 3))
    forward = start
    states = []
    weights = []
    for seen in likelihood:
        forward = (forward @ Chain.matrix) * seen
        forward /= forward.sum()
        order = rng.permutation([0, 1, 2, 1])
        states.append(order[:, None].astype(float))
        weights.append(np.where(order == 1, 0.5, 1.0) * forward[order])
    paths = np.array(list(product(range(3), repeat=6)))
    p = start[paths[:, 0]]
    for k in range(5):
        p = p * Chain.matrix[paths[:, k], paths[:, k + 1]] * likelihood[k][paths[:, k + 1]]
    p /= p.sum()
    exact = np.array([[p[paths[:, k + 1] == state].sum() for state in range(3)] for k in range(5)])
    found = hf.marginal_smoother(Chain(), kept(np.array(states), np.array(weights)))
    shares = [
        np.bincount(x[:, 0].astype(int), w) for x, w in zip(states, found.weights, strict=True)
    ]
    assert_allclose(shares, exact, atol=1e-14)
    assert_allclose(found.means[:, 0], exact @ [0, 1, 2], atol=1e-14)
    assert_allclose(
        found.covariances[:, 0, 0], exact @ [0, 1, 4] - (exact @ [0, 1, 2]) ** 2, atol=1e-14
    )


def test_two_modes_are_smoothed_as_on_a_grid(growth):
    model, x, z, exact, _ = growth
    mean = exact @ x
    for n, tolerance in ((100, 0.6), (800, 0.12)):
        found, filtered = of(model, z, n, proposal=hf.HerdedProposal(hf.QuantileSampling()))
        assert np.abs(found.means[:, 0] - mean).max() < tolerance
    right = (found.weights * (found.particles[..., 0] > 0)).sum(axis=1)
    assert_allclose(right, exact[:, x > 0].sum(axis=1), atol=0.02)
    assert np.abs(filtered.means[:, 0] - mean).max() > 3


def test_the_filter_stands_for_its_model_and_knows_the_times(driven):
    """Time steps are those of the result, of several readings of one time too."""
    dt = np.array([0.5, 1.2, 0.3])
    z = [[1.0], [-2.0], [1.0]]
    pf = hf.ParticleFilter(driven, 40, rng=0)
    result = pf.run(z, dt=dt, keep_particles=True)
    found = hf.marginal_smoother(pf, result)
    assert_allclose(found.means, hf.marginal_smoother(driven, result, dt).means, atol=1e-12)
    blind = hf.Sensor(None, None, log_likelihood=lambda z, x: np.zeros(len(x)))
    readings = [
        (0.5, None, None),
        (0.5, None, z[0]),
        (1.7, None, z[1]),
        (2.0, blind, [0.0]),
        (2.0, None, z[2]),
    ]
    several = hf.ParticleFilter(driven, 40, rng=0).run(readings, keep_particles=True)
    again = hf.marginal_smoother(driven, several)
    place = [0, 0, 1, 2, 2]
    assert_allclose(again.weights, found.weights[place], atol=1e-12)
    assert_allclose(again.particles, result.particles[place], atol=1e-12)
    drawn = hf.backward_simulation(driven, several, 20, 1).x
    assert_allclose(drawn, hf.backward_simulation(pf, result, 20, 1).x[:, place], atol=1e-12)


def test_a_transition_far_out_in_the_tails_still_has_weights():
    """The density underflows from every particle, its logarithm does not: the nearest one has all weight."""
    stiff = on_a_line(Q=1e-12)
    found = hf.marginal_smoother(
        stiff, kept(np.array([[[0.0], [1.0]], [[30.0], [0.4]]]), np.array([[0.5, 0.5], [0.1, 0.9]]))
    )
    assert_allclose(found.weights[0], [0.9, 0.1])


def test_a_state_that_no_particle_leads_to_is_named():
    result = kept(np.array([[[2.0]], [[0.0]], [[2.0]]]), np.ones((3, 1)))
    with refusal(r"step 2: .* all 1 particles .* at step 3", hf.UnreachableStateError) as caught:
        hf.marginal_smoother(Chain(), result)
    assert pickle.loads(pickle.dumps(caught.value)).step == 2


VELOCITY = hf.models.ConstantVelocity(
    1.0, position_sd=2.0, initial_mean=[0, 0, 1, 1], initial_covariance=np.diag([10, 10, 4, 4])
)


def test_a_linear_model_of_four_dimensions_is_smoothed_exactly():
    """About a tenth of 100 particles count, so that by the weights alone means are 0.4 standard deviations off."""
    z = hf.simulate(VELOCITY, 30, rng=3)[1]
    z[[4, 5]] = np.nan
    kf = hf.ExtendedKalmanFilter(VELOCITY)
    known = kf.run(z)
    exact = hf.rts_smoother(kf, known)
    pf = hf.make_filter("auto", VELOCITY, n_particles=100)
    filtered = pf.run(z, keep_particles=True)
    for found in (hf.marginal_smoother(pf, filtered), hf.fixed_lag_smoother(pf, filtered, 30)):
        assert_same(found, exact, "means", "covariances", atol=1e-09)
    by_weights = np.einsum("tn,tnd->td", found.weights, found.particles)
    deviation = (by_weights - exact.means) / np.sqrt(np.einsum("tii->ti", exact.covariances))
    assert np.sqrt(np.mean(deviation**2)) > 0.1
    delayed = hf.fixed_lag_smoother(pf, filtered, 3)
    assert_allclose(delayed.means, hf.fixed_lag_smoother(kf, known, 3).means, atol=1e-9)


class Turning:
    """A turn of the plane with narrow noise, `curved` or not."""

    dim = 2

    def __init__(self, curved=0.0):
        self.curved = curved

    def transition_mean(self, x, dt, control, step):
        return x @ np.array([[0.6, 0.8], [-0.8, 0.6]]) + self.curved * x[:, ::-1] ** 2

    def transition_covariance(self, dt, step):
        return 0.1 * EYE


@cases("kind", "two modes", "a curved transition")
def test_moments_are_those_of_the_weights_where_a_gaussian_would_be_wrong(kind):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((2, 300, 2))
    if kind == "two modes":
        x[0, :, 0] += np.where(np.arange(300) % 2, 4.0, -4.0)
    model = Turning(curved=float(kind == "a curved transition"))
    found = hf.marginal_smoother(model, kept(x, np.full((2, 300), 1 / 300)))
    assert_allclose(
        found.means, np.einsum("tn,tnd->td", found.weights, found.particles), atol=1e-12
    )
    linear = hf.marginal_smoother(
        Turning(), kept(rng.standard_normal((2, 300, 2)), np.full((2, 300), 1 / 300))
    )
    assert (
        np.abs(linear.means - np.einsum("tn,tnd->td", linear.weights, linear.particles))[0].max()
        > 1e-4
    )
