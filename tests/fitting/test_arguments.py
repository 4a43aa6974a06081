"""What a fit refuses: compiled loops trust their arrays, so that nothing else may reach them."""

import numpy as np
from helpers import cases, refusal

import herdfilter as hf

X = np.random.default_rng(1).normal(size=(6, 2))
W = np.full(6, 1 / 6)
FITS = [hf.GaussianFit(), hf.EMFit(2), hf.EMFit("bic"), hf.KernelDensityFit()]


def with_one(value):
    x = X.copy()
    x[:, 1] = 3.0
    x[2, 1] = value
    return x


@cases(
    "x w message",
    (with_one(np.nan), W, "particles: expected finite numbers, got 1"),
    (
        with_one(1e200),
        W,
        r"particles: expected numbers up to 1e.150, got 1e.200; choose larger units",
    ),
    (X[:, 0], W, r"particles: expected shape \(\*, \*\), got \(6,\)"),
    (X, W[:5], r"weights: expected shape \(6,\), got \(5,\)"),
    (X, 6 * W, "weights: expected non-negative numbers that sum to 1, got a sum of 6"),
    (
        X,
        (1 + 2e-6) * W,
        "weights: expected non-negative numbers that sum to 1, got a sum of 1.00000[12]",
    ),
    (X, 1e308 * W / W.max(), r"weights: expected numbers up to 1e\+150, got 1e\+308"),
    (X, np.array([-1, 1, 1, 0, 0, 0]), "weights: expected non-negative .* a minimum of -1"),
    (X[:0], W[:0], r"particles: expected at least one point and one dimension, got shape \(0, 2\)"),
)
def test_what_cannot_be_fitted_is_named(x, w, message):
    for fit in FITS:
        with refusal(f"^{message}"):
            fit.fit(x, w)
