import dataclasses
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import assert_same, cases, kalman, plane, refusal
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal, assert_equal

import herdfilter as hf
from herdfilter.study import machine, reference
from herdfilter.study.data import fetch
from herdfilter.study.recording import Recording, record
from herdfilter.study.reference import compute_reference
from herdfilter.study.scenario import load_scenario


def test_kalman_reference_is_filterpys(scenario):
    model = plane()
    truth, observations = hf.simulate(model, 6, 3)
    observations[2] = np.nan  # a missing one
    found = compute_reference(scenario, model, Recording(truth, observations), default_rng(0))
    means, covariances, log_likelihoods = kalman(model, observations)
    assert_allclose(found.means, means, atol=1e-10)
    assert_allclose(found.covariances, covariances, atol=1e-10)
    assert found.log_likelihood == pytest.approx(log_likelihoods.sum())


@cases(
    "reference message",
    ({"type": "kalman"}, "expected a linear model"),
    ({"type": "grid-or-large", "n": 9, "guided": "auto-random"}, "unknown 'guided'"),
    ({"type": "grid", "lower": -1.0, "upper": 1.0, "points": 50}, "expected a grid that resolves"),
)
def test_a_reference_that_cannot_be_computed_is_refused_before_any_file(
    reference, message, tmp_path
):
    ungm = load_scenario("ungm")
    scenario = dataclasses.replace(ungm, reference=reference, steps=3, published=())
    with refusal(rf"\[reference\].*{message}"):
        hf.compare(
            scenario, ["bootstrap"], particles=[5], runs=1, store=tmp_path / "new" / "study.sqlite"
        )
    assert list(tmp_path.iterdir()) == []


def recorded(scenario):
    """Model, recording and exact posterior of the scenario."""
    model = scenario.build_model()
    recording = record(scenario, model, None, default_rng(1))
    return model, recording, compute_reference(scenario, model, recording, default_rng(0))


def large(scenario, model, recording, seed=2, **table):
    other = dataclasses.replace(scenario, reference={"type": "large", **table})
    return compute_reference(other, model, recording, default_rng(seed))


def test_error_of_a_large_reference_is_its_distance_to_the_exact_posterior(scenario):
    model, recording, exact = recorded(scenario)
    assert (exact.error == 0).all()
    ranked = {"n": 50, "repeats": 6, "filter": {"proposal": "RankedProposal(randomised=True)"}}
    found = [large(scenario, model, recording, seed, **ranked) for seed in range(30)]
    squares = np.mean([one.error**2 for one in found])
    assert np.mean([(one.means - exact.means) ** 2 for one in found]) == pytest.approx(
        squares, rel=0.35
    )
    covariances = np.mean([one.covariances for one in found], axis=0)
    # the filters' own and that of their means
    assert_allclose(covariances, exact.covariances, rtol=0.1)


def test_repeats_average_likelihoods_not_their_logs(scenario):
    """With 15 particles each likelihood is unbiased, but its log lies 0.5 too low in the mean."""
    model, recording, exact = recorded(scenario)
    many = large(scenario, model, recording, n=15, repeats=300)
    assert many.log_likelihood == pytest.approx(exact.log_likelihood, abs=0.2)
    # one does not know its error
    assert np.isnan(large(scenario, model, recording, n=50, repeats=1).error).all()


def test_angles_are_averaged_on_the_circle():
    estimates = np.array([[[np.pi - 0.1, 1.0]], [[-np.pi + 0.3, 2.0]]])
    means, covariances = reference._averaged(estimates, (0,))
    assert_allclose(means, [[-np.pi + 0.1, 1.5]])
    # half the square of the distance of two
    assert_allclose(covariances, [[[0.08, 0.2], [0.2, 0.5]]])


