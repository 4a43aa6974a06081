import dataclasses
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.study import machine, reference
from herdfilter.study.recording import Recording, record
from herdfilter.study.reference import compute_reference
from herdfilter.study.scenario import Scenario, load_scenario


@pytest.fixture
def plane():
    """Two dimensions, one of them seen."""
    return Scenario(
        name="plane",
        title="Plane",
        model={
            "type": "LinearGaussian",
            "F": [[1.0, 1.0], [0.0, 0.9]],
            "H": [[1.0, 0.5]],
            "Q": [[0.2, 0.1], [0.1, 0.3]],
            "R": [[0.7]],
            "initial_mean": [1.0, -1.0],
            "initial_covariance": [[2.0, 0.3], [0.3, 1.0]],
        },
        steps=6,
        reference={"type": "kalman"},
    )


def joint_gaussian(model, steps):
    """Mean and covariance of all states, by unrolling the recursion; shapes (T d,) and (T d, T d)."""
    d = model.dim
    mean, covariance = model.initial.mean, model.initial.covariance
    means, blocks = [], np.zeros((steps, steps, d, d))
    for i in range(steps):
        mean = model.F @ mean
        covariance = model.F @ covariance @ model.F.T + model.Q
        means.append(mean)
        block = covariance
        for j in range(i, steps):
            blocks[j, i], blocks[i, j] = block, block.T
            block = model.F @ block
    return np.concatenate(means), blocks.transpose(0, 2, 1, 3).reshape(steps * d, steps * d)


def test_kalman_reference_is_the_conditional_of_the_joint_gaussian(plane):
    model = plane.build_model()
    recording = record(plane, model, None, np.random.default_rng(3))
    recording.observations[2] = np.nan  # a missing one
    reference = compute_reference(plane, model, recording, np.random.default_rng(0))

    steps, d = recording.truth.shape
    mean, covariance = joint_gaussian(model, steps)
    H = np.kron(np.eye(steps), model.H)
    for t in range(steps):
        seen = [s for s in range(t + 1) if s != 2]
        S = H[seen] @ covariance @ H[seen].T + 0.7 * np.eye(len(seen))
        residual = recording.observations[seen, 0] - H[seen] @ mean
        expected = mean + covariance @ H[seen].T @ np.linalg.solve(S, residual)
        np.testing.assert_allclose(reference.means[t], expected[t * d : (t + 1) * d], atol=1e-10)
    evidence = -0.5 * (residual @ np.linalg.solve(S, residual) + np.linalg.slogdet(2 * np.pi * S)[1])
    assert reference.log_likelihood == pytest.approx(evidence)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"type": "kalman"}, "expected a linear model"),
        ({"type": "grid", "lower": -1.0, "upper": 1.0, "points": 50}, "expected a grid that resolves"),
        ({"type": "large", "n": 10**14}, "n: .* GB of memory"),
        ({"type": "large", "n": 50, "filter": "ukf"}, "filter: expected a particle filter that draws at random"),
        ({"type": "large", "n": 5, "repeats": 1.5}, r"repeats: expected an integer of at least 1, got 1.5"),
        ({"type": "large", "n": 5, "filter": "guide"}, r"filter: unknown 'guide'; did you mean 'guided'"),
        ({"type": "exact-or-guided", "n": 50, "guided": "ranked"}, "guided: expected a particle filter that draws at"),
    ],
)
def test_a_reference_that_cannot_be_computed_is_refused_before_any_file(reference, message, tmp_path):
    ungm = load_scenario("ungm")
    scenario = dataclasses.replace(ungm, reference=reference, steps=3, published=())
    with pytest.raises(ValueError, match=rf"\[reference\].*{message}"):
        hf.compare(scenario, ["bootstrap"], particles=[5], runs=1, store=tmp_path / "new" / "study.sqlite")
    assert list(tmp_path.iterdir()) == []


def recorded(scenario):
    """Model, recording and exact posterior of the scenario."""
    model = scenario.build_model()
    recording = record(scenario, model, None, np.random.default_rng(1))
    return model, recording, compute_reference(scenario, model, recording, np.random.default_rng(0))


def large(scenario, model, recording, seed=2, **table):
    other = dataclasses.replace(scenario, reference={"type": "large", **table})
    return compute_reference(other, model, recording, np.random.default_rng(seed))


