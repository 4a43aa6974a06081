"""Particles with a Kalman filter for the linear part of each: exact where all is linear, and for every proposal."""

import copy
import pickle

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.filters.proposals.rao_blackwellised import _Gaussians, finder
from herdfilter.models.contract import VectorFunction, linear_slopes

HERDED = hf.MappedSampling(hf.KernelHerding())
PROPOSALS = {
    "bootstrap": hf.BootstrapProposal(),
    "auxiliary": hf.AuxiliaryProposal(),
    "guided": hf.GuidedProposal(),
    "sqmc": hf.SequentialQuasiMonteCarlo(),
    "ranked": hf.RankedProposal(),
    "ranked-herded": hf.RankedProposal(HERDED),
    "auto": hf.AutomaticProposal(),
    "herded": hf.HerdedProposal(hf.KernelHerding()),
    "herded-quantile": hf.HerdedProposal(hf.QuantileSampling()),
    "kalman-mixture": hf.KalmanMixtureProposal(hf.KernelHerding()),
    "augmented": hf.AugmentedProposal(hf.GaussianFit(), HERDED),
    "guided-augmented": hf.GuidedAugmentedProposal(hf.GaussianFit(), HERDED),
}
EXACT = {"auto": hf.AutomaticProposal(HERDED), "guided-augmented": PROPOSALS["guided-augmented"]}
"""One Gaussian, points with its moments."""

F = np.array([[0.8, 0.5, 0.2], [0.0, 0.9, 0.3], [0.1, 0.0, 0.7]])
H = np.array([[1.0, 0.0, 0.3], [0.0, 1.0, 0.0]])
Q = 0.1 * np.eye(3) + 0.05
R = np.diag([0.2, 0.5])
PLAIN = hf.models.LinearGaussian(F, H, Q, R, [0.0, 1.0, -1.0], np.eye(3) + 0.3)
LINEAR = hf.models.ConditionallyLinear(PLAIN, [1, 2])
TRUTH, Z = hf.simulate(PLAIN, steps=12, rng=3)
KALMAN = hf.ExtendedKalmanFilter(PLAIN).run(Z)


class Curved:
    """The linear part drives an angle and is seen through a slope that depends on it; noises are correlated."""

    dim, circular, linear, partial_observations = 3, (0,), (1, 2), True
    initial = hf.GaussianMixture([0.5, 0.5], [[0.0, 0.2, 0.0], [2.5, -0.2, 1.0]], 0.2 * np.eye(3))

    def transition_mean(self, x, dt, control, step):
        turn = x[:, 0] + 0.3 * np.sin(x[:, 0]) + dt * np.cos(x[:, 0]) * x[:, 1]
        return np.column_stack([turn, 0.9 * x[:, 1] + 0.1 * x[:, 2], 0.9 * x[:, 2] + np.sin(x[:, 0])])

    def transition_covariance(self, dt, step):
        return np.array([[0.05, 0.02, 0.0], [0.02, 0.1, 0.0], [0.0, 0.0, 0.05]])

    def observation_mean(self, x, step):
        return np.column_stack([np.sin(x[:, 0]) + x[:, 2], np.cos(x[:, 0]) * x[:, 1]])

    def observation_covariance(self, step):
        return 0.2 * np.eye(2)


CURVED = Curved()
SEEN = hf.simulate(CURVED, steps=15, rng=5)[1]


def run(proposal, n=100, model=LINEAR, z=Z, seed=0, **options):
    return hf.ParticleFilter(model, n, hf.RaoBlackwellisedProposal(proposal), rng=seed, **options).run(z)


def rms(means, exact):
    return np.sqrt(np.mean((means - exact) ** 2))


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("linear", [[1, 2], [2], [0]], ids=str)
def test_one_gaussian_with_the_right_moments_is_the_kalman_filter(name, linear):
    result = run(EXACT[name], 60, hf.models.ConditionallyLinear(PLAIN, linear))
    np.testing.assert_allclose(result.means, KALMAN.means, atol=1e-8)
    np.testing.assert_allclose(result.covariances, KALMAN.covariances, atol=1e-8)
    assert result.log_likelihood == pytest.approx(KALMAN.log_likelihood, abs=1e-8)


@pytest.mark.parametrize("name", [name for name in PROPOSALS if name not in EXACT])
def test_the_error_falls_to_the_kalman_filter_with_the_number_of_particles(name):
    few, many = (np.mean([rms(run(PROPOSALS[name], n, seed=k).means, KALMAN.means) for k in range(4)]) for n in (40, 360))
    assert many < 0.6 * few
    assert many < 0.05


