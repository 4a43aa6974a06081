"""Every public object can be copied and pickled; filters, trackers and samplers go on with equal bits."""

import copy
import enum
import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from helpers import CHAIN, CHOICE, EYE, JUMPING, LIVELY, SERIES, cases, normal

import herdfilter as hf
from herdfilter.catalogue import catalogue


def forget(x):
    """Stand for an observation function, of a model that can be pickled."""
    return x


SCANS = [[[0.1, 0.2], [4.0, 4.0]], [[1.0, -0.3]], [[0.4, 0.6], [-5.0, 3.0]], []]
CASES = {
    "plain": (CHAIN, SERIES, None),
    "jumping": (JUMPING, SERIES, None),
    "clutter": (hf.models.WithClutter(CHAIN, 0.9, 0.01), SCANS, None),
    "sensors": (CHAIN, SERIES, hf.Sensor(forget, 0.5 * EYE)),
}
"""Kind of model -> a model, observations, and the sensor of every other observation."""

FILTERS = [name for name, table in catalogue().items() if "tracker" not in table]
COPIES = {"copied": copy.deepcopy, "pickled": lambda one: pickle.loads(pickle.dumps(one))}


def bootstrap():
    return hf.ParticleFilter(CHAIN, 12, rng=1)


BESIDE = {
    "FixedLagSmoother": lambda model: hf.FixedLagSmoother(hf.ParticleFilter(model, 12, rng=1), 2),
    "FixedLagSmoother of Gaussians": lambda model: hf.FixedLagSmoother(
        hf.UnscentedKalmanFilter(model), 2
    ),
}
"""What filters online beside the catalogue."""


def made(name, model):
    try:
        return (
            BESIDE[name](model)
            if name in BESIDE
            else hf.make_filter(name, model, n_particles=12, rng=1)
        )
    except (TypeError, ValueError) as error:
        pytest.skip(str(error))


KINDS = {
    "imm": "jumping",
    "mkf": "jumping",
    "ukf": "clutter",
    "bootstrap": "sensors",
    "ranked": "jumping",
}
KINDS |= dict.fromkeys(BESIDE, "sensors")
"""Filters that are copied on another model than the plain one."""


@cases("name", *FILTERS, *BESIDE)
def test_a_filter_is_copied_between_its_steps_and_after_a_prediction(name):
    model, observations, sensor = CASES[KINDS.get(name, "plain")]
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
            assert_same(record, other)
    if name.startswith("FixedLag"):
        for other in others:
            assert_same(online.window, other.window)


def replaying():
    return hf.Replay(bootstrap(), lag=5.0)


def test_a_replay_is_copied_before_a_reading_that_comes_late():
    replay = replaying()
    replay.update(1.0, [0.1, 0.2])
    replay.update(3.0, [0.4, 0.6])
    others = [again(replay) for again in COPIES.values()]
    record = replay.update(2.0, [1.0, -0.3])
    for other in others:
        assert_same(record, other.update(2.0, [1.0, -0.3]))


@cases("name", *[name for name, table in catalogue().items() if "tracker" in table])
def test_a_tracker_is_copied_after_a_scan(name):
    birth = hf.tracking.BirthFromMeasurements(normal([0.0, 0.0], 4), expected=0.5)
    tracker = hf.make_filter(
        name, CASES["clutter"][0], 12, rng=1, birth=birth, survival_probability=0.95
    )
    first = tracker.run(SCANS[:2])
    others = [again(tracker) for again in COPIES.values()]
    result = tracker.run(SCANS[2:])
    for other in others:
        assert_same(result, other.run(SCANS[2:]))
    for again in COPIES.values():
        assert_same(first, again(first))


ROOMS = (
    hf,
    hf.association,
    hf.bandwidths,
    hf.discrete,
    hf.kernels,
    hf.models,
    hf.samplers,
    hf.smoothing,
    hf.study,
    hf.tracking,
)
UNIT = normal([0.0, 0.0])
RATIOS = [[0.5, 2.0, 0.1], [0.5, 0.3, 1.0]]
HERDED = hf.KernelHerding()


def even(i, x):
    """Stand for a conditional of a discrete distribution."""
    return [0.5, 0.5]


def kalman(theta):
    return hf.ExtendedKalmanFilter(hf.models.linear_chain(1, theta[0]))


