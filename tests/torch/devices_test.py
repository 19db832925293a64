"""Tests operations on CUDA tensors, over a fake of CUDA.

All calls inside a `held` block must return while the device is still busy. This shows that the host does
not wait. So tests must not copy between host and device inside such a block.
"""
import atexit
import gc
import os
import signal
import threading
from datetime import timedelta

import device_operations
import pytest
import ranks
import torch
import torch.distributed as dist
from fake_devices import LIMIT, fake, full, held, in_stream, library, other_stream, run, with_devices  # noqa: F401

def release_later():
    threading.Timer(0.2, fake.release).start()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_operations_compute_what_they_compute_in_host_memory(size):
    run(size, device_operations.compare)


def follows(rank, size, put):
    total = sum(range(1, size + 1))
    tensor, parts = put(full(0)), [put(full(0)) for _ in range(size)]
    dist.all_reduce(tensor)  # the first operation of a group on a device may block
    with held(rank):
        tensor.fill_(rank + 1)
        work = dist.all_reduce(tensor, async_op=True)
        # The device starts this operation only after the work that is already in the stream.
        gathering = dist.all_gather(parts, tensor, async_op=True)
        with other_stream(rank) as other:
            work.wait()
            gathering.wait()
            copies = [each.clone() for each in [tensor, *parts]]
        assert not work.is_completed() and not gathering.is_completed()
        assert work.result()[0].data_ptr() == tensor.data_ptr()
    work.wait(LIMIT)
    assert torch.equal(fake.peek(tensor), full(total))
    gathering.wait(LIMIT)
    fake.synchronize(rank)
    assert work.is_completed() and work.is_success()
    with in_stream(rank, other):
        return copies[0].cpu()[0].item()


def test_an_operation_follows_the_current_stream_and_wait_makes_the_current_stream_follow():
    assert run(3, follows) == {rank: 6.0 for rank in range(3)}


def passes_messages(rank, size, put):
    """Sends what the busy device is still to write. The device reads what arrives."""
    received, tensor = put(full(-1)), put(full(0))
    for work in [dist.isend(tensor, 1 - rank), dist.irecv(received, 1 - rank)]:  # the first message on a device blocks
        work.wait()
    for _ in range(3):
        with held(rank):
            tensor.fill_(rank + 1)
            works = [dist.isend(tensor, 1 - rank), dist.irecv(received, 1 - rank)]
            for work in works:
                work.wait()
            copy = received.clone()
            assert not any(work.is_completed() for work in works)
        assert torch.equal(copy.cpu(), full(2 - rank))
        received.fill_(-1)


def test_messages_follow_the_current_stream_and_wait_makes_the_current_stream_follow():
    run(2, passes_messages)


def passes_messages_to_the_host(rank, size, put):
    if rank == 0:
        dist.send(put(full(7)), 1)
        dist.send(full(8), 1)
    else:
        here, there = full(0), put(full(0))
        dist.recv(here, 0)
        dist.recv(there, 0)
        assert torch.equal(here, full(7)) and torch.equal(there.cpu(), full(8))


def test_one_end_of_a_message_may_be_in_host_memory():
    run(2, passes_messages_to_the_host)


def waits_on_the_host(rank, size, put):
    outputs, tensor = [put(full(0)) for _ in range(size)], put(full(rank))
    dist.all_reduce(put(full(0)))
    with held(rank):
        work = dist.all_gather(outputs, tensor, async_op=True)
        with pytest.raises(dist.DistBackendError, match="Operation timed out! .the operation continues"):
            work.wait(timedelta(seconds=0.1))
    work.wait(LIMIT)
    for source, output in enumerate(outputs):
        assert torch.equal(fake.peek(output), full(source))


def test_wait_with_a_timeout_blocks_the_host():
    run(2, waits_on_the_host)


def looks(rank, size, put):
    outputs = [put(full(0)) for _ in range(size)]
    work = dist.all_gather(outputs, put(full(rank)), async_op=True)
    while not work.is_completed():
        pass
    for source, output in enumerate(outputs):
        assert torch.equal(fake.peek(output), full(source))


def test_an_operation_is_complete_when_its_results_are_in_their_places():
    run(2, looks)


def completes_futures(rank, size, put):
    total = sum(range(size))
    outputs = [put(full(-1)) for _ in range(size)]
    tensor, source = put(full(rank)), put(full(rank))
    dist.all_reduce(put(full(0)))
    with held(rank):
        reduced = dist.all_reduce(tensor, async_op=True).get_future()
        gathered = dist.all_gather(outputs, source, async_op=True).get_future()
        copied = gathered.then(lambda future: [each.clone() for each in future.value()])
        chain = reduced.then(lambda future: dist.all_reduce(future.value()[0].clone(), async_op=True).get_future().wait())
        assert not reduced.done() and not gathered.done()
    with other_stream(rank):
        assert torch.equal(reduced.wait()[0].cpu(), full(total))
        assert torch.equal(chain.wait()[0].cpu(), full(total * size))
        for result in (gathered.wait(), copied.wait()):
            for source, output in enumerate(result):
                assert torch.equal(output.cpu(), full(source))
    work = dist.all_reduce(put(full(1)), async_op=True)
    work.wait(LIMIT)
    assert torch.equal(work.get_future().wait()[0].cpu(), full(size))
    with dist._coalescing_manager(async_ops=True) as manager:
        tensors = [put(full(each)) for each in range(3)]
        for each in tensors:
            dist.all_reduce(each)
    manager.works[0].get_future().wait()
    for value, each in enumerate(tensors):
        assert torch.equal(each.cpu(), full(value * size))