def test_a_part_that_is_known_leaves_the_kalman_filter_exactly():
    """The nonlinear part starts at a point, moves without noise, and turns the matrices of the linear part."""

    def move(x):
        a = x[:, 0]
        return np.column_stack([a + 0.5, np.cos(a) * x[:, 1] + np.sin(a) * x[:, 2], np.cos(a) * x[:, 2] - 0.5])

    noise, start = np.diag([0.0, 0.1, 0.2]), np.diag([0.0, 1.0, 2.0])
    plain = hf.models.from_functions(
        move, lambda x: np.sin(x[:, :1]) * x[:, 1:2] + x[:, 2:], noise, [[0.3]], [0.2, 1, 0], start
    )
    _, z = hf.simulate(plain, steps=20, rng=1)
    kalman = hf.UnscentedKalmanFilter(plain).run(z)
    for name in ("bootstrap", "ranked", "sqmc"):
        result = run(PROPOSALS[name], 5, hf.models.ConditionallyLinear(plain, [1, 2]), z)
        np.testing.assert_allclose(result.means, kalman.means, atol=1e-8)
        np.testing.assert_allclose(result.covariances, kalman.covariances, atol=1e-8)
        assert result.log_likelihood == pytest.approx(kalman.log_likelihood, abs=1e-8)


@pytest.mark.parametrize("name", ["bootstrap", "guided", "sqmc"])
def test_the_likelihood_has_no_bias(name):
    logs = np.array([run(PROPOSALS[name], 20, z=Z[:5], seed=k).log_likelihood for k in range(400)])
    ratios = np.exp(logs - KALMAN.log_likelihoods[:5].sum())
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(len(ratios))


@pytest.fixture(scope="module")
def plain():
    """What very many particles for the whole state find."""
    return hf.ParticleFilter(CURVED, 30_000, rng=0).run(SEEN)


@pytest.mark.parametrize("name", [name for name in PROPOSALS if "augmented" not in name])  # these fit one Gaussian
def test_a_curved_model_agrees_with_many_plain_particles(name, plain):
    """Slopes depend on the state, an angle wraps, the noises are correlated and the prior has two components."""
    exact, sd = plain.means, np.sqrt(np.diagonal(plain.covariances, axis1=1, axis2=2))
    found = run(PROPOSALS[name], 400, CURVED, SEEN)
    assert rms(found.means[:, 1:] / sd[:, 1:], exact[:, 1:] / sd[:, 1:]) < 0.08
    assert found.log_likelihood == pytest.approx(plain.log_likelihood, abs=0.5)
    spread = np.diagonal(found.covariances, axis1=1, axis2=2)[:, 1:] / sd[:, 1:] ** 2
    assert np.median(spread) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("name", ["bootstrap", "ranked"])
def test_fewer_particles_are_needed(name):
    plain, marginal = [], []
    for k in range(5):
        plain.append(rms(hf.ParticleFilter(PLAIN, 100, PROPOSALS[name], rng=k).run(Z).means, KALMAN.means))
        marginal.append(rms(run(PROPOSALS[name], 100, seed=k).means, KALMAN.means))
    assert np.mean(marginal) < 0.6 * np.mean(plain)


def test_moments_are_those_of_all_gaussians():
    pf = hf.ParticleFilter(CURVED, 50, hf.RaoBlackwellisedProposal(), rng=0)
    pf.predict()
    pf.update(SEEN[0])
    particles = pf._current()
    assert particles.covariances.shape == (50, 3, 3)
    assert not particles.covariances[:, 0].any()
    x = pf.particles - pf.mean
    x[:, 0] = (x[:, 0] + np.pi) % (2 * np.pi) - np.pi
    between = (pf.weights * x.T) @ x
    np.testing.assert_allclose(pf.covariance, between + np.tensordot(pf.weights, particles.covariances, 1), atol=1e-12)


def test_missing_entries_and_steps_are_left_out_as_in_the_kalman_filter():
    z = Z.copy()
    z[2], z[5, 0], z[7, 1] = np.nan, np.nan, np.nan
    exact = hf.ExtendedKalmanFilter(PLAIN).run(z)
    result = run(EXACT["auto"], 60, z=z)
    np.testing.assert_allclose(result.means, exact.means, atol=1e-8)
    assert result.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-8)


