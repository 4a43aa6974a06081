"""The herded filters of the catalogue against random draws, where the posterior has two modes."""

import herdfilter as hf

DETERMINISTIC = ["augmented-kh", "augmented-chg"]


def test_state_and_noise_together_beat_bootstrap_on_two_modes():
    """UNGM, n = 100: the median error against the exact posterior mean over 20 runs is about 0.6 of bootstrap's."""
    table = hf.compare("ungm", ["bootstrap", *DETERMINISTIC], particles=[100], runs=20, seed=3)
    error = table.groupby("filter")["reference_error"].median()
    assert (error[DETERMINISTIC] < 0.85 * error["bootstrap"]).all()