def test_error_of_a_large_reference_is_its_distance_to_the_exact_posterior(scenario):
    model, recording, exact = recorded(scenario)
    assert (exact.error == 0).all()
    ranked = {"n": 50, "repeats": 6, "filter": {"proposal": "RankedProposal(randomised=True)"}}
    found = [large(scenario, model, recording, seed, **ranked) for seed in range(30)]
    squares = np.mean([one.error**2 for one in found])
    assert np.mean([(one.means - exact.means) ** 2 for one in found]) == pytest.approx(squares, rel=0.35)
    assert found[-1].sd([0]) == pytest.approx(np.sqrt(np.mean(found[-1].error ** 2)))


def test_repeats_average_likelihoods_not_their_logs(scenario):
    """With 15 particles each likelihood is unbiased, but its log lies 0.5 too low in the mean."""
    model, recording, exact = recorded(scenario)
    many = large(scenario, model, recording, n=15, repeats=300)
    assert many.log_likelihood == pytest.approx(exact.log_likelihood, abs=0.2)
    assert np.isnan(large(scenario, model, recording, n=50, repeats=1).error).all()  # one does not know its error


def test_angles_are_averaged_on_the_circle():
    estimates = np.array([[[np.pi - 0.1, 1.0]], [[-np.pi + 0.3, 2.0]]])
    means, covariances = reference._averaged(estimates, (0,))
    np.testing.assert_allclose(means, [[-np.pi + 0.1, 1.5]])
    np.testing.assert_allclose(covariances, [[[0.08, 0.2], [0.2, 0.5]]])  # half the square of the distance of two


@pytest.fixture
def kept(scenario, tmp_path, monkeypatch):
    """A function that computes a large reference with a cache in `tmp_path`, and the list of its computations."""
    monkeypatch.setenv(machine.VARIABLE, str(tmp_path / "cache"))
    calls = []

    def counted(model, recording, rng, *, n, repeats=2):
        calls.append(n)
        return reference._large(model, recording, rng, n=n, repeats=repeats)

    monkeypatch.setitem(reference.REFERENCES, "large", counted)
    recording = record(scenario, scenario.build_model(), None, np.random.default_rng(1))

    def compute(model=None, observations=recording, **table):
        table = {"n": 30} | table
        return large(scenario, scenario.build_model() if model is None else model, observations, **table)

    return compute, calls


def test_a_reference_is_computed_once_for_what_decides_it(scenario, kept):
    compute, calls = kept
    first, again = compute(), compute()
    np.testing.assert_array_equal(again.means, first.means)
    np.testing.assert_array_equal(again.error, first.error)
    assert (again.log_likelihood, len(calls)) == (first.log_likelihood, 1)

    model = scenario.build_model()
    other_recording = record(scenario, model, None, np.random.default_rng(7))
    others = [
        {"seed": 3},
        {"n": 31},
        {"model": dataclasses.replace(model, R=np.eye(1))},
        {"observations": other_recording},
    ]
    for count, change in enumerate(others, start=2):
        assert not np.array_equal(compute(**change).means, first.means)
        assert len(calls) == count


class Trap:
    """An object whose pickle runs code."""

    def __reduce__(self):
        return pytest.fail, ("code of a kept file ran",)


def as_archive(**arrays):
    return lambda file: np.savez(file, **arrays)


DAMAGES = {
    "cut off": lambda file: file.write_bytes(file.read_bytes()[:50]),
    "a number turned": lambda file: file.write_bytes(bytes([*(d := file.read_bytes())[:200], d[200] ^ 1, *d[201:]])),
    "a pickle": lambda file: file.write_bytes(pickle.dumps(Trap())),
    "a pickle in the archive": as_archive(means=np.array([Trap()], dtype=object)),
    "another length": as_archive(means=np.zeros((9, 1)), error=np.zeros((9, 1)), log_likelihood=0.0),
    "not a number": as_archive(means=np.full((10, 1), np.nan), error=np.zeros((10, 1)), log_likelihood=0.0),
}


def test_a_damaged_file_is_computed_anew(kept, tmp_path):
    compute, calls = kept
    first = compute()
    (file,) = tmp_path.rglob("*.npz")
    for count, damage in enumerate(DAMAGES.values(), start=2):
        damage(file)
        for _ in range(2):
            np.testing.assert_array_equal(compute().means, first.means)
        assert len(calls) == count
        assert list(tmp_path.rglob("*.*")) == [file]


