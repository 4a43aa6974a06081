"""What a filter refuses, and how it says so."""

import copy
import operator
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import cases, refuses

import herdfilter as hf
from herdfilter.filters import (
    AugmentedProposal,
    BootstrapProposal,
    HerdedProposal,
    MixtureResampling,
    ParticleFilter,
    Particles,
    Uses,
)
from herdfilter.fitting import GaussianFit
from herdfilter.models import UNGM
from herdfilter.models.simulation import simulate
from herdfilter.samplers import RandomSampling

ONLINE = {
    "particles": partial(ParticleFilter, n_particles=5, rng=26),
    "ekf": hf.ExtendedKalmanFilter,
    "ukf": hf.UnscentedKalmanFilter,
    "s2kf": hf.SmartSamplingKalmanFilter,
    "enkf": partial(hf.EnsembleKalmanFilter, n_particles=5, rng=26),
    "edh": partial(hf.DaumHuangFilter, n_particles=5, rng=26),
}


@pytest.fixture(params=ONLINE.values(), ids=ONLINE)
def online(request, walk):
    return request.param(walk)


@cases(
    "values message",
    (lambda x: np.full(len(x), np.nan), "expected values below infinity .* got 5 NaN or .inf of 5 at step 1"),
    (lambda x: np.where(np.arange(len(x)) == 2, np.inf, 0.0), "got 1 NaN or .inf of 5 at step 1"),
    (lambda x: np.zeros((len(x), 1)), r"expected shape \(5,\) from the model at step 1, got \(5, 1\)"),
    (lambda x: 0.0, r"expected shape \(5,\) from the model at step 1, got \(\)"),
    (lambda x: np.zeros(4), r"expected shape \(5,\) from the model at step 1, got \(4,\)"),
)  # fmt: skip
def test_bad_likelihoods_are_named(walk, values, message):
    walk.log_likelihood = lambda z, x, step: values(x)
    with pytest.raises(ValueError, match=f"log_likelihood: .*{message}"):
        ParticleFilter(walk, 5, rng=23).run([[0.0]])


def test_a_transition_of_the_wrong_shape_or_that_is_not_finite_is_named(walk, proposal, promised):
    n = r"\d+" if promised.observes else 5  # sigma points are another number of states
    shape = rf"transition_mean: expected shape \({n}, 1\) from the model at step 1, got \({n},\)"
    for values, message in ((lambda x: x[:, 0], shape), (lambda x: x * np.nan, "transition_mean: expected finite")):
        walk.transition_mean = lambda x, dt, control, step, values=values: values(x)
        with pytest.raises(ValueError, match=message):
            ParticleFilter(walk, 5, copy.deepcopy(proposal), rng=24).run([[0.5]])


