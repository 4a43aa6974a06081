"""A store keeps every finished run, whatever ends the process, and gives them back as they were."""

import dataclasses
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import numpy as np
import pandas as pd
import pytest
from helpers import same_runs, walk

import herdfilter as hf
from herdfilter.study import engine
from herdfilter.study import store as store_module
from herdfilter.study.engine import run_study
from herdfilter.study.plan import plan_study
from herdfilter.study.store import StoreError, open_for_reading
from herdfilter.study.writing import open_store

ORDER = ["filter", "n_particles", "run"]


@pytest.fixture
def store(tmp_path):
    return tmp_path / "new" / "study.sqlite"


@pytest.fixture(scope="module")
def finished(scenario, tmp_path_factory):
    """The table of the scenario, and the bytes of its store."""
    store = tmp_path_factory.mktemp("finished") / "study.sqlite"
    return pd.DataFrame(hf.compare(scenario, store=store)), store.read_bytes()


@pytest.fixture(scope="module")
def whole(finished):
    return finished[0]


@pytest.fixture
def full(finished, store):
    """A store of its own with all runs in it."""
    store.parent.mkdir()
    store.write_bytes(finished[1])
    return store


def cut_off(monkeypatch, scenario, store, tasks, **arguments):
    """Begin a comparison in a store, and end it after some tasks."""
    perform, left = engine._perform, [tasks]

    def some(study, task):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return perform(study, task)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "_perform", some)
        patch.setattr(engine.perform, "__defaults__", (0.0,))  # every task a batch
        with pytest.raises(KeyboardInterrupt):
            hf.compare(scenario, store=store, **arguments)


def test_what_is_read_back_is_what_was_found(scenario, store, failing):
    study = plan_study(scenario, filters={"bad": failing, "ok": "bootstrap"}, runs=8)
    in_memory, stored = run_study(study), run_study(study, store=store)
    with open_for_reading(store) as kept:
        again = kept.result()
    same_runs(in_memory.runs, stored.runs)
    pd.testing.assert_frame_equal(stored.runs, again.runs, check_exact=True)
    assert list(again.series) == list(in_memory.series) == study.keys
    for key, series in in_memory.series.items():
        assert again.series[key].keys() == series.keys()
        for name, values in series.items():
            np.testing.assert_array_equal(again.series[key][name], values)
    for part in ("truth", "observations", "dt", "controls"):
        np.testing.assert_array_equal(
            getattr(again.trajectory.recording, part), getattr(in_memory.trajectory.recording, part)
        )
    np.testing.assert_array_equal(again.trajectory.reference.means, in_memory.trajectory.reference.means)
    assert again.trajectory.particles["ok"].shape == (scenario.steps, 30, 1)
    for name, means in in_memory.trajectory.estimates.items():
        np.testing.assert_array_equal(again.trajectory.estimates[name], means)
    assert again.study.keys == study.keys
    assert again.study.scenario == dataclasses.replace(scenario, folder=again.study.scenario.folder)


def test_a_store_says_what_was_done_where(scenario, store):
    hf.compare(scenario, store=store)
    assert sorted(path.name for path in store.parent.iterdir()) == ["study.sqlite"]
    with sqlite3.connect(store) as connection:
        (configuration,) = connection.execute("SELECT value FROM study WHERE name = 'configuration'").fetchone()
        assert json.loads(configuration)["scenario"]["model"]["F"] == [[0.9]]
        started, ended, versions, machine = connection.execute(
            "SELECT started, ended, versions, machine FROM sessions"
        ).fetchone()
        assert started <= ended
        assert json.loads(versions)["numpy"] == np.__version__
        assert json.loads(machine)["cores"] == os.cpu_count()
        rmse = connection.execute("SELECT filter, avg(rmse) FROM runs GROUP BY filter").fetchall()
    assert [name for name, _ in rmse] == ["augmented-gauss-kh", "bootstrap"]
    connection.close()


