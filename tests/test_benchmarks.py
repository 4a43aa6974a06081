"""Every benchmark at tiny size: what it measures, what it writes, and that it is resumed."""

import hashlib
import re
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from helpers import cases, on_a_line, refusal
from numpy.random import default_rng
from numpy.testing import assert_allclose
from scipy.stats import kstest

import herdfilter as hf
from herdfilter import ContinuousHerdedGibbs, GaussianMixture, KernelHerding, Points, herding_error
from herdfilter.study.scenario import load_scenario

FOLDER = Path(__file__).parents[1] / "benchmarks"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not FOLDER.is_dir(), reason="the benchmarks are not part of this installation"
    ),
]


@pytest.fixture
def benchmark_module(scripts):
    """A function: a module of the benchmarks by name."""
    return lambda name: scripts(f"benchmarks/{name}")


@pytest.fixture
def run(benchmark_module, tmp_path):
    """A function: run a script into an empty folder, return its results files by name."""

    def script(name, *arguments):
        benchmark_module(name).main([*map(str, arguments), "--results", str(tmp_path)])
        return {path.stem: pd.read_csv(path) for path in tmp_path.glob("*.csv")}

    return script


@pytest.fixture
def study(run, tmp_path):
    """A function: run a script of filters, with its stores in an empty folder."""
    return lambda name, *arguments: run(
        name, *arguments, "--stores", tmp_path / "stores", "--workers", 1
    )


def test_there_are_at_most_eight_scripts_and_the_list_of_files_names_each():
    names = {path.name for path in FOLDER.glob("bench_*.py")}
    listed = (FOLDER.parent / "docs" / "tables" / "files.csv").read_text(encoding="utf-8")
    assert len(names) <= 8
    assert {name for name in names if f"`python benchmarks/{name}" not in listed} == set()


def test_a_digest_follows_the_code_and_not_its_comments(benchmark_module, tmp_path, monkeypatch):
    dependencies = benchmark_module("dependencies")
    package = tmp_path / "herdfilter"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "ground.py").write_text("X = 1\n")
    (package / "other.py").write_text("Y = 1\n")
    (package / "top.py").write_text(
        '"""Top."""\n\n\ndef f():\n    """Say."""\n    from herdfilter import ground\n    return ground.X\n'
    )
    (tmp_path / "toy.toml").write_text("a = 1\n")
    monkeypatch.setattr(dependencies, "ROOT", tmp_path)

    def digest(path="toy.toml", text=None):
        if text is not None:
            (tmp_path / path).write_text(text)
        for remembered in (dependencies.modules, dependencies.read, dependencies.digest):
            remembered.cache_clear()
        return dependencies.digest("top", "toy.toml")

    first = digest()
    assert [path.name for path in dependencies.needed(["top"])] == ["ground.py", "top.py"]
    same = '"""Told anew."""\n\n\ndef f():  # first\n    """More."""\n'
    same += "    from herdfilter import ground\n    return ground.X\n"
    assert digest("herdfilter/top.py", same) == digest("herdfilter/other.py", "Y = 2\n") == first
    assert (
        len({first, digest("herdfilter/ground.py", "X = 2\n"), digest("toy.toml", "a = 2\n")}) == 3
    )
    listed = digest("toy.toml", "[mine]\nparts = 1\n[yours]\n")
    assert (
        digest("toy.toml", '[yours]\n[mine]\ngroup = "Ours"\nabout = "words"\nparts = 1\n')
        == listed
    )
    assert digest("toy.toml", "[mine]\nparts = 2\n[yours]\n") != listed
    with refusal("got 'no such'"):
        dependencies.needed(["no such"])
    for remembered in (dependencies.modules, dependencies.read, dependencies.digest):
        remembered.cache_clear()


