"""Particle filters of many tracks at once give what each gives by itself, to the last bit."""

import numpy as np
import pytest
from helpers import needs_equal_rows
from numpy.testing import assert_array_equal

import herdfilter as hf
from herdfilter.filters import many

pytestmark = needs_equal_rows

PLAIN = hf.models.from_functions(
    f=lambda x, dt: np.column_stack([x[:, :2] + dt * x[:, 2:], x[:, 2:]]),
    h=lambda x: np.column_stack([np.hypot(x[:, 0], x[:, 1]), np.arctan2(x[:, 1], x[:, 0])]),
    Q=0.05 * np.eye(4),
    R=np.diag([1.0, 0.01]),
    initial_mean=[-30.0, 0.0, 0.0, 0.0],
    initial_covariance=np.diag([9.0, 9.0, 1.0, 1.0]),
    observation_circular=[1],
)
CASES = {"bootstrap": hf.models.Lorenz63(), "ranked": PLAIN, "auto": hf.models.UNGM()}
ARRAYS = "means", "covariances", "ess", "resampled", "log_likelihoods", "steps", "times", "particles", "weights", "outcomes"


def tracks_of(model):
    """Tracks of many lengths, with observations that are missing, in whole or in part."""
    tracks = [list(hf.simulate(model, 4 + k % 5, rng=k)[1]) for k in range(12)]
    tracks[3][1], tracks[5][0], tracks[6][2] = None, None, np.full(tracks[6][2].shape, np.nan)
    if np.size(tracks[0][0]) > 1:
        for k in (2, 7, 8):
            tracks[k][1] = tracks[k][1].copy()
            tracks[k][1][k % 2] = np.nan
    return tracks


@pytest.mark.parametrize("name", CASES)
def test_tracks_together_are_those_of_single_filters(name, monkeypatch):
    """Also in several blocks, and by the state that filters end in."""
    monkeypatch.setattr(many, "TOGETHER", 5)
    model, tracks = CASES[name], tracks_of(CASES[name])
    filters, alone = ([hf.make_filter(name, model, 40, rng=k, resample_below=0.7) for k in range(12)] for _ in range(2))
    results = hf.run_many(filters.__getitem__, tracks, progress=False, dt=0.5, keep_particles=True)
    for pf, own, track, result in zip(filters, alone, tracks, results, strict=True):
        expected = own.run(track, dt=0.5, keep_particles=True)
        for array in ARRAYS:
            assert_array_equal(getattr(result, array), getattr(expected, array), err_msg=array)
        for entry, value in own.state.items():
            assert_array_equal(pf.state[entry], value, err_msg=entry)
