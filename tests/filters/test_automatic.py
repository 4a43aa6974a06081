"""The proposal that decides between one Gaussian and the particles themselves."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import EYE, assert_same, cases, linear, model_of, normal
from numpy.random import default_rng

import herdfilter as hf
from herdfilter.filters import Particles, Transition
from herdfilter.filters.proposals.gaussianity import Gaussianity
from herdfilter.filters.proposals.lookahead import Ancestors
from herdfilter.samplers.balanced import balanced_noise
from herdfilter.study.scenario import load_scenario


def ways(monkeypatch):
    taken = []

    def noted(part, name, label):
        method = getattr(part, name)
        monkeypatch.setattr(part, name, lambda *args: taken.append(label) or method(*args))

    noted(hf.RankedProposal, "propose", "ranked")
    noted(Ancestors, "of", "ranked")
    noted(Ancestors, "kernels", "kernels")
    noted(hf.HerdedProposal, "propose", "quantiles")
    noted(hf.KalmanMixtureProposal, "propose", "guided quantiles")
    return taken


def test_weights_count_and_angles_are_taken_about_their_mean():
    rng = default_rng(2)
    # on both sides of the seam
    heading = np.mod(2 * np.pi + 0.1 * rng.standard_normal((4000, 1)), 2 * np.pi) - np.pi
    assert [Gaussianity(Particles.equal(heading), angles).gaussian for angles in ((), (0,))] == [
        False,
        True,
    ]
    # draws of a uniform distribution, weighted to be those of a Gaussian
    x = rng.uniform(-3, 3, (400, 1))
    weights = np.exp(-0.5 * x[:, 0] ** 2)
    assert not Gaussianity(Particles.equal(np.vstack([x] * 10)), ()).gaussian
    assert Gaussianity(Particles.weighted(x, weights / weights.sum()), ()).gaussian


@cases("d n", (3, 20), (1, 100), (4, 128), (2, 300), (4, 2500))
def test_a_linear_gaussian_model_keeps_one_gaussian_and_is_filtered_exactly(monkeypatch, d, n):
    model = linear(d, max(1, d // 2), seed=d)
    taken = ways(monkeypatch)
    _, z = hf.simulate(model, 40, rng=1)
    z[10:20] = np.nan
    exact = hf.UnscentedKalmanFilter(model).run(z)
    found = hf.ParticleFilter(model, n, hf.AutomaticProposal()).run(z)
    assert not taken
    assert_same(found, exact, "means", "covariances", atol=1e-8)
    assert found.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-6)


def test_steps_that_are_not_linear_are_left_to_the_particles(monkeypatch):
    """Also where nothing is observed; with more particles, a slight bend is enough."""
    taken = ways(monkeypatch)
    shares = []
    eye = EYE
    bent = hf.models.from_functions(
        lambda x: 0.9 * x + 0.04 * x[:, ::-1] ** 2, lambda x: x, 0.3 * eye, eye, [0.0, 0.0], eye
    )
    for n in (20, 2000):
        taken.clear()
        hf.ParticleFilter(bent, n, hf.AutomaticProposal()).run([None] * 10)
        shares.append(len(taken) / 10)
    assert shares[0] < 0.5 < shares[1]


BEACONS = np.array([[-20.0, 0.0], [0.0, -25.0]])
BUOY = model_of(  # hardly moves, anywhere in a wide field; ranges to two beacons in turn
    normal([0.0, 0.0], 100.0),
    transition_mean=lambda x, dt, control, step: x,
    transition_covariance=lambda dt, step: 1e-6 * EYE,
    log_likelihood=lambda z, x, step: (
        -2.0 * (z[0] - np.linalg.norm(x - BEACONS[step % 2], axis=1)) ** 2
    ),
)


def test_what_is_anywhere_is_found_where_only_a_likelihood_is_known():
    """Ranking alone leaves the first particle that fits, and noise is too narrow to come closer: they must be widened."""
    errors = []
    for seed in range(8):
        rng = default_rng(seed)
        place = rng.normal(0.0, 8.0, 2)
        ranges = [np.linalg.norm(place - BEACONS[k % 2]) for k in range(1, 41)]
        z = np.array(ranges)[:, None] + 0.5 * rng.standard_normal((40, 1))
        result = hf.ParticleFilter(BUOY, 100, hf.AutomaticProposal(), rng=seed).run(z)
        errors.append(np.linalg.norm(result.means[-1] - place))
    assert np.median(errors) < 0.4  # a single range is right to 0.5


@cases("n", 100, 300)
def test_a_step_asks_for_as_many_states_as_twice_that_of_a_bootstrap_filter(n):
    """Where particles look ahead, and noise separates copies: each moves and is observed once, and twice as many in all."""
    asked = []
    eye = EYE
    model = hf.models.from_functions(
        lambda x: asked.append(len(x)) or 3 * np.sin(x),
        lambda x: asked.append(len(x)) or x**2,
        *(0.3 * eye, eye, [1.0, 1.0], eye),
    )
    pf = hf.ParticleFilter(model, n, hf.AutomaticProposal())
    for z in hf.simulate(model, 20, rng=1)[1]:
        asked.clear()
        pf.predict()
        pf.update(z)
        assert 2 * n <= sum(asked) <= 4 * n


def quickly(name, steps):
    """A scenario with a reference that is good enough to tell a filter that has lost its target."""
    reference = {"type": "large", "n": 2000, "repeats": 2}
    return dataclasses.replace(load_scenario(name), steps=steps, reference=reference)


@pytest.mark.slow
def test_a_target_that_is_seen_by_its_bearing_alone_is_kept():
    """Noise so narrow that ranked particles alone would be dragged along by it: they are widened.

    How good one set of so few points is, is luck: errors are those of four sets. With 16 or 20 points the target is lost.
    """
    scenario = quickly("bearings_only", 24)
    table = hf.compare(scenario, ["bootstrap", "auto"], [28, 48, 64, 96], runs=5, seed=7)
    error = table.groupby("filter")["reference_error"].median()
    assert error["auto"] < 0.6 * error["bootstrap"]


def edge(low, high, holds, times=40):
    assert holds(low)
    assert not holds(high)
    for _ in range(times):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


@cases("n", 50, 400)  # of more than a hundred, so many are looked at before
def test_one_gaussian_is_kept_as_long_as_its_weights_are_as_even_as_chance_allows(n):
    """Of an observation that bends: n times the chi-square distance of the weights from even ones is at most 1."""

    def distance(bend):
        model = hf.models.from_functions(
            lambda x: x, lambda x: x + bend * x**2, [[0.2]], [[0.5]], [0.0], [[1.0]]
        )
        seen = hf.filters.Observation.read(model, [0.5], 1)
        particles = Particles.equal(balanced_noise(n, 1, 0))
        moved = hf.AutomaticProposal().propose(Transition(model), particles, default_rng(0), seen)
        return n * (n * (moved.normalised()[0].weights ** 2).sum() - 1)

    # to 5e-7, above what rounding makes of the bound
    few, many = edge(0.0, 0.5, lambda bend: distance(bend) <= 1, times=20)
    assert distance(few) > 0.9
    assert not 0.5 <= distance(many) <= 2  # another way


def test_one_gaussian_moves_as_long_as_what_is_not_linear_would_be_chance(monkeypatch):
    """Nothing observed: n times the share of variance that no linear function of the noise explains is at most 1."""
    taken = ways(monkeypatch)
    n = 50
    eye = EYE
    particles = Particles.equal(balanced_noise(n, 2, 1))

    def moved(bend):
        taken.clear()
        model = hf.models.from_functions(
            lambda x: x + bend * x[:, ::-1] ** 2, lambda x: x, 0.5 * eye, eye, [0.0, 0.0], eye
        )
        return hf.AutomaticProposal().propose(Transition(model), particles, default_rng(0)).x

    few, _ = edge(0.0, 1.0, lambda bend: moved(bend) is not None and "ranked" not in taken)
    x = moved(few)
    noise = np.column_stack([np.ones(n), balanced_noise(n, 4, 1)])
    rest = x - noise @ np.linalg.lstsq(noise, x, rcond=None)[0]
    assert n * (rest.var(axis=0) / x.var(axis=0)).max() == pytest.approx(1, abs=1e-3)


@cases("alone", False, True, ids=["by its moments", "by a likelihood alone"])
def test_ranked_particles_are_widened_where_the_noise_is_too_narrow_to_part_them(
    monkeypatch, alone
):
    """Less than 1/n of the predicted variance in some direction."""
    taken = ways(monkeypatch)
    n = 60
    eye = EYE
    rng = default_rng(n)
    x = np.column_stack([rng.exponential(size=n), rng.standard_normal(n)])
    # covariance I
    particles = Particles.equal(
        (x - x.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T, ddof=0))).T
    )

    def narrow(variance):
        taken.clear()
        model = hf.models.LinearGaussian(eye, eye, np.diag([0.9, variance]), eye, [0.0, 0.0], eye)
        reader = SimpleNamespace(log_likelihood=model.log_likelihood) if alone else model
        seen = hf.filters.Observation.read(reader, [2.0, 0.0], 1)
        hf.AutomaticProposal().propose(Transition(model), particles, rng, seen)
        return "kernels" in taken

    few, _ = edge(1e-6, 0.5, narrow)
    assert few / (1 + few) == pytest.approx(1 / n, rel=1e-4)
