"""Where tasks are done makes no difference, whatever dies on the way."""

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from functools import cached_property, partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from helpers import command, refuses, same_runs, walk

import herdfilter as hf
from herdfilter.study import workers
from herdfilter.study.engine import perform
from herdfilter.study.plan import plan_study
from herdfilter.study.store import open_for_reading
from herdfilter.study.tasks import Task, TaskResult
from herdfilter.study.workers import Batch, LocalProcesses, check_scheduler, distribute
from herdfilter.study.workers import cluster as cluster_module

WALK = walk(steps=25, runs=60, particles=[50], filters=["bootstrap", "sqmc"])


class Simulated:
    """Places with clocks of their own: tasks take given seconds, runs others to prepare, and some tasks kill their place."""

    def __init__(self, places, seconds, preparation=0.0, deadly=(), deadly_once=()):
        self.names, self.seconds, self.preparation, self.deadly = list(places), seconds, preparation, deadly
        self.deadly_once = set(deadly_once)
        self.clock = dict.fromkeys(self.names, 0.0)
        self.at_hand = dict.fromkeys(self.names)
        self.running = {}
        self.prepared = defaultdict(list)

    def places(self):
        return self.names

    def submit(self, place, tasks):
        assert place not in self.running
        if tasks[0] not in self.clock:  # idle places have waited
            self.clock[place] = max(self.clock[place], min(self.clock.values()))
        self.running[place] = tasks, *self._work(place, tasks)

    def _work(self, place, tasks):
        outcomes, start = [], self.clock[place]
        for task in tasks:
            if task in self.deadly or task in self.deadly_once:
                self.deadly_once.discard(task)
                self.at_hand[place] = None
                return None, self.clock[place]
            prepared = 0.0
            if self.at_hand[place] != task.run:
                self.at_hand[place] = task.run
                self.prepared[task.run].append(place)
                prepared = self.preparation
            self.clock[place] += self.seconds(task) + prepared
            outcomes.append(TaskResult(task, {"error": ""}, seconds=self.seconds(task), preparation=prepared))
            if self.clock[place] - start > workers.BATCH_SECONDS:
                break
        return outcomes, self.clock[place]

    def wait(self):
        place = min(self.running, key=lambda place: self.running[place][2])
        tasks, outcomes, _ = self.running.pop(place)
        return [Batch(place, tasks, outcomes)]


def tasks_of(runs, filters):
    return [Task(str(f), 10, run) for run in range(runs) for f in range(filters)]


@pytest.mark.parametrize("places", [1, 2, 5])
@pytest.mark.parametrize("scale", [1e-4, 0.05, 1.0])
def test_every_task_is_done_once_and_places_stay_busy(places, scale):
    rng = np.random.default_rng(places)
    tasks = tasks_of(30, 4)
    seconds = dict(zip(tasks, scale * rng.exponential(size=len(tasks)), strict=True))
    executor = Simulated(range(places), seconds.get)
    done = [o.task for outcomes in distribute(tasks, executor) for o in outcomes]
    assert sorted(done) == sorted(tasks)
    fair = sum(seconds.values()) / places
    assert max(executor.clock.values()) <= fair + 3 * max(seconds.values()) + workers.BATCH_SECONDS


def test_a_run_stays_where_its_reference_is():
    executor = Simulated("abc", lambda task: 0.3, preparation=10.0)
    list(distribute(tasks_of(9, 6), executor))
    assert all(len(places) == 1 for places in executor.prepared.values())


def test_few_long_runs_are_shared():
    executor = Simulated("abcd", lambda task: 1.0, preparation=0.1)
    list(distribute(tasks_of(1, 40), executor))
    assert max(executor.clock.values()) < 15


def test_only_the_task_that_always_kills_its_process_fails():
    """What kills it once may have been killed from outside."""
    tasks = tasks_of(6, 3)
    deadly = {tasks[4], tasks[11]}
    executor = Simulated("ab", lambda task: 0.01, deadly=deadly, deadly_once=tasks[6:8])
    done = {o.task: o.row["error"] for outcomes in distribute(tasks, executor) for o in outcomes}
    assert done.keys() == set(tasks)
    assert {task for task, error in done.items() if error} == deadly
    assert done[tasks[4]].startswith("ProcessDied")


