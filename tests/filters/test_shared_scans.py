"""How particles are shared out over the hypotheses of a scan."""

import numpy as np
import pytest
from helpers import cases
from scipy.stats import multivariate_normal

import herdfilter as hf
from herdfilter.filters import Observation, Particles
from herdfilter.filters.proposals.scans import (
    BLIND_SHARE,
    MIN_PER_HYPOTHESIS,
    MIN_QUOTA,
    NEGLIGIBLE_SHARE,
    hypothesis_evidence,
    share_out,
)


@cases("n shift", (50, 0.0), (200, 900.0), (1000, -900.0))
def test_detections_get_their_share_and_what_guides_none_a_tenth_more(n, shift):
    """Rounded down by a quarter at most; what is too light for particles of its own is left to those unguided."""
    rng = np.random.default_rng(n)
    for _ in range(40):
        logs = rng.normal(0, 6, 5)
        rest, quotas = share_out(logs[0] + shift, logs[1:] + shift, n)
        shares = np.exp(logs - np.logaddexp.reduce(logs))
        assert quotas.sum() == n
        assert quotas.min() >= 0
        if n * (shares**2).sum() < MIN_PER_HYPOTHESIS:
            assert quotas[0] == n
            assert set(rest) == set(np.flatnonzero(shares[1:] > NEGLIGIBLE_SHARE))
            continue
        whole = n * (1 - BLIND_SHARE) * shares[1:]
        guided = quotas[1:]
        assert (guided <= whole + 1).all()
        assert (guided[whole >= MIN_QUOTA + 1] >= 0.75 * (whole - 1)[whole >= MIN_QUOTA + 1]).all()
        assert (guided[whole < MIN_QUOTA - 1] == 0).all()
        assert set(rest) == set(np.flatnonzero((guided == 0) & (shares[1:] > NEGLIGIBLE_SHARE)))
        # few sizes: of four leading digits in base 2 at most eight
        for quota in guided[guided > 0]:
            assert quota % 2 ** max(0, int(np.log2(quota)) - 2) == 0


def test_the_evidence_of_a_detection_is_that_of_a_kernel_density_of_the_predicted_ones():
    """N(h(x), R), each wider by Scott's share of the covariance of all h(x)."""
    rng = np.random.default_rng(1)
    model = hf.models.WithClutter(hf.models.linear_chain(2), 0.8, 0.3)
    x = rng.standard_normal((40, 2))
    w = rng.dirichlet(np.full(40, 3.0))
    z = [[0.3, 0.1], [5.0, -4.0]]
    missed, detected = hypothesis_evidence(Observation.read(model, z, 1), Particles(x, np.log(w)))
    inner = model.model
    seen = x @ np.asarray(inner.H).T
    centred = seen - w @ seen
    width = (w @ w) ** (1 / 6)
    kernel = np.asarray(inner.R) + width**2 * (w * centred.T) @ centred
    for one, found in zip(z, detected, strict=True):
        density = w @ [multivariate_normal(mean, kernel).pdf(one) for mean in seen]
        assert found - missed == pytest.approx(np.log(0.8 / 0.2 / 0.3 * density))
    assert (
        len(
            hypothesis_evidence(
                Observation.read(model, np.empty((0, 2)), 1), Particles(x, np.log(w))
            )[1]
        )
        == 0
    )
