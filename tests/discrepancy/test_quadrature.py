"""Weights of given points that represent a mixture best."""

import numpy as np
import pytest
from helpers import EYE, cases, refuses
from scipy.linalg import eigh
from scipy.optimize import nnls

from herdfilter.discrepancy import kernel_matrix, optimal_weights
from herdfilter.kernels import expected_kernel
from herdfilter.mixture import GaussianMixture

MIXTURE = GaussianMixture([0.3, 0.7], [[-1.0, 0.5], [2.0, 0.0]], [EYE, [[2.0, 0.8], [0.8, 0.5]]])
KERNEL = np.array([[0.8, 0.2], [0.2, 0.5]])


def squared_error(w, x):
    return w @ kernel_matrix(x, KERNEL) @ w - 2 * w @ expected_kernel(MIXTURE, x, KERNEL)


def simplex_by_nnls(gram, z):
    """min |G u|^2 + (sum u - 1)^2, u >= 0, with G'G = K - z 1' - 1 z' + c, is proportional to the optimum on the simplex."""
    shifted = gram - z[:, None] - z + 2 * z.max()
    values, vectors = eigh(shifted)
    root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    u = nnls(np.vstack([root, np.ones(len(z))]), np.append(np.zeros(len(z)), 1.0))[0]
    return u / u.sum()


@cases("n", 2, 60)
def test_simplex_weights_agree_with_non_negative_least_squares(n):
    x = MIXTURE.sample(n, 3)
    w = optimal_weights(x, MIXTURE, KERNEL)
    other = simplex_by_nnls(kernel_matrix(x, KERNEL), expected_kernel(MIXTURE, x, KERNEL))
    assert (w >= 0).all()
    assert w.sum() == pytest.approx(1, abs=1e-12)
    assert squared_error(w, x) == pytest.approx(squared_error(other, x), abs=1e-9)


def test_bayesian_quadrature_integrates_functions_of_its_own_space_exactly():
    """A combination of kernels at the points has an interpolant that is the function itself."""
    x = 1.5 * np.stack(np.meshgrid(range(-2, 3), range(-1, 2)), axis=-1).reshape(-1, 2)
    coefficients = np.random.default_rng(0).standard_normal(len(x))
    w = optimal_weights(x, MIXTURE, KERNEL, constraint="none")
    exact = coefficients @ expected_kernel(MIXTURE, x, KERNEL)
    assert w @ kernel_matrix(x, KERNEL) @ coefficients == pytest.approx(exact, abs=1e-8)
    assert optimal_weights(x, MIXTURE, KERNEL, constraint="sum").sum() == pytest.approx(1, abs=1e-9)


@cases("constraint", "simplex", "none")
def test_coinciding_points_give_finite_weights_that_share_one_place(constraint):
    x = np.repeat(MIXTURE.sample(4, 6), 3, axis=0)
    w = optimal_weights(x, MIXTURE, KERNEL, constraint=constraint)
    once = optimal_weights(x[::3], MIXTURE, KERNEL, constraint=constraint)
    np.testing.assert_allclose(w.reshape(4, 3).sum(1), once, atol=1e-6)


test_bad_input_is_named = refuses(
    optimal_weights,
    (np.zeros((3, 1)), MIXTURE, KERNEL, "x: expected shape"),
    (
        np.zeros((3, 2)),
        MIXTURE,
        np.zeros((2, 2)),
        "kernel_covariance: expected a positive definite",
    ),
    (np.zeros((3, 2)), MIXTURE, KERNEL, "box", "constraint: unknown 'box'"),
)
