"""One word for each thing: what public functions call their arguments, and that `rng` is all there is for randomness."""

import copy
import importlib
import inspect
import pkgutil
import re

import numpy as np
from helpers import MIX, WALK, cases, refusal

import herdfilter as hf
from herdfilter import association, models, study, tracking

WORDS = {
    "rng": "seed random_state random_seed generator prng",
    "circular": "angles angle_dims angular periodic circular_dims observation_angles",
    "initial": "prior init initial_state",
    "initial_mean, initial_covariance": "x0 P0 m0 mean0 prior_mean prior_covariance initial_cov",
    "x": "xs points_x samples states positions",
    "n": "count number num n_points n_samples num_points n_draws",
    "n_particles": "num_particles particle_count nparticles nparts",
    "n_components": "components n_clusters num_components",
    "weights": "w weight ws",
    "covariance": "cov covar",
    "dt": "delta_t timestep time_step step_size duration interval time_interval",
    "control, controls": "u us inputs action actions",
    "step, steps": "time_index epoch n_steps num_steps horizon",
    "z, observations": "y ys zs obs measurement measurements",
    "model": "ssm system",
    "truth": "true_states ground_truth true",
    "dim, dims": "ndim n_dim dimension dimensions",
    "workers": "n_jobs jobs processes n_workers",
    "build": "filter_factory factory",
}
"""Words of the package -> others for the same thing, which no public function may have as an argument."""

NUMBERS = {"seed": "RandomModel random_mixture reproduce compare plan_study"}
"""Where a seed is the number of a model, a mixture or a study, from which all its generators are made."""

THEIRS = {
    "HerdedFilter": "ssm",
    "from_particles": "ssm",
    "from_stonesoup": "prior",
    "StoneSoupModel": "prior",
    "HerdfilterProposal.initial": "prior",
    "HerdfilterProposal.rvs": "prior measurement time_interval",
    "HerdfilterResampler.resample": "nparts",
    "DictionaryFullError": "states",
}
"""Functions that another library calls or whose objects they take; and an error's count."""


def callables():
    """Name -> every public class and function, and the public methods of classes."""
    found = {}
    places = [
        info.name
        for info in pkgutil.walk_packages(hf.__path__, "herdfilter.")
        if "._" not in info.name
    ]
    for place in ("herdfilter", *places):
        try:
            module = importlib.import_module(place) if not place.endswith("__main__") else None
        except ImportError:  # an optional library
            continue
        for one in filter(
            callable, (getattr(module, name) for name in getattr(module, "__all__", ()))
        ):
            if not (getattr(one, "__module__", None) or "").startswith("herdfilter"):
                continue
            found[one.__qualname__] = one
            for name, method in (
                inspect.getmembers(one, inspect.isroutine) if inspect.isclass(one) else ()
            ):
                if not name.startswith("_") and (
                    getattr(method, "__module__", None) or ""
                ).startswith("herdfilter"):
                    found[method.__qualname__] = method
    return found


CALLABLES = callables()


def parameters(one):
    try:
        return inspect.signature(one).parameters
    except ValueError:
        return {}


def test_every_thing_has_one_word():
    assert len(CALLABLES) > 400
    wrong = []
    for name, one in CALLABLES.items():
        allowed = THEIRS.get(name, "").split() + [
            word for word, names in NUMBERS.items() if name in names.split()
        ]
        for word, others in WORDS.items():
            wrong += [
                f"{name}({p}): {word}"
                for p in parameters(one)
                if p in others.split() and p not in allowed
            ]
    assert wrong == []


X = np.arange(12.0).reshape(6, 2)
W = np.array([0.1, 0.3, 0.1, 0.2, 0.2, 0.1])
JUMP = models.JumpMarkov([WALK, WALK], [[0.5, 0.5], [0.5, 0.5]])
CLUTTER = models.WithClutter(WALK, 0.9, 0.5, region=[[-5, 10]])
Z = [[0.9], [2.1]]
SCANS = [[[0.9]], [[2.1], [3.0]]]
RATIOS = 1.0 + np.add.outer(np.arange(4.0), np.arange(5.0)) % 3
COUNTING = association.RandomGibbs(9, estimate="counts")
RUN = hf.ParticleFilter(WALK, 10, rng=0).run(Z, keep_particles=True)


