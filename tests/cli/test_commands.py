import os
import signal
import sys

import numpy as np
import pandas as pd
import pytest
from helpers import TIMES, cases, command, completed, refused, walk

from herdfilter.study.store import open_for_reading
from herdfilter.study.tasks import Stopped, stop_on_signals

WALK = walk(
    source="nobody",
    steps=12,
    runs=8,
    particles=[10, 20],
    filters=["bootstrap", "guided"],
    unit="m",
    tables='[reference]\ntype = "kalman"\n[divergence]\nrmse_above = 3.0\n',
)
DRAWN = (
    "ratios",
    "error_over_particles",
    "error_over_seconds",
    "error_over_evaluations",
    "error_over_time",
    "consistency",
    "nees_over_time",
    "nis_over_time",
    "trajectory",
)
FIGURES = {f"{name}{suffix}" for name in DRAWN for suffix in (".png", ".svg")} | {
    "report.html",
    "table.txt",
}

pytestmark = pytest.mark.usefixtures("coarse_pictures")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Output folder of a comparison with all its files, and what the terminal showed."""
    before = "matplotlib.pyplot" in sys.modules
    folder = tmp_path_factory.mktemp("compared")
    (folder / "walk.toml").write_text(WALK)
    result = completed(
        "compare", folder / "walk.toml", "--workers", "1", "--out", folder / "new" / "out"
    )
    assert ("matplotlib.pyplot" in sys.modules) == before  # figures need no window
    return folder / "new" / "out", result.stdout


@pytest.fixture
def no_figures(monkeypatch):
    """Nothing is drawn: that is half of a small comparison's time."""
    monkeypatch.setattr("herdfilter.plotting.drawings", lambda result: {})
    monkeypatch.setattr(
        "herdfilter.report.write_report", lambda result, out, plans: out / "report.html"
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "walk.toml"
    path.write_text(WALK)
    return path


def test_a_comparison_ends_in_a_table_a_verdict_and_files(compared):
    out, shown = compared
    for text in (
        "A walk: 8 runs",
        "bootstrap",
        "guided",
        "With 20 particles",
        "reference (m)",
        str(out),
    ):
        assert text in shown
    told = shown.partition("Wrote")[0]
    assert told.strip() == (out / "table.txt").read_text().strip()
    assert {path.name for path in out.iterdir()} == FIGURES | {
        "runs.csv",
        "summary.csv",
        "study.sqlite",
    }
    runs, summary = pd.read_csv(out / "runs.csv"), pd.read_csv(out / "summary.csv")
    assert len(runs) == 2 * 2 * 8
    assert len(summary) == 2 * 2
    first = runs[(runs["filter"] == "bootstrap") & (runs["n_particles"] == 10)]
    assert summary["rmse"][0] == pytest.approx(np.sqrt((first["rmse"] ** 2).mean()))


def test_options_override_the_scenario(path, tmp_path, no_figures):
    out = tmp_path / "out"
    options = ("--filters", "sqmc, bootstrap", "--particles", "7", "--runs", "2", "--seed", "5")
    completed("compare", path, *options, "--workers", "1", "--out", out)
    runs = pd.read_csv(out / "runs.csv")
    assert list(runs["filter"].unique()) == ["sqmc", "bootstrap"]
    assert set(runs["n_particles"]) == {7}
    assert set(runs["seed"]) == {5}
    assert len(runs) == 4


LINE = """
import numpy as np
from herdfilter.study.recording import DataSet, Recording


class Start(list):
    pass


def load_line(folder, length=10):
    steps = np.arange(1.0, length + 1)[:, None]
    return DataSet(Recording(steps, steps), {"initial_mean": Start([0.0])})
"""


@cases("workers", "1", pytest.param("2", marks=pytest.mark.slow))
def test_real_data_report_the_share_that_localised(tmp_path, workers):
    """They come from a module beside the scenario, which workers import as well."""
    text = WALK.replace("initial_mean = [0.0]\n", "").replace(
        "rmse_above = 3.0", "rmse_above = 1e9"
    )
    path = tmp_path / "line.toml"
    path.write_text('imports = ["line"]\n' + text + '[data]\ntype = "line:load_line"\nlength = 15')
    (tmp_path / "line.py").write_text(LINE)
    result = completed("compare", path, "--workers", workers, "--data", tmp_path)
    assert (
        "localised: RMSE to the truth of at most 1e+09 m in the last 25 % of the steps"
        in result.stdout
    )
    assert result.stdout.count("100 %") == 4


def test_failures_are_told_and_a_model_that_ends_the_program_is_one_line(tmp_path):
    (tmp_path / "own.py").write_text(
        "import sys\n"
        "import numpy as np\n"
        "from herdfilter.models import LinearGaussian\n"
        "class Blind(LinearGaussian):\n"
        "    def log_likelihood(self, z, x, step):\n"
        "        return np.full(len(x), -np.inf)\n"
        "class Ending(LinearGaussian):\n"
        "    def observation_mean(self, x, step):\n"
        "        sys.exit(0)\n"
    )
    path = tmp_path / "own.toml"
    path.write_text(
        WALK.replace("LinearGaussian", "own.py:Blind").replace('[reference]\ntype = "kalman"\n', "")
    )
    result = completed("compare", path, "--workers", "1", "--out", tmp_path / "out")
    assert "bootstrap failed in 16 of 16 runs; the first: DegenerateWeightsError" in result.stdout
    assert "no filter finished a run" in result.stdout
    path.write_text(WALK.replace("LinearGaussian", "own.py:Ending"))
    told = "Error: the first run cannot be prepared: SystemExit: 0 (own.py, line 9, in observation_mean)\n"
    assert refused("compare", path, "--workers", "1", "-q") == told


@pytest.mark.slow
def test_show_renders_all_again_without_running(compared, tmp_path, monkeypatch):
    (out, first), again = compared, tmp_path / "again"
    monkeypatch.setattr("herdfilter.study.engine.run_study", None)
    second = completed("show", out / "study.sqlite", "--out", again)
    assert second.stdout.partition("Wrote")[0] == first.partition("Wrote")[0]
    assert {path.name for path in again.iterdir()} == FIGURES | {"runs.csv", "summary.csv"}
    for path in again.iterdir():
        assert path.read_bytes() == (out / path.name).read_bytes()


def test_export_writes_the_table_of_runs(compared, tmp_path):
    (out, _), csv, parquet = compared, tmp_path / "x.csv", tmp_path / "x.parquet"
    completed("export", out, "--csv", csv)
    assert csv.read_bytes() == (out / "runs.csv").read_bytes()
    told = refused("export", out, "--csv", tmp_path)
    assert f"cannot write {tmp_path} (Is a directory)" in told
    pytest.importorskip("pyarrow")
    completed("export", out, "--parquet", parquet)
    table, text = pd.read_parquet(parquet), pd.read_csv(csv, keep_default_na=False)
    assert list(table) == list(text)
    measured = table.dropna(axis=1, how="all")  # what is of many targets is empty here
    pd.testing.assert_frame_equal(measured, text[list(measured)], check_dtype=False)


@cases("name", "SIGINT", "SIGTERM")
def test_a_signal_ends_a_comparison_which_is_resumed_and_never_overwritten(
    path, compared, tmp_path, monkeypatch, no_figures, name
):
    """Nothing is lost, though it comes while a filter is at work, whose errors are failed runs."""
    from herdfilter.study import engine

    out, number, watch, calls = tmp_path / "out", getattr(signal, name), engine.watch, []

    def signalled(*args):
        calls.append(1)
        if len(calls) == 12:
            os.kill(os.getpid(), number)
        return watch(*args)

    options = ("compare", path, "--workers", "1", "--out", out, "-q")
    default = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
    before = signal.signal(number, default)  # whatever the shell ignores
    try:
        with monkeypatch.context() as patch:
            patch.setattr(engine, "watch", signalled)
            patch.setattr(engine.perform, "__defaults__", (0.0, None))
            stopped = command(*options)
        assert signal.getsignal(number) == default
    finally:
        signal.signal(number, before)
    assert stopped.exit_code == 128 + number
    store = out / "study.sqlite"
    assert (
        stopped.stderr
        == f"Interrupted; finished runs are in {store}. To continue, add --resume to the command.\n"
    )
    with open_for_reading(store) as kept:
        assert len(kept.finished()) == 11
        assert not kept.table()["error"].any()
    assert "A walk: 2 of 8 runs" in command("show", out).stdout
    assert "there are 11 finished runs of a filter in it; continue them with --resume" in refused(
        *options
    )
    told = refused(*options, "--resume", "--seed", "3")
    assert "cannot resume, another study is in it: seed: 0 there, 3 now" in told
    completed(*options, "--resume")
    resumed, complete = (
        pd.read_csv(folder / "runs.csv").drop(columns=list(TIMES)) for folder in (out, compared[0])
    )
    pd.testing.assert_frame_equal(resumed, complete)


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signals("SIGHUP", "SIGTERM", "SIGNONE"):
            os.kill(os.getpid(), signal.SIGHUP)
            with pytest.raises(Stopped):
                os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_quiet_is_the_verdict_and_verbose_tells_how_it_was_made(path, tmp_path, no_figures):
    out = tmp_path / "out"
    quiet = command("compare", path, "--workers", "1", "--runs", "2", "--out", out, "-q")
    assert (quiet.exit_code, quiet.stderr) == (0, "")
    assert quiet.stdout.startswith("With 20 particles ")
    assert quiet.stdout.count("\n") == 1
    verbose = command("show", out, "-v").stdout
    assert "ANEES" in command("show", out, "--wide").stdout
    for text in ("GuidedProposal()", "numpy", "seed"):
        assert text in " ".join(verbose.split())
