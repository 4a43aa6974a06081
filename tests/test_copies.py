"""Every filter, tracker, sampler, proposal and result can be copied and pickled, and goes on with equal bits."""

import copy
import dataclasses
import inspect
import pickle

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.catalogue import catalogue

EYE = np.eye(2)
PLAIN = hf.models.linear_chain(2)
LIVELY = hf.models.LinearGaussian(0.9 * EYE, EYE, 2.0 * EYE, EYE, np.zeros(2), EYE)


def forget(x):
    """Stand for an observation function, of a model that can be pickled."""
    return x


Z = [[0.1, 0.2], [1.0, -0.3], [0.4, 0.6], [0.2, 0.1]]
SCANS = [[[0.1, 0.2], [4.0, 4.0]], [[1.0, -0.3]], [[0.4, 0.6], [-5.0, 3.0]], []]
CASES = {
    "plain": (PLAIN, Z, None),
    "jumping": (hf.models.JumpMarkov([PLAIN, LIVELY], [[0.9, 0.1], [0.2, 0.8]]), Z, None),
    "clutter": (hf.models.WithClutter(PLAIN, 0.9, 0.01), SCANS, None),
    "sensors": (PLAIN, Z, hf.Sensor(forget, 0.5 * EYE)),
}
"""Kind of model -> a model, observations, and the sensor of every other observation."""

FILTERS = [name for name, table in catalogue().items() if "tracker" not in table]
COPIES = {"copied": copy.deepcopy, "pickled": lambda one: pickle.loads(pickle.dumps(one))}


def arrays(value):
    """Return the numbers in a record or a result, name -> array."""
    names = [field.name for field in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else value._fields
    return {name: getattr(value, name) for name in names if not callable(getattr(value, name))}


def assert_equal(one, other):
    for name, value in arrays(one).items():
        np.testing.assert_equal(arrays(other)[name], value, err_msg=name)


def made(name, model):
    try:
        return hf.make_filter(name, model, n_particles=12, rng=1)
    except (TypeError, ValueError) as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_is_copied_between_its_steps_and_after_a_prediction(name, kind):
    model, observations, sensor = CASES[kind]
    online = made(name, model)
    if not hasattr(online, "predict"):
        pytest.skip("a batch filter")
    others = []
    for k, z in enumerate(observations):
        by = sensor if k % 2 else None
        if k == 1:
            others += [again(online) for again in COPIES.values()]
        for one in (online, *others):
            one.predict()
        if k == 2:
            others += [again(online) for again in COPIES.values()]
        try:
            record, *same = [one.update(z, by) for one in (online, *others)]
        except TypeError as error:
            pytest.skip(str(error))
        for other in same:
            assert_equal(record, other)


@pytest.mark.parametrize("name", [name for name, table in catalogue().items() if "tracker" in table])
def test_a_tracker_is_copied_after_a_scan(name):
    birth = hf.tracking.BirthFromMeasurements(hf.GaussianMixture([1.0], [[0.0, 0.0]], 4 * EYE), expected=0.5)
    tracker = hf.make_filter(name, CASES["clutter"][0], 12, rng=1, birth=birth, survival_probability=0.95)
    first = tracker.run(SCANS[:2])
    others = [again(tracker) for again in COPIES.values()]
    result = tracker.run(SCANS[2:])
    for other in others:
        assert_equal(result, other.run(SCANS[2:]))
    for again in COPIES.values():
        assert_equal(first, again(first))


def without_arguments(folder):
    """Return the public classes of a folder that need no argument."""
    found = {}
    for name in folder.__all__:
        one = getattr(folder, name)
        if inspect.isclass(one) and not inspect.isabstract(one) and not getattr(one, "_is_protocol", False):
            parameters = inspect.signature(one).parameters.values()
            if all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
                found[name] = one
    return found


SAMPLERS = without_arguments(hf.samplers)
SAMPLERS |= {
    "Polished": lambda: hf.Polished(hf.KernelHerding()),
    "Reweighted": lambda: hf.Reweighted(hf.KernelHerding()),
    "PlacedAgain": lambda: hf.PlacedAgain(hf.KernelHerding()),
    "MappedSampling": lambda: hf.MappedSampling(hf.KernelHerding()),
}


@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_a_sampler_is_copied_and_so_are_its_points(name):
    sampler = SAMPLERS[name]()
    if not hasattr(sampler, "sample"):
        pytest.skip("no sampler of mixtures")
    dim = 1 if name == "QuantileSampling" else 2
    mixture = hf.GaussianMixture([0.4, 0.6], [[0.0] * dim, [2.0] * dim], np.eye(dim))
    n = 5 if name == "SigmaPoints" else 8
    points = sampler.sample(mixture, n, np.random.default_rng(0))
    for again in COPIES.values():
        other = again(sampler).sample(again(mixture), n, np.random.default_rng(0))
        for one in (other, again(points)):
            np.testing.assert_array_equal(one.x, points.x)
            np.testing.assert_array_equal(one.weights, points.weights)


def proposals():
    points = hf.MappedSampling(hf.KernelHerding())
    given = {
        "HerdedProposal": (points,),
        "KalmanMixtureProposal": (points,),
        "AugmentedProposal": (hf.GaussianFit(), points),
        "GuidedAugmentedProposal": (hf.GaussianFit(), points),
        "ModeProposal": (hf.RankedProposal(),),
    }
    for name in hf.filters.proposals.__all__:
        if name not in ("Proposal", "Uses"):
            yield getattr(hf, name)(*given.get(name, ()))


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("proposal", list(proposals()), ids=lambda one: type(one).__name__)
def test_a_proposal_is_copied_in_the_midst_of_a_run_and_so_is_the_result(proposal, kind):
    model, observations, _ = CASES[kind]
    whole = hf.ParticleFilter(model, 12, copy.deepcopy(proposal), rng=2).run(observations, keep_particles=True)
    for again in COPIES.values():
        online = hf.ParticleFilter(model, 12, again(proposal), rng=2)
        online.run(observations[:2])
        rest = again(online).run(observations[2:])
        np.testing.assert_array_equal(rest.means, whole.means[2:])
        np.testing.assert_array_equal(rest.log_likelihoods, whole.log_likelihoods[2:])
        assert_equal(whole, again(whole))
