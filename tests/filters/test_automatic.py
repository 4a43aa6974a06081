"""The proposal that decides between one Gaussian and a mixture."""

import dataclasses

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.evaluation.scenario import load_scenario
from herdfilter.filters import Cloud
from herdfilter.filters.proposals.automatic import bimodality


def cloud(x, weights=None):
    weights = np.full(len(x), 1 / len(x)) if weights is None else weights
    return Cloud(x, np.log(weights))


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (np.random.default_rng(0).standard_normal((100_000, 1)), 1 / 3),
        (np.linspace(-3, 5, 1001)[:, None], 5 / 9),
        (np.array([[0.0], [1.0]] * 10), 1.0),
    ],
    ids=["Gaussian", "uniform", "two points"],
)
def test_bimodality_has_its_known_values(x, expected):
    assert bimodality(cloud(x)) == pytest.approx(expected, abs=0.01)


def test_bimodality_sees_two_modes_in_any_direction_and_unit():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((5000, 3))
    one = bimodality(cloud(x * [1.0, 1e-6, 1e6]))
    x += np.where(rng.random((5000, 1)) < 0.5, 5.0, -5.0) * np.array([1.0, 2.0, -1.0])
    assert one < 0.4 < 5 / 9 < bimodality(cloud(x * [1.0, 1e-6, 1e6]))


def test_bimodality_takes_weights_and_wraps_angles():
    heading = np.pi + 0.1 * np.random.default_rng(2).standard_normal((20_000, 1))  # on both sides of the seam
    heading = np.mod(heading + np.pi, 2 * np.pi) - np.pi
    assert bimodality(cloud(heading)) > 0.9
    assert bimodality(cloud(heading), (0,)) == pytest.approx(1 / 3, abs=0.02)
    two = np.array([[0.0], [0.0], [1.0]])
    assert bimodality(cloud(two, np.array([0.25, 0.25, 0.5]))) == pytest.approx(1.0)


@pytest.mark.parametrize("where", [0.0, 3.0])
def test_particles_in_one_place_have_no_modes(where):
    assert bimodality(cloud(np.full((10, 2), where))) == 0.0


def test_two_modes_are_kept_and_one_is_filtered_at_the_price_of_one_gaussian(monkeypatch):
    """UNGM has two modes in many steps; Lorenz-63, observed often, hardly ever."""
    taken = []
    guide = hf.KalmanMixtureProposal.guide
    monkeypatch.setattr(
        hf.KalmanMixtureProposal, "guide", lambda self, *args: taken.append(1) or guide(self, *args)
    )
    shares = []
    for model, dt in ((hf.models.UNGM(), 1.0), (hf.models.Lorenz63(), 0.05)):
        taken.clear()
        _, z = hf.simulate(model, 60, rng=1, dt=dt)
        hf.ParticleFilter(model, 50, hf.AutomaticProposal()).run(z, dt=dt)
        shares.append(len(taken) / 60)
    assert shares[0] > 0.25
    assert shares[1] < 0.1


def test_errors_are_those_of_the_better_of_the_two():
    """On UNGM one Gaussian alone is worse than bootstrap."""
    table = hf.compare("ungm", ["bootstrap", "auto-kh", "guided-augmented-gauss-kh"], [60], runs=12, seed=5)
    error = table.groupby("filter")["reference_error"].median()
    assert error["auto-kh"] < 0.75 * error["bootstrap"] < error["guided-augmented-gauss-kh"]


class Counts:
    """A model without a Gaussian observation, with noise that is not additive unless `additive`."""

    dim = noise_dim = 1
    initial = hf.GaussianMixture([1.0], [[0.0]], [[1.0]])

    def log_likelihood(self, z, x, step):
        return z[0] * x[:, 0] - np.exp(x[:, 0])


class CountsOfOtherNoise(Counts):
    def transition(self, x, noise, dt, control, step):
        return 0.9 * x + 0.2 * noise + 0.01 * noise**3


class CountsOfAdditiveNoise(Counts):
    def transition_mean(self, x, dt, control, step):
        return 0.9 * x

    def transition_covariance(self, dt, step):
        return np.array([[0.05]])


@pytest.mark.parametrize(
    "model", [CountsOfOtherNoise(), CountsOfAdditiveNoise()], ids=["other noise", "additive"]
)
def test_models_without_a_gaussian_observation_are_served(model):
    """Over four series of counts: at most half of the error of as many random particles."""
    errors = {"herded": [], "bootstrap": []}
    for seed in range(4):
        z = np.random.default_rng(seed).poisson(2.0, (30, 1)).astype(float)
        exact = hf.ParticleFilter(model, 20_000, rng=0).run(z)
        for name, proposal in (("herded", hf.AutomaticProposal()), ("bootstrap", None)):
            result = hf.ParticleFilter(model, 100, proposal, rng=1).run(z)
            errors[name].append(np.abs(result.means - exact.means).mean())
            assert (
                result.log_likelihood == pytest.approx(exact.log_likelihood, abs=0.3) or name == "bootstrap"
            )
    assert np.mean(errors["herded"]) < 0.5 * np.mean(errors["bootstrap"])