def test_rows_of_older_code_do_not_stay_beside_new_ones(benchmark_module, tmp_path, monkeypatch):
    common = benchmark_module("common")
    make_figures = benchmark_module("make_figures")
    monkeypatch.setitem(
        make_figures.PARTS, "toy", make_figures.Part("python benchmarks/toy.py", "toy", "points")
    )
    rows = [pd.DataFrame({"n": [n], "error": [0.5]}) for n in (1, 2, 3)]
    for table in rows[:2]:
        common.save("toy", table, tmp_path, ["n"])
    assert len(common.current("toy", tmp_path)) == 2
    common.write(tmp_path / "measured.csv", common.measured(tmp_path).assign(digest="older"))
    assert common.current("toy", tmp_path).empty
    assert common.save("toy", rows[2], tmp_path, ["n"])["n"].to_list() == [3]


def test_figures_are_made_part_by_part_or_kept_with_a_reason(
    benchmark_module, tmp_path, monkeypatch, capsys
):
    make_figures = benchmark_module("make_figures")
    parts = {
        name: make_figures.Part(f"python benchmarks/{name}.py", name, "points")
        for name in ("good", "bad")
    }
    monkeypatch.setattr(make_figures, "PARTS", parts)
    monkeypatch.setattr(make_figures, "RESULTS", tmp_path)
    monkeypatch.setattr(make_figures, "LOGS", tmp_path / "logs")
    begun = []

    def process(command, **keywords):
        name = Path(command[1]).stem
        begun.append(name)
        return SimpleNamespace(returncode=int(name == "bad"))

    monkeypatch.setattr(make_figures.subprocess, "run", process)
    assert make_figures.main([]) == 1
    assert sorted(begun[:2]) + begun[2:] == ["bad", "good", "make_pages"]
    assert "failed: bad" in capsys.readouterr().err
    assert make_figures.main([]) == 1  # what is done is not made again
    assert begun[3:] == ["bad", "make_pages"]
    make_figures.main(["--keep", "as in 1999", "bad"])
    assert make_figures.main([]) == 0
    assert make_figures.listing().set_index("part")["state"].to_dict() == {
        "good": "",
        "bad": "kept",
    }
    monkeypatch.setitem(
        parts, "good", make_figures.Part("python benchmarks/good.py", "good", "points bandwidths")
    )
    assert [make_figures.stale(name) for name in parts] == [True, False]


def test_commands_beneath_tables_are_understood_and_make_their_tables(benchmark_module):
    """Each is parsed by its own script, up to a --help at its end, and the script writes a file of that name."""
    measured = pd.read_csv(FOLDER / "results" / "measured.csv")
    for name, commands in measured.loc[
        ~measured["table"].isin(["demo", "choice"]), ["table", "command"]  # these are texts
    ].itertuples(index=False):
        for command in commands.split(" && "):
            python, script, *arguments = command.split()
            assert python == "python"
            path = FOLDER.parent / script
            if path.parent != FOLDER:
                assert path.is_file()
                continue
            written = path.read_text(encoding="utf-8")
            assert re.search(rf'save\(\s*"{name}"|save\(f"{name.split("_")[0]}_', written), (
                name,
                script,
            )
            with pytest.raises(SystemExit) as end, redirect_stdout(StringIO()):
                benchmark_module(path.stem).main([*arguments, "--help"])
            assert end.value.code == 0, command


