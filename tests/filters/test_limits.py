"""States with limits: the posterior given that the state has been inside at every step, and the probability of that."""

import numpy as np
import pytest
from helpers import EYE, cases, on_a_line, refusal, refuses
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, poisson, truncnorm

import herdfilter as hf


def valve(**limits):
    """A valve between closed and open, whose flow is measured."""
    f, h = lambda x: 0.95 * x + 0.05, lambda x: 2 * x
    return hf.models.from_functions(f, h, [[0.02]], [[0.1]], [0.5], [[0.04]], **limits)


def corridor(x):
    return ((x > 0) & (x < 5)).all(axis=1) & ((x[:, 0] > 3) | (x[:, 1] < 2))


VALVE = valve(bounds=[[0, 1]])
FLOWS = [[1.2], [1.9], [2.3], None, [2.4], [1.5], [0.8], [0.1], [-0.2], [-0.5], [0.3]]
POPULATION = hf.models.from_functions(
    lambda x: x + 0.3 * x * (1 - x / 12),
    *(None, [[4.0]], None, [2.0], [[4.0]]),
    log_likelihood=lambda z, x: poisson.logpmf(z[0], np.maximum(x[:, 0], 1e-9)),
    feasible=lambda x: x[:, 0] > 0,
)
ROBOT = hf.models.from_functions(
    lambda x, control: x + control,
    lambda x: np.hypot(x[:, 0], x[:, 1]),
    *(0.09 * EYE, [[0.25]], [0.6, 1.0], 0.25 * EYE),
    feasible=corridor,
)
DRIVE = [[0.8, 0.0]] * 4 + [[0.2, 0.6]] * 5
RANGES = [[1.5], [2.4], [3.4], None, *[[4.6]] * 5]
GRID = hf.GridFilter(VALVE, -1.198, 2.198, 850)
FILTERS = [("auto", 300), ("ranked", 300), ("herded-kh", 300), ("bootstrap", 20_000)]


def test_the_grid_filter_has_no_mass_outside():
    x = np.arange(0.002, 1, 0.004)
    kernel = 0.004 * norm.pdf(x[:, None], 0.95 * x + 0.05, np.sqrt(0.02))
    mass = 0.004 * norm.pdf(x, 0.5, 0.2)
    means = []
    for z in FLOWS:
        mass = kernel @ mass * (norm.pdf(z[0], 2 * x, np.sqrt(0.1)) if z else 1)
        means.append(x @ mass / mass.sum())
    result = GRID.run(FLOWS)
    assert_allclose(result.means[:, 0], means, atol=1e-6)
    assert result.log_likelihood == pytest.approx(np.log(mass.sum()), abs=1e-6)


@cases(
    "grid series controls filters",
    (GRID, FLOWS, None, [*FILTERS, ("ukf", 0)]),
    (hf.GridFilter(POPULATION, -19.995, 59.985, 4000), [[1], [0], None, [2], [0], [3]], None, FILTERS),
    (hf.GridFilter(ROBOT, -2.975, 7.975, 220), RANGES, DRIVE, FILTERS),
    ids=["valve", "population", "robot"],
)  # fmt: skip
def test_other_filters_come_close_to_the_grid(grid, series, controls, filters):
    exact = grid.run(series, controls=controls)
    sds = np.sqrt(np.diagonal(exact.covariances, axis1=1, axis2=2))
    for name, n in filters:
        result = hf.make_filter(name, grid.model, n, 1).run(series, controls=controls)
        assert abs((result.means - exact.means) / sds).max() < 0.1, name
        assert abs(result.log_likelihood - exact.log_likelihood) < 0.15, name


@cases("name", "bootstrap", "ranked", "auto", "herded-kh", "guided", "sqmc", "auxiliary")
def test_limits_that_are_never_touched_change_no_bit(name):
    free, limited = on_a_line(F=0.9), on_a_line(F=0.9)
    object.__setattr__(limited, "bounds", [[-1e3, 1e3]])
    both = [hf.make_filter(name, m, 50, 3).run([1.2, None, 8.0]) for m in (free, limited)]
    assert_array_equal(both[0].means, both[1].means)
    assert both[0].log_likelihood == both[1].log_likelihood


