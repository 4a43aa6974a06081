"""Every benchmark at tiny size: what it measures, what it writes, and that it is resumed."""

import importlib
import json
import os
import re
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from fnmatch import fnmatch
from functools import cache
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from herdfilter.study.data.harbour import load_harbour
from scipy.stats import kstest

import herdfilter as hf
from herdfilter import ContinuousHerdedGibbs, GaussianMixture, KernelHerding, Points, herding_error
from herdfilter.study.board import DEFINITION
from herdfilter.study.scenario import load_scenario

FOLDER = Path(__file__).parents[1] / "benchmarks"
REFERENCE = Path(__file__).parent / "reference" / "authors_samples.json"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not part of this installation")


@pytest.fixture
def benchmark_module(monkeypatch):
    """A function: a module of the benchmarks by name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return __import__


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
    return lambda name, *arguments: run(name, *arguments, "--stores", tmp_path / "stores", "--workers", 1)


def test_there_are_at_most_eight_scripts_and_the_page_names_each():
    names = {path.name for path in FOLDER.glob("bench_*.py")}
    page = (FOLDER.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert len(names) <= 8
    assert {name for name in names if f"`python benchmarks/{name}`" not in page} == set()


def test_results_files_say_when_and_with_what_they_were_measured(benchmark_module, tmp_path):
    common = benchmark_module("common")
    common.save("toy", pd.DataFrame({"n": [1, 2], "error": [0.123456, 2.0]}), tmp_path, ["n"])
    table = common.save("toy", pd.DataFrame({"n": [2], "error": [3.0]}), tmp_path, ["n"])
    assert table.to_dict("list") == {"n": [1, 2], "error": [0.1235, 3.0]}  # the row that is not new stays
    assert common.load("toy", tmp_path).equals(table)
    assert common.measured(tmp_path)["table"].to_list() == ["toy"]
    assert list(common.measured(tmp_path)) == common.MEASURED


def test_a_digest_follows_the_code_and_not_its_comments(benchmark_module, tmp_path, monkeypatch):
    dependencies = benchmark_module("dependencies")
    package = tmp_path / "herdfilter"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "ground.py").write_text("X = 1\n")
    (package / "other.py").write_text("Y = 1\n")
    (package / "top.py").write_text('"""Top."""\n\n\ndef f():\n    """Say."""\n    from herdfilter import ground\n')
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
    same = '"""Top, told anew."""\n\n\ndef f():  # first\n    """Say more."""\n    from herdfilter import ground\n'
    assert digest("herdfilter/top.py", same) == digest("herdfilter/other.py", "Y = 2\n") == first
    assert len({first, digest("herdfilter/ground.py", "X = 2\n"), digest("toy.toml", "a = 2\n")}) == 3
    listed = digest("toy.toml", "[mine]\nparts = 1\n[yours]\n")
    assert digest("toy.toml", '[yours]\n[mine]\ngroup = "Ours"\nabout = "words"\nparts = 1\n') == listed
    assert digest("toy.toml", "[mine]\nparts = 2\n[yours]\n") != listed
    with pytest.raises(ValueError, match="got 'no such'"):
        dependencies.needed(["no such"])
    for remembered in (dependencies.modules, dependencies.read, dependencies.digest):
        remembered.cache_clear()


def test_rows_of_older_code_do_not_stay_beside_new_ones(benchmark_module, tmp_path, monkeypatch):
    common, make_figures = benchmark_module("common"), benchmark_module("make_figures")
    monkeypatch.setitem(make_figures.PARTS, "toy", make_figures.Part("python benchmarks/toy.py", "toy", "points"))
    rows = [pd.DataFrame({"n": [n], "error": [0.5]}) for n in (1, 2, 3)]
    for table in rows[:2]:
        common.save("toy", table, tmp_path, ["n"])
    assert len(common.current("toy", tmp_path)) == 2
    common.write(tmp_path / "measured.csv", common.measured(tmp_path).assign(digest="older"))
    assert common.current("toy", tmp_path).empty
    assert common.save("toy", rows[2], tmp_path, ["n"])["n"].to_list() == [3]


def test_figures_are_made_part_by_part_or_kept_with_a_reason(benchmark_module, tmp_path, monkeypatch, capsys):
    make_figures = benchmark_module("make_figures")
    parts = {name: make_figures.Part(f"python benchmarks/{name}.py", name, "points") for name in ("good", "bad")}
    monkeypatch.setattr(make_figures, "PARTS", parts)
    monkeypatch.setattr(make_figures, "RESULTS", tmp_path)
    begun = []

    def process(command, **keywords):
        begun.append(Path(command[1]).stem)
        return SimpleNamespace(returncode=int(begun[-1] == "bad"))

    monkeypatch.setattr(make_figures.subprocess, "run", process)
    assert make_figures.main([]) == 1
    assert begun == ["good", "bad", "make_pages"]
    assert "failed: bad" in capsys.readouterr().err
    assert make_figures.main([]) == 1  # what is done is not made again
    assert begun[3:] == ["bad", "make_pages"]
    make_figures.main(["--keep", "as in 1999", "bad"])
    assert make_figures.main([]) == 0
    assert make_figures.listing().set_index("part")["state"].to_dict() == {"good": "", "bad": "kept"}
    monkeypatch.setitem(parts, "good", make_figures.Part("python benchmarks/good.py", "good", "points angles"))
    assert [make_figures.stale(name) for name in parts] == [True, False]


def test_commands_beneath_tables_are_understood_and_make_their_tables(benchmark_module):
    """Each is parsed by its own script, up to a --help at its end, and the script writes a file of that name."""
    measured = pd.read_csv(FOLDER / "results" / "measured.csv")
    page = (FOLDER.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for name, commands in measured.loc[measured["table"] != "demo", ["table", "command"]].itertuples(index=False):
        for command in commands.split(" && "):
            python, script, *arguments = command.split()
            assert python == "python"
            path = FOLDER.parent / script
            if path.parent != FOLDER:
                assert path.is_file()
                continue
            written = path.read_text(encoding="utf-8")
            assert re.search(rf'save\(\s*"{name}"|save\(f"{name.split("_")[0]}_', written), (name, script)
            with pytest.raises(SystemExit) as end, redirect_stdout(StringIO()):
                benchmark_module(path.stem).main([*arguments, "--help"])
            assert end.value.code == 0, command
            (row,) = [line for line in page.splitlines() if line.startswith(f"| `python {script}`")]
            files = re.findall(r"`([\w*]+)\.csv`", row)
            assert any(fnmatch(name, pattern) for pattern in files), (name, row)


def test_speed_of_samplers_beside_the_plain_version(run):
    small = ["--quick", "--points", 3, "--mixtures", 1, "--repeats", 1]
    found = run("bench_speed", "samplers", "plain", "components", *small)
    assert found["speed_plain"]["agree"].all()
    assert (found["speed_samplers"]["median"] > 0).all()
    assert set(found["speed_components"]["modes"]) == {1, 2}


def test_growth_in_time_and_memory(run, benchmark_module, monkeypatch):
    growth = benchmark_module("growth")
    apart = growth.fresh("KH", "auto", 10, 0)  # a process for one size; the others in this one
    assert apart["seconds"] > 0
    monkeypatch.setattr(growth, "fresh", growth.run)
    table = run("bench_speed", "growth", "--quick", "--largest", 100)["speed_growth"]
    assert set(table["sampler"]) == {"KH", "CHG"}
    assert (table["seconds"] > 0).all()


def test_a_step_of_a_tracker_in_time_and_memory(run):
    table = run("bench_speed", "tracker", "--quick")["speed_tracker"]
    assert (table["detections"] == 2 * table["tracks"]).all()
    assert (table[["ms", "MB"]] > 0).all(axis=None)


def test_fitted_exponent_is_that_of_a_power_law(benchmark_module):
    """Residuals of 1, -2 and 1 % leave the slope as it is; their standard error by hand, with one degree of freedom."""
    sizes, residuals = [100, 1000, 2000, 4000], np.array([0.01, -0.02, 0.01])
    values = np.array(sizes[1:]) ** 1.5 * np.exp(residuals)
    fit = benchmark_module("growth").exponent(sizes, [9.0, *values])
    half = np.tan(0.475 * np.pi) * np.sqrt((residuals**2).sum() / 2) / np.log(2)  # Student's t is Cauchy's distribution
    np.testing.assert_allclose(fit, [1.5, 1.5 - half, 1.5 + half], rtol=1e-9)


@pytest.fixture
def uncompiled_peer(monkeypatch):
    """Spares the four seconds that `particles` takes to compile its Hilbert curve, in every process anew."""
    with suppress(ImportError):
        hilbert = importlib.import_module("particles.hilbert")
        for name, function in list(vars(hilbert).items()):
            monkeypatch.setattr(hilbert, name, getattr(function, "py_func", function))


def test_time_of_a_step_covers_both_models_and_a_missing_peer_is_named(run, benchmark_module, capsys, uncompiled_peer):
    table = run("bench_speed", "step", "--quick", "--repeats", 1)["speed_step"]
    assert {"the model alone", "bootstrap", "ekf"} <= set(table["filter"])
    assert set(table["model"]) == {"bearings", "linear Gaussian"}
    text = capsys.readouterr().out
    for missing in benchmark_module("peers").missing():
        assert f"left out, {missing}" in text


def test_quasi_monte_carlo_is_timed_beside_a_peer_where_that_is_installed(run, benchmark_module, uncompiled_peer):
    table = run("bench_speed", "sqmc", "--quick", "--repeats", 1)["speed_sqmc"]
    assert set(table["model"]) == {"ungm", "bearings", "linear Gaussian"}
    assert (table["ms"] > 0).all()
    assert benchmark_module("peers").particles is None or (table["ratio"] > 0).all()


def test_compiled_models_are_timed_beside_those_in_numpy(run):
    table = run("bench_speed", "compiled", "--quick", "--repeats", 2)["speed_compiled"]
    assert set(table["model"]) == {"ungm", "bearings"}
    assert (table[["numpy_us", "compiled_us", "ratio"]] > 0).all(axis=None)


def test_peers_are_compared_where_they_are_installed(run):
    table = run("bench_peers", "samplers", "--sizes", 4, "--dims", 2, "--seeds", 1)["peers"]
    assert set(table["target"]) == {"5 components, d = 2", "N(0, I), d = 2"}
    assert {"KH", "CHG", "i.i.d. random"} <= set(table["method"])


def test_thinning_is_measured_beside_every_kth_point(run):
    table = run("bench_peers", "thin", "--sample", 300, "--thin-dims", 2, "--seeds", 1)["thinning"]
    wide = table.pivot_table(index=["sample", "m"], columns="method", values="energy_distance")
    assert len(wide) == 7 * 3
    assert (wide["thin"] < wide["every k-th"]).all()


def test_large_samples_are_thinned_beside_random_members_and_the_whole(run):
    small = ("--large", 300, "--large-dim", 2, "--members", 20, "--directions", 8)
    table = run("bench_peers", "large", *small)["thinning_large"]
    assert len(table) == 7
    assert (table["over_random"] < 1).all()
    assert np.allclose(table["over_whole"], 1)  # few points are thinned as a whole


def test_filters_of_a_library_are_measured_beside_ours(run, benchmark_module, monkeypatch):
    for name, small in {"STEPS": 8, "N": 20}.items():
        monkeypatch.setattr(benchmark_module("adapters_filterpy"), name, small)
    table = run("bench_peers", "adapters", "--libraries", "filterpy", "--runs", 1, "--many", 300)["adapters"]
    assert {"filterpy UKF", "ukf", "auto, columns"} <= set(table["filter"])
    assert (table["ratio"] > 0).all()


def test_filter_of_stone_soup_is_measured_beside_ours(benchmark_module, monkeypatch):
    pytest.importorskip("stonesoup", reason="the optional library Stone Soup is not installed")
    module = benchmark_module("adapters_stonesoup")
    for name, small in {"MANY": 64, "N": 20, "STEPS": 2, "SCENES": {"tutorial": module.tutorial}}.items():
        monkeypatch.setattr(module, name, small)
    rows = pd.DataFrame(module.measured(SimpleNamespace(seed=0, runs=2)))
    assert rows["filter"].iloc[0] == "Stone Soup, systematic"
    assert (rows[["error", "to_truth", "ms_per_step"]] > 0).all(axis=None)
    same = rows.set_index("filter").loc[["AutomaticProposal, herded prior", "ParticleFilter, converted models"]]
    np.testing.assert_allclose(*same["error"], rtol=1e-6)


def test_plain_version_finds_the_points_of_the_samplers(benchmark_module):
    """The two searches share nothing but the definition: the same herded Gibbs points, the same herding error."""
    naive = benchmark_module("naive")
    mixture = GaussianMixture([0.6, 0.4], [[0, 0], [3, 1]], [[[1, 0.5], [0.5, 1]], [[0.5, 0], [0, 2]]])
    x = naive.herded_gibbs(mixture, 6, 0.5)
    np.testing.assert_allclose(x, ContinuousHerdedGibbs(target="paper", bandwidth=0.5).sample(mixture, 6).x, atol=1e-3)
    plain = herding_error(Points(naive.kernel_herding(mixture, 6, 0.5)), mixture, 0.5)
    assert plain == pytest.approx(herding_error(KernelHerding(bandwidth=0.5).sample(mixture, 6), mixture, 0.5), rel=0.02)


@pytest.mark.parametrize("name", ["fig1_example", "random_d2_seed1"])
def test_plain_version_reproduces_the_published_programs_points(name, benchmark_module):
    case = next(c for c in json.loads(REFERENCE.read_text())["cases"] if c["name"] == name)
    mixture = GaussianMixture(case["weights"], case["means"], case["covariances"])
    x = benchmark_module("naive").herded_gibbs(mixture, 5, case["sigma_k"], start=case["chg"][0])
    np.testing.assert_allclose(x, case["chg"][:5], atol=1e-3)


def test_quality_goes_on_where_it_was_stopped(run, benchmark_module, monkeypatch):
    small = ["--dims", 1, "--sizes", 5, "--families", "two far modes", "--mixtures", 2, "--workers", 1]
    first = run("bench_quality", *small, "--samplers", "kh", "random")["quality"]
    assert (first.set_index("sampler")["median"] < 0.5).to_dict() == {"kh": True, "random": False}
    module = benchmark_module("bench_quality")
    monkeypatch.setattr(module, "measured", lambda family, dim, n, sampler, seed: (float(sampler == "kh"), 1.0))
    again = run("bench_quality", *small, "--samplers", "kh", "random", "sobol")["quality"]
    assert again[again["sampler"] != "sobol"].equals(first)
    assert run("bench_quality", *small, "--factors", 1.4)["quality"]["sampler"].iloc[-1] == "kh-1.4"


def test_quality_counts_where_a_sampler_fails(run, benchmark_module):
    tables = run("bench_quality", "--hostile", 12, "--dims", 2, "--workers", 1)
    farthest = tables["far"].set_index(["sampler", "distance"])["farthest"]
    assert farthest["kh", 1e5] < 6 < farthest["kh-one-kernel", 100.0]
    assert tables["hostile"].set_index("sampler")["worse"]["kh"] == 0


def test_points_are_compared_between_kernels_in_whichever_order(benchmark_module, monkeypatch):
    kernels = benchmark_module("kernels")
    x = np.arange(20.0).reshape(10, 2)
    points = {"first": x, "reversed": x[::-1] + np.array((3e-5, 4e-5)), "the same": x}

    def process(command, env, check):
        key = "KernelHerding|toy"
        own = points[env["OPENBLAS_CORETYPE"]]
        np.savez(command[command.index("--compute") + 1], **{key: own, f"energy|{key}": own[0, 0] + 1})

    monkeypatch.setattr(kernels.subprocess, "run", process)
    found = kernels.compare("script.py", list(points), mixtures=1).set_index("other")
    assert found["same"].to_dict() == {"reversed": 0, "the same": 1}
    assert found["close"].to_list() == [1, 1]
    assert found["largest"].to_list() == pytest.approx([5e-5, 0.0])
    assert found["energy"].to_list() == pytest.approx([18.0, 0.0], abs=1e-4)


TOY = ["--scenarios", "linear-d1", "--particles", 5, 10, "--more", 20, "--runs", 2]


def test_study_is_resumed_where_it_was_killed(study, tmp_path, benchmark_module, monkeypatch):
    toy = [*TOY, "--filters", "bootstrap", "sqmc"]
    first = study("bench_study", *toy)["study"]
    assert len(first) == 5
    stores = tmp_path / "stores" / "linear-d1"
    (stores / "bootstrap-10.sqlite").unlink()
    begun = []
    compare = benchmark_module("studies").hf.compare

    def counted(*arguments, store, **keywords):
        begun.extend([] if store.is_file() else [store.name])
        return compare(*arguments, store=store, **keywords)

    monkeypatch.setattr(benchmark_module("studies").hf, "compare", counted)
    again = study("bench_study", *toy)["study"]
    assert begun == ["bootstrap-10.sqlite"]
    pd.testing.assert_frame_equal(again.drop(columns="ms"), first.drop(columns="ms"))


def test_rows_of_the_board_are_made_by_the_study(study, tmp_path, monkeypatch):
    definition = replace(DEFINITION, runs=1, ladder=(50, 500))
    monkeypatch.setattr("herdfilter.study.board.DEFINITION", definition)
    small = ["--board", "ukf", "--board-date", 11, "--board-models", 1]
    found = study("bench_study", *small)["board"].set_index("filter")
    assert (found["seed"] == 11).all()
    assert found["trial"].all()
    assert found.loc["ukf", "compared_50"] == found.loc["bootstrap again", "compared_500"] == 1
    assert (tmp_path / "stores" / "board-11.sqlite").is_file()


def test_study_names_what_it_left_out_and_takes_quiet_times(study, capsys):
    toy = [*TOY, "--filters", "bootstrap", "sqmc", "no-such"]
    study("bench_study", *toy, "--budget-ms", "1e-9")
    text = capsys.readouterr().out
    assert "sqmc left out at n = 10" in text
    assert "budget 1e-09" in text
    assert "no-such left out at n = 5: filter: unknown" in text
    found = study("bench_study", *toy[:-1], "--timing")["study"]
    assert (found["ms_low"] <= found["ms"]).all()
    assert (found["ms"] <= found["ms_high"]).all()


def test_default_is_compared_over_models_and_doubted_in_new_runs(study, capsys):
    """The default is bootstrap by another name: it differs by chance alone, and no new runs show it to be worse."""
    small = ["--part", "equal", "--reference", 256, "--better", "--particles", 10, "--runs", 2]
    small += ["--filters", "bootstrap", "sqmc", "bootstrap-ssp", "--default", "bootstrap-ssp"]
    found = study("bench_default", *small, "--models", 4)
    rows = found["default"].set_index("filter")
    assert rows["models"].to_list() == [4, 4, 4]
    assert rows.loc["bootstrap", "to_bootstrap"] == rows.loc["sqmc", "to_sqmc"] == 1
    above = (found["default_models"]["bootstrap-ssp"] > 1).sum()
    assert found["default_again"]["above"].to_list() == found["default_again"]["repeated"].to_list() == [above]
    assert above > 0
    assert found["default_again"]["stay"].to_list() == [0]
    capsys.readouterr()
    fewer = study("bench_default", *small, "--models", 3)  # from the stores of the four
    assert fewer["default"]["models"].to_list() == [3, 3, 3]
    assert "random bootstrap 10:" not in capsys.readouterr().out


def test_fewer_than_two_runs_of_a_model_are_refused(benchmark_module, capsys):
    with pytest.raises(SystemExit):
        benchmark_module("bench_default").main(["--runs", "1"])
    assert "--runs: expected two of each model at least, got 1" in capsys.readouterr().err


def test_errors_are_debiased_by_two_references(benchmark_module):
    """With r the mean of r1 and r2, and half of their difference as its error, it is the mean of (m - r1)(m - r2)."""
    rng, over_random = np.random.default_rng(0), benchmark_module("over_random")
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
    np.testing.assert_allclose(sure["reference_error_sd"] ** 2, sure["cross"], rtol=1e-9)
    np.testing.assert_allclose(sure["reference_error_sd"], 2 * [1.0, 0.5], rtol=0.05)
    doubtful = over_random.uncertain(table)["auto", 10]
    assert doubtful.to_list() == [False, False, True]
    assert over_random.ratios(table[table["model"] == 1], "auto", "bootstrap")["ratio"].item() == pytest.approx(
        0.5, rel=0.05
    )


def test_a_model_gets_a_reference_that_suffices_for_all_filters(benchmark_module, tmp_path):
    """Model 17 is linear and Gaussian: `auto` is exact, and no number of particles would do. Model 18 keeps its first."""
    references = benchmark_module("references")
    args = {"first_model": 17, "runs": 2, "seed": 0, "workers": 1, "reference": 64, "better": (1,), "stores": tmp_path}
    args = SimpleNamespace(**args, report=False, timing=False, kind="general", departure="", known="all")
    cells = [("bootstrap", 20), ("auto", 20)]
    first = references.of_models(cells, 2, args)
    found = references.sufficient(cells, 2, args)
    assert found["better"].to_list() == [1, 1, 0, 0] * 2
    exact = found["better"] == 1
    assert (found.loc[exact, "reference_uncertainty"] == 0).all()
    assert (found.loc[exact & (found["filter"] == "auto"), "reference_error_sd"] < 1e-9).all()
    assert (first.loc[exact, "reference_error_sd"] > 1e-3).all()
    same = ["model", "run", "filter", "n_particles", "rmse", "log_likelihood", "ms_per_step"]  # only errors change
    pd.testing.assert_frame_equal(found[same], first[same])
    errors = ["reference_error_sd", "reference_uncertainty"]
    pd.testing.assert_frame_equal(found.loc[~exact, errors], first.loc[~exact, errors])
    args.report = True
    pd.testing.assert_frame_equal(references.sufficient(cells, 2, args), found)  # from the stores
    for name in ("auto", "bootstrap"):
        (tmp_path / "random-17-64" / "better-64" / "17" / f"{name}-20.sqlite").unlink()
        assert (references.sufficient(cells, 2, args)["better"] == 0).all()  # half of a model is not taken


def test_an_exact_filter_counts_as_a_very_good_one(benchmark_module):
    """Its error is 0, and a thousandth of a standard deviation in all ratios."""
    over_random = benchmark_module("over_random")
    table = pd.concat([power_law(model, -0.5, name="bootstrap", scale=1.0) for model in range(6)])
    table = pd.concat([table, table.assign(filter="auto", reference_error_sd=0.0)]).assign(
        better=1, diverged=False, variance_ratio=1.0, log_likelihood_error=0.0
    )
    made = over_random.judged(table, "bootstrap").set_index(["filter", "n_particles"])
    for n in table["n_particles"].unique():
        assert made.loc[("auto", n), ["ratio", "raw"]].to_list() == pytest.approx([1e-3 * np.sqrt(n)] * 2)
    assert (made[["uncertain", "better"]] == [0, 6]).all(axis=None)


def test_kinds_and_departures_of_random_models_have_stores_of_their_own(benchmark_module, tmp_path):
    studies = benchmark_module("studies")
    given = {"stores": tmp_path, "first_model": 5, "reference": 64}
    folders, bases = [], []
    for kind, departure in (("general", ""), ("localisation", ""), ("general", "half-noise"), ("localisation", "any")):
        args = SimpleNamespace(**given, kind=kind, departure=departure, known="all")
        folders.append(studies.models_folder(args).name)
        bases.append(studies.family(args))
    assert folders == ["random-5-64", "random-5-64-localisation", "random-5-64-half-noise", "random-5-64-localisation-any"]
    assert [base.model.get("kind") for base in bases] == [None, "localisation", None, "localisation"]
    truths = [base.simulated.build_model(seed=5).labels[-1] for base in bases]
    assert truths[2] == "half noise"
    assert bases[0].truth is None
    less = SimpleNamespace(**given, kind="general", departure="", known="likelihood")
    assert studies.models_folder(less).name == "random-5-64-likelihood"


def test_filters_are_told_a_part_of_the_model(benchmark_module):
    """Bootstrap needs no more, so that its estimates are the same; a filter that needs more refuses the model."""
    told, model = benchmark_module("studies").Told, hf.models.random_model(0)
    assert model.labels[1] == "rank-deficient"
    _, z = hf.simulate(model, 10, 1)
    known = hf.make_filter("bootstrap", model, 50, 3).run(z).means
    for part in ("likelihood", "simulation"):
        means = told("bootstrap", part)(model, 50, np.random.default_rng(3)).run(z).means
        np.testing.assert_allclose(means, known, rtol=1e-9)
    for name, part in (("ukf", "likelihood"), ("sqmc", "simulation")):
        with pytest.raises(TypeError, match="needs"):
            told(name, part)(model, 50, np.random.default_rng(3))


def test_default_is_compared_on_other_kinds_of_models(study):
    small = ["--part", "kinds", "--reference", 256, "--better", "--kind-models", 2, "--kind-particles", 10]
    small += ["--filters", "bootstrap", "sqmc", "ranked", "--default", "ranked"]
    found = study("bench_default", *small, "--kinds", "localisation", "simulation-only")["default_other_kinds"]
    filters = ["bootstrap", "sqmc", "ranked", "bootstrap", "ranked"]
    assert found["filter"].to_list() == filters
    assert found["kind"].to_list() == ["localisation"] * 3 + ["simulation-only"] * 2
    assert found["diverged"].between(0, 1).all()
    assert (found.loc[found["filter"] == "bootstrap", "to_bootstrap"] == 1).all()


def test_times_of_a_step_are_those_of_filters_that_the_model_serves(study):
    """SQMC does not serve the model of seed 225, whose transition can only be simulated."""
    small = ["--part", "times", "--growing", 10, 20, "--first-model", 224, "--times-models", 2]
    found = study("bench_default", *small, "--filters", "bootstrap", "sqmc")["default_times"].set_index(["filter", "n"])
    assert found["models"].to_dict() == {("bootstrap", 10): 2, ("sqmc", 10): 1, ("bootstrap", 20): 2, ("sqmc", 20): 1}
    assert (found.loc["bootstrap", ["mean", "largest"]] == 1).all(axis=None)
    assert (found["median"] <= found["largest"]).all()


def test_filters_of_particles_are_close_to_ours_on_any_model(benchmark_module):
    """A state on a line and in a plane, a prior of several Gaussians, missing observations."""
    filters = benchmark_module("peers").FILTERS
    if not filters:
        pytest.skip("needs particles")
    wanted = {"multimodal prior", "missing", "multiplicative"}
    drawn = [hf.models.random_model(seed) for seed in range(40)]
    models = [next(m for m in drawn if label in m.labels and "only simulable" not in m.labels) for label in sorted(wanted)]
    models.append(next(m for m in drawn if m.dim == 1 and m.labels[1] == "additive"))
    for model in models:
        _, z = hf.simulate(model, 15, 1)
        ours = hf.ParticleFilter(model, 4096, rng=0).run(z)
        sd = np.sqrt(np.diagonal(ours.covariances, axis1=1, axis2=2))
        for build in filters.values():
            theirs = build(model, 4096, np.random.default_rng(1)).run(z)
            assert np.sqrt(np.mean(((theirs.means - ours.means) / sd) ** 2)) < 0.3
            assert theirs.log_likelihood == pytest.approx(ours.log_likelihood, abs=1.0)


def recordings(folder, model, runs=2, steps=4, **changes):
    """The file that a script of a library reads."""
    _, z = hf.simulate(load_scenario(model).build_model(), steps, rng=3)
    given = {"model": model, "dt": 0.1, "n": [64, 128], "seconds": 10.0, "observations": np.array([z] * runs)}
    np.savez(folder / "in.npz", **given | changes)
    return folder / "in.npz", folder / "out.npz"


def itself(model, dt, n):
    """A filter of a library that takes what it sees as its estimate."""
    return lambda observations, seed: (observations, lambda: 7.0)


def test_filters_of_a_library_take_turns_and_a_run_that_takes_too_long_is_left_out(benchmark_module, tmp_path, monkeypatch):
    """A filter without particles runs once; one of 10 times the particles is expected to take 10 times as long."""
    driver = benchmark_module("peer_runs")
    source, target = recordings(tmp_path, "ungm", n=[10, 100], seconds=2.0)
    monkeypatch.setattr(driver.sys, "argv", ["script", str(source), str(target)])
    clock = iter(np.cumsum([0.5] * 1000))
    monkeypatch.setattr(driver.time, "process_time", lambda: next(clock))
    driver.main({"particles": itself}, {"kalman": itself})
    found = np.load(target)
    assert found["particles/counts"].tolist() == [10]
    assert found["kalman/counts"].tolist() == [0]
    assert found["particles/ms"].tolist() == [[125.0, 125.0]]  # half a second for four steps
    assert found["kalman/log_likelihoods"].tolist() == [[7.0, 7.0]]
    assert found["left_out"].tolist() == ["particles at n = 100: 5 s a run expected"]


@pytest.mark.parametrize("name", ["particles", "filterpy", "stonesoup"])
@pytest.mark.parametrize("model", ["ungm", "bearings", "linear_chain"])
def test_scripts_of_other_libraries_have_the_models_of_the_scenarios(benchmark_module, name, model):
    """With many particles they find our filter's estimates and log-likelihood; so the model functions are the same.

    Over seeds of ours the log-likelihood has a standard deviation below 0.06, and the means of 0.04.
    """
    pytest.importorskip(name)
    script = benchmark_module(f"peers_{name}")
    build = {"particles": lambda *given: script.of_particles(*given, qmc=False)}.get(name) or script.bootstrap
    scenario = load_scenario(model)
    _, z = hf.simulate(scenario.build_model(), 5, rng=0, dt=scenario.dt)
    ours = hf.ParticleFilter(scenario.build_model(), 20_000, rng=0).run(z, dt=scenario.dt)
    means, log_likelihood = build(model, scenario.dt, 20_000)(z, 1)
    log_likelihood = log_likelihood() if callable(log_likelihood) else log_likelihood
    sd = np.sqrt(np.diagonal(ours.covariances, axis1=1, axis2=2))
    assert np.sqrt(np.mean(((np.asarray(means) - ours.means) / sd) ** 2)) < 0.15
    assert float(log_likelihood) == pytest.approx(ours.log_likelihood, abs=0.3)


@pytest.mark.parametrize("name", ["filterpy", "stonesoup"])
def test_kalman_filters_of_other_libraries_are_exact_on_a_linear_model(benchmark_module, name):
    pytest.importorskip(name)
    script = benchmark_module(f"peers_{name}")
    model = load_scenario("linear_chain").build_model()
    _, z = hf.simulate(model, 6, rng=3)
    exact = hf.ExtendedKalmanFilter(model).run(z)
    if name == "filterpy":
        run = script.ekf("linear_chain", 1.0, 0)
    else:
        run = script.kalman("linear_chain", 1.0, script.ExtendedKalmanPredictor, script.ExtendedKalmanUpdater)
    means, log_likelihood = run(z, 0)
    np.testing.assert_allclose(means, exact.means, atol=1e-9)
    assert log_likelihood == pytest.approx(exact.log_likelihood)


def test_filters_of_a_library_run_in_another_process_beside_an_exact_posterior(run, benchmark_module, monkeypatch):
    """This Python stands in for the environment of a library; one that does not install is left out."""
    part = benchmark_module("peer_filters")
    script = part.Library("", "peers_herdfilter.py", ("bootstrap", "compiled-bootstrap"))
    broken = part.Library("none==0", "peers_herdfilter.py", ("auto",))
    monkeypatch.setattr(part, "LIBRARIES", {"herdfilter": script, "broken": broken})

    def refuses(*arguments):
        raise OSError("no such package")

    monkeypatch.setattr(part, "environment", refuses)
    monkeypatch.setenv("PYTHONPATH", str(Path(hf.__file__).parents[1]))
    small = ["--models", "ungm", "--counts", 20, 40, "--peer-runs", 2]
    found = run("bench_peers", "filters", *small)
    table = found["peers_filters"].set_index(["filter", "n"])
    assert set(table.index) == {(name, n) for name in script.filters for n in (20, 40)}
    assert (table[["error", "log_likelihood_rmse", "ms_per_step"]] > 0).all(axis=None)
    assert (table["reference_uncertainty"] == 0).all()
    assert found["peers_agreement"]["filter"].to_list() == ["compiled-bootstrap"]
    assert set(found["peers_budget"]["budget"]) == set(part.BUDGETS)


def test_bootstrap_filters_of_all_libraries_have_the_errors_of_ours():
    """They are one algorithm: of the results, no interval over runs is farther from 1 than a tenth."""
    found = pd.read_csv(FOLDER / "results" / "peers_agreement.csv")
    assert len(set(found["filter"])) > 5
    assert (found["ratio_low"] < 1.1).all()
    assert (found["ratio_high"] > 0.9).all()


def test_error_at_equal_time_has_an_interval_over_runs(benchmark_module):
    """A filter of error n^-1/2 in n microseconds: 0.1 at 0.1 ms, by interpolation at 0.04 ms, and no count fits 0.001 ms."""
    n, run = np.meshgrid([10, 100], np.arange(10), indexing="ij")
    n, run = n.ravel(), run.ravel()
    table = pd.DataFrame({"scenario": "toy", "library": "l", "filter": "a", "n": n, "run": run, "ms": n / 1000})
    table["reference_error_sd"] = n**-0.5 * np.exp(0.1 * (run - 4.5))
    found = benchmark_module("peer_filters").at_equal_time(table, (0.001, 0.04, 0.1, 1.0)).set_index("budget")
    assert np.isnan(found.loc[0.001, "error"])
    assert found["error"].to_list()[1:] == pytest.approx([40**-0.5, 0.1, 0.1], rel=0.01)
    assert found["to_spare"].to_list() == [False, False, False, True]
    inside = found.iloc[1:]
    assert (inside["error_low"] < inside["error"]).all()
    assert (inside["error_high"] > inside["error"]).all()


def test_ratios_by_model_have_an_interval_from_six_runs_on(benchmark_module):
    """Of eight: the geometric mean of the middle two, the least and the largest; a run that failed is infinitely worse."""
    run, theirs = np.arange(8), {"model": 5, "reference_error_sd": 1.0, "filter": "b", "error": ""}
    ours = pd.DataFrame({"run": run, **theirs}).assign(filter="a", reference_error_sd=1.5 + run)
    ours.loc[7, "error"] = "DegenerateWeightsError"
    table = pd.concat([ours, pd.DataFrame({"run": run, **theirs})])
    found = benchmark_module("over_random").ratios(table, "a", "b")
    assert found.loc[5].to_list() == pytest.approx([np.sqrt(4.5 * 5.5), 1.5, np.inf])


def test_named_scenarios_are_compared_at_equal_counts(study, tmp_path, monkeypatch):
    monkeypatch.setenv("HERDFILTER_CACHE", str(tmp_path / "cache"))  # one reference serves all counts and filters
    small = ["--part", "scenarios", "--scenarios", "stochastic_volatility", "--scenario-particles", 10, 20]
    found = study("bench_default", *small, "--scenario-runs", 2)["default_scenarios"]
    assert found["n"].to_list() == [10, 20]
    assert found["error"].to_list() == ["reference_error"] * 2
    assert (found[["ratio", "to_bootstrap", "to_ranked", "to_mixture-kh", "to_sqmc"]] > 0).all(axis=None)


@pytest.mark.parametrize("error", ["gospa", "reference_error", "rmse"])
def test_default_is_compared_with_the_best_of_the_others(benchmark_module, error):
    """Errors in pairs of the same run; a run that failed is infinitely worse, and the best has the smallest median."""
    errors = {"own": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0], "good": [1.0] * 6, "mostly good": [0.5] * 3 + [9.0] * 3}
    table = pd.DataFrame(
        [
            {"filter": name, "n_particles": 10, "run": run, error: value, "error": "", "diverged": value > 5}
            for name, values in errors.items()
            for run, value in enumerate(values)
        ]
    )
    table.loc[(table["filter"] == "own") & (table["run"] == 5), [error, "error"]] = np.nan, "ValueError"
    found = benchmark_module("bench_default").beside("toy", table, "own")
    assert (found["best"], found["error"], found["runs"]) == ("good", error, 6)
    assert (found["ratio"], found["ratio_low"], found["ratio_high"]) == (4.5, 2.0, np.inf)
    assert (found["lost"], found["lost_best"]) == (2 / 6, 0)


def power_law(model, exponent, uncertainty=0.0, name="a", counts=(100, 1000, 10_000), scale=1.0):
    """A filter with error scale n^exponent in n microseconds on a model, one run for each count."""
    return pd.DataFrame(
        {
            "filter": name,
            "model": model,
            "kind": "toy",
            "run": 0,
            "n_particles": counts,
            "error": "",
            "reference_error_sd": scale * np.power(counts, exponent),
            "reference_uncertainty": uncertainty,
            "ms_per_step": 1e-3 * np.array(counts),
        }
    )


def test_exponents_are_of_models_that_tell_them(benchmark_module):
    """One reference is too uncertain for 10,000 particles, and one model is solved with a hundred."""
    slopes = [power_law(0, -0.5), power_law(1, -1.0), power_law(2, -0.75, 1e-5), power_law(3, -0.5, 3e-2)]
    table = pd.concat([*slopes, power_law(4, 0.0, scale=1e-6)])
    found = benchmark_module("over_random").exponents(table).iloc[0]
    assert found[["models", "used", "uncertain", "solved"]].to_list() == [5, 3, 1, 1]
    np.testing.assert_allclose(found[["exponent_50", "slowest"]].to_list(), [-0.75, -0.5])
    assert found["worst"].startswith("0: -0.5 (toy)")


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


def test_budget_compares_with_the_best_rival_and_counts_what_does_not_fit(benchmark_module):
    """Half the error at ten times the cost: four times as many particles would do; a dearer model makes them equal."""
    rival = power_law(0, -0.5, name="bootstrap", counts=(100, 1000, 10_000))
    ours = power_law(0, -0.5, name="auto", counts=(100, 1000, 10_000), scale=0.5)
    ours["ms_per_step"] *= 10
    table = pd.concat([t.assign(model=m) for m in (0, 1) for t in (rival, ours)])
    by_budget = benchmark_module("over_random").by_budget
    found = by_budget(table, (0.5, 5.0), 0.0, ["bootstrap"]).set_index(["budget", "filter"])
    assert found.loc[(0.5, "auto"), ["none", "above"]].to_list() == [2, 1]
    np.testing.assert_allclose(found.loc[(5.0, "auto"), "ratio"], 0.5 * 10**0.5)
    dearer = by_budget(table, (110.0,), 100.0, ["bootstrap"]).set_index("filter")
    np.testing.assert_allclose(dearer.loc["auto", "ratio"], 0.5 * (110 / 101) ** 0.5, rtol=0.01)


def test_break_even_cost_is_where_the_times_are_equal(benchmark_module):
    """Bootstrap with error n^(-1/2) in n microseconds, against half that error in 1 ms: 100 particles for 400."""
    break_even = benchmark_module("bench_study").break_even
    n = np.array([50.0, 100.0, 200.0])
    base = np.column_stack([n, n**-0.5, 1e-3 * n])
    cost, best, needed, beyond = break_even(np.array([[100.0, 0.05, 1.0]]), base)
    assert (best, beyond) == (100, True)
    assert needed == pytest.approx(400)
    assert 1e3 * 1.0 + cost * 100 == pytest.approx(400 + cost * 400)  # microseconds
    assert break_even(np.array([[100.0, 0.05, 0.3]]), base)[0] == 0
    assert break_even(np.array([[100.0, 0.2, 0.01]]), base)[0] == np.inf


def test_only_herded_filters_count_as_herded(benchmark_module):
    herded = benchmark_module("bench_study").herded
    assert all(map(herded, ("herded-kh", "mixture-em-kh", "augmented-chg", "kalman-mixture-kh")))
    assert not any(map(herded, ("bootstrap", "herded-random", "augmented-sobol", "sqmc", "ukf")))


def in_this_process(command, capture_output, text, check):
    """Do what a new process would do: it takes long to import."""
    with redirect_stdout(StringIO()) as told, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", command[2:])  # the program, and the rest
        exec(command[command.index("-c") + 1], {})
    return SimpleNamespace(stdout=told.getvalue())


def test_engine_study_measures_every_part(run, benchmark_module, monkeypatch):
    module = benchmark_module("bench_engine")
    monkeypatch.setattr(module, "REAL", ["bootstrap"])
    monkeypatch.setattr(module, "subprocess", SimpleNamespace(run=in_this_process))
    found = run("bench_engine", "overhead", "summary", "speed", "--quick")
    assert (found["engine_overhead"]["ms_per_task"] > 0).all()
    assert found["engine_summary"]["tasks"].iloc[0] == 100
    assert found["engine_speed"]["tables_identical"].all()


def test_startup_tells_import_and_first_call_apart(run, benchmark_module, monkeypatch):
    module = benchmark_module("bench_startup")
    monkeypatch.setitem(module.CALLS, "one loop", "hf.ResidualResampling()")
    monkeypatch.setattr(module, "run", cache(module.run))  # one process stands for all repeats of the same
    found = run("bench_startup", "--repeats", 1, "--calls", "one loop")
    assert (found["import"]["cpu"] > 0).all()
    assert found["startup"]["functions"].to_list() == [0]
    assert (found["startup"]["compile"] >= 0).all()


def test_evidence_knows_exact_and_unbiased_estimates(study, benchmark_module):
    small = ["--particles", 10, "--runs", 4, "--steps", 3, "--filters", "bootstrap", "augmented-kh", "ukf"]
    table = study("bench_known", "evidence", *small)["evidence"].set_index(["model", "filter"])
    assert table.loc[("linear 1", "ukf"), "mean"] == pytest.approx(0, abs=1e-9)
    assert table.loc[("linear 1", "augmented-kh"), "sd"] == 0
    found = benchmark_module("bench_known").bias_and_spread(np.log([0.5, 1.5, 0.8, 1.2]) - 800)
    assert found["log_mean"] == pytest.approx(-800)
    assert found["low"] < -800 < found["high"]


def test_roughness_tells_jumps_from_an_exact_likelihood(study, benchmark_module, monkeypatch):
    module = benchmark_module("likelihoods")
    monkeypatch.setattr(module, "CURVES", module.CURVES[:1])
    monkeypatch.setattr(module, "ROUGH_FILTERS", ["ekf", "bootstrap"])
    monkeypatch.setattr(module, "POINTS", 5)
    table = study("bench_known", "roughness")["roughness"].set_index("filter")
    assert table.loc["ekf", "rough"] < 1e-9
    assert table.loc["bootstrap", "rough_tenth"] > 0.01


def test_randomised_filters_spread_less_than_bootstrap_and_have_no_bias(study, benchmark_module, monkeypatch):
    module = benchmark_module("likelihoods")
    monkeypatch.setattr(module, "KNOWN", {"line": next(iter(module.KNOWN.values()))})
    monkeypatch.setattr(module, "MANY", 300)
    tables = study("bench_known", "randomised", "--runs", 20, "--steps", 5, "--known-particles", 30)
    table = tables["randomised"].set_index("filter")
    assert (table["ratio"] < 0.5).all()
    assert (table["bootstrap_n"] >= 30).all()
    assert (table["sd"] < table["bootstrap_sd"]).all()
    unbiased = tables["unbiased"].set_index("filter")
    assert (abs(unbiased["mean"] - 1) < 5 * unbiased["standard_error"]).all()
    assert unbiased.loc["guided", "standard_error"] < 0.3 * unbiased.loc["bootstrap", "standard_error"]


def test_the_log_likelihood_settles_as_particles_grow(study):
    small = ["--settling", 50, 3000, "--series", 3, "--reference", 50_000]
    table = study("bench_known", "settling", *small)["settling"].set_index(["filter", "n"])
    assert (
        table.loc[("auto", 3000), "rms"] < 0.5 * table.loc[("auto", 50), "rms"] < 0.5 * table.loc[("bootstrap", 50), "rms"]
    )
    assert (table["median"] <= table["largest"]).all()
    assert (table["mean"].abs() <= table["rms"]).all()


def test_chains_mix_better_with_less_spread(study, benchmark_module, monkeypatch):
    module = benchmark_module("likelihoods")
    monkeypatch.setattr(module, "LENGTH", 20)
    monkeypatch.setattr(module, "CHAINS", {name: module.CHAINS[name] for name in ("`bootstrap`, n = 100", "guided, n = 20")})
    table = study("bench_known", "chains", "--moves", 200)["chains"].set_index("filter")
    assert table.loc["guided, n = 20", "accepted"] > table.loc["`bootstrap`, n = 100", "accepted"] > 0
    independent = np.random.default_rng(0).standard_normal(4000)
    assert module._effective(independent) == pytest.approx(4000, rel=0.15)
    assert module._effective(np.repeat(independent, 10)) == pytest.approx(4000, rel=0.15)


def test_maxima_found_before_are_not_sought_again(study, benchmark_module, monkeypatch, tmp_path):
    module = benchmark_module("likelihoods")
    row = {"filter": "sqmc", "n": 1024, "farthest": 0.2, "errors": 0.1, "evaluations": 50, "smooth": False}
    seen = [row | {"seed": module.CLAIMS + k, "apart": None, "maxima": None} for k in range(2)]
    pd.DataFrame(seen).to_csv(tmp_path / "likelihood_series.csv", index=False)
    monkeypatch.setattr(module, "_maximum", None)
    table = study("bench_known", "likelihood", "--maxima", "sqmc", "--series", 2)["likelihood"]
    assert table[["series", "within", "one_maximum", "most"]].to_numpy().tolist() == [[2, 0, 0, 50]]


def test_smoothers_are_measured_against_exact_means(study, benchmark_module):
    small = ["--runs", 1, "--smoothed", "double_well", "--particles", 20]
    table = study("bench_known", "smoothers", *small)["smoothers"].set_index(["filter", "smoother"])
    assert table.loc[("bootstrap", "trajectories"), "ratio"] == 1
    assert table.loc[("auto", "marginal"), "rms"] < 0.2 * table.loc[("auto", "none"), "rms"]
    module = benchmark_module("smoothers")
    z = np.array([[0.4], [1.0], [2.0], [-1.0]])  # on a grid as by Rauch, Tung and Striebel
    line = module.hf.models.LinearGaussian([[0.9]], [[1.0]], [[0.5]], [[0.7]], [1.0], [[2.0]])
    found = [module.exact_means(module.Case(line, 4, grid=grid), z) for grid in (None, (-9.0, 9.0, 401))]
    np.testing.assert_allclose(*found, atol=3e-7)


def test_association_is_measured_against_exact_marginals(benchmark_module):
    table = benchmark_module("associations").measured("dense", 3, range(6), sweeps=(50,)).set_index("method")
    assert table.loc["exact", "variation"] == 0
    assert 0 < table.loc["herded Gibbs", "variation_low"] < table.loc["random Gibbs", "variation"]
    herded = table.loc["herded Gibbs"]
    assert herded["ratio"] == pytest.approx(herded["variation"] / table.loc["random Gibbs", "variation"])
    assert herded["ratio_low"] < herded["ratio"] < herded["ratio_high"]
    module = benchmark_module("associations")
    close = module.measured("close, clutter 1e-05", 3, range(4), sweeps=(300,)).set_index("method")
    assert close.loc["herded Gibbs", "worst"] < 0.1 < close.loc["herded Gibbs, no pairs", "worst"]
    assert close.loc["herded Gibbs", "ratio"] < 0.5


def test_coverage_of_forecasts_counts_what_is_inside(study, benchmark_module):
    inside = benchmark_module("forecasts").inside
    low, high = np.array([3.0, 0.0, 0.0]), np.array([3.5, 1.0, 1.0])
    assert inside(low, high, (low + high) / 2, np.array([-3.0, 0.5, np.nan]), (0,)) == 1.0
    assert inside(low, high, (low + high) / 2, np.array([-3.0, 2.0, 0.5]), ()) == pytest.approx(1 / 3)
    table = study("bench_known", "forecast", "--forecasts", 3, "--forecast-cases", "linear-d2", "random")["forecasts"]
    assert len(table) == 2 * 2 * 2 * 3 * 3
    assert table["share"].between(0, 1).all()


def test_filters_of_models_that_jump_are_measured_against_all_histories(study):
    small = ["--families", "linear", "--models", 1, "--mode-particles", 60]
    table = study("bench_known", "modes", *small)["modes"].set_index("filter")
    assert table.loc["mkf", "error"] < 0.5 * table.loc["bootstrap", "error"]
    assert table.loc["auto", "ratio"] < 1


def test_linear_parts_are_measured_at_equal_numbers_and_at_equal_times(study, benchmark_module, monkeypatch):
    module = benchmark_module("linear_parts")
    monkeypatch.setattr(module, "STEPS", 40)
    monkeypatch.setattr(module, "LADDER", (1, 4))
    monkeypatch.setattr(module, "PROPOSALS", {name: module.PROPOSALS[name] for name in ("bootstrap", "auto")})
    small = ["--linear-runs", 6, "--linear-particles", 30, "--linear-reference", 300]
    table = study("bench_known", "linear", *small)["linear_parts"].set_index(["scenario", "filter"])
    assert len(table) == 4
    for row in table.itertuples():
        assert row.ratio_low < row.ratio < row.ratio_high
        assert 0 < row.in_time < np.inf
    assert table.loc[("arctangent", "bootstrap"), "ratio"] < 0.7


def test_posteriors_of_long_runs_are_exact(benchmark_module):
    """Against Kalman's filter, the grid filter and the distribution function of a Gaussian."""
    module = benchmark_module("long_runs")
    for name, exact in (("linear", hf.ExtendedKalmanFilter), ("growth", lambda m: hf.GridFilter(m, -45, 45, 1801))):
        run, case = module.LongRun(name, 20, 3), module.cases()[name]
        observations, ((masses, mean, sd),) = run.block(case, 60)
        known = exact(hf.models.UNGM() if name == "growth" else case.model).run(observations)
        assert np.abs((known.means[:, 0] - mean) / sd).max() < 0.002
        assert np.allclose(sd, np.sqrt(known.covariances[:, 0, 0]), rtol=0.002)
        if name == "linear":
            x = np.sort(mean[:, None] + sd[:, None] * np.random.default_rng(0).standard_normal((60, 20)), axis=1)
            equal = np.full(x.shape, 1 / 20)
            found = module.kolmogorov(masses, -case.reach, case.spacing, x, equal)
            known = [kstest(row, "norm", (m, s)).statistic for row, m, s in zip(x, mean, sd, strict=True)]
            assert np.allclose(found, known, atol=1e-4)