PARTS = {
    "speed_samplers": "bench_speed samplers --quick --points 3 --mixtures 1 --repeats 1",
    "speed_plain": "bench_speed plain --quick --points 3 --mixtures 1 --repeats 1",
    "speed_components": "bench_speed components --quick --points 3 --mixtures 1 --repeats 1",
    "speed_growth": "bench_speed growth --quick --largest 100",
    "speed_step": "bench_speed step --quick --repeats 1",
    "speed_sqmc": "bench_speed sqmc --quick --repeats 1",
    "speed_compiled": "bench_speed compiled --quick --repeats 2",
    "thinning": "bench_peers thin --sample 300 --thin-dims 2 --seeds 1",
    "thinning_large": "bench_peers large --large 300 --large-dim 2 --members 20 --directions 8",
    "adapters": "bench_peers adapters --libraries filterpy --runs 1 --many 300",
    "engine_overhead": "bench_engine overhead --quick",
    "default": "bench_default --part equal --reference 256 --better --particles 10 --runs 2 --models 3 --workers 1"
    " --filters bootstrap sqmc --default sqmc",
    "default_other_kinds": "bench_default --part kinds --reference 256 --better --kind-models 2 --kind-particles 10"
    " --filters bootstrap ranked --default ranked --kinds localisation simulation-only --workers 1",
    "default_scenarios": "bench_default --part scenarios --scenarios stochastic_volatility --scenario-particles 10"
    " --scenario-runs 2 --workers 1",
    "peers_filters": "bench_peers filters --of herdfilter --models ungm --counts 20 --peer-runs 2",
    "hostile": "bench_quality --hostile 12 --dims 2 --workers 1",
    "evidence": "bench_known evidence --particles 10 --runs 4 --steps 3 --filters bootstrap ukf --workers 1",
    "forecasts": "bench_known forecast --forecasts 3 --forecast-cases linear-d2 --workers 1",
    "long_runs": "bench_known long --long-particles 20 --long-models zeros --long-steps 200 --workers 1",
    "association": "bench_known association --matrices 4 --matrices-of dense --workers 1",
    "settling": "bench_known settling --settling 50 --series 1 --reference 5000 --workers 1",
    "modes": "bench_known modes --families linear --models 1 --mode-particles 60 --workers 1",
    "linear_parts": "bench_known linear --linear-runs 2 --linear-particles 30 --linear-reference 300 --workers 1",
    "dear_model": "bench_known dear --dear-beams 4 --dear-runs 1 --dear-most 50 --dear-reference 50 --workers 1",
    "as_published": "bench_known papers --papers classic.kitagawa --most 1 --workers 1",
}
"""Results file -> the smallest run that writes it."""


@cases("table", *PARTS)
def test_a_part_writes_its_table(run, tmp_path, table):
    script, *arguments = PARTS[table].split()
    stores = ("--stores", tmp_path / "stores") if script in ("bench_default", "bench_known") else ()
    assert len(run(script, *arguments, *stores)[table]) > 0


def test_fitted_exponent_is_that_of_a_power_law(benchmark_module):
    """Residuals of 1, -2 and 1 % leave the slope as it is; their standard error by hand, with one degree of freedom."""
    sizes = [100, 1000, 2000, 4000]
    residuals = np.array([0.01, -0.02, 0.01])
    values = np.array(sizes[1:]) ** 1.5 * np.exp(residuals)
    fit = benchmark_module("growth").exponent(sizes, [9.0, *values])
    # Student's t is Cauchy's distribution
    half = np.tan(0.475 * np.pi) * np.sqrt((residuals**2).sum() / 2) / np.log(2)
    assert_allclose(fit, [1.5, 1.5 - half, 1.5 + half], rtol=1e-9)


def test_plain_version_finds_the_points_of_the_samplers(benchmark_module):
    """The two searches share nothing but the definition: the same herded Gibbs points, the same herding error."""
    naive = benchmark_module("naive")
    mixture = GaussianMixture(
        [0.6, 0.4], [[0, 0], [3, 1]], [[[1, 0.5], [0.5, 1]], [[0.5, 0], [0, 2]]]
    )
    x = naive.herded_gibbs(mixture, 6, 0.5)
    assert_allclose(
        x, ContinuousHerdedGibbs(target="paper", bandwidth=0.5).sample(mixture, 6).x, atol=1e-3
    )
    plain = herding_error(Points(naive.kernel_herding(mixture, 6, 0.5)), mixture, 0.5)
    assert plain == pytest.approx(
        herding_error(KernelHerding(bandwidth=0.5).sample(mixture, 6), mixture, 0.5), rel=0.02
    )


