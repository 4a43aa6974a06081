"""Models of many targets."""

import numpy as np
import pytest

import herdfilter as hf


@pytest.fixture(scope="session")
def cluttered():
    return lambda model, p=0.9, density=1e-3: hf.models.WithClutter(model, p, density)


@pytest.fixture(scope="session")
def walk():
    return hf.models.LinearGaussian(
        np.eye(2), np.eye(2), 0.2 * np.eye(2), 0.5 * np.eye(2), np.zeros(2), np.eye(2)
    )


@pytest.fixture(scope="session")
def gaussian():
    return lambda *place, variance=1.0: hf.GaussianMixture(
        [1.0], [place], variance * np.eye(len(place))
    )
