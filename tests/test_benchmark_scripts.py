"""Every script of the benchmarks explains itself and runs; `make test-all` looks at what each of them measures."""

from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from helpers import cases

FOLDER = Path(__file__).parents[1] / "benchmarks"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the benchmarks are not part of this installation"
)
SMALLEST = {
    "bench_default": "--part times evaluations --first-model 224 --filters bootstrap --growing 10 --times-models 1 "
    "--models 1 --evaluated ranked --evaluated-particles 10 --doubled 10 20 --case-runs 1 --case-reference 50 "
    "--reference 100 --better",
    "bench_engine": "summary --quick",
    "bench_known": "published --scenarios ungm --most 2",
    "bench_peers": "samplers --sizes 4 --dims 2 --seeds 1",
    "bench_quality": "--dims 1 --sizes 5 --families 100_particles --mixtures 2 --workers 1 --samplers random",
    "bench_speed": "tracker --quick",
    "bench_startup": "--repeats 1 --calls",
    "bench_study": "--scenarios linear-d1 --filters bootstrap sqmc --particles 5 --more 20 --runs 2",
}


def in_this_process(command, capture_output, text, check):
    """Do what a new process would do: it takes long to import."""
    with redirect_stdout(StringIO()) as told, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", command[2:])  # the program, and the rest
        exec(command[command.index("-c") + 1], {})
    return SimpleNamespace(stdout=told.getvalue())


def test_a_smallest_run_of_every_script_is_known():
    assert set(SMALLEST) == {path.stem for path in FOLDER.glob("bench_*.py")}


@pytest.mark.slow
@cases("name", *SMALLEST)
def test_a_script_explains_itself_and_writes_a_table(name, scripts, monkeypatch, tmp_path):
    script = scripts(f"benchmarks/{name}")
    if name == "bench_engine":  # no process is started
        run_study = script.run_study
        monkeypatch.setattr(
            script, "run_study", lambda study, workers, store: run_study(study, 1, store=store)
        )
        monkeypatch.setattr(script, "subprocess", SimpleNamespace(run=in_this_process))
    if name == "bench_startup":
        # one process stands for all repeats of the same
        monkeypatch.setattr(script, "run", cache(script.run))
        monkeypatch.setattr(script, "yard", lambda: 4.0)
    with pytest.raises(SystemExit) as end:
        script.main(["--help"])
    assert end.value.code == 0
    arguments = [one.replace("_", " ") for one in SMALLEST[name].split()]
    stores = ["--stores", str(tmp_path / "stores"), "--workers", "1"]
    script.main(
        [
            *arguments,
            "--results",
            str(tmp_path),
            *(stores if name in ("bench_default", "bench_known", "bench_study") else []),
        ]
    )
    tables = {path.stem: pd.read_csv(path) for path in tmp_path.glob("*.csv")}
    assert len(tables) > 1  # and what was measured when
    assert not any(table.empty for table in tables.values())
