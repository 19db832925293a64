"""What a process group does beside moving numbers: futures, coalescing, point to point, time limits, groups, meeting."""
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import ranks
import torch
import torch.distributed as dist
import tutti.torch

HERE = Path(__file__).resolve().parent


# --- futures ---


def futures(rank, size):
    tensor = torch.ones(4)
    work = dist.all_reduce(tensor, async_op=True)
    value = work.get_future().wait()
    assert isinstance(value, list) and value[0].data_ptr() == tensor.data_ptr()
    assert torch.equal(value[0], torch.full((4,), float(size)))
    assert work.is_completed() and work.is_success()
    assert work.result()[0].data_ptr() == tensor.data_ptr()

    # A callback may wait for another operation, as PowerSGD's do.
    def then_another(future):
        return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()[0] * 2

    chain = dist.all_reduce(torch.ones(4), async_op=True).get_future().then(then_another)
    assert torch.equal(chain.wait(), torch.full((4,), 2.0 * size * size))

    # Many at once, in the order of issue or not; results that are copied come by futures too.
    outputs = [[torch.empty(8) for _ in range(size)] for _ in range(50)]
    pending = [dist.all_gather(each, torch.full((8,), float(rank)), async_op=True).get_future() for each in outputs]
    torch.futures.wait_all(pending)
    for each in outputs:
        for source, part in enumerate(each):
            assert torch.equal(part, torch.full((8,), float(source)))
    return True


@pytest.mark.parametrize("size", [1, 2, 4])
def test_futures(size):
    ranks.run(size, futures)


def futures_do_not_wait_for_a_receive(rank, size):
    late = torch.empty(2)
    if rank == 0:
        received = dist.irecv(late, 1).get_future()
    sums = dist.all_reduce(torch.ones(2), async_op=True).get_future()
    assert sums.wait()[0][0] == size
    if rank == 1:
        dist.send(torch.ones(2), 0)
    if rank == 0:
        assert received.wait()[0][0] == 1


def test_futures_do_not_wait_for_a_receive():
    ranks.run(2, futures_do_not_wait_for_a_receive)


def nobody_waits(rank, size):
    for _ in range(200):
        dist.all_reduce(torch.ones(1000), async_op=True)
        dist.all_gather([torch.empty(10) for _ in range(size)], torch.ones(10), async_op=True)
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    return tensor.item()


def test_work_that_nobody_waits_for():
    assert ranks.run(3, nobody_waits) == {0: 3.0, 1: 3.0, 2: 3.0}


def looked_at_while_settled(rank, size):
    """The last reference to a tensor that Python knows goes on the futures' thread, which needs the GIL for that."""
    for _ in range(1000):
        tensor = torch.ones(100)
        tensor.note = "what Python has of it goes with it"
        work = dist.all_gather([torch.empty(100) for _ in range(size)], tensor, async_op=True)
        work.get_future()
        del tensor
        while not work.is_completed():
            pass


def test_looking_does_not_wait_for_who_settles():
    ranks.run(2, looked_at_while_settled)


# --- several as one ---


