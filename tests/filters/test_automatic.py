"""The proposal that decides between one Gaussian and the particles themselves."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import assert_same, model_of, normal

import herdfilter as hf
from herdfilter.filters import Particles, Transition
from herdfilter.filters.proposals.balanced import balanced_noise
from herdfilter.filters.proposals.gaussianity import Gaussianity
from herdfilter.filters.proposals.lookahead import Ancestors
from herdfilter.study.scenario import load_scenario


def weighted(x, weights=None):
    weights = np.full(len(x), 1 / len(x)) if weights is None else weights
    return Particles(x, np.log(weights))


def ways(monkeypatch):
    taken = []

    def noted(part, name, label):
        method = getattr(part, name)
        if isinstance(part.__dict__[name], classmethod):
            monkeypatch.setattr(part, name, lambda *args: taken.append(label) or method(*args))
        else:
            monkeypatch.setattr(part, name, lambda self, *args: taken.append(label) or method(self, *args))

    noted(hf.RankedProposal, "propose", "ranked")
    noted(Ancestors, "of", "ranked")
    noted(Ancestors, "kernels", "kernels")
    noted(hf.HerdedProposal, "propose", "quantiles")
    noted(hf.KalmanMixtureProposal, "propose", "guided quantiles")
    return taken


@pytest.mark.parametrize("n", [100, 2000])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_draws_of_a_gaussian_are_hardly_ever_told_from_it_and_other_shapes_are_once_there_are_enough(dim, n):
    """Of 40 samples each, in any units; a skewed one, two modes, and a bent one whose every line is symmetric."""
    rng = np.random.default_rng(dim)
    units = 10.0 ** np.arange(dim)

    def told(shape):
        samples = (shape(rng.standard_normal((n, dim))) * units for _ in range(40))
        return np.mean([not Gaussianity.of(weighted(x), ()).gaussian for x in samples])

    def skewed(z):
        return np.exp(z)

    def two_modes(z):
        return z + np.sign(rng.standard_normal((len(z), 1))) * 4.0 / np.sqrt(dim)

    def bent(z):
        return z + (0.5 * (z[:, :1] ** 2 - 1)) * (np.arange(dim) == dim - 1)

    assert told(lambda z: z) < 0.4
    assert told(skewed) > 0.9
    if n > 100:
        assert told(two_modes) == 1.0
        assert told(bent) == 1.0


def test_weights_count_and_angles_are_taken_about_their_mean():
    rng = np.random.default_rng(2)
    heading = np.pi + 0.1 * rng.standard_normal((4000, 1))  # on both sides of the seam
    heading = np.mod(heading + np.pi, 2 * np.pi) - np.pi
    assert not Gaussianity.of(weighted(heading), ()).gaussian
    assert Gaussianity.of(weighted(heading), (0,)).gaussian
    x = rng.uniform(-3, 3, (4000, 1))  # draws of a uniform distribution, weighted to be those of a Gaussian
    weights = np.exp(-0.5 * x[:, 0] ** 2)
    assert not Gaussianity.of(weighted(x), ()).gaussian
    assert Gaussianity.of(weighted(x[:400], weights[:400] / weights[:400].sum()), ()).gaussian


@pytest.mark.parametrize("n", [20, 50, 100, 128, 400])
def test_a_linear_gaussian_model_keeps_one_gaussian_and_is_filtered_exactly(monkeypatch, n):
    model = hf.models.linear_chain(3)
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
    taken, shares = ways(monkeypatch), []

    bent = model_of(
        normal([0.0, 0.0]),
        transition_mean=lambda x, dt, control, step: 0.9 * x + 0.04 * x[:, ::-1] ** 2,
        transition_covariance=lambda dt, step: 0.3 * np.eye(2),
        log_likelihood=lambda z, x, step: -0.5 * (z[0] - x[:, 0]) ** 2,
    )
    for n in (20, 2000):
        taken.clear()
        hf.ParticleFilter(bent, n, hf.AutomaticProposal()).run([None] * 10)
        shares.append(len(taken) / 10)
    assert shares[0] < 0.5 < shares[1]
    for model, way in (
        (hf.models.UNGM(), "guided quantiles"),
        (hf.models.StochasticVolatility(), "quantiles"),
        (hf.models.Lorenz63(), "ranked"),
        (hf.models.BearingsOnly(), "kernels"),
    ):
        taken.clear()
        _, z = hf.simulate(model, 30, rng=1)
        hf.ParticleFilter(model, 100, hf.AutomaticProposal()).run(z)
        assert way in taken


def counts(**transition):
    return model_of(normal([0.0]), log_likelihood=lambda z, x, step: z[0] * x[:, 0] - np.exp(x[:, 0]), **transition)


COUNTS = {
    "other noise": counts(
        noise_dim=1, transition=lambda x, noise, dt, control, step: 0.9 * x + 0.2 * noise + 0.01 * noise**3
    ),
    "additive": counts(
        transition_mean=lambda x, dt, control, step: 0.9 * x, transition_covariance=lambda dt, step: np.array([[0.05]])
    ),
}


@pytest.mark.parametrize("model", COUNTS.values(), ids=COUNTS)
def test_models_without_a_gaussian_observation_are_served(model):
    """Over four series of counts: at most half of the error of as many random particles."""
    errors = {"herded": [], "bootstrap": []}
    for seed in range(4):
        z = np.random.default_rng(seed).poisson(2.0, (15, 1)).astype(float)
        exact = hf.ParticleFilter(model, 20_000, rng=0).run(z)
        for name, proposal in (("herded", hf.AutomaticProposal()), ("bootstrap", None)):
            result = hf.ParticleFilter(model, 100, proposal, rng=1).run(z)
            errors[name].append(np.abs(result.means - exact.means).mean())
            assert result.log_likelihood == pytest.approx(exact.log_likelihood, abs=0.3) or name == "bootstrap"
    assert np.mean(errors["herded"]) < 0.5 * np.mean(errors["bootstrap"])


BEACONS = np.array([[-20.0, 0.0], [0.0, -25.0]])
BUOY = model_of(  # hardly moves, anywhere in a wide field; ranges to two beacons in turn
    normal([0.0, 0.0], 100.0),
    transition_mean=lambda x, dt, control, step: x,
    transition_covariance=lambda dt, step: 1e-6 * np.eye(2),
    log_likelihood=lambda z, x, step: -2.0 * (z[0] - np.linalg.norm(x - BEACONS[step % 2], axis=1)) ** 2,
)


@pytest.mark.parametrize("n", [100, 400])
def test_what_is_anywhere_is_found_where_only_a_likelihood_is_known(n):
    """Ranking alone leaves the first particle that fits, and noise is too narrow to come closer: they must be widened."""
    errors = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        place = rng.normal(0.0, 8.0, 2)
        ranges = [np.linalg.norm(place - BEACONS[k % 2]) for k in range(1, 41)]
        z = np.array(ranges)[:, None] + 0.5 * rng.standard_normal((40, 1))
        result = hf.ParticleFilter(BUOY, n, hf.AutomaticProposal(), rng=seed).run(z)
        errors.append(np.linalg.norm(result.means[-1] - place))
    assert np.median(errors) < 0.4  # a single range is right to 0.5


def quickly(name, steps):
    """A scenario with a reference that is good enough to tell a filter that has lost its target."""
    reference = {"type": "large", "n": 4000, "repeats": 2}
    return dataclasses.replace(load_scenario(name), steps=steps, reference=reference)


def test_a_target_that_is_seen_by_its_bearing_alone_is_kept():
    """Noise so narrow that ranked particles alone would be dragged along by it: they are widened.

    How good one set of so few points is, is luck: errors are those of four sets. With 16 or 20 points the target is lost.
    """
    scenario = quickly("bearings_only", 24)
    table = hf.compare(scenario, ["bootstrap", "auto"], [28, 48, 64, 96], runs=5, seed=7)
    error = table.groupby("filter")["reference_error"].median()
    assert error["auto"] < 0.6 * error["bootstrap"]


def test_even_the_worst_run_on_landmarks_is_better_than_half_of_bootstraps():
    """A range and a bearing to one landmark, and noise that is narrow beside what is not known."""
    table = hf.compare(quickly("landmarks", 40), ["bootstrap", "auto"], [20], runs=4, seed=7)
    error = table.groupby("filter")["reference_error"]
    assert error.max()["auto"] < 0.5 * error.median()["bootstrap"]


def edge(low, high, holds, times=40):
    assert holds(low)
    assert not holds(high)
    for _ in range(times):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def two_places(n):
    rng = np.random.default_rng(n)
    return weighted(np.where(np.arange(n) % 3, 2.0, -2.0)[:, None] + 0.3 * rng.standard_normal((n, 1)))


@pytest.mark.parametrize("n", [50, 400])
def test_quantiles_are_guided_from_where_their_effective_sample_size_would_be_the_root_of_their_number(monkeypatch, n):
    """The more precise the observation, the fewer quantiles it leaves; both ways near the bound, and far beyond it."""
    particles, rng = two_places(n), np.random.default_rng(0)
    taken = ways(monkeypatch)

    def model(sd):
        return hf.models.LinearGaussian([[1.0]], [[1.0]], [[0.1]], [[sd**2]], [0.0], [[1.0]])

    def quantiles(precision):
        taken.clear()
        seen = hf.filters.Observation.read(model(1 / precision), [3.2], 1)
        moved = hf.AutomaticProposal().propose(Transition(seen.model), particles, rng, seen)
        assert np.isfinite(moved.normalised()[1])
        return "guided quantiles" not in taken

    def left(precision):
        mixture = Transition(model(1.0)).predictive(particles.x, particles.weights)
        x = hf.QuantileSampling().sample(mixture, n).x[:, 0]
        weights = np.exp(-0.5 * (precision * (x - 3.2)) ** 2)
        return weights.sum() ** 2 / (weights**2).sum()

    few, many = edge(1.0, 1000.0, quantiles)
    assert left(few) >= np.sqrt(n) * (1 - 1e-6)
    assert left(many) <= np.sqrt(n) * (1 + 1e-6)
    assert not quantiles(1e6)  # at all quantiles the likelihood vanishes


@pytest.mark.parametrize("n", [50, 400])
def test_one_gaussian_is_kept_as_long_as_its_weights_are_as_even_as_chance_allows(n):
    """Of an observation that bends: n times the chi-square distance of the weights from even ones is at most 1."""

    def guided(bend):
        model = hf.models.from_functions(
            f=lambda x: x, h=lambda x: x + bend * x**2, Q=[[0.2]], R=[[0.5]], initial_mean=[0.0], initial_covariance=[[1.0]]
        )
        seen = hf.filters.Observation.read(model, [0.5], 1)
        z = balanced_noise(n, 1, 0)
        return hf.AutomaticProposal().propose(Transition(model), Particles.equal(z), np.random.default_rng(0), seen)

    def distance(moved):
        weights = moved.normalised()[0].weights
        return n * (n * (weights**2).sum() - 1)

    def kept(bend):
        return distance(guided(bend)) <= 1

    few, many = edge(0.0, 0.5, kept, times=20)  # to 5e-7, above what rounding makes of the bound
    assert distance(guided(few)) > 0.9
    assert distance(guided(many)) > 2 or distance(guided(many)) < 0.5  # another way


@pytest.mark.parametrize("n", [50, 400])
def test_one_gaussian_moves_as_long_as_what_is_not_linear_would_be_chance(monkeypatch, n):
    """Nothing observed: n times the share of variance that no linear function of the noise explains is at most 1."""
    taken = ways(monkeypatch)
    particles = Particles.equal(balanced_noise(n, 2, 1))

    def moved(bend):
        model = hf.models.from_functions(
            f=lambda x: x + bend * x[:, ::-1] ** 2,
            h=lambda x: x,
            Q=0.5 * np.eye(2),
            R=np.eye(2),
            initial_mean=[0.0, 0.0],
            initial_covariance=np.eye(2),
        )
        return hf.AutomaticProposal().propose(Transition(model), particles, np.random.default_rng(0)).x

    def kept(bend):
        taken.clear()
        moved(bend)
        return "ranked" not in taken

    few, _ = edge(0.0, 1.0, kept)
    noise = np.column_stack([np.ones(n), balanced_noise(n, 4, 1)])

    def share(x):
        rest = x - noise @ np.linalg.lstsq(noise, x, rcond=None)[0]
        return n * (rest.var(axis=0) / x.var(axis=0)).max()

    assert share(moved(few)) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("n", [60, 300])
def test_ranked_particles_are_widened_where_the_noise_is_too_narrow_to_part_them(monkeypatch, n):
    """Less than 1/n of the predicted variance in some direction; by its moments or by a likelihood alone."""
    taken = ways(monkeypatch)
    rng = np.random.default_rng(n)
    x = np.column_stack([rng.exponential(size=n), rng.standard_normal(n)])
    x = (x - x.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T, ddof=0))).T  # covariance I
    particles = weighted(x)
    width = Gaussianity.of(particles, ()).width
    assert 0 < width < 1
    for unguided in (False, True):

        def narrow(variance, unguided=unguided):
            model = hf.models.LinearGaussian(
                np.eye(2), np.eye(2), np.diag([0.9, variance]), np.eye(2), [0.0, 0.0], np.eye(2)
            )
            taken.clear()
            reader = SimpleNamespace(log_likelihood=model.log_likelihood) if unguided else model
            seen = hf.filters.Observation.read(reader, [2.0, 0.0], 1)
            hf.AutomaticProposal().propose(Transition(model), particles, np.random.default_rng(0), seen)
            return "kernels" in taken

        few, _ = edge(1e-6, 0.5, narrow)
        assert few / (1 + few) == pytest.approx(1 / n, rel=1e-4)


@pytest.mark.parametrize(("n", "shape"), [(200, "Gaussian"), (2000, "skewed")])
def test_particles_look_ahead_once_less_than_half_of_them_would_count(monkeypatch, n, shape):
    """The share that counts without a look ahead is drawn; where the observation says little one Gaussian does it."""
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, 2)) if shape == "Gaussian" else rng.exponential(size=(n, 2)) - 1
    particles = Particles.equal(x)
    ways = []
    for name in ("_blind", "_guided"):
        method = getattr(hf.RankedProposal, name)
        monkeypatch.setattr(hf.RankedProposal, name, lambda self, *args, m=method, n=name: ways.append(n) or m(self, *args))

    def first(precision):
        model = hf.models.from_functions(
            f=lambda x: x + 0.2 * x**2,
            h=lambda x: x[:, :1],
            Q=np.eye(2),
            R=[[precision**-2]],
            initial_mean=[0.0, 0.0],
            initial_covariance=np.eye(2),
        )
        ways.clear()
        seen = hf.filters.Observation.read(model, [0.0], 1)
        hf.AutomaticProposal().propose(Transition(model), particles, np.random.default_rng(0), seen)
        moved = x + 0.2 * x**2 + rng.standard_normal((n, 2))
        weights = np.exp(-0.5 * (precision * moved[:, 0]) ** 2)
        return next(iter(ways), None), weights.mean() ** 2 / (weights**2).mean()

    found = [first(precision) for precision in np.geomspace(0.05, 20, 25)]
    assert {way for way, share in found if share > 0.65} - {None} == {"_blind"}
    assert {way for way, share in found if share < 0.4} == {"_guided"}
