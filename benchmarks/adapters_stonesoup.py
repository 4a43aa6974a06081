"""Stone Soup's particle filter with its own parts, and with ours in the places that it has for them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

import numpy as np
from adapters import Reference, beside
from stonesoup.models.measurement.nonlinear import Cartesian2DToBearing, CartesianToBearingRange
from stonesoup.models.transition.linear import (
    CombinedLinearGaussianTransitionModel,
    ConstantVelocity,
)
from stonesoup.models.transition.nonlinear import ConstantTurn
from stonesoup.predictor.particle import ParticlePredictor
from stonesoup.resampler.particle import ESSResampler, SystematicResampler
from stonesoup.types.array import StateVector, StateVectors
from stonesoup.types.detection import Detection
from stonesoup.types.hypothesis import SingleHypothesis
from stonesoup.types.state import GaussianState, ParticleState, State
from stonesoup.updater.particle import ParticleUpdater

import herdfilter as hf
from herdfilter.adapters.stone_soup import (
    HerdfilterProposal,
    HerdfilterResampler,
    from_stonesoup,
    readings,
)

STEPS, N, MANY = 20, 100, 2**16
START, SECOND = datetime(2030, 1, 1), timedelta(seconds=1)


class Scene(NamedTuple):
    """A target and a sensor, of Stone Soup's classes."""

    motion: object
    sensor: object
    prior: GaussianState


def tutorial() -> Scene:
    """Nearly constant velocity, one radar: the tutorial on particle filters."""
    motion = CombinedLinearGaussianTransitionModel([ConstantVelocity(0.05), ConstantVelocity(0.05)])
    noise, place = np.diag([np.radians(5) ** 2, 1.0]), StateVector([[50.0], [0.0]])
    sensor = CartesianToBearingRange(4, (0, 2), noise, translation_offset=place)
    return Scene(motion, sensor, GaussianState([0, 1, 0, 1], np.diag([1.5, 0.5, 1.5, 0.5]), START))


def turn() -> Scene:
    """Return a target that turns at an unknown rate, and one radar."""
    noise, place = np.diag([np.radians(1) ** 2, 4.0]), StateVector([[-40.0], [30.0]])
    sensor = CartesianToBearingRange(5, (0, 2), noise, translation_offset=place)
    spread = np.diag([9.0, 1.0, 9.0, 1.0, 0.01])
    return Scene(
        ConstantTurn([0.1, 0.1], 1e-4), sensor, GaussianState([0, 3, 0, 0, 0.1], spread, START)
    )


def bearing() -> Scene:
    """Nearly constant velocity, bearings alone, of a target that passes by."""
    motion = CombinedLinearGaussianTransitionModel([ConstantVelocity(0.01), ConstantVelocity(0.01)])
    sensor = Cartesian2DToBearing(4, (0, 2), np.array([[np.radians(1) ** 2]]))
    return Scene(
        motion, sensor, GaussianState([-10, 1, 8, 0], np.diag([4.0, 0.1, 4.0, 0.1]), START)
    )


SCENES = {
    "tutorial: velocity, bearing and range, d = 4": tutorial,
    "unknown turn, bearing and range, d = 5": turn,
    "velocity, bearing alone, d = 4": bearing,
}


def simulated(scene: Scene, seed: int) -> tuple[np.ndarray, list[Detection]]:
    """Return a true path (T, d), and the detections on it."""
    rng = np.random.RandomState(seed)  # what Stone Soup takes
    place = rng.multivariate_normal(scene.prior.mean.ravel(), scene.prior.covar)
    state, path, detections = State(StateVector(place), START), [], []
    for _ in range(STEPS):
        moved = scene.motion.function(state, noise=True, random_state=rng, time_interval=SECOND)
        state = State(moved, state.timestamp + SECOND)
        path.append(np.ravel(state.state_vector))
        z = scene.sensor.function(state, noise=True, random_state=rng)
        detections.append(Detection(z, state.timestamp, measurement_model=scene.sensor))
    return np.array(path), detections