def coalesced(rank, size):
    tensors = [torch.full((n,), float(rank)) for n in (1, 5, 9)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    for tensor in tensors:
        assert torch.equal(tensor, torch.full_like(tensor, float(sum(range(size)))))
    outputs = [torch.empty(n * size) for n in (1, 5)]
    with dist._coalescing_manager():
        for output in outputs:
            dist.all_gather_into_tensor(output, torch.full((output.numel() // size,), float(rank)))
    for output in outputs:
        assert torch.equal(output, torch.arange(size).repeat_interleave(output.numel() // size).float())
    outputs = [torch.empty(n) for n in (1, 5)]
    with dist._coalescing_manager():
        for output in outputs:
            dist.reduce_scatter_tensor(output, torch.arange(size).repeat_interleave(output.numel()).float())
    for output in outputs:
        assert torch.equal(output, torch.full_like(output, float(rank * size)))

    received = torch.empty(3)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.full((3,), float(rank)), (rank + 1) % size),
                                    dist.P2POp(dist.irecv, received, (rank - 1) % size)])
    for work in works:
        work.wait()
    assert torch.equal(received, torch.full((3,), float((rank - 1) % size)))


    # What an exception leaves open does not get in the way of the next.
    with pytest.raises(ZeroDivisionError):
        with dist._coalescing_manager():
            raise ZeroDivisionError
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(tensors[1])
    manager.wait()


@pytest.mark.parametrize("size", [2, 3])
def test_coalesced(size):
    ranks.run(size, coalesced)


# --- point to point ---


def point_to_point(rank, size):
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            tensor = torch.empty(2)
            source = dist.recv(tensor)
            assert tensor[0].item() == source
            seen.add(source)
        assert seen == set(range(1, size))
        first, second = torch.empty(1), torch.empty(1)
        dist.recv(second, 1, tag=2)
        dist.recv(first, 1, tag=1)
        assert (first.item(), second.item()) == (1.0, 2.0)
    else:
        dist.send(torch.full((2,), float(rank)), 0)
        if rank == 1:
            dist.isend(torch.ones(1), 0, tag=1)
            dist.isend(torch.full((1,), 2.0), 0, tag=2).wait()
    with pytest.raises(RuntimeError, match="Tag must be nonnegative"):
        dist.isend(torch.ones(1), (rank + 1) % size, tag=-1)
    dist.barrier()


@pytest.mark.parametrize("size", [2, 4])
def test_point_to_point(size):
    ranks.run(size, point_to_point)


# --- objects, groups, debugging ---


def objects(rank, size):
    everybody = [None] * size
    dist.all_gather_object(everybody, {"rank": rank, "text": "x" * rank})
    assert [each["rank"] for each in everybody] == list(range(size))
    shared = [rank, "mine"]
    dist.broadcast_object_list(shared, src=size - 1)
    assert shared[0] == size - 1
    gathered = [None] * size if rank == 0 else None
    dist.gather_object((rank,), gathered)
    assert rank != 0 or gathered == [(each,) for each in range(size)]
    own = [None]
    dist.scatter_object_list(own, [f"for {each}" for each in range(size)] if rank == 0 else None)
    assert own == [f"for {rank}"]


def groups(rank, size):
    halves = [dist.new_group(list(range(0, size, 2))), dist.new_group(list(range(1, size, 2)))]
    mine = halves[rank % 2]
    tensor = torch.full((3,), float(rank))
    dist.all_reduce(tensor, group=mine)
    assert torch.equal(tensor, torch.full((3,), float(sum(range(rank % 2, size, 2)))))
    assert mine._get_backend(torch.device("cpu")).name() == "tutti"
    objects(rank, size)
    # Destroying one leaves the others alone; a new one of the same ranks meets anew.
    dist.destroy_process_group(mine)
    again = dist.new_group(list(range(size)))
    dist.all_reduce(tensor, group=again)
    return tensor[0].item()


@pytest.mark.parametrize("size", [2, 4])
def test_groups(size):
    assert len(set(ranks.run(size, groups).values())) == 1


def splits(rank, size):
    world = dist.group.WORLD
    if not hasattr(world, "split_group"):
        return "skip"
    part = world.split_group([0, 1] if rank < 2 else [2])
    tensor = torch.full((2,), float(rank + 1))
    part.allreduce([tensor]).wait()
    return tensor[0].item()


def test_split():
    sums = ranks.run(3, splits)
    if "skip" in sums.values():
        pytest.skip(f"torch {torch.__version__} has no split_group")
    assert sums == {0: 3.0, 1: 3.0, 2: 3.0}


def detail(rank, size):
    assert dist.get_debug_level() == dist.DebugLevel.DETAIL
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    objects(rank, size)
    dist.barrier()
    # The wrapper sees that ranks disagree before the operation starts; torch 2.1 has none for this backend, which sees it too.
    with pytest.raises(RuntimeError, match="mismatch between collectives|mismatch: rank"):
        dist.all_reduce(torch.ones(3 + rank))
    return tensor[0].item()


def test_debug_detail():
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    try:
        assert ranks.run(2, detail) == {0: 2.0, 1: 2.0}
    finally:
        dist.set_debug_level(dist.DebugLevel.OFF)


def meets_again(rank, size):
    """One store, several meetings."""
    store = dist.FileStore(f"{os.environ['MEETING']}/store", size)
    sums = []
    for _ in range(3):
        dist.init_process_group("tutti", store=store, rank=rank, world_size=size)
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        sums.append(tensor.item())
        dist.destroy_process_group()
    return sums


def test_a_store_serves_many_meetings(monkeypatch):
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("MEETING", folder)
        assert ranks.run(2, meets_again, backend=None) == {0: [2.0] * 3, 1: [2.0] * 3}


def sequence_numbers(rank, size):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    backend._set_sequence_number_for_group()
    before = backend._get_sequence_number_for_group()
    for _ in range(5):
        dist.barrier()
    assert backend._get_sequence_number_for_group() == before + 5


def test_sequence_numbers():
    ranks.run(2, sequence_numbers)


# --- time limits and disagreement ---


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
        work.wait(timedelta(days=365 * 400))  # the operation was not disturbed
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
    time.sleep(0.3)  # long enough for it to be noticed
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
    """Each on a thread of its own; raises what one of them raises."""
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
            backends[0].abort()  # of what is over: nothing
            with pytest.raises(RuntimeError, match="shut down"):
                backends[0].barrier()


@needs_abort
@pytest.mark.parametrize("rounds, size", [(300, 1), (20, 2)])
def test_abort_while_another_thread_shuts_down(rounds, size):
    """Groups whose ranks are threads of one process."""
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


# --- launchers and ways to meet ---


def launch(command, **changes):
    done = subprocess.run(command, env=ranks.environment(**changes), capture_output=True, text=True,
                          timeout=ranks.DEADLINE_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_torchrun():
    output = launch([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2",
                     f"--master-port={ranks.free_port()}", str(HERE / "hello.py")])
    assert output.count("of 2: 3.0") == 2


def test_tutti_run():
    tutti = os.environ.get("LAUNCHER")
    if tutti is None:
        pytest.skip("LAUNCHER does not say where the command tutti is")
    output = launch([tutti, "run", "-n", "2", "--", sys.executable, str(HERE / "hello.py")])
    assert output.count("of 2: 3.0") == 2


@pytest.mark.parametrize("url, libuv", [("tcp", "1"), ("tcp", "0"), ("env", "1"), ("file", "1")])
def test_ways_to_meet(url, libuv):
    port = ranks.free_port()
    with tempfile.TemporaryDirectory() as folder:
        methods = {"tcp": f"tcp://127.0.0.1:{port}", "env": "env://", "file": f"file://{folder}/store"}
        programs = [subprocess.Popen([sys.executable, str(HERE / "hello.py"), methods[url], str(rank), "2"],
                                     env=ranks.environment(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                                                           WORLD_SIZE="2", USE_LIBUV=libuv), stdout=subprocess.PIPE, text=True)
                    for rank in range(2)]
        for rank, program in enumerate(programs):
            output, _ = program.communicate(timeout=ranks.DEADLINE_SECONDS)
            assert program.returncode == 0 and f"rank {rank} of 2: 3.0" in output
