"""A store keeps every finished run, whatever ends the process, and gives them back as they were."""

import dataclasses
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from helpers import refusal, same_runs, walk
from numpy.testing import assert_array_equal, assert_equal

import herdfilter as hf
from herdfilter.study import engine
from herdfilter.study.engine import run_study
from herdfilter.study.plan import plan_study
from herdfilter.study.store import StoreError, open_for_reading, open_store

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


def cut_off(monkeypatch, scenario, store, tasks):
    """Begin a comparison in a store, and end it after some tasks."""
    perform = engine._perform
    left = [tasks]

    def some(*task):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return perform(*task)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "_perform", some)
        patch.setattr(engine.perform, "__defaults__", (0.0, None))  # every task a batch
        with pytest.raises(KeyboardInterrupt):
            hf.compare(scenario, store=store)


def test_what_is_read_back_is_what_was_found(scenario, store, failing):
    study = plan_study(scenario, filters={"bad": failing, "ok": "bootstrap"}, runs=8)
    in_memory = run_study(study)
    stored = run_study(study, store=store)
    with open_for_reading(store) as kept:
        again = kept.result()
    same_runs(in_memory.runs, stored.runs)
    pd.testing.assert_frame_equal(stored.runs, again.runs, check_exact=True)
    for key, series in in_memory.series.items():
        assert_equal(again.series[key], series)
    here = in_memory.trajectory
    there = again.trajectory
    for part in ("truth", "dt"):
        assert_array_equal(getattr(there.recording, part), getattr(here.recording, part))
    assert_array_equal(there.reference.means, here.reference.means)
    assert_equal(there.particles, here.particles)
    assert_equal(there.estimates, here.estimates)
    assert again.study.scenario == dataclasses.replace(scenario, folder=again.study.scenario.folder)


def test_resuming_neither_repeats_nor_loses_a_run(scenario, whole, store, monkeypatch):
    """Until then, the runs that all filters have finished can be looked at."""
    cut_off(monkeypatch, scenario, store, 10)
    with open_for_reading(store) as kept:
        result = kept.result()
        assert len(kept.table()) == len(kept.finished()) == 10
    same_runs(result.runs, whole[whole["run"] < 2])
    perform = engine._perform
    done = []
    monkeypatch.setattr(engine, "_perform", lambda *task: done.append(task) or perform(*task))
    for _ in range(2):
        same_runs(hf.compare(scenario, store=store, resume=True), whole)
    assert len(done) == len(whole) - 10


def _done(store):
    with open_for_reading(store, empty=True) as kept:
        return len(kept.finished()) if kept.begun() else 0


COMPARED = """
import sys
import herdfilter as hf
hf.compare(sys.argv[1], store=sys.argv[2], workers=2)
"""


@pytest.mark.slow
def test_killed_at_any_moment_it_is_resumed_and_leaves_no_process(tmp_path, store):
    scenario = tmp_path / "walk.toml"  # it does not come to its end before it is ended
    scenario.write_text(
        walk(
            steps=20, runs=20, particles=[10, 15, 20, 25], filters=["bootstrap", "augmented-random"]
        )
    )
    whole = hf.compare(scenario)
    end = np.random.default_rng().integers(40)
    arguments = [sys.executable, "-c", COMPARED, str(scenario), str(store)]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE)
    while process.poll() is None and (not store.exists() or _done(store) < end):
        time.sleep(0.02)
    process.kill()
    process.stderr.read()  # until all that it has started have ended
    assert process.wait() == -signal.SIGKILL
    assert end <= _done(store) < len(whole)
    same_runs(hf.compare(scenario, store=store, resume=True), whole)


def test_a_changed_study_is_not_resumed_and_the_difference_shown(scenario, full):
    other = dataclasses.replace(scenario, model=scenario.model | {"F": [[0.8]]})
    told = r"cannot resume, another study is in it: scenario.model.F: \[\[0.9\]\] there, \[\[0.8\]\] now"
    with refusal(told, StoreError):
        hf.compare(other, store=full, resume=True)
    hf.compare(dataclasses.replace(scenario, title="Another wording"), store=full, resume=True)


