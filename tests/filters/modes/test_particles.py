"""Particle filters of models that jump: modes by quotas, weights exact, one mode as no mode."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers import assert_same

import herdfilter as hf
from herdfilter.filters.proposals import modes as of_modes
from herdfilter.filters.resampling import OptimalTransportResampling, RegularisedResampling

NAMES = ["bootstrap", "auxiliary", "guided", "ledh-weighted", "ranked", "auto", "auto-random-modes"]
NAMES += ["augmented-gauss-kh", "guided-augmented-gauss-kh", "mixture-random", "herded-random"]
Z = [[0.3], None, [1.1], [-0.4]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: hf.models.WithClutter(model, 0.9, 0.05)])
def test_one_mode_is_its_model_to_the_last_bit(linear_modes, name, wrap):
    alone = linear_modes(0, count=1).models[0]
    z = Z if wrap(alone) is alone else [[[0.3], [2.0]], None, [[1.1]], []]
    filters = [hf.make_filter(name, wrap(model), 20, rng=1) for model in (alone, hf.models.JumpMarkov([alone], [[1]]))]
    a, b = (one.run(z, keep_particles=True) for one in filters)
    assert_same(a, b, "particles", "weights", "log_likelihoods")
    np.testing.assert_array_equal(filters[1].mode_probabilities, [1.0])


@pytest.mark.parametrize("name", NAMES)
def test_modes_are_summed_over(linear_modes, name):
    """No label is drawn: what is predicted are the exact probabilities, unless they are asked to be random."""
    model = linear_modes(1, count=3)
    pf = hf.make_filter(name, model, 20, rng=2)
    pf.predict()
    expected = model.initial_modes @ model.transition_matrix
    np.testing.assert_allclose(expected, [0.18333333, 0.33333333, 0.48333333], atol=0.02)
    if name != "auto-random-modes":
        np.testing.assert_allclose(pf.mode_probabilities, expected, atol=1e-12)
    pf.update([0.5])
    before = pf.mode_probabilities
    pf.predict()
    assert len(pf.particles) == 20
    if name != "auto-random-modes":
        np.testing.assert_allclose(pf.mode_probabilities, before @ model.transition_matrix, atol=1e-12)


@pytest.mark.parametrize("name", ["auto", "ranked"])
def test_particles_tend_to_the_posterior_of_all_histories(linear_modes, enumerated, name):
    for seed in (3, 4):
        model = linear_modes(seed, sensors=2)
        _, z = hf.simulate(model, 8, rng=seed)
        means, covariances, modes, log_densities = enumerated(model, z)
        result = hf.make_filter(name, model, 2000).run(z)
        spread = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        assert np.sqrt(np.mean(((result.means - means) / spread) ** 2)) < 0.03
        np.testing.assert_allclose(result.mode_probabilities, modes, atol=0.02)
        assert result.log_likelihood == pytest.approx(log_densities.sum(), abs=0.06)


@pytest.mark.parametrize(("modes", "even"), [("herded", 0.0), ("herded", 1.0), ("random", 0.1)])
def test_weights_are_right_whatever_a_mode_is_allotted(linear_modes, enumerated, monkeypatch, modes, even):
    """The evidence of random particles is unbiased: the mean over many runs is the exact one."""
    monkeypatch.setattr(of_modes, "EVEN_SHARE", even)
    model = linear_modes(5)
    z = np.array([[1.0], [-0.5]])
    exact = np.exp(enumerated(model, z)[3].sum())
    proposal = hf.ModeProposal(hf.RankedProposal(hf.RandomSampling()), modes)
    found = [np.exp(hf.ParticleFilter(model, 30, proposal, rng=seed).run(z).log_likelihood) for seed in range(30)]
    assert np.mean(found) == pytest.approx(exact, abs=4 * np.std(found) / np.sqrt(len(found)))
    assert np.std(found) < 0.3 * exact


def test_drawn_modes_follow_their_chain(linear_modes):
    model = linear_modes(1)
    proposal = hf.ModeProposal(hf.BootstrapProposal(), "random")
    pf = hf.ParticleFilter(model, 4000, proposal, resample_below=0, rng=0)
    pf.predict()
    expected = model.initial_modes @ model.transition_matrix
    assert pf.mode_probabilities == pytest.approx(expected, abs=0.04)
    assert pf.weights == pytest.approx(np.full(4000, 1 / 4000))


def test_a_mode_of_next_to_no_mass_has_a_particle(linear_modes):
    models = linear_modes(2, count=2).models
    model = hf.models.JumpMarkov(models, [[1 - 1e-12, 1e-12], [0, 1]], [1, 0])
    pf = hf.ParticleFilter(model, 20, hf.RankedProposal())
    pf.predict()
    assert pf.mode_probabilities == pytest.approx([1, 1e-12])
    assert np.count_nonzero(pf._current().modes == 1) >= 1


def test_fewer_particles_than_modes_keep_the_whole_mass(linear_modes):
    model = linear_modes(2, count=3)
    pf = hf.make_filter("ranked", model, 2, rng=0)
    pf.run(Z)
    assert pf.weights.sum() == pytest.approx(1.0)
    assert len(pf.particles) == 2


@pytest.mark.parametrize("name", ["auto", "ranked"])
def test_no_random_number_is_in_herded_modes(linear_modes, name):
    runs = [hf.make_filter(name, linear_modes(6), 20, rng=seed).run(Z) for seed in (0, 1)]
    assert_same(runs[0], runs[1], "means", "mode_probabilities")


@pytest.mark.parametrize("name", ["bootstrap", "auto"])
def test_a_sensor_serves_all_modes(linear_modes, name):
    """As the models' own functions do, where these are alike; and asking for a prediction changes nothing."""
    model = linear_modes(7)
    sensor = hf.Sensor(lambda x: x @ model.models[0].H.T, model.models[0].R)
    own, by_sensor = (hf.make_filter(name, model, 20, rng=0) for _ in range(2))
    for z in Z:
        own.predict()
        by_sensor.predict()
        expected = own.predicted_observation()
        np.testing.assert_allclose(by_sensor.predicted_observation(sensor)[0], expected[0])
        own.update(z)
        by_sensor.update(z, sensor=sensor)
        assert_same(own, by_sensor, "mean", "mode_probabilities", rtol=1e-9)