def tracker():
    birth = hf.tracking.BirthFromMeasurements(UNIT, expected=0.5)
    first = hf.tracking.Birth(0.9, UNIT)
    return hf.tracking.LMBTracker(CASES["clutter"][0], birth, filter="ukf", rng=1, initial=[first])


def after(online, z):
    online.predict()
    online.update(z)
    return online


def tracked():
    return after(tracker(), SCANS[0])


def jumping(make):
    return after(make(JUMPING), SERIES[0])


def filtered():
    return bootstrap().run(SERIES, keep_particles=True)


GIVEN = {
    "Association": lambda: hf.association.associate(RATIOS),
    "AugmentedProposal": lambda: hf.AugmentedProposal(hf.GaussianFit(), HERDED),
    "BatchedKalmanFilter": lambda: hf.BatchedKalmanFilter(CHAIN, [[0.0, 0.0], [1.0, 2.0]], EYE),
    "Birth": lambda: hf.tracking.Birth(0.1, UNIT),
    "BirthFromMeasurements": lambda: hf.tracking.BirthFromMeasurements(UNIT),
    "Choice": lambda: CHOICE,
    "Comparison": lambda: hf.compare("linear_gaussian", ["bootstrap"], particles=[5], runs=1),
    "ConditionalHerdedGibbs": lambda: hf.ConditionalHerdedGibbs(0.5),
    "ConditionallyLinear": lambda: hf.models.ConditionallyLinear(CHAIN, [1]),
    "ConstantVelocity": lambda: hf.models.ConstantVelocity(0.1, 0.2, np.zeros(4), np.eye(4)),
    "CubatureKalmanFilter": lambda: after(hf.CubatureKalmanFilter(CHAIN), SERIES[0]),
    "DaumHuangFilter": lambda: after(hf.DaumHuangFilter(CHAIN, 12, 1), SERIES[0]),
    "EMFit": lambda: hf.EMFit("bic"),
    "EnsembleKalmanFilter": lambda: after(hf.EnsembleKalmanFilter(CHAIN, 12, 1), SERIES[0]),
    "ExtendedKalmanFilter": lambda: after(hf.ExtendedKalmanFilter(CHAIN), SERIES[0]),
    "FilterResult": filtered,
    "FittedNoise": lambda: hf.fit_noise(CHAIN, SERIES, {"R": "scale"}, n_particles=20),
    "FixedLagSmoother": lambda: after(BESIDE["FixedLagSmoother"](CHAIN), SERIES[0]),
    "Forecast": lambda: bootstrap().forecast(2),
    "FunctionModel": lambda: hf.models.FunctionModel(forget, forget, EYE, EYE, np.zeros(2), EYE),
    "GOSPA": lambda: hf.tracking.gospa([[0.0, 0.0]], [[1.0, 0.0], [5.0, 5.0]], cutoff=3.0),
    "GaussianMixture": lambda: UNIT,
    "GridFilter": lambda: hf.GridFilter(CHAIN, -9.0, 9.0, 73),
    "GuidedAugmentedProposal": lambda: hf.GuidedAugmentedProposal(hf.GaussianFit(), HERDED),
    "HerdedProposal": lambda: hf.HerdedProposal(HERDED),
    "InteractingMultipleModel": lambda: jumping(hf.InteractingMultipleModel),
    "JumpMarkov": lambda: JUMPING,
    "KalmanMixtureProposal": lambda: hf.KalmanMixtureProposal(HERDED),
    "HistoryProposal": lambda: hf.HistoryProposal(),
    "KernelMean": lambda: hf.kernels.KernelMean(
        hf.kernels.Matern(), UNIT.weights, UNIT.means, UNIT.distinct_covariances
    ),
    "LMBTracker": tracked,
    "LinearGaussian": lambda: LIVELY,
    "MappedSampling": lambda: hf.MappedSampling(HERDED),
    "MaximumLikelihood": lambda: hf.maximise_likelihood(
        kalman, [[0.1], [1.0], [0.4], [0.2]], 0.5, [(0.01, 0.99)]
    ),
    "MixtureKalmanFilter": lambda: jumping(hf.MixtureKalmanFilter),
    "MixtureResampling": lambda: hf.MixtureResampling(hf.GaussianFit(), HERDED),
    "ModeProposal": lambda: hf.ModeProposal(hf.RankedProposal()),
    "Observation": lambda: hf.Observation(CHAIN, np.array(SERIES[0]), 1),
    "Outcome": lambda: hf.Outcome.MISSING,
    "ParticleFilter": lambda: after(bootstrap(), SERIES[0]),
    "Particles": lambda: hf.Particles(np.zeros((3, 2)), np.zeros(3)),
    "Points": lambda: HERDED.sample(UNIT, 5),
    "Polished": lambda: hf.Polished(HERDED),
    "RandomModel": lambda: hf.models.RandomModel(3),
    "Recording": lambda: hf.study.Recording(np.zeros((1, 2)), np.zeros((1, 2))),
    "RangeOnly": lambda: hf.models.RangeOnly(np.array([[0.0, 0.0], [9.0, 0.0]])),
    "Replay": replaying,
    "Reweighted": lambda: hf.Reweighted(HERDED),
    "Scenario": lambda: hf.study.Scenario("mine", "Mine", {"type": "UNGM"}),
    "Sensor": lambda: CASES["sensors"][2],
    "SmartSamplingKalmanFilter": lambda: after(hf.SmartSamplingKalmanFilter(CHAIN), SERIES[0]),
    "SmoothedResult": lambda: hf.marginal_smoother(CHAIN, filtered()),
    "StepRecord": lambda: after(bootstrap(), SERIES[0]).record,
    "Track": lambda: tracked().tracks[0],
    "TrackingRecord": lambda: tracked().record,
    "TrackingResult": lambda: tracker().run(SCANS),
    "Trajectories": lambda: hf.backward_simulation(CHAIN, filtered(), 5, 0),
    "Transition": lambda: hf.Transition(CHAIN),
    "CompiledFunction": lambda: hf.models.UNGM().compiled().h,
    "CompiledModel": lambda: hf.models.UNGM().compiled(),
    "compiled": lambda: hf.models.UNGM().compiled(),
    "from_functions": lambda: hf.models.from_functions(forget, forget, EYE, EYE, np.zeros(2), EYE),
    "random_model": lambda: hf.models.random_model(3),
    "UniformBox": lambda: hf.models.UniformBox([0.0, 0.0], [1.0, 2.0]),
    "UnscentedKalmanFilter": lambda: after(hf.UnscentedKalmanFilter(CHAIN), SERIES[0]),
    "WithClutter": lambda: CASES["clutter"][0],
    "herdfilter.discrete.herded_gibbs.HerdedGibbs": lambda: hf.discrete.HerdedGibbs(even, [2, 2]),
}
"""One object of each public class that needs arguments; a filter or tracker stands after a step."""


