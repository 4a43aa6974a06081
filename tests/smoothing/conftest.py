"""What smoothers are held to: all states given all observations, by one large Gaussian or on a grid."""

import numpy as np
import pytest

import herdfilter as hf


class Driven:
    """Two states that turn and fade in time, pushed by a control; one sum of them is observed."""

    dim = 2
    initial = hf.GaussianMixture([1.0], [[1.0, -1.0]], [[1.0, 0.3], [0.3, 2.0]])
    Q = np.array([[0.5, 0.1], [0.1, 0.3]])
    H = np.array([[1.0, 0.5]])
    R = np.array([[0.7]])

    def F(self, dt):  # noqa: N802
        return np.exp(-0.1 * dt) * np.array([[np.cos(dt), np.sin(dt)], [-np.sin(dt), np.cos(dt)]])

    def transition_mean(self, x, dt, control, step):
        return x @ self.F(dt).T + (0.0 if control is None else control)

    def transition_covariance(self, dt, step):
        return self.Q * dt

    def observation_mean(self, x, step):
        return x @ self.H.T

    def observation_covariance(self, step):
        return self.R


def all_states(model, rows, steps, dt, controls=None):
    """Mean (T, d) and covariance (T, d, T, d) of all states given readings, by conditioning the Gaussian of all of them.

    Parameters
    ----------
    rows : sequence of (place, H, R, z)
        Readings of the state at a place from 0, NaN where missing.
    """
    d = model.dim
    start = model.initial
    mean = start.mean
    block = start.covariance
    means = np.zeros((steps, d))
    C = np.zeros((steps, d, steps, d))
    for k in range(steps):
        F = model.F(dt[k])
        mean = F @ mean + (0.0 if controls is None else controls[k])
        block = F @ block @ F.T + model.transition_covariance(dt[k], k + 1)
        means[k] = mean
        C[k, :, k] = block
        for j in range(k):
            C[k, :, j] = F @ C[k - 1, :, j]
            C[j, :, k] = C[k, :, j].T
    m = means.ravel()
    P = C.reshape(steps * d, steps * d)
    H = np.zeros((len(rows), steps, d))
    for row, (place, matrix, _, _) in zip(H, rows, strict=True):
        row[place] = matrix
    z = np.array([row[3] for row in rows])
    R = np.array([row[2] for row in rows])
    seen = ~np.isnan(z)
    H = H.reshape(len(rows), -1)[seen]
    gain = P @ H.T @ np.linalg.inv(H @ P @ H.T + np.diag(R[seen]))
    return (m + gain @ (z[seen] - H @ m)).reshape(steps, d), (P - gain @ H @ P).reshape(
        steps, d, steps, d
    )


def exactly(model, z, dt=None, controls=None):
    """Means (T, d) and covariances (T, d, d) of a model of one observed number a step, given all of them."""
    steps = len(z)
    rows = [(k, model.H[0], model.R[0, 0], float(z[k][0])) for k in range(steps)]
    means, C = all_states(model, rows, steps, np.ones(steps) if dt is None else dt, controls)
    k = np.arange(steps)
    return means, C[k, :, k]


FIRST = hf.Sensor(lambda x: x[:, :1], [[0.2]])
SECOND = hf.Sensor(lambda x: x[:, 1:], [[0.4]])
READINGS = [
    (1.0, FIRST, [1.0]),
    (1.0, SECOND, [0.0]),
    (2.5, SECOND, [-2.0]),
    (3.0, FIRST, None),
    (3.0, SECOND, [1.0]),
]

readings = pytest.fixture(lambda: READINGS)
driven = pytest.fixture(lambda: Driven())
exact = pytest.fixture(lambda: exactly)
joint = pytest.fixture(lambda: all_states)


@pytest.fixture(scope="module")
def growth():
    """The growth model, points, a series, exact smoothing probabilities (T, N) of points and of pairs (T - 1, N, N)."""
    model = hf.models.UNGM()
    x = np.linspace(-45, 45, 901)
    z = hf.simulate(model, 10, rng=7)[1]
    moved = [model.transition_mean(x[:, None], 1.0, None, k + 1)[:, 0] for k in range(10)]
    # to the row from the column
    kernels = [np.exp(-0.5 * (x[:, None] - to) ** 2 / model.process_variance) for to in moved]
    likelihoods = [np.exp(model.log_likelihood(one, x[:, None], 1)) for one in z]
    forward = np.exp(model.initial.log_density(x[:, None]))
    forwards = []
    for kernel, likelihood in zip(kernels, likelihoods, strict=True):
        forward = likelihood * (kernel @ forward)
        forward /= forward.sum()
        forwards.append(forward)
    backward = np.ones(len(x))
    marginal = [forward]
    joint = []
    for k in range(9, 0, -1):
        after = likelihoods[k] * backward
        pair = after[:, None] * kernels[k] * forwards[k - 1]
        joint.insert(0, pair / pair.sum())
        backward = after @ kernels[k]
        backward /= backward.sum()
        marginal.insert(0, joint[0].sum(axis=0))
    return model, x, z, np.array(marginal), np.array(joint)
