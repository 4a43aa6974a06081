"""The tables of docs/need.md: our column holds by code that runs, a peer's by its source if it is installed."""

import importlib
import importlib.metadata
import importlib.util
import re
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from helpers import EYE, normal, position_and_speed

import herdfilter as hf

DOCS = Path(__file__).parent.parent / "docs"
pytestmark = pytest.mark.slow
SCANS = [[[1.0], [7.0]], [], [[2.0]]]


@pytest.fixture(scope="module")
def page_need(scripts):
    return scripts("docs/tools/page_need")


def linear(noise):
    return position_and_speed(noise * EYE)


ungm = hf.models.UNGM()
walk = linear(1.0)
stroll = linear(0.1)
z = np.array([[1.0], [2.0], [2.5]])
mixture = hf.GaussianMixture([0.4, 0.6], [[0, 0], [3, 1]], EYE)
clutter = hf.models.WithClutter(walk, 0.9, 0.01)
compass = hf.models.from_functions(
    lambda x: x,
    lambda x: x,
    [[0.01]],
    [[0.01]],
    [3.1],
    [[0.01]],
    circular=[0],
    observation_circular=[0],
)
kalman = hf.ExtendedKalmanFilter(walk)
sample = np.random.default_rng(0).normal(size=(30, 2))


def scaled(theta):
    return hf.ExtendedKalmanFilter(linear(theta[0]))


def finite(tried, observations=z):
    return np.isfinite(tried.run(observations).means).all()


def kept():
    return hf.ParticleFilter(ungm, 20, rng=0).run(z, keep_particles=True)


def same(name):
    """Whether two seeds give the same filter."""
    means = [hf.make_filter(name, ungm, n_particles=20, rng=seed).run(z).means for seed in (1, 2)]
    return np.array_equal(*means)


def unbiased(proposal):
    """Mean of the estimated over the exact likelihood."""
    exact = hf.ExtendedKalmanFilter(walk).run(z).log_likelihood
    runs = [
        hf.ParticleFilter(walk, 50, proposal, rng=seed).run(z).log_likelihood for seed in range(40)
    ]
    return np.exp(np.array(runs) - exact).mean()


def stepped(pf):
    pf.predict()
    pf.update(z[0])
    return np.isfinite(pf.mean).all()


def tracked():
    birth = hf.tracking.Birth(0.5, normal([1, 0]))
    return hf.tracking.LMBTracker(clutter, [birth]).run(
        [np.array(scan).reshape(-1, 1) for scan in SCANS]
    )


def points(sampler, target):
    return sampler.sample(target, 8, np.random.default_rng(0)).x.shape == (8, target.dim)


@cache
def study(store, resume=False):
    """A comparison with a file that takes its runs; resumed it finds them there, with their times."""
    return hf.compare("ungm", ["bootstrap", "ranked"], [10], runs=6, store=store, resume=resume)


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def names():
    """What our expressions may name."""
    return {name: value for name, value in globals().items() if not name.startswith("test_")}


def test_what_we_claim_runs(page_need, tmp_path):
    claims = {
        row["feature"]: row["herdfilter"][1]
        for row in page_need.rows()
        if row["herdfilter"][0] != "no"
    }
    scope = names() | {"tmp_path": tmp_path}
    assert [feature for feature, claim in claims.items() if not eval(claim, scope)] == []


def test_what_we_do_not_claim_is_not_there(page_need):
    source = "\n".join(
        path.read_text(encoding="utf-8").lower() for path in Path(hf.__file__).parent.rglob("*.py")
    )
    missing = {
        row["feature"]: row["herdfilter"][1]
        for row in page_need.rows()
        if row["herdfilter"][0] == "no"
    }
    assert len(missing) > 5
    assert [feature for feature, words in missing.items() if re.search(words, source)] == []


def test_every_cell_has_a_value_and_a_ground(page_need):
    for subject in page_need.SUBJECTS:
        for row in page_need.FEATURES[subject]:
            assert list(row) == ["feature", "herdfilter", *page_need.columns(subject)], row[
                "feature"
            ]
            for name in page_need.columns(subject):
                value, ground = row[name]
                assert value in {"yes", "partly", "no"}
                assert ground
                assert value == "no" or re.match(r"[\w./-]+: .", ground), (row["feature"], name)


def test_every_peer_is_dated(page_need):
    """Relative to the day that the file states, so that no test fails because time has passed."""
    stated = page_need.FEATURES["stated"]
    assert isinstance(stated, date)
    for name, peer in page_need.FEATURES["peers"].items():
        assert peer["version"], name
        assert peer["source"], name
        assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", peer["released"]), name
        assert peer["released"] <= f"{peer['seen']}", name
        assert 0 <= (stated - peer["seen"]).days < 2 * 365, name
    used = {name for subject in page_need.SUBJECTS for name in page_need.columns(subject)}
    assert used == set(page_need.FEATURES["peers"])


def test_columns_of_installed_peers_hold(page_need):
    for name, peer in page_need.FEATURES["peers"].items():
        found = importlib.util.find_spec(peer["module"]) if "module" in peer else None
        if found and importlib.metadata.version(peer["module"]) == peer["version"]:
            assert page_need.unfounded(name, Path(found.origin).parent) == [], name