@pytest.mark.parametrize("tasks", [0, 9, 23])
def test_resuming_neither_repeats_nor_loses_a_run(scenario, whole, store, monkeypatch, tasks):
    cut_off(monkeypatch, scenario, store, tasks)
    with open_for_reading(store) as kept:
        assert len(kept.finished()) == tasks
    perform, done = engine._perform, []
    monkeypatch.setattr(engine, "_perform", lambda study, task: done.append(task) or perform(study, task))
    same_runs(hf.compare(scenario, store=store, resume=True), whole)
    assert len(done) == len(whole) - tasks
    same_runs(hf.compare(scenario, store=store, resume=True), whole)  # nothing is left to do
    assert len(done) == len(whole) - tasks


def test_the_runs_that_all_filters_have_finished_can_be_looked_at(scenario, whole, store, monkeypatch):
    cut_off(monkeypatch, scenario, store, 3)
    with open_for_reading(store) as kept, pytest.raises(StoreError, match="3 of 24 runs of a filter"):
        kept.result()
    shutil.rmtree(store.parent)
    cut_off(monkeypatch, scenario, store, 10)
    with open_for_reading(store) as kept:
        result = kept.result()
        assert len(kept.table()) == 10
    assert result.study.runs == 2
    assert result.series["augmented-gauss-kh", 30]["truth"].shape == (2, scenario.steps)
    same_runs(result.runs, whole[whole["run"] < 2].reset_index(drop=True))


WALK = walk(steps=40, runs=20, particles=[10, 15, 20, 25], filters=["bootstrap"])


RESUMED = """
import sys
import herdfilter as hf
hf.compare(sys.argv[1], store=sys.argv[2], workers=2, resume=True)
"""


def test_ended_at_any_moment_it_is_resumed_and_leaves_no_process(tmp_path, store):
    """First by SIGKILL, then the command line by SIGTERM."""
    scenario = tmp_path / "walk.toml"
    slow = 'filters = ["bootstrap", "augmented-random"]'  # neither comes to its end before it is ended
    scenario.write_text(WALK.replace('filters = ["bootstrap"]', slow).replace("steps = 40", "steps = 20"))
    whole, command = hf.compare(scenario), ["-m", "herdfilter", "compare", str(scenario), "--workers", "2"]
    command += ["--out", str(store.parent), "--resume", "-q"]
    ends, told = [], ""
    for arguments, number, more in (
        (["-c", RESUMED, str(scenario), str(store)], signal.SIGKILL, np.random.default_rng().integers(10)),
        (command, signal.SIGTERM, 5),
    ):
        enough = more + (_done(store) if store.exists() else 0)
        process = subprocess.Popen([sys.executable, *arguments], stderr=subprocess.PIPE, text=True)
        while process.poll() is None and (not store.exists() or _done(store) < enough):
            time.sleep(0.02)
        process.send_signal(number)
        told = process.stderr.read()  # until all that it has started have ended
        ends.append(process.wait())
    assert ends[0] == -signal.SIGKILL
    assert enough <= _done(store) <= len(whole)
    if _done(store) < len(whole):
        assert ends[1] == 128 + signal.SIGTERM
        assert told == f"Cut off; what was finished is in {store}. The same command with --resume goes on.\n"
    same_runs(hf.compare(scenario, store=store, resume=True), whole)


def test_a_store_that_is_just_being_created_is_empty_or_whole(scenario, store, monkeypatch):
    study, is_empty = plan_study(scenario), store_module.is_empty
    store.parent.mkdir()
    with sqlite3.connect(store) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()

    def created_meanwhile(connection):
        monkeypatch.undo()
        open_store(store, study).close()
        return is_empty(connection)

    monkeypatch.setattr(store_module, "is_empty", created_meanwhile)
    with pytest.raises(StoreError, match="nothing is in it yet"):
        open_for_reading(store)
    with open_for_reading(store) as kept:
        assert kept.begun()
        assert not kept.finished()


def test_measured_times_are_those_of_the_filter_not_of_the_task(scenario, store):
    table = hf.compare(scenario, store=store)
    np.testing.assert_allclose(table["seconds"], 1e-3 * table["ms_per_step"] * scenario.steps)


def _done(store):
    with open_for_reading(store, empty=True) as kept:
        return len(kept.finished()) if kept.begun() else 0