def test_a_sure_detection_is_an_observation(linear_modes):
    model = linear_modes(8)
    scanned = hf.models.WithClutter(model, 1.0, 0.0)
    z = [[0.3], [1.1], [-0.4]]
    a, b = (hf.make_filter("auto", one, 20).run(seen) for one, seen in ((model, z), (scanned, [[v] for v in z])))
    np.testing.assert_array_equal(a.means, b.means)


@pytest.mark.parametrize("sensors", [1, 2])
@pytest.mark.parametrize("name", ["bootstrap", "auto", "auxiliary"])
def test_scans_of_a_state_that_jumps(linear_modes, name, sensors):
    """Sensors of one kind or of two: many particles of two filters agree on a scan with a detection and clutter."""
    model = hf.models.WithClutter(linear_modes(9, sensors=sensors), 0.9, 0.1)
    scans = [np.array([[0.5], [3.0]]), np.empty((0, 1)), np.array([[-0.2]])]
    result = hf.make_filter(name, model, 1500, rng=0).run(scans)
    reference = hf.make_filter("bootstrap", model, 20_000, rng=1).run(scans)
    np.testing.assert_allclose(result.means, reference.means, atol=0.1)
    np.testing.assert_allclose(result.mode_probabilities, reference.mode_probabilities, atol=0.04)
    assert result.log_likelihood == pytest.approx(reference.log_likelihood, abs=0.06)


def test_particles_united_keep_their_modes(linear_modes):
    model = linear_modes(8)
    filters = [hf.make_filter("ranked", model, 30, rng=0) for _ in range(2)]
    for pf, z in zip(filters, ([0.5], [-2.0]), strict=True):
        pf.predict()
        pf.update(z)
    union = filters[0].combine(filters, np.array([0.25, 0.75]))
    expected = 0.25 * filters[0].mode_probabilities + 0.75 * filters[1].mode_probabilities
    np.testing.assert_allclose(union.mode_probabilities, expected)
    union.predict()
    assert len(union.particles) == 30
    np.testing.assert_allclose(union.mode_probabilities, expected @ model.transition_matrix)


