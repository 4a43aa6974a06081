"""Whatever a filter does to the process it runs in: it is a failed run, and the rest of the study goes on."""

import dataclasses
import os
import signal
import time
from collections import deque
from itertools import repeat
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import same_runs

import herdfilter as hf
from herdfilter.plotting import drawings
from herdfilter.study import workers
from herdfilter.study.engine import perform
from herdfilter.study.plan import plan_study
from herdfilter.study.tasks import TaskResult, failure_row
from herdfilter.study.workers.child import ChildWork
from herdfilter.study.workers.cluster import Cluster
from herdfilter.study.writing import open_store


@pytest.fixture
def scenario(scenario):
    """Without reference, whose packages take long to import."""
    return dataclasses.replace(scenario, reference=None)


class UnspeakableError(Exception):
    def __str__(self):
        raise ValueError("no words")


def raising(error):
    def trouble():
        raise error

    return trouble


def endless_recursion():
    endless_recursion()


def loop_that_nothing_interrupts():
    deque(repeat(0), maxlen=0)  # in C, and nobody else may run meanwhile


def dies():
    os.kill(os.getpid(), signal.SIGKILL)


def kills_its_parent():
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(10)


RAISED = [
    (raising(SystemExit(3)), "SystemExit: 3"),
    (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
    (raising(GeneratorExit()), "GeneratorExit"),
    (raising(UnspeakableError()), "UnspeakableError: (its text cannot be made: ValueError)"),
    (raising(MemoryError("too large")), "MemoryError: too large"),
    (endless_recursion, "RecursionError: maximum recursion depth exceeded"),
    (raising(OSError("no file \ud800")), r"OSError: no file \ud800"),
]
DEATH = (dies, "ProcessDied: the process that worked on it ended, killed or out of memory")
LOOP = (loop_that_nothing_interrupts, "TimeoutError: the filter took longer than 1 s")
SLEEP = (lambda: time.sleep(1000), "TimeoutError: the filter took longer than 1 s")
SOUND = (lambda: None, "")


def filters(troubles):
    """A filter for each trouble."""

    def factory(trouble):
        def run(observations, dt=1.0, controls=None):
            trouble()
            return SimpleNamespace(means=np.zeros((len(observations), 1)))

        return lambda model, n_particles, rng: SimpleNamespace(run=run)

    return {f"filter {i}": factory(trouble) for i, (trouble, _) in enumerate(troubles)}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("troubles", "options"),
    [(RAISED, {}), ([*RAISED, DEATH], {"workers": 2}), ([LOOP], {"run_timeout": 1, "workers": 2})],
    ids=["in process", "processes", "limited"],
)
def test_a_trouble_is_a_failed_run_and_the_rest_goes_on(scenario, tmp_path, monkeypatch, troubles, options):
    monkeypatch.setattr(workers, "ATTEMPTS", 1)  # one death: another process takes long to start
    the_rest_goes_on(scenario, tmp_path, troubles, options)


def the_rest_goes_on(scenario, tmp_path, troubles, options):
    named = filters([*troubles, SOUND])
    table = hf.compare(scenario, named, [10], runs=1, store=tmp_path / "study.sqlite", **options)
    for text, (_, expected) in zip(table["error"], [*troubles, SOUND], strict=True):
        assert text.startswith(expected)
        assert bool(text) == bool(expected)
    sound = {name: named[name] for name in list(named)[-1:]}
    same_runs(table[-1:], hf.compare(scenario, sound, [10], runs=1))


def test_a_death_is_told_from_a_hang(scenario):
    def work(tasks, stage):
        stage("the filter")
        dies()

    study = plan_study(scenario, ["bootstrap"], [10], 1)
    assert ChildWork(work, 30.0)(study.tasks) is None


@pytest.fixture(scope="module")
def one_cluster():
    """All that ask for a cluster of their own get the same one; give the list of those that have closed it."""
    distributed = pytest.importorskip("distributed")
    new, made, closed = distributed.LocalCluster, [], []

    def once(**options):
        if not made:
            cluster = new(**options)
            made.append((cluster, cluster.close, options))
            cluster.close = lambda: closed.append(cluster)
        assert options == made[0][2]
        return made[0][0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distributed, "LocalCluster", once)
        yield closed
    for _, close, _ in made:
        close()