def test_errors_are_debiased_by_two_references(benchmark_module):
    """With r the mean of r1 and r2, and half of their difference as its error, it is the mean of (m - r1)(m - r2)."""
    rng = default_rng(0)
    over_random = benchmark_module("over_random")
    rows = []
    for model, noise in enumerate((0.0, 0.5, 5.0)):
        truth = rng.standard_normal(4000)
        r1, r2 = (truth + noise * rng.standard_normal(4000) for _ in range(2))
        for name, error in (("bootstrap", 1.0), ("auto", 0.5)):
            m = truth + error * rng.standard_normal(4000)
            own = np.sqrt(np.mean((0.5 * (r1 - r2)) ** 2))
            row = {
                "filter": name,
                "n_particles": 10,
                "model": model,
                "run": 0,
                "error": "",
                "cross": np.mean((m - r1) * (m - r2)),
            }
            raw = np.sqrt(np.mean((m - 0.5 * (r1 + r2)) ** 2))
            rows.append(row | {"reference_error_sd": raw, "reference_uncertainty": own})
    table = over_random.debiased(pd.DataFrame(rows))
    sure = table[table["model"] < 2]
    assert_allclose(sure["reference_error_sd"] ** 2, sure["cross"], rtol=1e-9)
    assert_allclose(sure["reference_error_sd"], 2 * [1.0, 0.5], rtol=0.05)
    doubtful = over_random.uncertain(table)["auto", 10]
    assert doubtful.to_list() == [False, False, True]
    assert over_random.ratios(table[table["model"] == 1], "auto", "bootstrap")[
        "ratio"
    ].item() == pytest.approx(0.5, rel=0.05)


@cases("name", "particles", "filterpy", "stonesoup")
@cases("model", "ungm", "bearings", "linear_chain")
def test_scripts_of_other_libraries_have_the_models_of_the_scenarios(benchmark_module, name, model):
    """With many particles they find our filter's estimates and log-likelihood; so the model functions are the same.

    Over seeds of ours the log-likelihood has a standard deviation below 0.06, and the means of 0.04.
    """
    pytest.importorskip(name)
    script = benchmark_module(f"peers_{name}")
    build = {"particles": lambda *given: script.of_particles(*given, qmc=False)}.get(
        name
    ) or script.bootstrap
    scenario = load_scenario(model)
    _, z = hf.simulate(scenario.build_model(), 5, rng=0, dt=scenario.dt)
    ours = hf.ParticleFilter(scenario.build_model(), 20_000, rng=0).run(z, dt=scenario.dt)
    means, log_likelihood = build(model, scenario.dt, 20_000)(z, 1)
    log_likelihood = log_likelihood() if callable(log_likelihood) else log_likelihood
    sd = np.sqrt(np.diagonal(ours.covariances, axis1=1, axis2=2))
    assert np.sqrt(np.mean(((np.asarray(means) - ours.means) / sd) ** 2)) < 0.15
    assert float(log_likelihood) == pytest.approx(ours.log_likelihood, abs=0.3)


def test_bootstrap_filters_of_all_libraries_have_the_errors_of_ours():
    """They are one algorithm: of the results, no interval over runs is farther from 1 than a tenth."""
    found = pd.read_csv(FOLDER / "results" / "peers_agreement.csv")
    assert len(set(found["filter"])) > 5
    assert (found["ratio_low"] < 1.1).all()
    assert (found["ratio_high"] > 0.9).all()


def test_error_at_equal_time_has_an_interval_over_runs(benchmark_module):
    """A filter of error n^-1/2 in n microseconds: 0.1 at 0.1 ms, by interpolation at 0.04 ms, and no count fits 0.001 ms."""
    n, run = np.meshgrid([10, 100], np.arange(10), indexing="ij")
    n = n.ravel()
    run = run.ravel()
    table = pd.DataFrame(
        {"scenario": "toy", "library": "l", "filter": "a", "n": n, "run": run, "ms": n / 1000}
    )
    table["reference_error_sd"] = n**-0.5 * np.exp(0.1 * (run - 4.5))
    found = (
        benchmark_module("peer_filters")
        .at_equal_time(table, (0.001, 0.04, 0.1, 1.0))
        .set_index("budget")
    )
    assert np.isnan(found.loc[0.001, "error"])
    assert found["error"].to_list()[1:] == pytest.approx([40**-0.5, 0.1, 0.1], rel=0.01)
    assert found["to_spare"].to_list() == [False, False, False, True]
    inside = found.iloc[1:]
    assert (inside["error_low"] < inside["error"]).all()
    assert (inside["error_high"] > inside["error"]).all()


