"""Marginals of associations by enumeration of all assignments."""

import itertools
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest


@cache
def assignments(n_tracks, n_columns):
    """All assignments that use no measurement twice, shape (A, T)."""
    every = np.array(list(itertools.product(range(n_columns), repeat=n_tracks)), dtype=int)
    ordered = np.sort(every, axis=1)
    return every[~((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] > 0)).any(axis=1)]


def weights(ratios):
    n_tracks, n_columns = ratios.shape
    return ratios[np.arange(n_tracks), assignments(n_tracks, n_columns)].prod(axis=1)


def brute_force(ratios):
    w = weights(ratios)
    marks = assignments(*ratios.shape)[:, :, None] == np.arange(ratios.shape[1])
    return np.einsum("a,atc->tc", w, marks) / w.sum(), w.sum()


def random_ratios(seed, n_tracks, n_measurements):
    """Dense or sparse, and over several orders of magnitude."""
    rng = np.random.default_rng(seed)
    matrix = np.exp(rng.normal(0, 2, size=(n_tracks, 1 + n_measurements)))
    matrix[:, 1:][rng.random((n_tracks, n_measurements)) < rng.choice([0, 0.5])] = 0
    return matrix


@pytest.fixture(scope="session")
def brute():
    return SimpleNamespace(
        marginals=lambda ratios: brute_force(ratios)[0],
        total=lambda ratios: brute_force(ratios)[1],
        weights=weights,
        assignments=assignments,
        ratios=random_ratios,
    )