def test_finished_runs_are_never_overwritten(scenario, store):
    hf.compare(scenario, runs=2, store=store)
    before = store.read_bytes()
    with pytest.raises(StoreError, match="there are 8 finished runs of a filter in it; continue them with"):
        hf.compare(scenario, runs=2, store=store)
    assert store.read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": 1}, "seed: 0 there, 1 now"),
        ({"particles": [10]}, r"particles: \[10, 30\] there, \[10\] now"),
        ({"filters": ["bootstrap"]}, "filters.augmented-gauss-kh: .* there, nothing now"),
        (
            {"filters": {"bootstrap": {"resample_below": 0.9}, "augmented-gauss-kh": "augmented-gauss-kh"}},
            "filters.bootstrap.options.* nothing there, 0.9 now",
        ),
        ({"steps": 11}, "scenario.steps: 10 there, 11 now"),
        ({"model": {"F": [[0.8]]}}, r"scenario.model.F: \[\[0.9\]\] there, \[\[0.8\]\] now"),
        ({"title": "Another wording"}, None),
    ],
)
def test_a_changed_study_is_not_resumed_and_the_difference_shown(scenario, full, changed, message):
    if "model" in changed:
        changed = {"model": scenario.model | changed["model"]}
    fields = {k: v for k, v in changed.items() if k in ("steps", "model", "title")}
    other = dataclasses.replace(scenario, **fields)
    arguments = {k: v for k, v in changed.items() if k not in fields}
    if message is None:
        hf.compare(other, store=full, resume=True, **arguments)
        return
    with pytest.raises(StoreError, match=f"cannot resume, another study is in it: {message}"):
        hf.compare(other, store=full, resume=True, **arguments)


def test_resuming_with_more_runs_adds_them_and_with_fewer_takes_none_away(scenario, whole, store):
    first = hf.compare(scenario, runs=2, store=store)
    more = hf.compare(scenario, runs=5, store=store, resume=True)
    same_runs(more, whole[whole["run"] < 5].reset_index(drop=True))
    pd.testing.assert_frame_equal(first, more[more["run"] < 2].reset_index(drop=True), check_exact=True)
    before = store.read_bytes()
    with pytest.raises(StoreError, match="runs: expected at least the 5 that were begun, got 4; --resume may add"):
        hf.compare(scenario, runs=4, store=store, resume=True)
    assert store.read_bytes() == before


def test_a_study_that_was_cut_off_may_end_earlier_than_was_planned(scenario, whole, store, monkeypatch):
    cut_off(monkeypatch, scenario, store, 7)
    earlier = hf.compare(scenario, runs=2, store=store, resume=True)
    same_runs(earlier, whole[whole["run"] < 2].reset_index(drop=True))


def test_an_edited_model_or_filter_is_another_one(scenario, tmp_path, store):
    text = "from herdfilter.models import LinearGaussian\nclass Own(LinearGaussian):\n    'one'\n"
    (tmp_path / "own.py").write_text(text)
    own = dataclasses.replace(scenario, model=scenario.model | {"type": "own.py:Own"}, reference=None, folder=tmp_path)
    hf.compare(own, runs=1, store=store)
    hf.compare(own, runs=1, store=store, resume=True)
    (tmp_path / "own.py").write_text(text.replace("one", "two"))
    os.utime(tmp_path / "own.py", (1, 1))
    with pytest.raises(StoreError, match="cannot resume, another study is in it: model"):
        hf.compare(own, runs=1, store=store, resume=True)


def test_functions_are_told_apart_by_what_they_capture(scenario, store, constant):
    def always(value):
        return {"constant": lambda model, n, rng: constant(model, n, rng, value)}

    hf.compare(scenario, always(1.0), store=store)
    hf.compare(scenario, always(1.0), store=store, resume=True)
    with pytest.raises(StoreError, match=r"filters.constant.captured"):
        hf.compare(scenario, always(2.0), store=store, resume=True)


def test_resuming_what_was_never_begun_begins_it(scenario, store):
    same_runs(hf.compare(scenario, runs=1, store=store, resume=True), hf.compare(scenario, runs=1))
    store.write_bytes(b"")  # killed as it was created
    assert len(hf.compare(scenario, runs=1, store=store, resume=True)) == 4


def test_resume_without_a_store_is_refused(scenario):
    with pytest.raises(ValueError, match="resume: expected a store to continue, got none"):
        hf.compare(scenario, resume=True)