def test_a_sampler_that_returns_too_few_points_is_named(walk):
    class Half:
        def sample(self, mixture, n, rng=None):
            return RandomSampling().sample(mixture, n if n % 2 else n // 2, rng)

    with pytest.raises(ValueError, match=r"10.* got \(5"):
        ParticleFilter(walk, 10, HerdedProposal(Half()), rng=25).predict()


class Bare:
    """A proposal, or a scheme, that returns particles and log-weights side by side."""

    uses = Uses(weights=True, observation=True)

    def __init__(self, method):
        self.method = method

    def check(self, model):
        pass

    def answer(self, method, x):
        pair = x, np.full(len(x), -np.log(len(x)))
        return pair if method == self.method else Particles(*pair)

    def initial(self, model, n, rng):
        return self.answer("initial", model.initial.sample(n, rng))

    def propose(self, transition, particles, rng, observation=None):
        return self.answer("propose", particles.x)

    def resample(self, particles, rng, circular=()):
        return self.answer("resample", particles.x)


@pytest.mark.parametrize("method", ["initial", "propose", "resample"])
def test_weighted_points_that_are_no_particles_are_named(walk, method):
    part = Bare(method)
    parts = {"resampling": part, "resample_below": 1.0} if method == "resample" else {"proposal": part}
    pf = ParticleFilter(walk, 10, **parts, rng=25)
    expected = rf"Bare.{method}: expected a herdfilter.filters.Particles\(particles, log_weights\), got tuple"
    with pytest.raises(TypeError, match=expected):
        pf.run([[0.5], None, [0.5]])


test_what_is_no_cloud_is_named = refuses(
    Particles,
    ("abc", "abc", "particles: expected numbers"),
    (np.nan, np.nan, r"particles: expected shape \(\*, \*\)"),
    ([[np.nan]], [0.0], "particles: expected finite numbers"),
    ([[0.0]], [np.nan], "log_weights: expected numbers below infinity"),
    ([[0.0]], [np.inf], "log_weights: expected numbers below infinity"),
    ([[0.0]], [0.0, 0.0], r"log_weights: expected shape \(1,\)"),
    (np.empty((0, 2)), [], "particles: expected at least one point"),
    (np.empty((2, 0)), [0.0, 0.0], "particles: expected at least one point and one dimension"),
    words="^{}",
)


def test_weights_of_a_cloud_are_those_of_a_distribution():
    for wrong in ([0.5, 0.6], [-0.5, 1.5], [0.5, np.nan]):
        with pytest.raises(ValueError, match=r"^weights: expected"):
            Particles.weighted([[0.0], [1.0]], wrong)
    assert np.isneginf(Particles.weighted([[0.0], [1.0]], [0.0, 1.0]).log_weights[0])


@pytest.mark.parametrize(("initial", "expected"), [(np.zeros(1), "needs sample; ndarray"), (None, "needs sample")])
def test_an_initial_distribution_that_cannot_be_drawn_from_is_named(walk, proposal, initial, expected):
    walk.initial = initial
    with pytest.raises(TypeError, match=f"initial distribution {expected}"):
        ParticleFilter(walk, 5, proposal)


@pytest.mark.parametrize("dt", [0.0, -1.0, np.nan, np.inf, "1", None])
def test_a_bad_time_step_is_named_and_nothing_has_happened(online, dt):
    before = online.mean
    with pytest.raises(ValueError, match=f"dt: expected a positive finite number, got {dt!r}"):
        online.predict(dt)
    assert online.step == 0
    np.testing.assert_array_equal(online.mean, before)


@cases(
    "arguments message",
    ({"dt": [1.0, 0.0]}, "dt: expected a positive finite number, got .*0.0.* before step 2"),
    ({"dt": [1.0]}, "dt: expected one per step, 2, got 1"),
    ({"controls": [None] * 3}, "controls: expected one per step, 2, got 3"),
    ({"times": [1.0]}, "times: expected one per step, 2, got 1"),
    (
        {"times": [-1.0, 1.0]},
        "times: expected increasing times, got -1.0 after 0.0, the time of the filter's state, at step 1",
    ),
    ({"times": [2.0, 1.5]}, "times: expected increasing times, got 1.5 after 2.0 at step 2"),
    ({"times": [0.5, 0.25]}, "times: expected increasing times, got 0.25 after 0.5 at step 2"),
    ({"times": [1.0, np.nan]}, "times: expected finite numbers"),
    ({"times": [1.0, 2.0], "dt": [1.0, 1.0]}, "times: expected either times or dt, got both"),
)
def test_series_of_different_lengths_are_named(online, arguments, message):
    with pytest.raises(ValueError, match=message):
        online.run([None, None], **arguments)
    assert online.step == 0


@cases(
    "error arguments message",
    (ValueError, {"n_particles": 0}, "n_particles: expected an integer of at least 1, got 0"),
    (ValueError, {"n_particles": 10.0}, "n_particles: expected an integer of at least 1, got 10.0"),
    (ValueError, {"resample_below": -0.1}, "resample_below: expected a fraction from 0 to 1, got -0.1"),
    (ValueError, {"resample_below": 1.5}, "resample_below: expected a fraction from 0 to 1, got 1.5"),
    (ValueError, {"resample_below": np.nan}, "resample_below: expected a fraction from 0 to 1, got nan"),
    (ValueError, {"resample_below": "half"}, "resample_below: expected a fraction from 0 to 1, got 'half'"),
    (ValueError, {"on_degeneracy": "predicts"}, "on_degeneracy: unknown 'predicts'; did you mean 'predict'?"),
    (ValueError, {"rng": "dice"}, "rng: expected a numpy Generator, a seed or None, got 'dice'"),
    (TypeError, {"proposal": "bootstrap"}, "proposal: expected a proposal such as .* got 'bootstrap'"),
    (TypeError, {"proposal": BootstrapProposal}, "proposal: expected a proposal such as"),
    (TypeError, {"resampling": "systematic"}, "resampling: expected a scheme such as .* got 'systematic'"),
)  # fmt: skip
def test_bad_arguments_are_named(walk, error, arguments, message):
    with pytest.raises(error, match=message):
        ParticleFilter(walk, **arguments)


@pytest.mark.parametrize("z", ["north", {}, [[1.0], [1.0, 2.0]]])
def test_an_observation_that_is_not_numbers_is_named(online, z):
    online.predict()
    with pytest.raises(ValueError, match="z: expected None or an array of numbers"):
        online.update(z)


BARE_SAMPLER = SimpleNamespace(sample=lambda mixture, n, rng=None: mixture.sample(n, 0))
BARE_FIT = SimpleNamespace(fit=lambda particles, weights: GaussianFit().fit(particles, weights))


@pytest.mark.parametrize(
    "parts",
    [
        {"proposal": HerdedProposal(BARE_SAMPLER)},
        {"proposal": AugmentedProposal(GaussianFit(), BARE_SAMPLER)},
        {"resampling": MixtureResampling(GaussianFit(), BARE_SAMPLER), "resample_below": 1.0},
    ],
    ids=["herded", "augmented", "resampling"],
)
def test_a_sampler_that_returns_a_plain_array_is_named(walk, parts):
    with pytest.raises(TypeError, match=r"sampler: expected herdfilter.Points from SimpleNamespace.sample, got ndarray"):
        ParticleFilter(walk, 10, **parts, rng=3).run([[0.3], [0.4]])


@pytest.mark.parametrize("part", [MixtureResampling, AugmentedProposal])
def test_a_fit_that_takes_no_circular_dimensions_is_named(part):
    expected = r"fit: expected arguments \(particles, weights, circular\), got .* of SimpleNamespace"
    with pytest.raises(TypeError, match=expected):
        part(BARE_FIT, RandomSampling())


def test_a_model_may_say_in_any_way_that_it_has_no_angles(walk, proposal):
    observations = [[0.5], None, [1.0]]
    plain = ParticleFilter(walk, 20, proposal, rng=4).run(observations)
    for circular in (None, (), []):
        walk.circular = circular
        same = ParticleFilter(walk, 20, proposal, rng=4).run(observations)
        np.testing.assert_array_equal(same.means, plain.means, str(circular))


@pytest.mark.parametrize("z", [[1.0], None])
def test_a_second_observation_of_the_initial_state_is_refused(online, z):
    """So a loop that forgets to predict does not pass in silence."""
    assert online.update(z).step == 0
    before = online.record
    with pytest.raises(
        RuntimeError, match="update: expected one observation of the initial state, step 0, got a second; call"
    ):
        online.update(z)
    assert online.record is before
    online.predict()
    assert online.update(z).step == 1


@cases(
    "arguments message",
    ((0, 1), "steps: expected an integer"),
    ((3, "dice"), "rng: expected"),
    ((3, 1, -1.0), "dt: expected a positive"),
    ((3, 1, 1.0, [0.0] * 7), r"initial: expected shape .*, got \(7,\)"),
)
def test_a_simulation_names_what_does_not_fit(walk, arguments, message):
    with pytest.raises(ValueError, match=message):
        simulate(walk, *arguments)


test_parts_of_the_wrong_kind_are_named = refuses(
    operator.call,
    (lambda: HerdedProposal("kh"), r"sampler: expected .* sample\(mixture, n, rng\), got 'kh'"),
    (lambda: AugmentedProposal(GaussianFit(), None), r"sampler: expected .* sample\(mixture, n, rng\), got None"),
    (lambda: AugmentedProposal("em", RandomSampling()), r"fit: expected .* fit\(particles, .*\), got 'em'"),
    (lambda: AugmentedProposal(None, RandomSampling()), r"fit: expected .* fit\(particles, .*\), got None"),
    (lambda: HerdedProposal(RandomSampling), "sampler: expected an instance, got the class Random"),
    (lambda: AugmentedProposal(GaussianFit, RandomSampling()), "fit: expected an instance, got the class GaussianFit"),
    (
        lambda: MixtureResampling(GaussianFit(), RandomSampling),
        "sampler: expected an instance, got the class RandomSampling",
    ),
    (lambda: ParticleFilter(UNGM), "model: expected an instance, got the class UNGM"),
    (
        lambda: ParticleFilter(UNGM(), proposal=BootstrapProposal),
        "proposal: .* an instance, got the class BootstrapProposal",
    ),
    (lambda: simulate(UNGM, 3, 0), "model: expected an instance, got the class UNGM"),
    error=TypeError,
)