def test_long_runs_go_on_where_they_were_left(study, benchmark_module, monkeypatch, tmp_path):
    module = benchmark_module("long_runs")
    told = module.exceedances(np.array([0, 0, 0, 1, 1, 0, 1, 0, 0], bool))
    assert told == {"beyond": 3, "first": 4, "free": 3, "loss": 2}
    assert module.exceedances(np.zeros(5, bool))["free"] == 5
    monkeypatch.setattr(module, "BLOCK", 50)
    monkeypatch.setattr(module, "FILTERS", {who: module.FILTERS[who] for who in ("bootstrap", "ranked, blind")})
    whole, parted = (module.LongRun("two wells", 20, 5) for _ in range(2))
    whole.advance(200)
    parted.advance(100)
    module.keep(parted, tmp_path / "run.pickle")
    parted = module.resumed(tmp_path / "run.pickle", "two wells", 20, 5)
    parted.advance(200)
    pd.testing.assert_frame_equal(*(run.tables()[1] for run in (whole, parted)))
    small = ["--long-particles", 20, "--long-models", "zeros", "--long-steps", 200]
    tables = study("bench_known", "long", *small)
    again = study("bench_known", "long", *small)
    pd.testing.assert_frame_equal(tables["long_runs"], again["long_runs"])  # with its times: nothing was left to do
    rows = tables["long_runs"].set_index("filter")
    assert rows.loc["ranked, blind", "largest"] < 0.5 < rows.loc["bootstrap", "largest"]
    assert tables["long_records"].groupby("filter")["largest"].is_monotonic_increasing.all()