@pytest.mark.parametrize("name", ["bootstrap", "ranked", "auto"])
def test_several_sensors_at_one_step_update_the_linear_part_in_turn(name):
    """Two sensors with independent noise are one observation of both."""
    first, second = (hf.Sensor(lambda x, i=i: x @ H[i], [[R[i, i]]]) for i in (0, 1))
    exact = hf.ExtendedKalmanFilter(PLAIN)
    pf = hf.ParticleFilter(LINEAR, 1500, hf.RaoBlackwellisedProposal(PROPOSALS[name]), rng=0)
    for z in Z[:6]:
        exact.predict()
        exact.update(z)
        pf.predict()
        pf.update(z[:1], first)
        pf.update(z[1:], second)
    np.testing.assert_allclose(pf.mean, exact.mean, atol=0.08)
    np.testing.assert_allclose(pf.covariance, exact.covariance, atol=0.08)


def test_the_predicted_observation_has_the_spread_of_the_linear_part():
    kf, pf = hf.ExtendedKalmanFilter(PLAIN), hf.ParticleFilter(LINEAR, 60, hf.RaoBlackwellisedProposal(EXACT["auto"]))
    for one in (kf, pf):
        one.predict()
        one.update(Z[0])
        one.predict()
    for found, exact in zip(pf.predicted_observation(), kf.predicted_observation(), strict=True):
        np.testing.assert_allclose(found, exact, atol=1e-8)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda pf: pickle.loads(pickle.dumps(pf))], ids=["copy", "pickle"])
@pytest.mark.parametrize("name", ["bootstrap", "auto"])
def test_a_filter_is_copied_in_the_midst_of_a_run(name, again):
    pf = hf.ParticleFilter(LINEAR, 30, hf.RaoBlackwellisedProposal(PROPOSALS[name]), rng=1)
    pf.run(Z[:4])
    pf.predict()
    other = again(pf)
    for one in (pf, other):
        one.update(Z[4])
        one.run(Z[5:8])
    np.testing.assert_array_equal(other.particles, pf.particles)
    np.testing.assert_array_equal(other.covariance, pf.covariance)
    assert other.log_likelihood == pf.log_likelihood


def test_random_numbers_are_used_by_random_proposals_only():
    for name, same in (("ranked", True), ("auto", True), ("herded", True), ("bootstrap", False)):
        one, other = (run(PROPOSALS[name], 30, CURVED, SEEN, seed).means for seed in (0, 1))
        assert np.array_equal(one, other) == same, name


def test_a_union_of_filters_has_the_moments_of_both():
    one, other = (hf.ParticleFilter(CURVED, 40, hf.RaoBlackwellisedProposal(), rng=k) for k in (0, 1))
    for pf in (one, other):
        pf.predict()
        pf.update(SEEN[0])
    both = one.combine([one, other], np.array([0.25, 0.75]))
    np.testing.assert_allclose(both.mean[1:], 0.25 * one.mean[1:] + 0.75 * other.mean[1:])
    both.predict()
    assert len(both.particles) == 40


def test_the_catalogue_has_it():
    for name, inner in (("rb-bootstrap", hf.BootstrapProposal), ("rb-auto", hf.AutomaticProposal)):
        assert isinstance(hf.make_filter(name, LINEAR, 50, rng=0).proposal.proposal, inner)


def test_what_cannot_be_done_is_refused_in_one_line():
    part = hf.RaoBlackwellisedProposal()
    with pytest.raises(TypeError, match="LinearGaussian has no linear: take herdfilter"):
        hf.ParticleFilter(PLAIN, 10, part)
    with pytest.raises(TypeError, match="got scans; take the model without WithClutter"):
        hf.ParticleFilter(hf.models.WithClutter(LINEAR, 0.9, 0.1), 10, part)
    with pytest.raises(TypeError, match="got FlowProposal; take RankedProposal"):
        hf.ParticleFilter(LINEAR, 10, hf.RaoBlackwellisedProposal(hf.FlowProposal()))
    with pytest.raises(TypeError, match="proposal: expected a proposal such as"):
        hf.RaoBlackwellisedProposal(3)
    box = copy.copy(CURVED)
    box.initial = hf.models.UniformBox([0, 0, 0], [1, 1, 1])
    with pytest.raises(TypeError, match=r"needs a GaussianMixture, as .*, got UniformBox"):
        hf.ParticleFilter(box, 10, part)
    scheme = hf.MixtureResampling(hf.GaussianFit(), hf.RandomSampling())
    pf = hf.ParticleFilter(LINEAR, 10, part, scheme, 1.0, rng=0)
    with pytest.raises(ValueError, match="resampling: expected a scheme that copies particles with their Gaussians"):
        pf.run(Z)
    with pytest.raises(TypeError, match="needs a model without modes"):
        hf.ParticleFilter(hf.models.JumpMarkov([LINEAR, LINEAR], [[0.9, 0.1], [0.1, 0.9]]), 10, part)


