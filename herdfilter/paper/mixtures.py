"""The mixtures of the figures."""

from __future__ import annotations

import numpy as np

from herdfilter.mixture import GaussianMixture


def example() -> GaussianMixture:
    """Give five components in the plane, the example in the authors' public program (Figs. 1 and 2)."""
    return GaussianMixture(
        [0.3, 0.1, 0.2, 0.3, 0.1],
        [[6, 5], [7, 2], [1, 3], [7, 6], [2, 8]],
        np.array([[[5, 3], [3, 5]], [[1, 0.3], [0.3, 1]], [[4, 3], [3, 4]], [[2, 0.5], [0.5, 3]], [[1, 0], [0, 3]]]),
    )


def random_mixture(dim: int, rng: np.random.Generator, components: int = 5) -> GaussianMixture:
    """Draw a mixture: means U[-5, 5]^d, covariance eigenvalues U[0.1, 4.1] randomly rotated, weights uniform on the simplex.

    The random mixtures of the paper are not stated; these are ours (Figs. 3 and 5).
    """
    turns = np.linalg.qr(rng.standard_normal((components, dim, dim)))[0]
    values = rng.uniform(0.1, 4.1, (components, 1, dim))
    means = rng.uniform(-5, 5, (components, dim))
    return GaussianMixture(rng.dirichlet(np.ones(components)), means, (turns * values) @ turns.swapaxes(1, 2))


def broad() -> GaussianMixture:
    """Give two components that are several kernels wide in every direction, at the sigma_k = 0.2 of Fig. 4."""
    return GaussianMixture([0.5, 0.5], [[-1.5, 0.0], [1.5, 1.0]], [np.eye(2), np.diag([2.0, 1.0])])


def narrow() -> GaussianMixture:
    """Give a long component at 45 degrees, standard deviations 2 and 0.14, and a round one beside it.

    At sigma_k = 0.2 the long component is narrower than the kernel, and along either axis its conditional is, too.
    """
    long = np.array([[2.01, 1.99], [1.99, 2.01]])  # eigenvalues 4 and 0.02
    return GaussianMixture([0.5, 0.5], [[0.0, 0.0], [3.0, -3.0]], [long, np.eye(2)])