@pytest.fixture
def kept(scenario, tmp_path, monkeypatch):
    """A function that computes a large reference with a cache in `tmp_path`, and the list of its computations."""
    monkeypatch.setenv(machine.VARIABLE, str(tmp_path / "cache"))
    calls = []

    def counted(model, recording, rng, *, n, repeats=2):
        calls.append(n)
        return reference._large(model, recording, rng, n=n, repeats=repeats)

    monkeypatch.setitem(reference.REFERENCES, "large", counted)
    recording = record(scenario, scenario.build_model(), None, default_rng(1))

    def compute(model=None, observations=recording, **table):
        table = {"n": 30} | table
        return large(
            scenario, scenario.build_model() if model is None else model, observations, **table
        )

    return compute, calls


def test_a_reference_is_computed_once_for_what_decides_it(scenario, kept):
    compute, calls = kept
    first = compute()
    again = compute()
    assert_same(again, first, "means", "error")
    assert (again.log_likelihood, len(calls)) == (first.log_likelihood, 1)

    model = scenario.build_model()
    other_recording = record(scenario, model, None, default_rng(7))
    others = (
        {"seed": 3},
        {"n": 31},
        {"model": dataclasses.replace(model, R=np.eye(1))},
        {"observations": other_recording},
    )
    for count, change in enumerate(others, start=2):
        assert not np.array_equal(compute(**change).means, first.means)
        assert len(calls) == count


class Trap:
    """An object whose pickle runs code."""

    def __reduce__(self):
        return pytest.fail, ("code of a kept file ran",)


DAMAGES = {
    "cut off": lambda file: file.write_bytes(file.read_bytes()[:50]),
    "a number turned": lambda file: file.write_bytes(
        bytes([*(d := file.read_bytes())[:200], d[200] ^ 1, *d[201:]])
    ),
    "a pickle": lambda file: np.savez(file, means=np.array([Trap()], dtype=object)),
}


def test_a_damaged_file_is_computed_anew(kept, tmp_path):
    compute, calls = kept
    first = compute()
    (file,) = tmp_path.rglob("*.npz")
    for count, damage in enumerate(DAMAGES.values(), start=2):
        damage(file)
        assert_array_equal(compute().means, first.means)
        assert len(calls) == count
        assert list(tmp_path.rglob("*.*")) == [file]


@cases(
    "table",
    {"type": "grid", "lower": -15.0, "upper": 15.0, "points": 301},
    {"type": "exact-or-guided", "n": 20},  # here a Kalman filter, with Gaussian posteriors
)
def test_a_kept_reference_is_all_that_was_computed(table, scenario, kept, tmp_path):
    changed = dataclasses.replace(scenario, reference=table)
    model, recording, _ = recorded(scenario)
    first, again = (compute_reference(changed, model, recording, default_rng(0)) for _ in range(2))
    assert len(list(tmp_path.rglob("*.npz"))) == 1
    assert_equal(vars(again), vars(first))
    assert len(first.steps) == 10


def test_the_cache_can_be_switched_off(kept, tmp_path, monkeypatch):
    compute, calls = kept
    for value in ("", "off"):
        monkeypatch.setenv(machine.VARIABLE, value)
        compute()
    assert len(calls) == 2
    assert list(tmp_path.iterdir()) == []


def test_without_a_writable_folder_it_is_computed_with_one_warning(
    scenario, kept, tmp_path, monkeypatch
):
    _, calls = kept
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(machine.VARIABLE, str(tmp_path / "file"))
    many = dataclasses.replace(scenario, reference={"type": "large", "n": 20})
    with pytest.warns(UserWarning, match="HERDFILTER_CACHE: cannot write into") as told:
        [hf.compare(many, filters=["bootstrap"], particles=[5], runs=2) for _ in range(2)]
    assert (len(told), len(calls)) == (1, 4)


