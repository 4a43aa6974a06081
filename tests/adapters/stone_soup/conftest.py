"""The library's tutorial on particle filters: its scene and its loop."""

from datetime import datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest

START = datetime(2030, 1, 1)
SECOND = timedelta(seconds=1)


@pytest.fixture(scope="session")
def tutorial():
    """Motion, radar, prior, `detections` and the loop, `track`."""
    from stonesoup.models.measurement.nonlinear import CartesianToBearingRange
    from stonesoup.models.transition.linear import (
        CombinedLinearGaussianTransitionModel,
        ConstantVelocity,
    )
    from stonesoup.predictor.particle import ParticlePredictor
    from stonesoup.types.array import StateVector
    from stonesoup.types.detection import Detection
    from stonesoup.types.hypothesis import SingleHypothesis
    from stonesoup.types.state import GaussianState, State
    from stonesoup.updater.particle import ParticleUpdater

    motion = CombinedLinearGaussianTransitionModel([ConstantVelocity(0.05), ConstantVelocity(0.05)])
    noise = np.diag([np.radians(5) ** 2, 1.0])
    place = StateVector([[50.0], [0.0]])
    radar = CartesianToBearingRange(4, (0, 2), noise, translation_offset=place)
    prior = GaussianState([0, 1, 0, 1], np.diag([1.5, 0.5, 1.5, 0.5]), timestamp=START)

    def detections(steps=8, sensor=radar, start=START):
        rng = np.random.RandomState(3)  # what the library takes
        state = State(prior.state_vector, start)
        found = []
        for _ in range(steps):
            moved = motion.function(state, noise=True, random_state=rng, time_interval=SECOND)
            state = State(moved, state.timestamp + SECOND)
            z = sensor.function(state, noise=True, random_state=rng)
            found.append(Detection(z, state.timestamp, measurement_model=sensor))
        return found

    def track(proposal, prior, measurements, look=True, **parts):
        """Return the states after each update, and the predictions before them."""
        predictor = ParticlePredictor(motion, proposal=proposal)
        updater = ParticleUpdater(None, **parts)
        posteriors = []
        predictions = []
        for measurement in measurements:
            seen = {"measurement": measurement} if look else {}
            predictions.append(predictor.predict(prior, timestamp=measurement.timestamp, **seen))
            prior = updater.update(SingleHypothesis(predictions[-1], measurement))
            posteriors.append(prior)
        return posteriors, predictions

    return SimpleNamespace(
        motion=motion, radar=radar, prior=prior, start=START, detections=detections, track=track
    )
