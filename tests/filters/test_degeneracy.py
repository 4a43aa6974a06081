"""Likelihoods that vanish: at all particles, at some, or only almost."""

import pickle
import warnings
from unittest.mock import Mock

import numpy as np
import pytest
from helpers import cases, on_a_line, position_and_speed, refusal
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter.filters import DegenerateWeightsError, HerdedProposal, Outcome, ParticleFilter


@pytest.fixture
def window(walk):
    walk.log_likelihood = lambda z, x, step: np.where(np.abs(z[0] - x[:, 0]) < 1, 0.0, -np.inf)
    return walk


LOST = [[0.5], [0.5], [1e4], [0.5]]


def test_vanished_weights_raise_with_the_steps_so_far(window, typical):
    pf = ParticleFilter(window, 30, typical.make(), rng=10)
    with refusal(
        "step 3: the likelihood vanishes at all 30 particles", DegenerateWeightsError
    ) as caught:
        pf.run(LOST, keep_particles=True)
    error = caught.value
    assert error.step == 3
    assert len(error.result) == 2
    assert error.result.outcomes == (Outcome.UPDATED,) * 2
    assert error.result.particles.shape == (2, 30, 1)
    assert pf.step == 3
    assert pf.weights.sum() == pytest.approx(1, abs=1e-12)
    assert pf.log_likelihood == pytest.approx(error.result.log_likelihood, rel=1e-14)
    assert pf.update([pf.mean[0]]).outcome is Outcome.UPDATED  # it stands at the prediction
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.step) == (str(error), 3)
    assert_array_equal(copied.result.means, error.result.means)


def test_vanished_weights_may_be_passed_over(window, typical):
    skipped = ParticleFilter(window, 30, typical.make(), rng=10, on_degeneracy="predict").run(LOST)
    missing = ParticleFilter(window, 30, typical.make(), rng=10).run([*LOST[:2], None, LOST[3]])
    assert skipped.outcomes[2] is Outcome.DEGENERATE
    assert missing.outcomes[2] is Outcome.MISSING
    # a look may take random numbers
    same = 2 if typical.observes and not typical.deterministic else 4
    assert_array_equal(skipped.means[:same], missing.means[:same])
    assert_array_equal(skipped.log_likelihoods[:same], missing.log_likelihoods[:same])
    assert skipped.log_likelihoods[2] == 0
    assert np.isfinite(skipped.means).all()
    assert skipped.outcomes[3] is Outcome.UPDATED


def test_a_mode_that_lost_all_weight_is_forgotten(walk_class, proposal, promised):
    """Two modes a thousand deviations apart; the likelihood vanishes on one of them."""

    class Positive(walk_class):
        initial = hf.GaussianMixture([0.5, 0.5], [[-500.0], [500.0]], [[1.0]])

        def log_likelihood(self, z, x, step):
            return np.where(x[:, 0] > 0, 0.0, -np.inf)

    result = ParticleFilter(Positive(), 20, proposal, rng=29).run([[500.0]] * 4)
    assert np.isfinite(result.covariances).all()
    assert (result.means > 0).all()
    if promised.keeps_modes:
        assert np.abs(result.means[1:] - 500).max() < 5


def test_a_sampler_may_return_points_without_weight(walk):
    class Uneven:
        def sample(self, mixture, n, rng=None):
            return hf.Points(mixture.sample(n, rng), np.arange(n))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = ParticleFilter(walk, 20, HerdedProposal(Uneven()), rng=30).run(
            [[0.3], [1.1], None]
        )
    assert np.isfinite(result.means).all()


def steep(walk):
    """Return a model whose likelihood leaves one particle at every step."""
    walk.log_likelihood = lambda z, x, step: -1e4 * np.abs(z[0] - x[:, 0])
    return walk