@pytest.mark.skipif(
    sys.platform in ("win32", "darwin"), reason="XDG_CACHE_HOME is of other systems"
)
def test_without_a_home_directory_the_named_cache_serves_or_none(
    scenario, kept, tmp_path, monkeypatch
):
    """The variables that name a folder are enough; without any, references are computed anew, and nothing is written."""

    def no_entry(user):
        raise KeyError(user)

    monkeypatch.setattr("pwd.getpwuid", no_entry)
    for name in ("HOME", "XDG_CACHE_HOME", machine.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    compute, calls = kept
    many = dataclasses.replace(scenario, reference={"type": "large", "n": 20})
    with pytest.warns(
        UserWarning,
        match=r"cannot write into the user's cache \(no home directory for ~/.cache; set HOME",
    ):
        hf.compare(many, filters=["bootstrap"], particles=[5], runs=1)
    compute()
    assert len(calls) == 2
    assert list(tmp_path.iterdir()) == []
    with refusal("no home directory", OSError):
        fetch("Plaza1_.mat")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compute(), compute()
    assert len(calls) == 3
    assert len(list((tmp_path / "herdfilter" / "references").iterdir())) == 1


def test_an_edited_model_is_another_one(scenario, kept, tmp_path):
    compute, calls = kept
    text = (
        "from herdfilter.models import LinearGaussian\n\n\nclass Mine(LinearGaussian):\n    pass\n"
    )
    arguments = {k: v for k, v in scenario.model.items() if k != "type"}
    for note in ("", "# as before, but edited\n"):
        (tmp_path / "mine.py").write_text(text + note)
        mine = dataclasses.replace(
            scenario, model={"type": "mine.py:Mine", **arguments}, folder=tmp_path
        ).build_model()
        compute(model=mine), compute(model=mine)
    assert len(calls) == 2
    object.__setattr__(mine, "note", lambda: None)  # cannot be pickled
    compute(model=mine), compute(model=mine)
    assert len(calls) == 4


class HeavyTailed(hf.models.LinearGaussian):
    """Student's t instead of a Gaussian."""

    def log_likelihood(self, z, x, step):
        return -2.5 * np.log1p((z - self.observation_mean(x, step))[:, 0] ** 2)


def test_kalman_reference_refuses_what_it_is_not_exact_for(scenario):
    model, recording, _ = recorded(scenario)
    heavy = HeavyTailed(**{k: v for k, v in scenario.model.items() if k != "type"})
    with refusal("log_likelihood: expected a Gaussian's for the Kalman reference"):
        reference._kalman(heavy, recording, None)
    object.__setattr__(model, "initial", hf.GaussianMixture([0.5, 0.5], [[-3.0], [3.0]], [[1.0]]))
    with refusal("initial: expected one Gaussian for the Kalman reference, got GaussianMixture"):
        reference._kalman(model, recording, None)


def test_kalman_reference_needs_no_jacobian_of_the_model(scenario, monkeypatch):
    """A wrong one, which the extended Kalman filter believes, must not make the reference wrong as well."""
    model, recording, exact = recorded(scenario)
    for name in ("transition_jacobian", "observation_jacobian"):
        monkeypatch.setattr(
            type(model), name, lambda self, x, *_: np.zeros((len(x), 1, 1)), raising=False
        )
    again = reference._kalman(model, recording, None)
    assert_same(again, exact, "means", "covariances", rtol=1e-12)
    assert again.log_likelihood == pytest.approx(exact.log_likelihood)


@cases(
    "guided error taken",
    (1.5, 0.1, True),
    (3.0, 0.1, False),
    (0.0, 2.0, False),
    (0.0, np.nan, False),
)
def test_a_guided_reference_is_taken_if_it_is_surer_and_agrees(monkeypatch, guided, error, taken):
    """The other one has the standard error 1; angles are compared on the circle."""

    def filters(model, *arguments, filter, **options):  # noqa: A002
        mean, sd = (guided, error) if filter == "mine" else (2 * np.pi, 1.0)
        return reference.Reference(
            np.full((3, 1), mean), 0.0, np.full((3, 1), sd), np.ones((3, 1, 1))
        )

    monkeypatch.setattr(reference, "_large", filters)
    model = SimpleNamespace(dim=1, circular=[0], initial=None)
    found = reference._exact_or_large(
        model, Recording(np.zeros((3, 1)), np.zeros((3, 1))), None, n=9, guided="mine"
    )
    assert (found.means == guided).all() == taken
