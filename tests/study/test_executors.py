"""Where tasks are done makes no difference, whatever dies on the way."""

import multiprocessing
import signal
import sys
import threading
import time

import pandas as pd
import pytest
from helpers import command, refusal, same_runs, walk

import herdfilter as hf
from herdfilter.study import workers
from herdfilter.study.store import open_for_reading

WALK = walk(steps=25, runs=100, particles=[50], filters=["bootstrap", "sqmc"])


SCHEDULER = """
import time
from distributed import LocalCluster
with LocalCluster(n_workers=0, dashboard_address=None, silence_logs="CRITICAL") as cluster:
    told.send(cluster.scheduler_address)
    time.sleep(600)
"""
WORKER = """
import os
from distributed.cli.dask_worker import main
null = os.open(os.devnull, os.O_WRONLY)
os.dup2(null, 1), os.dup2(null, 2)
main([address, "--nthreads", "1", "--no-dashboard", "--no-nanny", "--host", "127.0.0.1"])
"""


def process(program, **names):
    """A process beside this one, copied of one that has imported what takes long to import."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["distributed.cli.dask_worker", "herdfilter.study.engine"])
    process = context.Process(target=exec, args=(program, names))
    process.start()
    return process


def kill_in_turn(store, kills, counts):
    """Kill each process when so many runs of a filter, and more than before, are in a store; append how many there are."""
    for process, enough in kills:
        while process.is_alive() and len(counts) < len(kills):
            time.sleep(0.03)
            if store.exists():
                with open_for_reading(store, empty=True) as kept:
                    done = len(kept.finished()) if kept.begun() else 0
                if done >= enough and done > max(counts, default=0):
                    process.kill()
                    process.join()
                    counts.append(done)


@pytest.mark.slow
def test_a_killed_worker_and_a_lost_scheduler_lose_nothing(tmp_path):
    """One of two workers is killed, and the scheduler later; resuming without them gives the same table."""
    pytest.importorskip("distributed")
    path = tmp_path / "walk.toml"
    store = tmp_path / "out" / "study.sqlite"
    counts = []
    path.write_text(WALK)
    address, told = multiprocessing.Pipe(duplex=False)
    scheduler = process(SCHEDULER, told=told)
    assert address.poll(60)
    host = address.recv()
    both = [process(WORKER, address=host) for _ in range(2)]
    kills = [(both[0], 6), (scheduler, 20)]
    watch = threading.Thread(target=kill_in_turn, args=(store, kills, counts))
    watch.start()
    try:
        done = command("compare", path, "--out", store.parent, "--scheduler", host)
    finally:
        for each in (scheduler, *both):
            each.kill()
            each.join()
        watch.join()
    assert (done.exit_code, both[0].exitcode, len(counts)) == (2, -signal.SIGKILL, 2)
    assert done.stderr.endswith(
        f"Error: scheduler: the connection to the cluster is lost; finished runs are in {store}. "
        "To continue, add --resume to the command.\n"
    )
    with open_for_reading(store) as kept:
        before = kept.table()
    assert 6 <= counts[0] < counts[1] <= len(before) < 200
    after = hf.compare(path, store=store, resume=True)
    same_runs(after, hf.compare(path))
    order = ["filter", "n_particles", "run"]
    pd.testing.assert_frame_equal(
        after.merge(before[order])[before.columns], before, check_exact=True
    )


def test_nothing_at_the_address_and_nothing_installed_are_told(scenario, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 0.5)
    with refusal(r"scheduler: nothing answers at tcp://127\.0\.0\.1:9", ConnectionError):
        hf.compare(scenario, scheduler="tcp://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with refusal(r"install herdfilter\[cluster\]", ImportError):
        hf.compare(scenario, scheduler="dask")


@pytest.mark.slow
def test_a_process_finds_modules_from_folders_that_were_added_since_it_started(
    tmp_path, monkeypatch
):
    """The processes of one comparison wait for the next."""
    path = tmp_path / "walk.toml"
    late = tmp_path / "late_filter.py"
    path.write_text(WALK)
    hf.compare(path, ["bootstrap"], [10], runs=2, workers=2)
    late.write_text(
        "import herdfilter as hf\ndef late(model, n, rng):\n    return hf.ParticleFilter(model, n, rng=rng)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    table = hf.compare(path, {"late": __import__("late_filter").late}, [10], runs=2, workers=2)
    assert not table["error"].any()
