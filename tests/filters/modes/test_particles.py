"""Particle filters of models that jump: modes by quotas, weights exact, one mode as no mode."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers import assert_same, cases, refusal
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter.filters.proposals import modes as of_modes

NAMES = [
    "bootstrap",
    "auxiliary",
    "guided",
    "ranked",
    "auto",
    "auto-random-modes",
    "augmented-gauss-kh",
    "mixture-random",
]
Z = [[0.3], None, [1.1], [-0.4]]


@cases("name clutter", *((name, False) for name in NAMES), ("bootstrap", True), ("auto", True))
def test_one_mode_is_its_model_to_the_last_bit(linear_modes, name, clutter):
    alone = linear_modes(0, count=1).models[0]
    z = [[[0.3], [2.0]], None, [[1.1]], []] if clutter else Z
    models = alone, hf.models.JumpMarkov([alone], [[1]])
    models = [hf.models.WithClutter(model, 0.9, 0.05) for model in models] if clutter else models
    filters = [hf.make_filter(name, model, 20, rng=1) for model in models]
    a, b = (one.run(z, keep_particles=True) for one in filters)
    assert_same(a, b, "particles", "weights", "log_likelihoods")
    assert_array_equal(filters[1].mode_probabilities, [1.0])


@cases("name", *NAMES)
def test_modes_are_summed_over(linear_modes, name):
    """No label is drawn: what is predicted are the exact probabilities, unless they are asked to be random."""
    model = linear_modes(1, count=3)
    pf = hf.make_filter(name, model, 20, rng=2)
    pf.predict()
    expected = model.initial_modes @ model.transition_matrix
    assert_allclose(expected, [0.18333333, 0.33333333, 0.48333333], atol=0.02)
    if name != "auto-random-modes":
        assert_allclose(pf.mode_probabilities, expected, atol=1e-12)
    pf.update([0.5])
    before = pf.mode_probabilities
    pf.predict()
    assert len(pf.particles) == 20
    if name != "auto-random-modes":
        assert_allclose(pf.mode_probabilities, before @ model.transition_matrix, atol=1e-12)


@cases("name", "auto", "ranked")
def test_particles_tend_to_the_posterior_of_all_histories(linear_modes, enumerated, name):
    for seed in (3, 4):
        model = linear_modes(seed, sensors=2)
        _, z = hf.simulate(model, 8, rng=seed)
        means, covariances, modes, log_densities = enumerated(model, z)
        result = hf.make_filter(name, model, 2000).run(z)
        spread = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        assert np.sqrt(np.mean(((result.means - means) / spread) ** 2)) < 0.03
        assert_allclose(result.mode_probabilities, modes, atol=0.02)
        assert result.log_likelihood == pytest.approx(log_densities.sum(), abs=0.06)


@cases("modes even", ("herded", 0.0), ("herded", 1.0), ("random", 0.1))
def test_weights_are_right_whatever_a_mode_is_allotted(
    linear_modes, enumerated, monkeypatch, modes, even
):
    """The evidence of random particles is unbiased: the mean over many runs is the exact one."""
    monkeypatch.setattr(of_modes, "EVEN_SHARE", even)
    model = linear_modes(5)
    z = np.array([[1.0], [-0.5]])
    exact = np.exp(enumerated(model, z)[3].sum())
    proposal = hf.ModeProposal(hf.RankedProposal(hf.RandomSampling()), modes)
    found = [
        np.exp(hf.ParticleFilter(model, 30, proposal, rng=seed).run(z).log_likelihood)
        for seed in range(30)
    ]
    assert np.mean(found) == pytest.approx(exact, abs=4 * np.std(found) / np.sqrt(len(found)))
    assert np.std(found) < 0.3 * exact


def test_a_mode_of_next_to_no_mass_has_a_particle(linear_modes):
    models = linear_modes(2, count=2).models
    model = hf.models.JumpMarkov(models, [[1 - 1e-12, 1e-12], [0, 1]], [1, 0])
    pf = hf.ParticleFilter(model, 20, hf.RankedProposal())
    pf.predict()
    assert pf.mode_probabilities == pytest.approx([1, 1e-12])
    assert np.count_nonzero(pf._current().modes == 1) >= 1


def test_particles_united_keep_their_modes(linear_modes):
    model = linear_modes(8)
    filters = [hf.make_filter("ranked", model, 30, rng=0) for _ in range(2)]
    for pf, z in zip(filters, ([0.5], [-2.0]), strict=True):
        pf.predict()
        pf.update(z)
    union = filters[0].combine(filters, np.array([0.25, 0.75]))
    expected = 0.25 * filters[0].mode_probabilities + 0.75 * filters[1].mode_probabilities
    assert_allclose(union.mode_probabilities, expected)
    union.predict()
    assert len(union.particles) == 30
    assert_allclose(union.mode_probabilities, expected @ model.transition_matrix)


# What knows no modes


def test_resampling_that_moves_particles(linear_modes):
    model = linear_modes(8)
    pf = hf.ParticleFilter(model, 30, resampling=hf.RegularisedResampling(), rng=0)
    assert pf.run(Z).mode_probabilities.shape == (4, 2)
    whole = SimpleNamespace(resample=lambda particles, rng, circular=(): particles)
    pf = hf.ParticleFilter(model, 30, resampling=whole, rng=0)
    with refusal(r"resampling: expected .* got SimpleNamespace, which keeps it"):
        pf.run(Z)
    pf = hf.ParticleFilter(
        model,
        30,
        hf.ModeProposal(hf.BootstrapProposal(), "random"),
        hf.OptimalTransportResampling(),
        1.0,
        rng=0,
    )
    with refusal("resampling: expected a scheme that copies particles with their modes"):
        pf.run(Z)


def test_what_knows_no_modes_says_so(linear_modes):
    for make in (
        hf.UnscentedKalmanFilter,
        hf.EnsembleKalmanFilter,
        hf.DaumHuangFilter,
        lambda model: hf.GridFilter(model, -9, 9, 50),
        lambda model: hf.backward_simulation(model, None, 1, 0),
        lambda model: hf.marginal_smoother(model, None),
        lambda model: hf.FixedLagSmoother(hf.make_filter("auto", model), 3),
    ):
        with refusal(r"got JumpMarkov, which jumps between 2; .* InteractingMult", TypeError):
            make(linear_modes(0))


def test_bad_parts_are_named():
    with refusal("modes: unknown 'drawn'"):
        hf.ModeProposal(hf.RankedProposal(), "drawn")
    with refusal(
        "model: ModeProposal needs models and transition_matrix; UNGM has none", TypeError
    ):
        hf.ModeProposal(hf.RankedProposal()).check(hf.models.UNGM())


def test_the_predicted_observation_is_of_all_particles_each_in_its_mode(linear_modes):
    model = linear_modes(1, count=3)
    pf = hf.make_filter("bootstrap", model, 50, rng=0)
    pf.predict()
    pf.update([0.5])
    pf.predict()
    mean, covariance = pf.predicted_observation()
    modes = [model.models[mode] for mode in pf._current().modes]
    values = np.array(
        [mode.observation_mean(x[None], 2)[0] for mode, x in zip(modes, pf.particles, strict=True)]
    )
    noises = np.array([mode.observation_covariance(2) for mode in modes])
    centred = values - pf.weights @ values
    assert_allclose(mean, pf.weights @ values, rtol=1e-9)
    assert_allclose(
        covariance,
        (pf.weights * centred.T) @ centred + np.tensordot(pf.weights, noises, 1),
        rtol=1e-9,
    )