def test_figures_of_the_literature_are_set_beside_ours(study):
    table = study("bench_known", "published", "--scenarios", "ungm", "--most", 2)["published"]
    assert table["filter"].to_list() == ["bootstrap"]
    assert table["runs"].to_list() == [2]


def test_verdict_on_a_published_figure_counts_both_errors_and_its_rounding(benchmark_module):
    verdict = benchmark_module("as_published").verdict
    ours = (5.40, 5.30, 5.50)
    assert [verdict(figure, ours) for figure in ("5.50", "5.6", None)] == ["agrees", "differs", "not read"]
    assert verdict("5.5", (5.45, 5.45, 5.45)) == "agrees"  # rounded to a tenth
    assert verdict("1.2e-3", (0.00126,) * 3) == "differs"
    assert verdict("5.6", ours, their_error=0.1) == "agrees"
    row = benchmark_module("as_published").row("A (2000)", "table I", "RMSE", "5.6", ours, 100, their_runs=25)
    assert row["verdict"] == "agrees"  # theirs has twice our error


def test_papers_are_measured_by_name(study):
    table = study("bench_known", "papers", "--papers", "classic.kitagawa", "--most", 1)["as_published"]
    assert set(table["paper"]) == {"Kitagawa (1996)"}
    assert (table["verdict"] == "not read").all()
    assert table["ours"].abs().iloc[-1] < 1  # 10,000 particles