def test_ratios_by_model_have_an_interval_from_six_runs_on(benchmark_module):
    """Of eight: the geometric mean of the middle two, the least and the largest; a run that failed is infinitely worse."""
    run = np.arange(8)
    theirs = {"model": 5, "reference_error_sd": 1.0, "filter": "b", "error": ""}
    ours = pd.DataFrame({"run": run, **theirs}).assign(filter="a", reference_error_sd=1.5 + run)
    ours.loc[7, "error"] = "DegenerateWeightsError"
    table = pd.concat([ours, pd.DataFrame({"run": run, **theirs})])
    found = benchmark_module("over_random").ratios(table, "a", "b")
    assert found.loc[5].to_list() == pytest.approx([np.sqrt(4.5 * 5.5), 1.5, np.inf])


def test_least_error_within_a_budget(benchmark_module):
    """Error n^(-1/2) in n microseconds: 0.4 ms are 400 particles, whichever were measured."""
    least_error = benchmark_module("over_random").least_error
    n = np.array([100.0, 200.0, 800.0])
    curve = (n, n**-0.5, 1e-3 * n)
    assert least_error(*curve, 0.4) == pytest.approx(400**-0.5)
    assert least_error(*curve, 5.0) == pytest.approx(800**-0.5)
    assert np.isnan(least_error(*curve, 0.09))
    assert least_error(n, [0.1, 0.02, 0.05], 1e-3 * n, 5.0) == 0.02
    assert least_error(n, [0.1, np.inf, np.inf], 1e-3 * n, 0.15) == 0.1


def test_smoothers_are_measured_against_exact_means(study, benchmark_module):
    small = ["--runs", 1, "--smoothed", "double_well", "--particles", 20]
    table = study("bench_known", "smoothers", *small)["smoothers"].set_index(["filter", "smoother"])
    assert table.loc[("bootstrap", "trajectories"), "ratio"] == 1
    assert table.loc[("auto", "marginal"), "rms"] < 0.2 * table.loc[("auto", "none"), "rms"]
    module = benchmark_module("smoothers")
    z = np.array([[0.4], [1.0], [2.0], [-1.0]])  # on a grid as by Rauch, Tung and Striebel
    line = on_a_line(F=0.9, Q=0.5, R=0.7, mean=1.0, variance=2.0)
    found = [
        module.exact_means(module.Case(line, 4, grid=grid), z) for grid in (None, (-9.0, 9.0, 401))
    ]
    assert_allclose(*found, atol=3e-7)


def test_posteriors_of_long_runs_are_exact(benchmark_module):
    """Against Kalman's filter, the grid filter and the distribution function of a Gaussian."""
    module = benchmark_module("long_runs")
    for name, exact in (
        ("linear", hf.ExtendedKalmanFilter),
        ("growth", lambda m: hf.GridFilter(m, -45, 45, 1801)),
    ):
        run = module.LongRun(name, 20, 3)
        case = module.cases()[name]
        observations, ((masses, mean, sd),) = run.block(case, 60)
        known = exact(hf.models.UNGM() if name == "growth" else case.model).run(observations)
        assert np.abs((known.means[:, 0] - mean) / sd).max() < 0.002
        assert np.allclose(sd, np.sqrt(known.covariances[:, 0, 0]), rtol=0.002)
        if name == "linear":
            x = np.sort(
                mean[:, None] + sd[:, None] * default_rng(0).standard_normal((60, 20)), axis=1
            )
            equal = np.full(x.shape, 1 / 20)
            found = module.kolmogorov(masses, -case.reach, case.spacing, x, equal)
            known = [
                kstest(row, "norm", (m, s)).statistic for row, m, s in zip(x, mean, sd, strict=True)
            ]
            assert np.allclose(found, known, atol=1e-4)