def test_columns_and_what_is_left_make_up_the_covariances():
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((6, 4, 4))
    roots[0, :, 2:] = 0.0  # of rank two
    covariances = roots @ roots.transpose(0, 2, 1)
    free = np.array([1, 3])
    joint = _Gaussians.of(np.zeros((6, 4)), covariances, free)
    np.testing.assert_allclose(joint.columns @ joint.columns.transpose(0, 2, 1) + joint.left, covariances, atol=1e-12)
    assert not joint.left[:, free].any()
    inverse = np.linalg.inv(covariances[1:][:, free[:, None], free])
    cross = covariances[1:][:, [[0], [2]], free]
    schur = covariances[1:][:, [[0], [2]], [0, 2]] - cross @ inverse @ cross.transpose(0, 2, 1)
    np.testing.assert_allclose(joint.left[1:][:, [[0], [2]], [0, 2]], schur, atol=1e-9)


def test_states_are_found_by_their_bits():
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (500, 3)).astype(float)  # many share an entry, and some all
    find = finder(x)
    places = find(x[::-1])
    np.testing.assert_array_equal(x[places], x[::-1])
    assert (find(np.nextafter(x, 9)) == -1).all()


def test_slopes_by_differences_are_those_of_the_jacobian():
    dims, x = np.array([1, 2]), CURVED.initial.sample(20, 0)
    values, slopes = linear_slopes(
        VectorFunction(lambda x: CURVED.transition_mean(x, 1.0, None, 1), lambda _: (0,)), x, np.zeros((1, 3, 3)), dims
    )
    exact = np.zeros((20, 3, 2))
    exact[:, 0, 0], exact[:, 1, :], exact[:, 2, 1] = np.cos(x[:, 0]), [0.9, 0.1], 0.9
    np.testing.assert_allclose(slopes, exact, atol=1e-12)
    np.testing.assert_allclose(values, CURVED.transition_mean(x, 1.0, None, 1), rtol=1e-13)


def test_a_state_keeps_the_gaussians_and_a_forecast_knows_of_them():
    """Where all is linear the forecast is Kalman's."""
    one, other = (hf.ParticleFilter(LINEAR, 400, hf.RaoBlackwellisedProposal(hf.RankedProposal())) for _ in range(2))
    one.run(Z[:5])
    one.predict()
    other.restore(one.state)
    for online in (one, other):
        online.update(Z[5])
    np.testing.assert_array_equal(other.covariance, one.covariance)
    kalman = hf.ExtendedKalmanFilter(PLAIN)
    kalman.run(Z[:6])
    ahead, exact = one.forecast(3), kalman.forecast(3)
    sd = np.sqrt(np.diagonal(exact.covariances, axis1=1, axis2=2))
    np.testing.assert_allclose(ahead.means / sd, exact.means / sd, atol=0.05)
    np.testing.assert_allclose(ahead.covariances, exact.covariances, atol=0.1)
    levels = [0.05, 0.5, 0.95]
    np.testing.assert_allclose(ahead.quantiles(levels) / sd[:, None], exact.quantiles(levels) / sd[:, None], atol=0.15)
    seen = np.sqrt(np.diagonal(exact.observation_covariances, axis1=1, axis2=2))[:, None]
    gaps = (ahead.observation_quantiles(levels) - exact.observation_quantiles(levels)) / seen
    np.testing.assert_allclose(gaps, 0.0, atol=0.15)
    drawn = ahead.observations.std(axis=1)
    np.testing.assert_allclose(drawn, seen[:, 0], rtol=0.1)


def test_a_first_measurement_weighs_the_initial_particles():
    pf = hf.ParticleFilter(LINEAR, 2000, hf.RaoBlackwellisedProposal(hf.RankedProposal()))
    kalman = hf.ExtendedKalmanFilter(PLAIN)
    np.testing.assert_allclose(pf.update(Z[0]).mean, kalman.update(Z[0]).mean, atol=0.05)
