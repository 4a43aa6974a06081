"""Every benchmark of the samplers at tiny size, and the plain version that they are measured against."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from herdfilter import ContinuousHerdedGibbs, GaussianMixture, KernelHerding, Points, herding_error
from herdfilter.evaluation.columns import TIMES

FOLDER = Path(__file__).parents[1] / "benchmarks"
REFERENCE = Path(__file__).parents[0] / "reference" / "authors_samples.json"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the benchmarks are not part of this installation"
)


@pytest.fixture
def benchmark_module(monkeypatch):
    """A function: a module of the benchmarks by name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return __import__


@pytest.fixture
def run(benchmark_module, capsys):
    """A function: run a study, return what it prints."""

    def study(name, *arguments):
        benchmark_module(name).main([str(a) for a in arguments])
        return capsys.readouterr().out

    return study


def test_speed_study_prints_its_three_tables(run):
    small = ["--points", 3, "--mixtures", 1, "--repeats", 1, "--components", 6]
    text = run("bench_samplers", "--dims", 2, "--naive", 2, "--count", *small)
    for title in ("CPU microseconds a point", "Beside scipy's BFGS", "CPU milliseconds a sample"):
        assert title in text
    assert "NO" not in text.split("Beside scipy's BFGS")[1]  # the column that tells whether the points agree


def test_growth_study_measures_time_and_memory(run):
    text = run("bench_growth", "--largest", 100, "--samplers", "CHG", "--bandwidths", "auto")
    assert "exponent of time" in text
    assert "bytes a further point" in text


def test_fitted_exponent_is_that_of_a_power_law(benchmark_module):
    sizes = [100, 1000, 2000, 4000]
    fit = benchmark_module("bench_growth").exponent(sizes, [9.0, *(n**1.5 for n in sizes[1:])])
    assert fit == "1.50 (1.50, 1.50)"


def test_peers_are_compared_where_they_are_installed(run, tmp_path, benchmark_module):
    text = run("bench_peers", "--sizes", 4, "--dims", 2, "--seeds", 1, "--out", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "peers_1_components_d2.png",
        "peers_5_components_d2.png",
    }
    for missing in benchmark_module("peers").missing():
        assert f"left out, {missing}" in text


def test_plain_version_finds_the_points_of_the_samplers(benchmark_module):
    """The two searches share nothing but the definition: the same herded Gibbs points, the same herding error."""
    naive = benchmark_module("naive")
    mixture = GaussianMixture([0.6, 0.4], [[0, 0], [3, 1]], [[[1, 0.5], [0.5, 1]], [[0.5, 0], [0, 2]]])
    x = naive.herded_gibbs(mixture, 6, 0.5)
    np.testing.assert_allclose(
        x, ContinuousHerdedGibbs(target="paper", bandwidth=0.5).sample(mixture, 6).x, atol=1e-3
    )
    plain = herding_error(Points(naive.kernel_herding(mixture, 6, 0.5)), mixture, 0.5)
    assert plain == pytest.approx(
        herding_error(KernelHerding(bandwidth=0.5).sample(mixture, 6), mixture, 0.5), rel=0.02
    )


@pytest.mark.parametrize("name", ["fig1_example", "random_d2_seed1"])
def test_plain_version_reproduces_the_published_programs_points(name, benchmark_module):
    case = next(c for c in json.loads(REFERENCE.read_text())["cases"] if c["name"] == name)
    mixture = GaussianMixture(case["weights"], case["means"], case["covariances"])
    x = benchmark_module("naive").herded_gibbs(mixture, 5, case["sigma_k"], start=case["chg"][0])
    np.testing.assert_allclose(x, case["chg"][:5], atol=1e-3)


def test_step_study_covers_both_models_and_names_a_missing_peer(run, benchmark_module):
    text = run("bench_step", "--particles", 20, "--steps", 3, "--repeats", 1, "--filters", "bootstrap", "ekf")
    for name in ("bearings", "linear Gaussian", "the model alone", "bootstrap", "ekf"):
        assert name in text
    missing = benchmark_module("step_peers").MISSING
    assert (f"left out, {missing}" if missing else "SQMC") in text


def test_exponentials_are_counted(benchmark_module):
    """Two points from one component in the plane: at least what the definition needs."""
    kernel_count = benchmark_module("kernel_count")
    mixture = GaussianMixture([1.0], [[0.0, 0.0]], np.eye(2))
    sampler = ContinuousHerdedGibbs(bandwidth=0.5, sweeps=1)
    assert kernel_count.needed(sampler, mixture, 2) == 2 * 2 * (1 + 1)
    assert kernel_count.exponentials(sampler, mixture, 2) >= 2 * 2 * (1 + 1)


@pytest.fixture
def study(benchmark_module, tmp_path, monkeypatch):
    """A function: run the measured study on a toy, return how many comparisons it took."""
    module = benchmark_module("bench_study")
    calls = []
    compare = module.hf.compare

    def counted(*arguments, **keywords):
        calls.append(arguments[1:3])
        return compare(*arguments, **keywords)

    monkeypatch.setattr(module.hf, "compare", counted)

    def start(*arguments, filters=("bootstrap", "augmented-kh")):
        calls.clear()
        toy = ["--scenarios", "linear-d1", "--filters", *filters, "--particles", "5", "10"]
        module.main([*toy, "--more", "20", "--workers", "1", "--out", str(tmp_path), *arguments])
        return list(calls)

    return start


