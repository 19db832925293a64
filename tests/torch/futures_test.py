"""Tests futures of operations, and coalesced operations."""
import os
import subprocess
import sys

import pytest
import ranks
import torch
import torch.distributed as dist


def futures(rank, size):
    tensor = torch.ones(4)
    work = dist.all_reduce(tensor, async_op=True)
    value = work.get_future().wait()
    assert isinstance(value, list) and value[0].data_ptr() == tensor.data_ptr()
    assert torch.equal(value[0], torch.full((4,), float(size)))
    assert work.is_completed() and work.is_success()
    assert work.result()[0].data_ptr() == tensor.data_ptr()

    # A callback may wait for another operation, as the callbacks of PowerSGD do.
    def then_another(future):
        return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()[0] * 2

    chain = dist.all_reduce(torch.ones(4), async_op=True).get_future().then(then_another)
    assert torch.equal(chain.wait(), torch.full((4,), 2.0 * size * size))

    # Many futures are pending at once, and may complete in any order. Their results are copied into `outputs`.
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


def gathers_in_inference_mode(rank, size):
    """Tests results that are tensors of inference mode. The thread of the futures copies the
    results, although it is not in that mode."""
    with torch.inference_mode():
        outputs = [torch.empty(8) for _ in range(size)]
        value = dist.all_gather(outputs, torch.full((8,), float(rank)), async_op=True).get_future().wait()
    for source, part in enumerate(value):
        assert torch.equal(part, torch.full((8,), float(source)))


def test_inference_mode():
    ranks.run(2, gathers_in_inference_mode)


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
    """Tests that two threads do not deadlock.

    The thread of the futures needs the GIL to drop the last reference to a tensor with a Python object. At
    the same time, the thread of the test polls the operation, and may hold the GIL.
    """
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


    # An exception leaves a coalescing group open. The open group must not affect the next group.
    with pytest.raises(ZeroDivisionError):
        with dist._coalescing_manager():
            raise ZeroDivisionError
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(tensors[1])
    manager.wait()


@pytest.mark.parametrize("size", [2, 3])
def test_coalesced(size):
    ranks.run(size, coalesced)


# Rank 1 does not make the call. The operation of rank 0 fails when rank 0 ends, and the callback
# runs.
ENDING = """
import os, sys, time, torch, torch.distributed as dist, tutti.torch
dist.init_process_group("tutti")
def slow(future):
    time.sleep(0.3)
    print("called", flush=True)
    raise ValueError("nobody sees this")
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(8), async_op=True).get_future().then(slow)
else:
    sys.stdin.read()
"""


def test_a_program_that_ends_waits_for_callbacks():
    for _ in range(3):
        done = subprocess.run([os.environ["LAUNCHER"], "run", "-n", "2", "--", sys.executable, "-c", ENDING],
                              env=ranks.environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=ranks.DEADLINE_SECONDS)
        assert (done.returncode, done.stdout) == (0, "called\n"), done.stderr