def drawn(scene: Scene, k: int) -> ParticleState:
    """Particles of the prior as the tutorial draws them."""
    np.random.seed(k)  # noqa: NPY002  Stone Soup's generator
    x = np.random.multivariate_normal(scene.prior.mean.ravel(), scene.prior.covar, N)  # noqa: NPY002
    return ParticleState(StateVectors(x.T), weight=np.full(N, 1 / N), timestamp=START)


def loop(
    scene: Scene, proposal, resampler, look: bool, prior: ParticleState, detections: list
) -> np.ndarray:
    """Means of Stone Soup's filter, by the tutorial's loop."""
    predictor = ParticlePredictor(scene.motion, proposal=proposal)
    updater = ParticleUpdater(scene.sensor, resampler)
    means = []
    for detection in detections:
        seen = {"measurement": detection} if look else {}
        prediction = predictor.predict(prior, timestamp=detection.timestamp, **seen)
        prior = updater.update(SingleHypothesis(prediction, detection))
        means.append(np.ravel(prior.mean))
    return np.array(means, dtype=float)


def with_parts(
    scene: Scene, runs: list, parts: Callable[[], tuple], look: bool, herded: bool, k: int
) -> np.ndarray:
    """Run k with parts that are made anew, from particles that are drawn, or herded by the proposal."""
    proposal, resampler = parts()
    prior = proposal.initial(scene.prior, N) if herded else drawn(scene, k)
    return loop(scene, proposal, resampler, look, prior, runs[k][1])


def ours(scene: Scene, runs: list, k: int) -> np.ndarray:
    """Our own filter on the converted models."""
    model = from_stonesoup(scene.motion, prior=scene.prior)
    pf = hf.make_filter("auto", model, n_particles=N, rng=k)
    return pf.run(readings(runs[k][1]), start=START).means


def filters_of(scene: Scene, runs: list) -> dict[str, Callable[[int], np.ndarray]]:
    """Name -> means of run k; the library's own filter first."""
    kh, kernels = hf.KernelHerding(), hf.KernelDensityFit()

    def placed(proposal=None):
        return HerdfilterProposal(scene.motion, proposal=proposal)

    made = {
        "Stone Soup, systematic": (lambda: (None, SystematicResampler()), False, False),
        "Stone Soup, ESS": (lambda: (None, ESSResampler()), False, False),
        "its resampler herded": (
            lambda: (None, HerdfilterResampler(hf.MixtureResampling(kernels, kh))),
            False,
            False,
        ),
        "HerdedProposal, not looking": (
            lambda: (placed(hf.HerdedProposal(kh)), None),
            False,
            False,
        ),
        "AutomaticProposal, three lines": (lambda: (placed(), ESSResampler()), True, False),
        "AutomaticProposal, herded prior": (lambda: (placed(), None), True, True),
    }
    filters = {name: partial(with_parts, scene, runs, *parts) for name, parts in made.items()}
    return filters | {"ParticleFilter, converted models": partial(ours, scene, runs)}


def reference(scene: Scene, detections: list, k: int) -> Reference:
    """Return the posterior of many particles."""
    model = from_stonesoup(scene.motion, prior=scene.prior)
    found = hf.make_filter("sqmc", model, n_particles=MANY, rng=k).run(
        readings(detections), start=START
    )
    return Reference(found.means, np.sqrt(np.diagonal(found.covariances, axis1=1, axis2=2)))


def measured(args) -> list[dict[str, object]]:
    """Rows of all scenes; `to_truth` is the error to the true path, in the same standard deviations of the posterior."""
    rows: list[dict[str, object]] = []
    for label, make in SCENES.items():
        scene = make()
        runs = [simulated(scene, 1_000_000 + args.seed + k) for k in range(args.runs)]
        references = [reference(scene, detections, k) for k, (_, detections) in enumerate(runs)]
        found: dict[tuple[str, int], np.ndarray] = {}

        def kept(name, function, k, found=found):
            found[name, k] = function(k)
            return found[name, k]

        filters = {name: partial(kept, name, own) for name, own in filters_of(scene, runs).items()}
        for row in beside("stonesoup", label, N, filters, references):
            away = [
                (found[row["filter"], k] - path) / references[k].sds
                for k, (path, _) in enumerate(runs)
            ]
            rows.append(row | {"to_truth": np.median([np.sqrt(np.mean(one**2)) for one in away])})
    return rows