def test_futures():
    run(2, completes_futures)


def drops(rank, size, put):
    """Drops tensors while operations on them still run. The tensors' memory must not be reused before
    these operations have ended. The order of the work in the current stream does not ensure this.
    """
    dist.all_reduce(put(full(0)))
    dist.barrier()
    before = fake.device_bytes()
    for _ in range(100):
        dist.all_reduce(put(full(1)), async_op=True)
        dist.all_gather([put(full(0)) for _ in range(size)], put(full(1)), async_op=True)
        with other_stream(rank):
            dist.all_gather([put(full(0)) for _ in range(size)], put(full(1)), async_op=True).wait()
    last = put(full(1))
    dist.all_reduce(last)
    assert torch.equal(last.cpu(), full(size))
    del last
    while fake.device_bytes() > before:
        fake.synchronize(rank)


def test_tensors_live_until_their_operation_has_ended():
    run(2, drops)


def alternates(rank, size, put):
    here, there = full(1, 5), put(full(1, 5))
    for _ in range(500):
        dist.all_reduce(here, op=dist.ReduceOp.MAX)
        dist.all_reduce(there, op=dist.ReduceOp.MAX)
    here += rank
    both = [torch.empty(5) for _ in range(size)], [put(torch.empty(5)) for _ in range(size)]
    works = [dist.all_gather(outputs, tensor, async_op=True) for outputs, tensor in zip(both, (here, there))]
    for work in works:
        work.wait()
    assert [each[0].item() for each in both[0]] == [1.0 + each for each in range(size)]
    assert [each.cpu()[0].item() for each in both[1]] == [1.0] * size


def test_one_group_alternates_between_host_and_device():
    run(2, alternates)


def has_one_backend(rank, size, put):
    backends = [dist.group.WORLD._get_backend(torch.device(kind)) for kind in ("cpu", "cuda")]
    assert backends[0] is backends[1]
    dist.all_reduce(put(full(1)))
    dist.all_reduce(full(1))


@pytest.mark.parametrize("name", ["tutti", "cpu:tutti,cuda:tutti"])
def test_host_and_devices_have_the_same_backend(name):
    run(2, has_one_backend, backend=name)


def passes_a_barrier(rank, size, put):
    tensor = put(full(0))
    dist.all_reduce(tensor)
    fake.hold(rank)
    tensor.fill_(1)
    release_later()
    dist.barrier()
    assert torch.equal(fake.peek(tensor), full(1))


def test_a_barrier_waits_for_the_current_stream():
    run(2, passes_a_barrier)


def destroys_the_group(rank, size, put):
    tensor = put(full(1))
    dist.all_reduce(tensor)
    fake.hold(rank)
    dist.all_reduce(tensor)
    release_later()
    dist.destroy_process_group()
    return tensor.cpu()[0].item()


def test_destroying_the_group_waits_for_the_current_stream():
    assert run(2, destroys_the_group) == {0: 4.0, 1: 4.0}


def differs(rank, size, put):
    dist.all_reduce(put(full(0)))
    with pytest.raises(dist.DistBackendError, match="mismatch"):
        dist.all_reduce(put(full(1)) if rank == 0 else full(1), async_op=True).wait(LIMIT)
    with pytest.raises(dist.DistBackendError, match="mismatch"):
        dist.all_reduce(put(full(1)))


def test_host_on_one_rank_and_device_on_the_other_is_a_mismatch():
    run(2, differs)


def loses_a_rank(rank, size, put, way):
    tensor = put(full(1))
    dist.all_reduce(tensor)
    if rank == 1:
        fake.hold(rank)
        dist.all_reduce(tensor, async_op=True)
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(dist.DistBackendError) as caught:
        if way == "future":
            dist.all_reduce(tensor, async_op=True).get_future().wait()
        else:
            while True:
                dist.all_reduce(tensor)
                tensor.cpu()
    return str(caught.value)


@pytest.mark.parametrize("way", ["wait", "future"])
def test_a_killed_rank_is_named(way):
    processes, pipes = ranks.start(3, with_devices, loses_a_rank, way)
    for text in ranks.results(processes, pipes, expected=[0, 2]).values():
        assert "peer_lost" in text and "rank 1 (host" in text and f"pid {processes[1].pid}" in text


def captures(rank, size, put):
    tensor = put(full(1))
    dist.all_reduce(tensor)
    fake.synchronize(rank)
    with other_stream(rank):
        fake.begin_capture(rank)
        with pytest.raises(NotImplementedError, match="captur"):
            dist.all_reduce(tensor)
        fake.end_capture(rank)
        dist.all_reduce(tensor)
        assert torch.equal(tensor.cpu(), full(size * size))


def test_an_operation_cannot_be_captured():
    run(2, captures)


def refuses(rank, size, put):
    with pytest.raises(RuntimeError, match="tensors on different devices: cpu and cuda:0"):
        dist.all_gather_into_tensor(put(torch.empty(1)), torch.empty(1))


def test_tensors_on_different_devices_are_refused():
    run(1, refuses)


def forks(rank, size, put):
    tensor = put(full(1))
    dist.all_reduce(tensor)
    with held(rank):
        works = [dist.all_reduce(tensor, async_op=True)]
        child = os.fork()
        if child == 0:
            try:
                dist.all_reduce(tensor)
            except NotImplementedError:
                works.clear()
                gc.collect()
                atexit._run_exitfuncs()  # does what the interpreter does when it exits
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    works[0].wait(LIMIT)
    assert torch.equal(fake.peek(tensor), full(size * size))


def test_a_forked_child_leaves_the_work_of_its_parent_alone():
    run(2, forks)