def test_a_kept_reference_is_all_that_was_computed(scenario, kept, tmp_path):
    grid = dataclasses.replace(scenario, reference={"type": "grid", "lower": -15.0, "upper": 15.0, "points": 301})
    model, recording, _ = recorded(scenario)
    first, again = (compute_reference(grid, model, recording, np.random.default_rng(0)) for _ in range(2))
    assert len(list(tmp_path.rglob("*.npz"))) == 1
    assert first is not again
    assert again.log_likelihood == first.log_likelihood
    for name in ("means", "error", "covariances"):
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))
    assert list(again.posteriors) == list(first.posteriors)
    for step, density in first.posteriors.items():
        np.testing.assert_array_equal(again.posteriors[step].edges, density.edges)
        np.testing.assert_array_equal(again.posteriors[step].masses, density.masses)


def test_the_cache_can_be_switched_off(kept, tmp_path, monkeypatch):
    compute, calls = kept
    for value in ("", "off"):
        monkeypatch.setenv(machine.VARIABLE, value)
        compute()
    assert len(calls) == 2
    assert list(tmp_path.iterdir()) == []


def test_without_a_writable_folder_it_is_computed_with_one_warning(scenario, kept, tmp_path, monkeypatch):
    _, calls = kept
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(machine.VARIABLE, str(tmp_path / "file"))
    many = dataclasses.replace(scenario, reference={"type": "large", "n": 20})
    with pytest.warns(UserWarning, match="HERDFILTER_CACHE: cannot write into"):
        hf.compare(many, filters=["bootstrap"], particles=[5], runs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hf.compare(many, filters=["bootstrap"], particles=[5], runs=2)
    assert len(calls) == 4


def test_an_edited_model_is_another_one(scenario, kept, tmp_path):
    compute, calls = kept
    text = "from herdfilter.models import LinearGaussian\n\n\nclass Mine(LinearGaussian):\n    pass\n"
    arguments = {k: v for k, v in scenario.model.items() if k != "type"}
    for note in ("", "# as before, but edited\n"):
        (tmp_path / "mine.py").write_text(text + note)
        mine = dataclasses.replace(scenario, model={"type": "mine.py:Mine", **arguments}, folder=tmp_path).build_model()
        compute(model=mine), compute(model=mine)
    assert len(calls) == 2
    object.__setattr__(mine, "note", lambda: None)  # cannot be pickled
    compute(model=mine), compute(model=mine)
    assert len(calls) == 4


class HeavyTailed(hf.models.LinearGaussian):
    """Student's t with the same mean and variance of the observation."""

    def log_likelihood(self, z, x, step):
        residuals = (z - self.observation_mean(x, step))[:, 0]
        return -2.5 * np.log1p(residuals**2 / (2 * self.observation_covariance(step)[0, 0]))


def line(kind=hf.models.LinearGaussian, **changes):
    one = np.eye(1)
    return kind(**{"F": 0.9 * one, "H": one, "Q": one, "R": 0.1 * one} | changes, initial_mean=[0.0], initial_covariance=one)


def test_kalman_reference_refuses_what_it_is_not_exact_for():
    recording = Recording(np.zeros((3, 1)), np.ones((3, 1)))
    reference._kalman(line(), recording, None)
    with pytest.raises(ValueError, match="log_likelihood: expected a Gaussian's for the Kalman reference"):
        reference._kalman(line(HeavyTailed), recording, None)
    several = line()
    object.__setattr__(several, "initial", hf.GaussianMixture([0.5, 0.5], [[-3.0], [3.0]], [[1.0]]))
    with pytest.raises(ValueError, match="initial: expected one Gaussian for the Kalman reference, got GaussianMixture"):
        reference._kalman(several, recording, None)


@pytest.mark.parametrize(
    ("guided", "error", "taken"),
    [(0.0, 0.1, True), (1.5, 0.1, True), (3.0, 0.1, False), (0.0, 2.0, False), (0.0, np.nan, False)],
)
def test_a_guided_reference_is_taken_if_it_is_surer_and_agrees(monkeypatch, guided, error, taken):
    """The other one has the standard error 1; angles are compared on the circle."""

    def filters(model, *arguments, filter, **options):  # noqa: A002
        mean, sd = (guided, error) if filter == "mine" else (2 * np.pi, 1.0)
        return reference.Reference(np.full((3, 1), mean), 0.0, np.full((3, 1), sd), np.ones((3, 1, 1)))

    monkeypatch.setattr(reference, "_large", filters)
    model = SimpleNamespace(dim=1, circular=[0], initial=None)
    found = reference._exact_or_guided(model, Recording(np.zeros((3, 1)), np.zeros((3, 1))), None, n=9, guided="mine")
    assert (found.means == guided).all() == taken