def test_verdict_on_a_published_figure_counts_both_errors_and_its_rounding(benchmark_module):
    verdict = benchmark_module("as_published").verdict
    ours = (5.40, 5.30, 5.50)
    assert [verdict(figure, ours) for figure in ("5.50", "5.6", None)] == [
        "agrees",
        "differs",
        "not read",
    ]
    assert verdict("5.5", (5.45, 5.45, 5.45)) == "agrees"  # rounded to a tenth
    assert verdict("1.2e-3", (0.00126,) * 3) == "differs"
    assert verdict("5.6", ours, their_error=0.1) == "agrees"
    row = benchmark_module("as_published").row(
        "A (2000)", "table I", "RMSE", "5.6", ours, 100, their_runs=25
    )
    assert row["verdict"] == "agrees"  # theirs has twice our error


def test_association_repeats_the_program_of_wolf_and_baum(study):
    table = study("bench_known", "papers", "--papers", "herding.wolf", "--most", 2)["as_published"]
    assert (table["verdict"].iloc[:3] == "agrees").all()
    # herded errors fall faster than random ones
    assert table["ours"].iloc[-2] < table["ours"].iloc[-1] < 0


# The board: its definition is frozen, its numbers are those of the runs, and a filter of one's own can be entered.

FROZEN = {1: "ee8977964872"}
"""Version of the board -> digest of its definition. Whoever changes the definition adds a version."""

MINE = """
import herdfilter as hf

def mine(model, n, rng):
    return hf.ParticleFilter(model, n, rng=rng)
"""


def test_the_definition_of_the_board_is_that_of_its_version(benchmark_module):
    board = benchmark_module("board")
    digest = hashlib.sha256(f"{board.DEFINITION} {board.BASELINE}".encode()).hexdigest()
    assert FROZEN[board.DEFINITION.version] == digest[:12]


def test_a_filter_in_a_file_gets_its_row(benchmark_module, monkeypatch, tmp_path, capsys):
    """Model 11 has an exact reference on a small grid."""
    board = benchmark_module("board")
    monkeypatch.setattr(board, "DEFINITION", replace(board.DEFINITION, ladder=(50, 500), runs=1))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    options = (
        "--models",
        "1",
        "--seed",
        "11",
        "--particles",
        "50",
        "--workers",
        "1",
        "--out",
        "out",
    )
    board.main(["mine.py:mine", *options])
    assert "This is a trial; a row of the board has 200 models" in capsys.readouterr().out
    (row,) = pd.read_csv("out/board.csv").to_dict("records")
    assert (row["filter"], row["board"], row["seed"], row["trial"]) == ("mine.py:mine", 1, 11, True)
    assert 0.3 < row["error_50"] < 3  # a bootstrap filter, too


def test_errors_in_equal_time_are_those_of_models_that_agree_with_their_compiled_forms(
    study, benchmark_module
):
    compiled_models = benchmark_module("compiled_models")
    for name, case in compiled_models.CASES.items():
        model, compiled = compiled_models.forms(name)
        x = model.initial.sample(20, default_rng(0)) + 0.3
        for method, told in (("transition_mean", (case.dt, None, 3)), ("observation_mean", (3,))):
            ours, theirs = (getattr(form, method)(x, *told) for form in (model, compiled))
            assert_allclose(theirs, ours, rtol=1e-12, atol=1e-12)
    counts = ["--compiled-many", 50, 100, "--compiled-shown", 50, 100]
    small = ["--compiled-cases", "ungm", "--compiled-runs", 1, "--compiled-reference", 2000]
    found = study("bench_default", "--part", "compiled", *small, *counts)
    cells = found["compiled_cases"].set_index(["filter", "n"])
    assert len(cells) == 10
    assert (cells["error"] > 0).all()
    assert found["compiled"]["cases"].eq(1).all()
