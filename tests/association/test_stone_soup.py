"""Joint probabilistic data association against that of Stone Soup, which enumerates all joint hypotheses."""

from datetime import datetime

import numpy as np
import pytest

from herdfilter import association

pytest.importorskip("stonesoup", reason="the optional library Stone Soup is not installed")

START = datetime(2024, 1, 1)


def test_jpda_equals_stone_soup():
    from stonesoup.dataassociator.probability import JPDA
    from stonesoup.hypothesiser.probability import PDAHypothesiser
    from stonesoup.models.measurement.linear import LinearGaussian
    from stonesoup.models.transition.linear import RandomWalk
    from stonesoup.predictor.kalman import KalmanPredictor
    from stonesoup.types.detection import Detection
    from stonesoup.types.numeric import Probability
    from stonesoup.types.state import GaussianState
    from stonesoup.types.track import Track
    from stonesoup.updater.kalman import KalmanUpdater

    means = np.array([0.0, 1.5, 2.5])
    variances = np.array([1.0, 0.5, 2.0])
    measured = np.array([0.2, 1.2, 1.9, 4.0])
    noise = 0.3
    detected = 0.9
    clutter = 0.2
    hypothesiser = PDAHypothesiser(
        KalmanPredictor(RandomWalk(0.1)),
        KalmanUpdater(LinearGaussian(1, [0], np.array([[noise]]))),
        clutter_spatial_density=Probability(clutter),
        prob_detect=Probability(detected),
        prob_gate=Probability(1.0),
        include_all=True,
    )
    tracks = [
        Track([GaussianState([m], [[v]], timestamp=START)])
        for m, v in zip(means, variances, strict=True)
    ]
    detections = [Detection([z], timestamp=START) for z in measured]
    joint = JPDA(hypothesiser).associate(tracks, set(detections), START)
    theirs = np.zeros((3, 5))
    for t, track in enumerate(tracks):
        for hypothesis in joint[track]:
            column = 1 + detections.index(hypothesis.measurement) if hypothesis else 0
            theirs[t, column] = float(hypothesis.probability)

    spread = variances[:, None] + noise
    likelihoods = np.exp(-0.5 * (measured - means[:, None]) ** 2 / spread) / np.sqrt(
        2 * np.pi * spread
    )
    ours = association.marginals(association.ratios(likelihoods, detected, clutter))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
