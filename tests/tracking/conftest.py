"""Models of many targets."""

import numpy as np
import pytest
from helpers import EYE

import herdfilter as hf


@pytest.fixture(scope="session")
def cluttered():
    return lambda model, p=0.9, density=1e-3: hf.models.WithClutter(model, p, density)


@pytest.fixture(scope="session")
def walk():
    return hf.models.LinearGaussian(EYE, EYE, 0.2 * EYE, 0.5 * EYE, np.zeros(2), EYE)


@pytest.fixture(scope="session")
def gaussian():
    return lambda *place, variance=1.0: hf.GaussianMixture(
        [1.0], [place], variance * np.eye(len(place))
    )
