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
SOUND = (lambda: None, "")


def filters(troubles):
    """A filter for each trouble."""

    def factory(trouble):
        def run(observations, dt=1.0, controls=None):
            trouble()
            return SimpleNamespace(means=np.zeros((len(observations), 1)))

        return lambda model, n_particles, rng: SimpleNamespace(run=run)

    return {f"filter {i}": factory(trouble) for i, (trouble, _) in enumerate(troubles)}


def test_tables_do_not_depend_on_the_number_of_workers(scenario):
    """20,000 particles of the reference: enough for a threaded linear algebra library to sum in another order.

    The processes wait for the next test: to start others takes longer than all they do.
    """
    many = dataclasses.replace(scenario, reference={"type": "large", "n": 20000})
    first, other = (hf.compare(many, ["bootstrap"], runs=2, workers=workers) for workers in (1, 2))
    same_runs(first, other)
    assert (first["reference_error"] > 0).all()


def the_rest_goes_on(scenario, tmp_path, troubles, options):
    named = filters([*troubles, SOUND])
    table = hf.compare(scenario, named, [10], runs=1, store=tmp_path / "study.sqlite", **options)
    for text, (_, expected) in zip(table["error"], [*troubles, SOUND], strict=True):
        assert text.startswith(expected)
        assert bool(text) == bool(expected)
    sound = {name: named[name] for name in list(named)[-1:]}
    same_runs(table[-1:], hf.compare(scenario, sound, [10], runs=1))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("troubles", "options"),
    [
        (RAISED, {}),
        ([LOOP], {"run_timeout": 1}),
        pytest.param([*RAISED, DEATH], {"workers": 2}, marks=pytest.mark.slow),
    ],
    ids=["in process", "limited", "processes"],
)
def test_a_trouble_is_a_failed_run_and_the_rest_goes_on(scenario, tmp_path, monkeypatch, troubles, options):
    monkeypatch.setattr(workers, "ATTEMPTS", 1)  # one death: another process takes long to start
    the_rest_goes_on(scenario, tmp_path, troubles, options)


def test_a_study_whose_first_run_nobody_survived_has_a_result(scenario):
    study = plan_study(scenario, ["bootstrap"], [10], 2)
    with open_store(None, study) as store:
        store.begin("local")
        store.add([TaskResult(study.tasks[0], failure_row(DEATH[1])), *perform(study, study.tasks[1:])])
        result = store.result()
    assert list(result.runs["error"]) == [DEATH[1], ""]
    assert result.trajectory.estimates == {}
    assert drawings(result).keys() >= {"error_over_time"}


@pytest.fixture(scope="module")
def one_cluster():
    """All that ask for a cluster of their own get the same one; give the list of those that have closed it.

    Dask gives a lost worker up after 15 s, and then closes whoever bears its name: here that would be of another test.
    """
    distributed = pytest.importorskip("distributed")
    new, made, closed = distributed.LocalCluster, [], []

    def once(**options):
        if not made:
            cluster = new(**options)
            made.append((cluster, cluster.close, options))
            cluster.close = lambda: closed.append(cluster)
        assert options == made[0][2]
        return made[0][0]

    with pytest.MonkeyPatch.context() as patch, dask_config(lost_after="1h"):
        patch.setattr(distributed, "LocalCluster", once)
        yield closed
        for _, close, _ in made:
            close()


def dask_config(lost_after):
    return pytest.importorskip("dask.config").set({"distributed.deploy.lost-worker-timeout": lost_after})


@pytest.fixture
def own_cluster(one_cluster):
    """A function of some work: a cluster of our own that does it; one cluster for all, closed by whoever asked for it."""
    before, opened = len(one_cluster), []

    def cluster_for(work):
        opened.append(Cluster(work, "dask", 1))
        return opened[0]

    yield cluster_for
    for cluster in opened:
        cluster.close()
    assert len(one_cluster) == before + 1


def new_place(cluster, before=None):
    """The place of a cluster, other than the one before, as soon as there is one."""
    end = time.monotonic() + 60
    while set(cluster.places()) <= {before} and time.monotonic() < end:
        time.sleep(0.1)
    (place,) = cluster.places()
    return place


@pytest.mark.slow
@pytest.mark.usefixtures("own_cluster")
def test_a_cluster_whose_only_worker_dies_goes_on(scenario, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "ATTEMPTS", 1)
    options = {"run_timeout": 1, "workers": 1, "scheduler": "dask"}
    the_rest_goes_on(scenario, tmp_path, [(kills_its_parent, DEATH[1]), LOOP], options)


@pytest.mark.slow
def test_a_worker_of_a_cluster_of_our_own_is_replaced_though_nobody_restarts_it(own_cluster):
    """As when it dies while it is just starting."""
    cluster = own_cluster(len)
    first = new_place(cluster)
    with dask_config(lost_after="100ms"):
        cluster._own.sync(cluster._own.workers[0].close)
        cluster.submit(new_place(cluster, first), [1, 2, 3])
        assert [batch.results for batch in cluster.wait()] == [3]


@pytest.mark.slow
def test_a_worker_that_is_lost_while_the_first_one_is_waited_for_is_replaced(own_cluster, monkeypatch):
    """As when it dies late in one comparison, and its cluster gives it up early in the next."""
    distributed = pytest.importorskip("distributed")
    wait, lost = distributed.Client.wait_for_workers, []

    def loses_it_first(client, *arguments, **options):
        if not lost:
            lost.append(client.cluster.workers[0])
            client.cluster.sync(client.cluster.workers.pop(0).close)
            raise TimeoutError
        return wait(client, *arguments, **options)

    monkeypatch.setattr(distributed.Client, "wait_for_workers", loses_it_first)
    assert new_place(own_cluster(len))
    assert len(lost) == 1


def dies_if_told(tasks):
    if tasks[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return list(tasks)


@pytest.mark.slow
def test_a_worker_that_died_gets_nothing_more_though_the_scheduler_was_asked_just_before(own_cluster, monkeypatch):
    cluster = own_cluster(dies_if_told)
    place = new_place(cluster)
    monkeypatch.setattr(workers.cluster, "_LOOK_SECONDS", 60.0)
    cluster.submit(place, [True])
    assert [batch.results for batch in cluster.wait()] == [None]
    assert place not in cluster.places()