def damage(store, how):
    if how == "text":
        store.write_text("no database at all, but long enough to be taken for one " * 20)
    elif how == "truncated":
        os.truncate(store, store.stat().st_size // 2)
    elif how == "overwritten":
        data = bytearray(store.read_bytes())
        data[4096 : len(data) // 2] = b"x" * (len(data) // 2 - 4096)
        store.write_bytes(data)
    else:
        with sqlite3.connect(store) as connection:
            if how == "version":
                connection.execute("PRAGMA user_version = 99")
            elif how == "other":
                connection.execute("PRAGMA application_id = 1")
            elif how == "series":
                connection.execute("UPDATE series SET data = x'00'")
        connection.close()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("text", "not a store of herdfilter, or damaged"),
        ("truncated", "damaged"),
        ("overwritten", "damaged"),
        ("version", "a store of version 99, but this herdfilter reads version 2"),
        ("other", "not a store of herdfilter"),
    ],
)
def test_a_store_that_is_none_is_told_and_left_alone(scenario, full, how, message):
    damage(full, how)
    before = full.read_bytes()
    with pytest.raises(StoreError, match=message):
        open_for_reading(full)
    for resume in (False, True):
        with pytest.raises(StoreError, match=message):
            hf.compare(scenario, store=full, resume=resume)
    assert full.read_bytes() == before


@pytest.mark.parametrize("seed", range(2))
def test_damage_anywhere_is_told_or_does_no_harm(scenario, whole, full, seed):
    """Bytes overwritten at random: a clear error, or the same table."""
    rng, told = np.random.default_rng(seed), 0
    intact = full.read_bytes()
    for _ in range(60):
        damaged = bytearray(intact)
        start, length = rng.integers(len(intact)), 2 ** rng.integers(0, 13)
        damaged[start : start + length] = rng.bytes(len(damaged[start : start + length]))
        full.write_bytes(damaged)
        with suppress(StoreError):
            told += 1
            with open_for_reading(full) as kept:
                result = kept.result()
            for series in result.series.values():
                assert series["truth"].shape == (scenario.runs, scenario.steps)
            pd.testing.assert_frame_equal(result.runs, whole, check_exact=True)
            told -= 1
    assert told


def test_damaged_series_are_told(full):
    damage(full, "series")
    with open_for_reading(full) as kept:
        series = kept.result().series
    with pytest.raises(StoreError, match="48 of 48 rows of series are not as they were written"):
        series["bootstrap", 10]


def test_a_folder_that_takes_no_files_is_told(scenario, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"file/study\.sqlite: cannot be written"):
        hf.compare(scenario, store=tmp_path / "file" / "study.sqlite")


def test_there_is_one_writer(scenario, store):
    study = plan_study(scenario)
    with open_store(store, study), pytest.raises(StoreError, match="another process is writing into this folder"):
        open_store(store, study, resume=True)
    open_store(store, study).close()


@contextmanager
def files_no_larger_than(size):
    """As if the disk were full: what this process writes beyond that into a file is refused."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    told = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, told)


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limit of file sizes here")
def test_a_full_disk_is_told_and_what_was_finished_is_kept(tmp_path, store, monkeypatch):
    scenario = tmp_path / "walk.toml"
    scenario.write_text(WALK.replace("runs = 20", "runs = 10"))
    monkeypatch.setattr(engine.perform, "__defaults__", (0.0,))  # every task a batch, so that some fit
    told = r"study.sqlite: cannot be written \(.*what was finished before is kept"
    with files_no_larger_than(110_000), pytest.raises(StoreError, match=told):
        hf.compare(scenario, store=store)
    finished = _done(store)
    assert 0 < finished < 40
    with open_for_reading(store) as kept:
        before = kept.table()
    after = hf.compare(scenario, store=store, resume=True)
    pd.testing.assert_frame_equal(after.merge(before[ORDER])[before.columns], before, check_exact=True)
    same_runs(after, hf.compare(scenario))


def test_a_store_without_leave_to_write_beside_it_can_be_read(whole, full):
    full.chmod(0o400)
    full.parent.chmod(0o500)
    try:
        with open_for_reading(full.parent) as kept:
            pd.testing.assert_frame_equal(kept.table(), whole)
    finally:
        full.parent.chmod(0o700)