def first(x):
    return x[:, :1]


def drawn(rng):
    """Points of every sampler that draws random numbers, each from a copy of the generator."""
    samplers = [
        hf.RandomSampling(),
        hf.SobolSampling(scramble=True),
        hf.MappedSampling(hf.RandomSampling()),
        hf.Polished(hf.RandomSampling(), iterations=1),
    ]
    return np.concatenate([sampler.sample(MIX, 5, copy.deepcopy(rng)).x for sampler in samplers])


def tracked(rng):
    births = [tracking.Birth(0.5, WALK.initial)]
    tracker = tracking.LMBTracker(CLUTTER, births, filter="bootstrap", n_particles=8, rng=rng)
    tracker.run(SCANS)
    return np.array([track.existence for track in tracker.tracks])


DOORS = {
    "ParticleFilter": lambda rng: hf.ParticleFilter(WALK, 8, rng=rng).run(Z).means,
    "EnsembleKalmanFilter": lambda rng: hf.EnsembleKalmanFilter(WALK, 8, rng=rng).run(Z).means,
    "DaumHuangFilter": lambda rng: hf.DaumHuangFilter(WALK, 8, rng=rng).run(Z).means,
    "make_filter": lambda rng: hf.make_filter("bootstrap", WALK, 8, rng).run(Z).means,
    "Forecaster.forecast": lambda rng: hf.ParticleFilter(WALK, 8, rng=0).forecast(2, rng=rng).means,
    "LMBTracker": tracked,
    "associate": lambda rng: association.associate(RATIOS, COUNTING, rng=rng).marginals,
    "marginals": lambda rng: association.marginals(RATIOS, COUNTING, rng=rng),
    "Method.marginals": lambda rng: COUNTING.marginals(RATIOS, rng),
    "GaussianMixture.sample": lambda rng: MIX.sample(5, rng),
    "Sensor.sample": lambda rng: hf.Sensor(first, [[0.5]]).sample(X, rng),
    "UniformBox.sample": lambda rng: models.UniformBox([0.0, 0.0], [1.0, 2.0]).sample(3, rng),
    "sample_modes": lambda rng: models.sample_modes(JUMP, 40, rng),
    "simulate": lambda rng: hf.simulate(WALK, 3, rng)[1],
    "simulate_scans": lambda rng: np.concatenate(
        tracking.simulate_scans(CLUTTER, [[[0.0, 1.0]], [[1.0, 1.0]]], rng)
    ),
    "backward_simulation": lambda rng: (
        hf.backward_simulation(hf.ParticleFilter(WALK, 10, rng=0), RUN, 3, rng).means
    ),
    "GibbsMethod.cluster": lambda rng: COUNTING.cluster(RATIOS, rng)[0],
    "posterior_cramer_rao_bound": lambda rng: study.posterior_cramer_rao_bound(
        models.UNGM(), 2, runs=5, rng=rng
    ),
    "MixtureSampler.sample": drawn,
}
"""Every public call that draws random numbers and is not made by a filter itself."""

DETERMINISTIC = {
    "ContinuousHerdedGibbs.sample",
    *(f"{one}.cluster" for one in ("BeliefPropagation", "Exact", "HerdedGibbs", "KBest")),
}


@cases("name", *DOORS)
def test_a_number_is_as_good_as_a_generator(name):
    call = DOORS[name]
    numbers = call(3)
    other = call(4)
    np.testing.assert_array_equal(numbers, call(np.random.default_rng(3)))
    assert not np.array_equal(numbers, other)
    assert np.shape(call(None)) is not None
    with refusal(r"^rng: expected a numpy Generator, a seed or None, got 'abc'$"):
        call("abc")


def test_every_call_that_takes_a_number_has_been_tried():
    hints = {
        name: str(parameters(one)["rng"].annotation)
        for name, one in CALLABLES.items()
        if "rng" in parameters(one)
    }
    open_to_numbers = {name for name, hint in hints.items() if re.search(r"\bint\b|SeedLike", hint)}
    # that one needs the library particles
    assert open_to_numbers - DETERMINISTIC - {"HerdedFilter"} == set(DOORS)