def public_classes():
    """Return all public classes by name, but protocols and errors, which are not made, or tested where they are raised."""
    found = {}
    for name, one in ((name, getattr(room, name)) for room in ROOMS for name in room.__all__):
        if (
            inspect.isclass(one)
            and not issubclass(one, BaseException)
            and not getattr(one, "_is_protocol", False)
        ):
            found[name if found.get(name, one) is one else f"{one.__module__}.{name}"] = one
    return {name: one for name, one in found.items() if not inspect.isabstract(one)}


def assert_same(one, other):
    """Compare two objects by their types and all that they hold."""
    assert type(other) is type(one)
    if isinstance(one, np.random.Generator):
        np.testing.assert_equal(other.bit_generator.state, one.bit_generator.state)
    elif isinstance(one, np.random.SeedSequence):
        assert other.state == one.state
    elif isinstance(one, dict):
        assert list(other) == list(one)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list | tuple):
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif inspect.ismethod(one):  # of the object itself
        assert other.__func__ is one.__func__
    elif isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other)
        assert repr(other) == repr(one)
    elif type(one).__module__.startswith("herdfilter.") and not isinstance(one, enum.Enum):
        assert_same(one.__getstate__(), other.__getstate__())
    else:
        np.testing.assert_equal(other, one)


@cases("name", *sorted(public_classes()))
def test_an_object_of_every_public_class_is_copied_with_all_that_it_holds(name):
    kind = public_classes()[name]
    one = GIVEN[name]() if name in GIVEN else kind()
    assert isinstance(one, kind)
    for again in COPIES.values():
        assert_same(one, again(one))