FORKS = """
import ast, os, sys
import distributed, distributed.cli.dask_worker, herdfilter.study.engine
for line in sys.stdin:
    kind, value = ast.literal_eval(line)
    if kind == "wait":
        print(os.waitstatus_to_exitcode(os.waitpid(value, 0)[1]), flush=True)
    elif child := os.fork():
        print(child, flush=True)
    else:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        exec(value)
        os._exit(0)
"""
WORKER = """
null = os.open(os.devnull, os.O_WRONLY)
os.dup2(null, 1), os.dup2(null, 2)
options = ("--nthreads", "1", "--no-dashboard", "--no-nanny", "--host", "127.0.0.1")
distributed.cli.dask_worker.main([{address!r}, *options])
"""
HOST = """
import time
options = {{"processes": False, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": "CRITICAL"}}
with distributed.LocalCluster(n_workers=1, scheduler_port=0, protocol="tcp://", host="127.0.0.1", **options) as cluster:
    with open({told!r}, "w") as told:
        told.write(cluster.scheduler_address + " ")
    time.sleep(600)
"""


class Forked:
    """A process with a program, beside this one; seen as those of `subprocess`."""

    def __init__(self, ask, program):
        self._ask, self.pid = ask, int(ask("fork", program))

    def send_signal(self, number):
        os.kill(self.pid, number)

    @cached_property
    def code(self):
        return int(self._ask("wait", self.pid))

    def end(self):
        """Kill it, if it is there, and return its exit code."""
        if "code" not in vars(self):
            self.send_signal(signal.SIGKILL)
        return self.code


@pytest.fixture(scope="module")
def forked():
    """A function: a process with a program. All are copies of one that has imported what takes long to import."""
    pytest.importorskip("distributed")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", FORKS], **pipes) as parent:

        def ask(kind, value):
            print(repr((kind, value)), file=parent.stdin, flush=True)
            return parent.stdout.readline()

        yield lambda program: Forked(ask, program)