def test_study_is_resumed_where_it_was_killed(study, tmp_path):
    first = [(["bootstrap"], [n]) for n in (5, 10, 20)] + [(["augmented-kh"], [n]) for n in (5, 10)]
    assert study("--runs", "2") == first
    path = tmp_path / "linear-d1.csv"
    whole = pd.read_csv(path).drop(columns=list(TIMES))
    table = pd.read_csv(path)
    gone = (table["filter"] == "bootstrap") & (table["n_particles"] == 10)
    partly = (table["filter"] == "augmented-kh") & (table["n_particles"] == 5) & (table["run"] == 1)
    table[~(gone | partly)].to_csv(path, index=False)
    assert study("--runs", "2") == [(["bootstrap"], [10]), (["augmented-kh"], [5])]
    order = ["filter", "n_particles", "run"]
    again = pd.read_csv(path).drop(columns=list(TIMES))
    pd.testing.assert_frame_equal(
        *(t.sort_values(order).reset_index(drop=True) for t in (again, whole)), check_exact=True
    )
    assert study("--runs", "2") == []


def test_study_reports_and_names_what_it_left_out(study, tmp_path, capsys):
    study("--runs", "2", "--budget-ms", "1e-9", filters=("bootstrap", "herded-kh", "no-such"))
    study("--timing")
    capsys.readouterr()
    assert study("--report") == []
    text = capsys.readouterr().out
    assert "left out at n = 10, herded-kh:" in text
    assert "budget 1e-09" in text
    assert "left out at n = 5, no-such: filter: unknown" in text
    for title in ("linear-d1, n = 5, 2 runs", "Best herded filter", "Worst herded filter", "at equal time"):
        assert title in text


def test_yardstick_of_the_default_judges_ratios_and_times(benchmark_module, tmp_path, capsys):
    counts = ["--particles", "10", "20", "--random", "10", "20", "40"]
    start = ["--scenarios", "stochastic_volatility", *counts, "--runs", "4", "--workers", "1"]
    module = benchmark_module("bench_default")
    module.main([*start, "--out", str(tmp_path)])
    module.main([*start, "--out", str(tmp_path), "--timing"])
    text = capsys.readouterr().out
    assert text.count("stochastic_volatility auto-kh 20:") == 1  # not measured again
    for title in ("medians of paired ratios", "Geometric means over scenarios", "at equal time"):
        assert title in text


def test_ratios_at_equal_time_are_to_the_error_that_the_baseline_has_then(benchmark_module):
    """Bootstrap with error n^(-1/2) in n microseconds: at 400 us it has 400 particles and an error of 0.05."""
    base = [("bootstrap", n, n**-0.5, 1e-3 * n) for n in (100, 200, 800)]
    rows = [*base, ("sqmc", 50, 0.01, 0.4), ("auto-kh", 100, 0.02, 0.4), ("auto-kh", 20, 0.1, 0.05)]
    table = pd.DataFrame(rows, columns=["filter", "n_particles", "reference_error", "ms_per_step"])
    found = benchmark_module("bench_default").at_equal_time(table, "auto-kh", pd.DataFrame(), 0.0)
    np.testing.assert_allclose(found["ratio"], [0.1 / 0.1, 0.02 / 0.05])
    assert list(found["better"]) == [[], ["sqmc 50"]]
    dearer = benchmark_module("bench_default").at_equal_time(table, "auto-kh", pd.DataFrame(), 2.0)
    assert dearer["ratio"].iloc[1] == pytest.approx(
        0.02 / 200**-0.5
    )  # 600 us, and 3 us a particle for bootstrap


def test_break_even_cost_is_where_the_times_are_equal(benchmark_module):
    """Bootstrap with error n^(-1/2) in n microseconds, against half that error in 1 ms: 100 particles for 400."""
    module = benchmark_module("study_report")
    n = np.array([50.0, 100.0, 200.0])
    base = np.column_stack([n, n**-0.5, 1e-3 * n])
    cost, best, needed, beyond = module.break_even(np.array([[100.0, 0.05, 1.0]]), base)
    assert (best, beyond) == (100, True)
    assert needed == pytest.approx(400)
    assert 1e3 * 1.0 + cost * 100 == pytest.approx(400 + cost * 400)  # microseconds
    assert module.break_even(np.array([[100.0, 0.05, 0.3]]), base)[0] == 0
    assert module.break_even(np.array([[100.0, 0.2, 0.01]]), base)[0] == np.inf


def test_engine_study_measures_every_part(run):
    text = run("bench_engine", "overhead", "summary", "speed", "--quick")
    for title in ("Engine overhead", "100 runs in one store", "Two workers against one"):
        assert title in text
    assert "True" in text.split("tables identical")[1]


def test_only_herded_filters_count_as_herded(benchmark_module):
    herded = benchmark_module("study_report").herded
    assert all(map(herded, ("herded-kh", "mixture-em-kh", "augmented-chg", "kalman-mixture-kh")))
    assert not any(map(herded, ("bootstrap", "herded-random", "augmented-sobol", "sqmc", "ukf")))


def test_evidence_study_knows_exact_unbiased_and_deterministic_estimates(run, benchmark_module):
    filters = ["bootstrap", "augmented-kh", "ukf"]
    small = ["--particles", 10, "--runs", 4, "--steps", 3, "--workers", 1]
    text = run("bench_evidence", "--scenarios", "linear-1", "--filters", *filters, *small)
    assert text.count("same for every seed") == 2
    error, interval = benchmark_module("bench_evidence").likelihood_ratio(np.log([0.5, 1.5, 0.8, 1.2]) - 800)
    assert error == pytest.approx(-800)
    assert interval.startswith("-800")
