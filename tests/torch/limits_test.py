"""Tests time limits, disagreement between ranks, and ways to end a group."""
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pytest
import ranks
import torch
import torch.distributed as dist
import tutti.torch


def late(rank, size):
    if rank == 1:
        time.sleep(6)
        with pytest.raises(RuntimeError, match="timeout"):
            dist.barrier()
        return None
    began = time.monotonic()
    options = dist.AllreduceOptions()
    options.timeout = timedelta(seconds=0.5)
    with pytest.raises(dist.DistBackendError, match=r"timeout.*rank 1") as caught:
        dist.group.WORLD.allreduce([torch.ones(1)], options).wait()
    assert time.monotonic() - began >= 0.5
    with pytest.raises(dist.DistBackendError, match="timeout"):
        dist.all_reduce(torch.ones(1))
    return str(caught.value)


def test_an_operations_time_limit_names_who_is_late():
    ranks.run(2, late)


def waits_briefly(rank, size):
    tensor = torch.empty(1)
    if rank == 0:
        work = dist.irecv(tensor, 1)
        with pytest.raises(RuntimeError, match="timed out"):
            work.wait(timedelta(milliseconds=50))
        assert not work.is_completed()
        dist.barrier()
        # The operation continued after the timeout of the first wait.
        work.wait(timedelta(days=365 * 400))
        assert tensor.item() == 5
    else:
        dist.barrier()
        dist.send(torch.full((1,), 5.0), 0)


def test_a_wait_that_is_over_does_not_disturb_the_operation():
    ranks.run(2, waits_briefly)


def has_no_end(rank, size, limit):
    dist.init_process_group("tutti", init_method=f"file://{os.environ['MEETING']}/store", rank=rank, world_size=size,
                            timeout=limit)
    options = dist.AllreduceOptions()
    options.timeout = limit
    tensor = torch.empty(1)
    receive = dist.irecv(tensor, 1 - rank)
    time.sleep(0.3)  # `receive` would fail here if the limit had overflowed into the past
    total = torch.ones(1)
    dist.group.WORLD.allreduce([total], options).wait(limit)
    dist.group.WORLD.monitored_barrier(limit)
    dist.send(total, 1 - rank)
    receive.wait(limit)
    return tensor.item()


@pytest.mark.parametrize("limit", [timedelta.max, timedelta(days=100_000_000), timedelta(seconds=1e12)])
def test_times_that_no_clock_can_count_have_no_end(limit, tmp_path, monkeypatch):
    monkeypatch.setenv("MEETING", str(tmp_path))
    assert ranks.run(2, has_no_end, limit, backend=None) == {0: 2.0, 1: 2.0}


def negative_times(rank, size):
    with pytest.raises(ValueError, match="negative"):
        create_group(dist.HashStore(), 0, 1, timedelta(seconds=-5))
    options = dist.AllreduceOptions()
    options.timeout = timedelta(seconds=-5)
    with pytest.raises(ValueError, match="negative"):
        dist.group.WORLD.allreduce([torch.ones(1)], options)
    with pytest.raises(ValueError, match="negative"):
        dist.group.WORLD.monitored_barrier(timedelta(seconds=-5))
    work = dist.irecv(torch.empty(1), 0)
    with pytest.raises(ValueError, match="negative"):
        work.wait(timedelta(seconds=-5))
    dist.barrier()


def test_negative_times_are_refused():
    ranks.run(1, negative_times)


def disagree(rank, size):
    with pytest.raises(dist.DistBackendError, match="mismatch") as caught:
        dist.all_reduce(torch.ones(4 + rank))
    return str(caught.value)


def test_disagreement_is_told_to_both():
    for text in ranks.run(2, disagree).values():
        assert "count=4" in text and "count=5" in text


needs_abort = pytest.mark.skipif(not hasattr(torch._C._distributed_c10d.Backend, "abort"),
                                 reason=f"torch {torch.__version__} has no Backend.abort")


def aborted(rank, size):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    if rank == 0:
        time.sleep(0.3)
        backend.abort()
    with pytest.raises(dist.DistBackendError, match="aborted"):
        dist.barrier()


@needs_abort
def test_abort():
    ranks.run(2, aborted)


def create_group(store, rank, size, timeout=timedelta(seconds=60)):
    return tutti.torch._C.create(store, rank, size, timeout)


def run_at_once(*functions):
    """Runs all functions at the same time, each in its own thread. Raises the exception of a
    function that fails."""
    with ThreadPoolExecutor(len(functions)) as threads:
        start = threading.Barrier(len(functions))

        def run(function):
            start.wait()
            function()

        for future in [threads.submit(run, function) for function in functions]:
            future.result(ranks.DEADLINE_SECONDS)


def until_it_ends(backend):
    """Issues operations until another thread has ended the group."""
    with pytest.raises(RuntimeError, match="aborted|shut down"):
        while True:
            backend.allreduce([torch.ones(1)]).wait()


def aborts_and_shuts_down(_rank, _size, rounds, size):
    store = dist.HashStore()
    with ThreadPoolExecutor(size) as threads:
        for _ in range(rounds):
            backends = list(threads.map(lambda rank: create_group(store, rank, size), range(size)))
            functions = [partial(until_it_ends, each) for each in backends]
            functions += [each.abort for each in backends] + [each.shutdown for each in backends]
            run_at_once(*functions)
            backends[0].abort()  # has no effect, since the group has ended
            with pytest.raises(RuntimeError, match="shut down"):
                backends[0].barrier()


@needs_abort
@pytest.mark.parametrize("rounds, size", [(300, 1), (20, 2)])
def test_abort_while_another_thread_shuts_down(rounds, size):
    """The ranks of these groups are threads of one process."""
    ranks.run(1, aborts_and_shuts_down, rounds, size, backend=None)


def destroyed_with_work_in_flight(rank, size):
    work = dist.irecv(torch.empty(1), (rank + 1) % size)
    future = work.get_future()
    dist.destroy_process_group()
    with pytest.raises(RuntimeError, match="aborted"):
        work.wait()
    with pytest.raises(RuntimeError, match="aborted"):
        future.wait()


def test_destroyed_with_work_in_flight():
    ranks.run(2, destroyed_with_work_in_flight)