def test_likelihood_filter_has_the_exact_mean(benchmark_module):
    """Its particles do not come from the transition: only right weights lead to the posterior."""
    classic, model = benchmark_module("published_classic"), hf.models.UNGM()
    _, z = hf.simulate(model, steps=30, rng=1)
    pf = hf.ParticleFilter(model, 3000, proposal=classic.LikelihoodProposal(), resample_below=1.0, rng=2)
    exact = hf.GridFilter(model, -60.0, 60.0, 601).run(z)
    result = pf.run(z)
    assert np.sqrt(np.mean((result.means - exact.means) ** 2)) < 0.3
    assert abs(result.log_likelihood - exact.log_likelihood) < 1


@pytest.fixture
def autoferry():
    """The folder with the recordings."""
    places = (Path(__file__).parents[1].parent / "shared" / "data", Path(os.environ.get("HERDFILTER_DATA", "-")))
    folder = next((place for place in places if (place / "autoferry").is_dir()), None)
    if folder is None:
        pytest.skip("no folder autoferry in ../shared/data or HERDFILTER_DATA")
    return folder


def test_sensors_of_the_harbour_are_those_of_the_scenarios(study, autoferry):
    """What the table shows of a recording is what a filter is told in the other one."""
    table = study("bench_known", "harbour", "--runs", 0, "--data", autoferry)["harbour_sensors"]
    both = table[table["vessel"] == "both"].set_index(["recording", "sensor"])
    for recording, other in ((2, 4), (4, 2)):
        for sensor, known in load_harbour(autoferry, recording, other).constants.items():
            row = both.loc[(other, sensor)]
            assert row["used_in"] == recording
            assert row["delay"] == pytest.approx(known.delay, rel=1e-3)
            assert row["detected"] == pytest.approx(known.detection_probability, rel=1e-3)
    assert both.loc[(2, "radar"), "scans"] == 2 * 70