def test_a_long_loop_is_warned_of_once(walk):
    """At Python's own setting: its registry of what was shown grows by one entry, and the step is an attribute."""
    pf = ParticleFilter(steep(walk), 100, rng=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(30):
            pf.predict()
            pf.update([400.0])
        assert [entry[1] for entry in __warningregistry__ if entry != "version"] == [
            hf.DegeneracyWarning
        ]
    assert [one.message.steps for one in caught] == [[1]]
    copied = pickle.loads(pickle.dumps(caught[0].message))
    assert (str(copied), copied.steps) == (str(caught[0].message), [1])


@cases("name", "bootstrap", "auxiliary", "ranked", "sqmc")
def test_a_collapse_that_the_effective_sample_size_hides_is_told_by_the_ancestors(name):
    """Few of the particles of a wide prior are near the first reading, and the transition does not part their successors."""
    model = on_a_line(Q=1e-4, variance=1e4)
    told = 0
    hidden = 0
    for seed in range(8):
        z = hf.simulate(model, 5, rng=seed)[1]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = hf.make_filter(name, model, 200, rng=seed).run(z)
        told += [one.category for one in caught] == [hf.DegeneracyWarning]
        hidden += (result.ess[:2].max() > 100) and result.distinct_ancestors[:2].min() < 30
    assert told >= 7
    assert hidden >= 6


def grow(x, out):
    out[0] = x[0] * x[1]
    out[1] = x[1]


def growing(drift, compiled=True):
    """An autoregressive number with an unknown factor, a random walk whose steps have the variance `drift`."""
    rest = np.diag([1.0, drift]), [[0.5]], [0.0, 0.5], np.diag([1.0, 0.1])
    if compiled:
        return hf.models.CompiledModel(grow, lambda x: x[0], *rest)
    return hf.models.from_functions(
        lambda x: x * np.column_stack([x[:, 1], np.ones(len(x))]), lambda x: x[:, 0], *rest
    )


def lost_steps(name, model, **options):
    """Return the steps at which a run warns of a collapse; with a watcher it is not compiled."""
    z = hf.simulate(model, 200, rng=3)[1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hf.make_filter(name, model, 100, rng=1).run(z, **options)
    return [step for warning in caught for step in warning.message.steps]


@cases("name", "bootstrap", "ranked", "sqmc")
def test_a_constant_parameter_of_which_few_values_are_left_is_warned_of(name):
    assert min(lost_steps(name, growing(0.0, compiled=False))) < 100


@pytest.mark.slow
@cases("name", "bootstrap", "ranked", "sqmc")
def test_so_it_is_by_a_compiled_run(name):
    assert 200 in lost_steps(name, growing(0.0))  # the compiled loop looks at the end
    assert min(lost_steps(name, growing(0.0), watcher=Mock())) < 100


@cases(
    "name model",
    pytest.param("auto", growing(0.0), marks=pytest.mark.slow),  # kernels part its particles
    pytest.param("ranked", growing(1e-4), marks=pytest.mark.slow),
    ("ranked", growing(1e-4, compiled=False)),
    (
        "ranked",
        position_and_speed(np.diag([0.0, 0.1]), 30.0),
    ),  # noise takes two steps to a position
)
def test_lineages_that_noise_parts_are_not_warned_of(name, model):
    assert lost_steps(name, model) == lost_steps(name, model, watcher=Mock()) == []


def test_successors_that_the_noise_parts_are_not_warned_of():
    """As few ancestors, but the transition noise is as wide as the prior; and of a Gaussian there are no ancestors."""
    model = on_a_line(Q=1e4, variance=1e4)
    z = hf.simulate(model, 5, rng=1)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = hf.make_filter("guided", model, 200, rng=1).run(z)
    assert result.ess.min() > 100
    assert np.isnan(hf.make_filter("auto", model, 200).run(z).distinct_ancestors).all()


def test_ancestors_are_where_particles_come_from():
    """Without noise a particle is its ancestor moved on; also through resampling, modes and a scan."""
    still = hf.models.from_functions(
        lambda x: x + 1.0, lambda x: x, [[0.0]], [[1.0]], [0.0], [[9.0]]
    )
    jumping = hf.models.JumpMarkov([still, still], [[0.9, 0.1], [0.2, 0.8]])
    for model in (still, jumping, hf.models.WithClutter(still, 0.9, 0.02)):
        z = (
            [[[0.5]], [[1.5], [9.0]], [[2.0]]]
            if model not in (still, jumping)
            else [[0.5], [1.5], [2.0]]
        )
        for name in ("bootstrap", "sqmc", "ranked", "auxiliary"):
            result = hf.make_filter(name, model, 50, rng=0).run(z, keep_particles=True)
            for t in (1, 2):
                assert_allclose(
                    result.particles[t],
                    result.particles[t - 1][result.ancestors[t]] + 1.0,
                    atol=1e-9,
                )
