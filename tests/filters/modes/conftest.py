"""Exact posteriors of linear Gaussian modes: one Kalman filter for each history of modes."""

import numpy as np
import pytest

from herdfilter.models import JumpMarkov, LinearGaussian


def _enumerated(model, observations):
    """Mean, covariance, probabilities of the modes and log-density of the observation at every step, over all histories."""
    modes = np.arange(len(model.models))
    means = np.array([one.initial_mean for one in model.models])
    covariances = np.array([one.initial_covariance for one in model.models])
    weights = model.initial_modes
    steps = []
    for z in observations:
        parts = []
        for j, one in enumerate(model.models):
            prior = means @ one.F.T
            P = one.F @ covariances @ one.F.T + one.Q
            S = one.H @ P @ one.H.T + one.R
            gains = P @ one.H.T @ np.linalg.inv(S)
            v = z - prior @ one.H.T
            white = np.linalg.solve(np.linalg.cholesky(S), v[:, :, None])[:, :, 0]
            density = np.exp(-0.5 * (white**2).sum(axis=1)) / np.sqrt(np.linalg.det(2 * np.pi * S))
            moved = prior + (gains @ v[:, :, None])[:, :, 0], P - gains @ one.H @ P
            parts.append(
                (
                    *moved,
                    weights * model.transition_matrix[modes, j] * density,
                    np.full(len(prior), j),
                )
            )
        means, covariances, weights, modes = (
            np.concatenate(part) for part in zip(*parts, strict=True)
        )
        total = weights.sum()
        weights = weights / total
        mean = weights @ means
        centred = means - mean
        covariance = np.tensordot(weights, covariances, 1) + (weights * centred.T) @ centred
        steps.append(
            (mean, covariance, np.bincount(modes, weights, len(model.models)), np.log(total))
        )
    return [np.array(part) for part in zip(*steps, strict=True)]


def _linear_modes(seed, count=2, dim=2, sensors=1):
    """Linear Gaussian modes of random dynamics; those with `sensors` 2 see the state in two ways by turns."""
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((sensors, 1, dim))
    models = []
    for j in range(count):
        F, root = rng.standard_normal((2, dim, dim))
        F *= 0.9 / np.abs(np.linalg.eigvals(F)).max()
        models.append(
            LinearGaussian(
                F, H[j % sensors], 0.2 * root @ root.T, [[0.5]], np.zeros(dim), np.eye(dim)
            )
        )
    stay = 0.9 * np.eye(count) + 0.1 / count
    return JumpMarkov(models, stay / stay.sum(axis=1, keepdims=True), np.arange(1.0, count + 1))


enumerated = pytest.fixture(lambda: _enumerated)
linear_modes = pytest.fixture(lambda: _linear_modes)