def test_delay_of_the_radar_is_found_with_gps_and_not_without(study, autoferry, benchmark_module, monkeypatch):
    """A delay moves a track along and changes no residual, so the likelihood of a radar alone is nearly flat in it."""
    module = benchmark_module("harbour_delays")
    monkeypatch.setattr(module, "RECORDINGS", dict([next(iter(module.RECORDINGS.items()))]))
    results = study("bench_known", "delays", "--data", autoferry)
    assert set(results["harbour_delays"]["recording"]) >= {2, 4}
    table = results["harbour_late"]
    assert (abs(table["gps_delay"] - table["radar"]) < 2 * table["gps_sd"]).all()
    assert (table["gps_sd"] < 0.25).all()
    for without in ("alone", "grid"):
        assert table[f"{without}_sd"].between(0.45, 0.65).all()
        assert (abs(table[f"{without}_delay"] - 1.3) < 0.6).all()


def test_trackers_of_the_harbour_miss_what_is_not_detected(study, autoferry):
    table = study("bench_known", "misses", "--data", autoferry)["harbour_misses"].set_index(["recording", "tracker"])
    assert (table["two_detections"] == 0).all()
    for recording in (2, 4):
        told = table.loc[(recording, "told")]
        assert told["false"] == 0
        for name in ("lmb-ukf", "lmb-auto"):
            ours = table.loc[(recording, name)]
            assert ours["missed"] == ours["missed_unseen"]
            assert ours["gospa"] > told["gospa"]
            assert ours["gospa"] == pytest.approx({2: 7.2, 4: 10.9}[recording], abs=0.2)


