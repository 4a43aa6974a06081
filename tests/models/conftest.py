"""What the tests of models share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def check_jacobian():
    """Return a check of a Jacobian against central differences, in the scale of each dimension of the state."""

    def check(jacobian, function, x, scale):
        numeric = np.empty_like(np.asarray(jacobian(x)))
        for i, size in enumerate(scale):
            step = np.zeros(x.shape[1])
            step[i] = 1e-4 * size
            numeric[:, :, i] = (function(x + step) - function(x - step)) / (2 * step[i])
        scaled = np.abs(numeric * scale).max(axis=(0, 2), keepdims=True)
        np.testing.assert_allclose(jacobian(x) * scale / scaled, numeric * scale / scaled, atol=2e-6)

    return check