def test_late_readings_are_taken_up_in_their_places(linear_modes):
    model, times = linear_modes(8), [1, 3, 2]
    readings = [(t, None, z) for t, z in zip(times, ([0.3], [1.0], [-0.4]), strict=True)]
    late = hf.Replay(hf.make_filter("bootstrap", model, 30, rng=0), lag=5.0)
    for time, sensor, z in readings:
        late.update(time, z, sensor)
    in_order = hf.make_filter("bootstrap", model, 30, rng=0)
    in_order.run([[0.3], [-0.4], [1.0]])
    np.testing.assert_array_equal(late.filter.mode_probabilities, in_order.mode_probabilities)


# What knows no modes


def test_resampling_that_moves_particles(linear_modes):
    model = linear_modes(8)
    pf = hf.ParticleFilter(model, 30, resampling=RegularisedResampling(), rng=0)
    assert pf.run(Z).mode_probabilities.shape == (4, 2)
    whole = SimpleNamespace(resample=lambda particles, rng, circular=(): particles)
    pf = hf.ParticleFilter(model, 30, resampling=whole, rng=0)
    with pytest.raises(ValueError, match=r"resampling: expected .* got SimpleNamespace, which keeps it"):
        pf.run(Z)
    pf = hf.ParticleFilter(
        model, 30, hf.ModeProposal(hf.BootstrapProposal(), "random"), OptimalTransportResampling(), 1.0, rng=0
    )
    with pytest.raises(ValueError, match="resampling: expected a scheme that copies particles with their modes"):
        pf.run(Z)


@pytest.mark.parametrize(
    "make",
    [
        hf.UnscentedKalmanFilter,
        hf.EnsembleKalmanFilter,
        hf.DaumHuangFilter,
        lambda model: hf.GridFilter(model, -9, 9, 50),
        lambda model: hf.backward_simulation(model, None, 1, 0),
        lambda model: hf.marginal_smoother(model, None),
        lambda model: hf.FixedLagSmoother(hf.make_filter("auto", model), 3),
    ],
)
def test_what_knows_no_modes_says_so(linear_modes, make):
    with pytest.raises(TypeError, match=r"got JumpMarkov, which jumps between 2; .* InteractingMult") as error:
        make(linear_modes(0))
    assert "\n" not in str(error.value)


def test_bad_parts_are_named(linear_modes):
    with pytest.raises(TypeError, match="proposal: expected a proposal"):
        hf.ModeProposal(3)
    with pytest.raises(ValueError, match="modes: unknown 'drawn'"):
        hf.ModeProposal(hf.RankedProposal(), "drawn")
    with pytest.raises(TypeError, match="resampling: expected a scheme"):
        hf.ModeProposal(hf.RankedProposal(), resampling=3)
    with pytest.raises(TypeError, match="model: ModeProposal needs models and transition_matrix; UNGM has none"):
        hf.ModeProposal(hf.RankedProposal()).check(hf.models.UNGM())
    simulated = hf.models.UNGM()
    moving = SimpleNamespace(dim=1, initial=simulated.initial, sample_transition=lambda x, rng, dt, control, step: x)
    moving.log_likelihood = simulated.log_likelihood
    model = hf.models.JumpMarkov([simulated, moving], np.eye(2))
    assert hf.make_filter("bootstrap", model, 10, rng=0).run([[1.0]]).mode_probabilities.shape == (1, 2)
    with pytest.raises(TypeError, match="model: GuidedProposal needs transition_mean and transition_covariance"):
        hf.make_filter("guided", model)


def test_the_predicted_observation_is_of_all_particles_each_in_its_mode(linear_modes):
    model = linear_modes(1, count=3)
    pf = hf.make_filter("bootstrap", model, 50, rng=0)
    pf.predict()
    pf.update([0.5])
    pf.predict()
    mean, covariance = pf.predicted_observation()
    modes = [model.models[mode] for mode in pf._current().modes]
    values = np.array([mode.observation_mean(x[None], 2)[0] for mode, x in zip(modes, pf.particles, strict=True)])
    noises = np.array([mode.observation_covariance(2) for mode in modes])
    centred = values - pf.weights @ values
    np.testing.assert_allclose(mean, pf.weights @ values, rtol=1e-9)
    np.testing.assert_allclose(
        covariance, (pf.weights * centred.T) @ centred + np.tensordot(pf.weights, noises, 1), rtol=1e-9
    )