def test_resuming_with_more_runs_adds_them_and_with_fewer_takes_none_away(scenario, whole, store):
    """An empty file is that of a process that was killed as it created it."""
    store.parent.mkdir()
    store.write_bytes(b"")
    first = hf.compare(scenario, runs=2, store=store, resume=True)
    more = hf.compare(scenario, runs=5, store=store, resume=True)
    same_runs(more, whole[whole["run"] < 5])
    same_runs(first, more[more["run"] < 2])
    before = store.read_bytes()
    with refusal(
        "runs: expected at least the 5 that were begun, got 4; --resume may add", StoreError
    ):
        hf.compare(scenario, runs=4, store=store, resume=True)
    with refusal("there are 20 finished runs of a filter in it; continue them with", StoreError):
        hf.compare(scenario, runs=5, store=store)
    assert store.read_bytes() == before


def test_an_edited_model_or_filter_is_another_one(scenario, tmp_path, store, constant):
    """A function is told from another by what it captures."""
    text = "from herdfilter.models import LinearGaussian\nclass Own(LinearGaussian):\n    'one'\n"
    (tmp_path / "own.py").write_text(text)
    own = dataclasses.replace(
        scenario, model=scenario.model | {"type": "own.py:Own"}, reference=None, folder=tmp_path
    )

    def compare(value):
        always = {"constant": lambda model, n, rng: constant(model, n, rng, value)}
        hf.compare(own, always, runs=1, store=store, resume=True)

    compare(1.0)
    with refusal(r"filters.constant.captured", StoreError):
        compare(2.0)
    (tmp_path / "own.py").write_text(text.replace("one", "two"))
    os.utime(tmp_path / "own.py", (1, 1))
    with refusal("cannot resume, another study is in it: model", StoreError):
        compare(1.0)


def test_there_is_one_writer_and_it_needs_a_folder(scenario, store):
    study = plan_study(scenario)
    with (
        open_store(store, study),
        refusal("another process is writing into this folder", StoreError),
        open_store(store, study, resume=True),
    ):
        pass
    with refusal(r"study\.sqlite/study\.sqlite: cannot be written", StoreError):
        hf.compare(scenario, store=store / "study.sqlite")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limit of file sizes here")
def test_a_full_disk_is_told_and_what_was_finished_is_kept(tmp_path, store, monkeypatch):
    scenario = tmp_path / "walk.toml"
    scenario.write_text(walk(steps=40, runs=10, particles=[10, 15, 20, 25], filters=["bootstrap"]))
    # every task a batch, so that some fit
    monkeypatch.setattr(engine.perform, "__defaults__", (0.0, None))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    signals = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (110_000, limits[1]))  # as if the disk were full
    try:
        with refusal(
            r"study.sqlite: cannot be written \(.*runs finished before are kept", StoreError
        ):
            hf.compare(scenario, store=store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, signals)
    with open_for_reading(store) as kept:
        before = kept.table()
    assert 0 < len(before) < 40
    after = hf.compare(scenario, store=store, resume=True)
    pd.testing.assert_frame_equal(
        after.merge(before[ORDER])[before.columns], before, check_exact=True
    )
    same_runs(after, hf.compare(scenario))


def test_a_store_without_leave_to_write_beside_it_can_be_read(whole, full):
    full.chmod(0o400)
    full.parent.chmod(0o500)
    try:
        with open_for_reading(full.parent) as kept:
            pd.testing.assert_frame_equal(kept.table(), whole)
    finally:
        full.parent.chmod(0o700)


def test_a_machine_without_memory_is_no_damage_of_the_store(scenario, tmp_path, monkeypatch):
    file = tmp_path / "study.sqlite"
    hf.compare(scenario, ["bootstrap"], particles=[10], runs=1, store=file)

    def full(*_, **__):
        raise MemoryError

    with open_for_reading(file) as store:
        monkeypatch.setattr(pd, "read_sql_query", full)
        with pytest.raises(MemoryError):
            store.table()