@pytest.fixture
def cluster(forked):
    """Address of a scheduler in this process, and its two workers, each a process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=0, dashboard_address=None, silence_logs="CRITICAL") as cluster:
        address = cluster.scheduler_address
        workers = [forked(WORKER.format(address=address)) for _ in range(2)]
        try:
            yield address, workers
        finally:
            for worker in workers:
                worker.end()


@contextmanager
def killed(process, store, finished):
    """Kill a process when so many runs of a filter are in a store; give the list that takes their number."""
    counts = []

    def watch():
        while not counts:
            time.sleep(0.03)
            if store.exists():
                with open_for_reading(store, empty=True) as kept:
                    done = len(kept.finished()) if kept.begun() else 0
                if done >= finished:
                    process.send_signal(signal.SIGKILL)
                    counts.append(done)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield counts
    finally:
        counts.append(-1)  # ends the watch in any case
        thread.join()


def test_a_cluster_may_lose_a_worker_but_not_all(scenario, cluster, tmp_path, monkeypatch):
    scenario = dataclasses.replace(scenario, reference=None, filters=("bootstrap", "augmented-random"))
    address, workers = cluster
    store, runs = tmp_path / "study.sqlite", 40
    with killed(workers[0], store, 20) as counts:
        table = hf.compare(scenario, runs=runs, scheduler=address, store=store)
    assert 20 <= counts[0] < len(table)
    assert workers[0].code == -signal.SIGKILL
    same_runs(table, hf.compare(scenario, runs=runs))
    monkeypatch.setattr(cluster_module, "_NOBODY_SECONDS", 0.5)
    with (
        killed(workers[1], store, len(table) + 20),
        pytest.raises(ConnectionError, match=r"no worker that takes tasks for 0.5 s; start workers"),
    ):
        hf.compare(scenario, runs=2 * runs, scheduler=address, store=store, resume=True)
    with open_for_reading(store) as kept:
        assert len(table) + 20 <= len(kept.finished()) < 2 * len(table)


@pytest.mark.parametrize(("state", "worker"), [("finished", "tcp://there"), ("lost", "tcp://gone")])
def test_results_that_died_with_their_worker_are_not_waited_for(state, worker):
    """Done, but in the memory of a worker that has gone since: the client knows, or is yet to see."""

    class Lost:
        status = state

        def result(self, timeout=None):
            assert timeout is not None
            raise TimeoutError

    lost, given_up = Lost(), []
    cluster = object.__new__(cluster_module.Cluster)
    cluster._distributed = SimpleNamespace(KilledWorker=LookupError)
    cluster._client = SimpleNamespace(cancel=given_up.extend)
    cluster._here, cluster._look = {worker: 1}, lambda: None
    cluster._running = {lost: (("tcp://gone", 0), ["task"])}
    assert cluster._batch(lost) == Batch(("tcp://gone", 0), ["task"], None)
    assert given_up == [lost]


def test_a_worker_that_comes_while_it_is_looked_has_not_left():
    """Else all that it is given in the next half second counts as lost with it."""
    workers = {}

    def answer(question):
        before = dict(workers)
        workers[f"tcp://{len(workers)}"] = 1
        return before

    cluster = object.__new__(cluster_module.Cluster)
    cluster._looked, cluster._own, cluster._running = -np.inf, None, {}
    cluster._inhabited = time.monotonic()
    cluster._client = SimpleNamespace(
        status="running", sync=answer, scheduler=SimpleNamespace(ncores=None, ncores_running=None)
    )
    for _ in range(3):
        assert {worker for worker, _ in cluster.places()} <= cluster._here.keys()
        cluster._looked = -np.inf
    assert len(cluster.places()) > 3


@pytest.mark.parametrize(
    ("status", "message"), [("finished", "scheduler: the connection to the cluster is lost"), ("error", "Stream is closed")]
)
def test_a_scheduler_lost_while_a_result_is_fetched_is_told_as_such(status, message):
    """An error of the same kind that the work itself raises stays as it is."""

    def result(timeout):
        raise ConnectionError("Stream is closed")

    future = SimpleNamespace(status=status, result=result)
    cluster = object.__new__(cluster_module.Cluster)
    cluster._distributed = SimpleNamespace(KilledWorker=LookupError)
    cluster._running = {"other": ()}
    with pytest.raises(ConnectionError, match=f"^{message}$"):
        cluster._result(future, ("tcp://there", 0))


def test_a_lost_scheduler_is_told_and_resuming_gives_the_same_table(tmp_path, forked):
    (tmp_path / "walk.toml").write_text(WALK)
    path, store = str(tmp_path / "walk.toml"), tmp_path / "out" / "study.sqlite"
    told, end = tmp_path / "address", time.monotonic() + 60
    host = forked(HOST.format(told=str(told)))
    try:
        while not (told.exists() and told.read_text().endswith(" ")) and time.monotonic() < end:
            time.sleep(0.03)
        arguments = ["compare", path, "--out", str(store.parent), "--scheduler", told.read_text().strip()]
        with killed(host, store, 10) as counts:
            done = command(*arguments)
    finally:
        host.end()
    assert done.exit_code == 2
    assert done.stderr.endswith(
        f"Error: scheduler: the connection to the cluster is lost; what was finished is in {store}, "
        "the same command with --resume goes on\n"
    )
    with open_for_reading(store) as kept:
        before = kept.table()
    assert counts[0] <= len(before) < 120
    after = hf.compare(path, store=store, resume=True)
    same_runs(after, hf.compare(path))
    order = ["filter", "n_particles", "run"]
    pd.testing.assert_frame_equal(after.merge(before[order])[before.columns], before, check_exact=True)


def test_nothing_at_the_address_is_told(scenario, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster_module, "_CONNECT_SECONDS", 0.5)
    with pytest.raises(ConnectionError, match=r"scheduler: nothing answers at tcp://127\.0\.0\.1:9"):
        hf.compare(scenario, scheduler="tcp://127.0.0.1:9")


test_a_scheduler_that_is_none_is_named = refuses(
    lambda scheduler: check_scheduler(scheduler),
    ("dsak", "did you mean 'dask'"),
    ("tpc://host:1", "did you mean 'tcp'"),
    ("tcp://host", "expected an address such as tcp://host:8786, got 'tcp://host'"),
    ("tcp://:8786", "expected an address"),
)


def test_without_distributed_the_extra_is_named(scenario, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"install herdfilter\[cluster\]"):
        hf.compare(scenario, scheduler="dask")


def test_a_process_finds_modules_from_folders_that_were_added_since_it_started(tmp_path, monkeypatch):
    path = tmp_path / "walk.toml"
    path.write_text(WALK)

    def errors(filters):
        study = plan_study(path, filters, [10], 2)
        executor = LocalProcesses(partial(perform, study), 1)
        done = [o for outcomes in distribute(study.tasks, executor) for o in outcomes]
        executor.close()  # the process waits for the next
        return {o.task.filter: o.row["error"] for o in done}

    assert errors(["bootstrap"]) == {"bootstrap": ""}
    (tmp_path / "late_filter.py").write_text(
        "import herdfilter as hf\ndef late(model, n, rng):\n    return hf.ParticleFilter(model, n, rng=rng)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert errors({"late": __import__("late_filter").late}) == {"late": ""}