@pytest.fixture
def own_cluster(one_cluster):
    """The cluster that all share, which must be closed by whoever asked for it."""
    before = len(one_cluster)
    yield
    assert len(one_cluster) == before + 1


def test_a_trouble_is_a_failed_run_and_the_rest_goes_on_limited_on_a_cluster(scenario, tmp_path, own_cluster):
    the_rest_goes_on(scenario, tmp_path, [SLEEP], {"run_timeout": 1, "workers": 1, "scheduler": "dask"})


def test_a_cluster_whose_only_worker_dies_goes_on(scenario, monkeypatch, own_cluster):
    monkeypatch.setattr(workers, "ATTEMPTS", 1)
    named = filters([(kills_its_parent, DEATH[1])]) | {"bootstrap": "bootstrap"}
    table = hf.compare(scenario, named, [10], runs=1, workers=1, scheduler="dask")
    assert list(table["error"]) == [DEATH[1], ""]
    same_runs(table[-1:], hf.compare(scenario, ["bootstrap"], [10], runs=1))


def test_a_worker_of_a_cluster_of_our_own_is_replaced_though_nobody_restarts_it(own_cluster):
    """As when it dies while it is just starting."""
    dask_config = pytest.importorskip("dask.config")
    with dask_config.set({"distributed.deploy.lost-worker-timeout": "100ms"}):
        cluster = Cluster(len, "dask", 1)
        try:
            (first,), end = cluster.places(), time.monotonic() + 60
            cluster._own.sync(cluster._own.workers[0].close)
            while set(cluster.places()) <= {first} and time.monotonic() < end:
                time.sleep(0.1)
            cluster.submit(cluster.places()[0], [1, 2, 3])
            assert [batch.results for batch in cluster.wait()] == [3]
        finally:
            cluster.close()


def test_a_worker_that_is_lost_while_the_first_one_is_waited_for_is_replaced(own_cluster, monkeypatch):
    """As when it dies late in one comparison, and its cluster gives it up early in the next."""
    distributed = pytest.importorskip("distributed")
    wait = distributed.Client.wait_for_workers
    lost = []

    def loses_it_first(client, *arguments, **options):
        if not lost:
            lost.append(client.cluster.workers[0])
            client.cluster.sync(client.cluster.workers.pop(0).close)
            raise TimeoutError
        return wait(client, *arguments, **options)

    monkeypatch.setattr(distributed.Client, "wait_for_workers", loses_it_first)
    cluster = Cluster(len, "dask", 1)
    try:
        assert len(lost) == len(cluster.places()) == 1
    finally:
        cluster.close()


def dies_if_told(tasks):
    if tasks[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return list(tasks)


def test_a_worker_that_died_gets_nothing_more_though_the_scheduler_was_asked_just_before(own_cluster, monkeypatch):
    monkeypatch.setattr(workers.cluster, "_LOOK_SECONDS", 60.0)
    cluster = Cluster(dies_if_told, "dask", 1)
    try:
        (place,) = cluster.places()
        cluster.submit(place, [True])
        assert [batch.results for batch in cluster.wait()] == [None]
        assert place not in cluster.places()
    finally:
        cluster.close()


def test_a_worker_that_leaves_between_two_questions_gets_nothing(own_cluster, monkeypatch):
    cluster = Cluster(len, "dask", 1)
    try:
        ((worker, _),) = cluster.places()
        answers = iter([{worker: 1}, {}])
        monkeypatch.setattr(cluster, "_ask", lambda question: next(answers))
        cluster._looked = -np.inf
        assert cluster.places() == []
    finally:
        cluster.close()


def test_a_study_whose_first_run_nobody_survived_has_a_result(scenario):
    study = plan_study(scenario, ["bootstrap"], [10], 2)
    with open_store(None, study) as store:
        store.begin("local")
        store.add([TaskResult(study.tasks[0], failure_row(DEATH[1])), *perform(study, study.tasks[1:])])
        result = store.result()
    assert list(result.runs["error"]) == [DEATH[1], ""]
    assert result.trajectory.estimates == {}
    assert drawings(result).keys() >= {"error_over_time"}


@pytest.mark.parametrize("seconds", [0, -1.0, np.nan, np.inf, "5"])
def test_a_limit_that_is_none_is_named(scenario, seconds):
    with pytest.raises(ValueError, match="run_timeout: expected a positive finite number, got"):
        hf.compare(scenario, run_timeout=seconds)
