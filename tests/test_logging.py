"""What is logged, and that nothing is said of it where nobody asked."""

import logging

import numpy as np
from click.testing import CliRunner

import herdfilter as hf
from herdfilter.cli import main


class Deaf(hf.models.LinearGaussian):
    """A walk on a line, with an observation that is possible where it equals a particle, and nowhere else."""

    def log_likelihood(self, z, x, step):
        return np.where(x[:, 0] == z, 0.0, -np.inf)


def unlikely():
    """Return a filter of ten particles, of which none is at 7."""
    model = Deaf(np.eye(1), np.eye(1), np.eye(1), np.eye(1), np.zeros(1), np.eye(1))
    pf = hf.ParticleFilter(model, 10, on_degeneracy="predict", rng=0)
    pf.predict()
    return pf


def test_silent_by_default(capfd):
    unlikely().update(7.0)
    assert capfd.readouterr() == ("", "")


def test_lost_observation_is_a_warning(caplog):
    unlikely().update(7.0)
    (record,) = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert record.name.startswith("herdfilter.")
    assert "step 1: the likelihood vanishes at all 10 particles" in record.getMessage()


def test_resampling_is_told_to_those_who_ask(caplog):
    caplog.set_level(logging.DEBUG, logger="herdfilter")
    pf = unlikely()
    pf.update(pf.particles[0, 0])
    pf.predict()
    assert [one.getMessage() for one in caplog.records] == [
        "step 1: resampled, effective sample size 1.0"
    ]


def test_failed_run_is_a_warning(caplog):
    class Lost(hf.ParticleFilter):
        def update(self, z, sensor=None):
            raise ValueError("it is lost")

    def lost(model, n_particles, rng):
        return Lost(model, n_particles, rng=rng)

    table = hf.compare("linear_gaussian", filters={"mine": lost}, particles=[10], runs=2)
    assert len(table) == 2
    told = [
        one.getMessage().split(" (")[0] for one in caplog.records if one.levelno == logging.WARNING
    ]
    assert told == [f"mine, n = 10, run {run} failed: ValueError: it is lost" for run in range(2)]


def test_option_of_the_command_line_says_from_which_level_on(monkeypatch):
    package = logging.getLogger("herdfilter")
    monkeypatch.setattr(package, "level", package.level)
    assert CliRunner().invoke(main, ["--log", "info", "filters"]).exit_code == 0
    assert package.level == logging.INFO