def test_missed_and_false_are_those_of_gospa(benchmark_module):
    """On random sets: as many as GOSPA counts."""
    rng, cutoff = np.random.default_rng(0), 2.0
    for _ in range(50):
        truth, estimates = rng.uniform(0, 5, (3, 2)), rng.uniform(0, 5, (rng.integers(0, 5), 2))
        missed, false = benchmark_module("harbour_misses").apart(truth, estimates, cutoff)
        found = hf.tracking.gospa(truth, estimates, cutoff)
        assert (missed.sum(), false.sum()) == (found.missed / 2, found.false / 2)


def test_trackers_of_others_are_told_what_ours_are_told(benchmark_module):
    pytest.importorskip("stonesoup", reason="Stone Soup, whose tracker is run, is not installed")
    trackers = benchmark_module("trackers")
    task = trackers.task_of(trackers.load_scenario("crossing"))
    assert task.clutter_rate == pytest.approx(30)
    assert (task.volume, task.detection_probability, len(task.births)) == (4e6, 0.98, 4)
    assert trackers.installed(["none of these"]) == []
    path = np.array([[10.0 * k, -5.0 * k] for k in range(6)])  # from the first place of birth
    scans = [np.vstack([x, [900.0, 900.0]]) for x in path]
    jpda = trackers.Peer("JPDA (Stone Soup)", task, None, 100, np.random.default_rng(0))
    result = jpda.run(scans)
    assert [len(labels) for labels in result.labels] == [0, 0, 1, 1, 1, 1]
    np.testing.assert_allclose(result.means[-1][0][[0, 2]], path[-1], atol=1.0)