@cases("name", "ekf", "ukf", "ckf")
def test_a_kalman_filter_has_the_moments_of_the_truncated_gaussian(name):
    """Exact for one bound of a linear model, as is the likelihood."""
    line = lambda x: x, lambda x: x[:, 1:], EYE, [[0.5]], [0.5, -1], [[2, 0.8], [0.8, 1]]
    free, kf = (
        hf.make_filter(name, hf.models.from_functions(*line, bounds=bounds))
        for bounds in (None, [[1.0, np.inf], [-np.inf, np.inf]])
    )
    m = free.update([0.3]).mean[0]
    kf.update([0.3])
    sd = np.sqrt(free.covariance[0, 0])
    part = truncnorm((1 - m) / sd, np.inf, m, sd)
    along = free.covariance[0] / sd**2
    assert_allclose(kf.mean, free.mean + along * (part.mean() - m))
    assert_allclose(kf.covariance, free.covariance + (part.var() - sd**2) * np.outer(along, along))
    assert kf.log_likelihood == pytest.approx(free.log_likelihood + norm.logsf(1, m, sd))


@cases("name", "auto", "bootstrap")
def test_simulations_forecasts_and_trajectories_stay_inside(name):
    truth, z = hf.simulate(ROBOT, rng=4, controls=DRIVE)
    pf = hf.make_filter(name, ROBOT, 100, rng=0, resampling=hf.RegularisedResampling())
    result = pf.run(z, controls=DRIVE, keep_particles=True)
    ahead = pf.forecast(3, controls=[[0, 0.3]] * 3)
    drawn = hf.backward_simulation(pf, result, 50, rng=0, controls=DRIVE)
    for x in (truth, *result.particles, *ahead.particles, *drawn.x):
        assert corridor(x).all()


def test_a_state_is_within_the_limits_of_its_mode():
    modes = [valve(bounds=[[0.4, np.inf]]), valve(feasible=lambda x: x[0] < 0.5, vectorised=False)]
    jumping = hf.models.JumpMarkov(modes, [[0.9, 0.1], [0.1, 0.9]])
    pf = hf.make_filter("auto", jumping, 100)
    pf.run([0.9, 1.1, None])
    first = pf._particles.modes == 0
    assert pf.particles[~first].max() < 0.5
    assert pf.particles[first].min() > 0.4


@cases("name", "auto", "bootstrap", "ukf")
def test_a_saved_filter_goes_on_with_the_probability_of_the_limits(name):
    first, second = (hf.make_filter(name, VALVE, 50, rng=seed) for seed in (0, 1))
    first.run(FLOWS[:3])
    first.predict()
    first.predict()
    second.restore(first.state)
    assert first.update([1.7]).log_likelihood == second.update([1.7]).log_likelihood


test_what_ignores_limits_refuses_them = refuses(
    lambda kind, model: kind(model),
    (TypeError, hf.UnscentedKalmanFilter, POPULATION, "^model: Uns.* needs a state without limits, got FunctionModel with"),
    (TypeError, lambda m: hf.rts_smoother(hf.UnscentedKalmanFilter(m), None), VALVE, "^model: rts.* needs a state without"),
    (lambda limits: hf.simulate(valve(bounds=limits), 3), [[50, 60]], "^model: expected .* limits in 10000 draws at step 0"),
    (lambda f: hf.simulate(valve(feasible=f), 3), lambda x: x, "^feasible: expected 1 truth values"),
)  # fmt: skip


@cases("name", "bootstrap", "auto", "kalman-mixture-kh")
def test_an_observation_outside_does_not_end_a_run_but_limits_that_exclude_all_do(name):
    assert hf.make_filter(name, VALVE, 100, rng=0).run([-3.0]).means > 0
    with refusal(r"^step 0: no point .* limits", hf.DegenerateWeightsError):
        hf.make_filter(name, valve(bounds=[[9, 10]]), 50, rng=0).run([1.0])