def test_singular_noise_is_served():
    model = hf.models.LinearGaussian(
        [[1.0, 1.0], [0.0, 1.0]], [[1.0, 0.0]], [[0.25, 0.5], [0.5, 1.0]], [[1.0]], [0.0, 0.0], np.eye(2)
    )
    _, z = hf.simulate(model, 30, rng=0)
    exact = hf.UnscentedKalmanFilter(model).run(z)
    herded = hf.ParticleFilter(model, 50, hf.AutomaticProposal()).run(z)
    np.testing.assert_allclose(herded.means, exact.means, atol=1e-6)


def test_a_model_that_can_only_be_simulated_is_named():
    class Simulated:
        dim = 1
        initial = hf.GaussianMixture([1.0], [[0.0]], [[1.0]])

        def sample_transition(self, x, rng, dt, control, step):
            return x + rng.standard_normal(x.shape)

        def log_likelihood(self, z, x, step):
            return -((z[0] - x[:, 0]) ** 2)

    with pytest.raises(TypeError, match="model: AutomaticProposal needs transition_mean"):
        hf.ParticleFilter(Simulated(), 10, hf.AutomaticProposal())


def tempered(log_weights, least):
    return Cloud(np.zeros((len(log_weights), 1)), log_weights).tempered(least).log_weights


def ess(log_weights):
    weights = np.exp(log_weights - log_weights.max())
    return weights.sum() ** 2 / (weights**2).sum()


def test_tempered_weights_have_the_effective_sample_size_asked_for_and_their_sum():
    log_weights = 5 * np.random.default_rng(3).standard_normal(200) - 700
    assert ess(log_weights) < 10
    for least in (10.0, 28.3, 150.0):
        mild = tempered(log_weights, least)
        assert ess(mild) == pytest.approx(least, rel=1e-6)
        assert np.logaddexp.reduce(mild) == pytest.approx(np.logaddexp.reduce(log_weights), rel=1e-12)
        assert (np.diff(mild[np.argsort(log_weights)]) >= 0).all()
    assert tempered(log_weights, 1.0) is log_weights or (tempered(log_weights, 1.0) == log_weights).all()


def test_tempering_leaves_weights_of_zero_alone():
    log_weights = np.array([-np.inf, -1.0, -9.0, -np.inf])
    np.testing.assert_allclose(
        np.exp(tempered(log_weights, 3.0)[1:3]), np.exp(log_weights).sum() / 2, rtol=1e-6
    )
    assert (tempered(log_weights, 3.0)[[0, 3]] == -np.inf).all()
    none = np.full(3, -np.inf)
    assert (tempered(none, 2.0) == none).all()


def quickly(name):
    """A scenario with a reference that is good enough to tell a filter that has lost its target."""
    reference = {"type": "large", "n": 4000, "repeats": 2}
    return dataclasses.replace(load_scenario(name), reference=reference)


def test_few_particles_keep_a_target_that_is_seen_by_its_bearing_alone():
    """Some twenty particles in four dimensions: weights alone would make one point of them in a step or two.

    How good one set of so few points is, is luck: errors are those of five sets.
    """
    sizes = [16, 20, 24, 28, 32]
    table = hf.compare(quickly("bearings_only"), ["bootstrap", "auto-kh"], sizes, runs=15, seed=7)
    error = table.groupby("filter")["reference_error"].median()
    diverged = table.groupby("filter")["diverged"].mean()
    assert error["auto-kh"] < 0.5 * error["bootstrap"]
    assert diverged["auto-kh"] < 0.5 * diverged["bootstrap"]


def test_more_evidence_for_one_gaussian_keeps_it():
    """A range and a bearing to one landmark: the mixture of all particles finds less, and has even weights all the same."""
    table = hf.compare(quickly("landmarks"), ["bootstrap", "auto-kh"], [20], runs=6, seed=7)
    error = table.groupby("filter")["reference_error"]
    assert error.max()["auto-kh"] < 0.5 * error.median()["bootstrap"]


def test_more_points_leave_less_to_temper():
    """With 400 points the estimates are those of the exact posterior of a skewed state."""
    model = CountsOfAdditiveNoise()
    z = np.random.default_rng(1).poisson(2.0, (30, 1)).astype(float)
    exact = hf.ParticleFilter(model, 50_000, rng=0).run(z)
    errors = [
        np.abs(hf.ParticleFilter(model, n, hf.AutomaticProposal()).run(z).means - exact.means).mean()
        for n in (20, 400)
    ]
    assert errors[1] < 0.02
    assert errors[0] < 0.1