def test_association_repeats_the_program_of_wolf_and_baum(study):
    table = study("bench_known", "papers", "--papers", "herding.wolf", "--most", 2)["as_published"]
    assert (table["verdict"].iloc[:3] == "agrees").all()
    assert table["ours"].iloc[-2] < table["ours"].iloc[-1] < 0  # herded errors fall faster than random ones


def test_papers_on_herding_are_measured_by_what_they_define(benchmark_module):
    """A Gaussian filter with exact moments is Kalman's on a linear model; FCFW written out comes close to ours."""
    herding = benchmark_module("published_herding")
    model = hf.models.LinearGaussian([[0.9]], [[1.0]], [[0.5]], [[0.2]], [0.0], [[1.0]])
    _, z = hf.simulate(model, steps=10, rng=1)
    exact = hf.ExtendedKalmanFilter(model).run(z).means[:, 0]
    np.testing.assert_allclose(herding.gaussian_filter(model, z), exact, rtol=0, atol=1e-10)
    target = herding.mixture(2, 5, 1)
    assert (np.linalg.eigvalsh(target.covariances) > 0.1 - 1e-9).all()
    points = herding.written_out(target, 1.0, 20, np.random.default_rng(1))
    ours = hf.KernelHerding(bandwidth=1.0, weights="fully-corrective").sample(target, 20)
    found, repeated = (hf.herding_error(p, target, 1.0, hf.kernels.Gaussian()) for p in (ours, points))
    assert 0.7 < found / repeated < 1.3
