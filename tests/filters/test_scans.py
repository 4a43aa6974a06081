"""Scans of detections: the exact posterior by enumeration, and the model alone where nothing is left open."""

import numpy as np
import pytest
from helpers import EYE, assert_same, cases, on_a_line, refusal

import herdfilter as hf

LINE = on_a_line(R=0.04, variance=4.0)
PLANE = hf.models.LinearGaussian(
    [[1.0, 1.0], [0.0, 1.0]], EYE, np.diag([0.2, 0.1]), np.diag([0.5, 0.3]), [0.0, 1.0], EYE
)
P = 0.8
KAPPA = 0.3
SCANS = [[[0.3], [2.5]], [], [[-1.0], [1.2], [6.0]], [[1.0]]]


def wavy(x):
    """Detection probability that changes slowly beside the spread of the state, and is nearly 0 at places."""
    return 0.5 + 0.49 * np.sin(0.4 * x[:, 0])


def patchy(z):
    """Clutter density by place."""
    return 0.3 + 0.25 * np.cos(z[:, 0])


def integrated(scans, detected=lambda x: P, clutter=lambda z: KAPPA):
    """Posterior mean and variance at the last step, and the log-likelihood, by sums over a fine grid."""
    x = np.linspace(-25, 25, 2001)
    F, H, Q, R = (matrix[0, 0] for matrix in (LINE.F, LINE.H, LINE.Q, LINE.R))
    density = np.exp(-0.5 * (x - LINE.initial.means[0, 0]) ** 2 / LINE.initial.covariances[0, 0, 0])
    move = np.exp(-0.5 * (x[:, None] - F * x) ** 2 / Q)
    move = move / move.sum(axis=0)
    density = density / density.sum()
    log = 0.0
    for scan in scans:
        p = detected(x[:, None])
        likelihood = 1 - p + 0 * x
        for (z,) in scan:
            g = np.exp(-0.5 * (z - H * x) ** 2 / R) / np.sqrt(2 * np.pi * R)
            likelihood = likelihood + p * g / clutter(np.array([[z]]))
        density = likelihood * (move @ density)
        log += np.log(density.sum())
        density /= density.sum()
    mean = density @ x
    return mean, density @ (x - mean) ** 2, log


def assert_posterior(result, exact, within):
    """Compare the last step with an exact mean, variance and log-likelihood."""
    mean, variance, log_likelihood = exact
    assert result.means[-1, 0] == pytest.approx(mean, abs=within * np.sqrt(variance))
    assert result.covariances[-1, 0, 0] == pytest.approx(variance, rel=2 * within)
    assert result.log_likelihood == pytest.approx(log_likelihood, abs=2 * within)


@cases("name", "ukf", "mkf")
def test_a_scan_without_a_target_that_is_detected_for_certain_is_named(name):
    online = hf.make_filter(name, hf.models.WithClutter(LINE, 1.0, KAPPA), 20)
    online.predict()
    with refusal(
        r"z: expected a scan with a detection of the target, .* got \[\] at step 1; give the model"
    ):
        online.update([])
    assert online.update([[0.5]]).outcome.value == "updated"


@cases("name", "bootstrap", "auto", "guided", "ukf", "mkf")
def test_without_clutter_and_misses_it_is_the_model_alone(name):
    z = np.random.default_rng(3).normal(size=(6, 2))
    alone = hf.make_filter(name, PLANE, 30, rng=5).run(z)
    scans = hf.make_filter(name, hf.models.WithClutter(PLANE, 1.0, 0.0), 30, rng=5).run(z[:, None])
    assert_same(scans, alone, "means", "covariances")
    assert scans.log_likelihood == alone.log_likelihood


@cases("name", "auto", "ukf")
def test_no_scan_is_no_news_and_an_empty_scan_is(name):
    pf = hf.make_filter(name, hf.models.WithClutter(PLANE, P, KAPPA), 40, rng=1)
    pf.predict()
    assert pf.update(None).outcome is hf.filters.Outcome.MISSING
    assert pf.log_likelihood == 0.0
    pf.update([])
    assert pf.log_likelihood == pytest.approx(np.log(1 - P))


def test_what_is_never_missed_was_not_missed():
    pf = hf.make_filter("auto", hf.models.WithClutter(PLANE, 1.0, 0.0), 40, rng=1)
    pf.predict()
    with refusal("step 1", hf.DegenerateWeightsError):
        pf.update([])


@cases(
    "name n within varying",
    ("mkf", 400, 1e-9, ()),
    ("auto", 400, 0.01, ()),
    ("ranked", 400, 0.02, ()),
    ("guided", 3000, 0.05, ()),
    ("bootstrap", 10000, 0.08, ()),
    ("auto", 400, 0.03, (wavy, patchy)),
    ("ranked", 400, 0.03, (wavy, patchy)),
    ("guided", 3000, 0.05, (wavy, patchy)),
)
def test_the_posterior_is_that_of_sums_over_a_grid(name, n, within, varying):
    """Also where detection and clutter depend on state and place: the answer is another one than with constants."""
    exact = integrated(SCANS, *varying)
    model = hf.models.WithClutter(LINE, *(varying or (P, KAPPA)))
    assert_posterior(hf.make_filter(name, model, n, rng=1).run(SCANS), exact, within)
    assert not varying or abs(exact[0] - integrated(SCANS)[0]) > 0.2 * np.sqrt(exact[1])


@cases("name", "ukf", "ekf", "ckf", "mkf")
def test_of_one_scan_gaussians_have_the_exact_moments(name):
    """Association by probability (Bar-Shalom and Tse 1975); of a linear function all rules take the exact expectation."""
    for scan in SCANS:
        exact = integrated([scan])
        for p in (P, lambda x: P + 0.02 * x[:, 0]):  # the predicted mean is 0
            result = hf.make_filter(name, hf.models.WithClutter(LINE, p, KAPPA), 20).run([scan])
            assert_posterior(result, exact, 1e-5)


@cases("detection", (), (wavy, patchy), ids=["numbers", "functions of state and place"])
def test_a_grid_takes_scans(detection):
    result = hf.GridFilter(
        hf.models.WithClutter(LINE, *(detection or (P, KAPPA))), -25, 25, 800
    ).run(SCANS)
    assert_posterior(result, integrated(SCANS, *detection), 1e-5)


def test_a_detection_where_no_target_is_detected_explains_nothing():
    """On the right a target is never missed, on the left never detected; all that is predicted is on the right."""
    walk = on_a_line(R=0.01, mean=5.0, variance=0.01)
    model = hf.models.WithClutter(walk, lambda x: (x[:, 0] > 0).astype(float), 0.01)
    pf = hf.ParticleFilter(model, 100, hf.GuidedProposal(), rng=0)
    pf.predict()
    with refusal("step 1: the likelihood vanishes at all 100 particles", hf.DegenerateWeightsError):
        pf.update([[-5.0]])
    assert pf.update([[5.0]]).outcome is hf.Outcome.UPDATED
