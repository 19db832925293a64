"""Tests tutti.torch on a GPU, over NCCL and over copies through the host. The ranks are processes
that share the first device.

The operations, the training and the expected results are those of tests/torch. The tests there use
a fake of CUDA in place of the GPU.
"""
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "torch"))

# CUDA does not work in a child that is forked after CUDA was initialized. So another process checks
# whether there is a device.
_ASK = "import sys, torch; sys.exit(not torch.cuda.is_available())"
if torch.version.cuda is None:
    pytest.skip("this torch was built without CUDA", allow_module_level=True)
if subprocess.run([sys.executable, "-c", _ASK]).returncode != 0:
    pytest.skip("torch finds no CUDA device", allow_module_level=True)

import device_operations  # noqa: E402
import ranks  # noqa: E402
from device_training import TRAININGS  # noqa: E402

SIZES = [2, 4]
LIMIT = timedelta(seconds=ranks.DEADLINE_SECONDS)


@pytest.fixture(params=["nccl,tcp", "tcp"], ids=["nccl", "staged"], autouse=True)
def library(request, monkeypatch):
    for name, value in {"TUTTI_TRANSPORTS": request.param, "TUTTI_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo",
                        "NCCL_NET": "Socket", "NCCL_RAS_ENABLE": "0"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def run(tmp_path):
    return lambda size, function: ranks.run(size, on_the_gpu, function, str(tmp_path), backend=None)


def on_the_gpu(rank, size, function, folder):
    # Without this variable, NCCL refuses ranks that share a device.
    os.environ["NCCL_HOSTID"] = f"rank {rank}"
    torch.cuda.set_device(0)
    dist.init_process_group("tutti", init_method=f"file://{folder}/store", rank=rank, world_size=size, timeout=LIMIT)
    return function(rank, size, lambda tensor: tensor.cuda())


@pytest.mark.parametrize("size", SIZES)
def test_operations_compute_what_they_compute_in_host_memory(size, run):
    run(size, device_operations.compare)


def follows(rank, size, put):
    tensor, parts = torch.zeros(1_000_000, device="cuda"), list(torch.zeros(size, 1_000_000, device="cuda"))
    dist.all_reduce(tensor)
    other = torch.cuda.Stream()
    torch.cuda._sleep(200_000_000)
    tensor.fill_(rank + 1)
    work = dist.all_reduce(tensor, async_op=True)
    gathering = dist.all_gather(parts[::-1], tensor, async_op=True)
    with torch.cuda.stream(other):
        work.wait()
        gathering.wait()
        copies = [each.clone() for each in (tensor, *parts)]
    other.synchronize()
    total = size * (size + 1) / 2
    assert copies[0].eq(total).all()
    gathering.wait(LIMIT)
    assert work.is_completed() and gathering.is_completed()


@pytest.mark.parametrize("size", SIZES)
def test_an_operation_follows_the_current_stream_and_wait_makes_the_current_stream_follow(size, run):
    run(size, follows)


def passes_messages(rank, size, put):
    """Sends what the busy device is still to write. The device reads what arrives."""
    received, tensor = torch.zeros(1_000_000, device="cuda"), torch.zeros(1_000_000, device="cuda")
    for _ in range(3):
        torch.cuda._sleep(100_000_000)
        tensor.fill_(rank + 1)
        works = [dist.isend(tensor, 1 - rank), dist.irecv(received, 1 - rank)]
        for work in works:
            work.wait()
        copy = received.clone()
        assert copy.eq(2 - rank).all()
        received.zero_()


def test_messages_follow_the_current_stream_and_wait_makes_the_current_stream_follow(run):
    run(2, passes_messages)


def completes_futures(rank, size, put):
    future = dist.all_reduce(torch.ones(1000, device="cuda"), async_op=True).get_future()
    chain = future.then(lambda done: dist.all_reduce(done.value()[0] * 2, async_op=True).get_future().wait())
    assert chain.wait()[0].eq(2 * size * size).all()


def test_futures(run):
    run(2, completes_futures)


def drops(rank, size, put):
    """Tests tensors that the program drops during an operation. Other tensors are made in the meantime, and
    must not get the memory of the dropped tensors."""
    for _ in range(100):
        dist.all_reduce(torch.ones(100_000, device="cuda"), async_op=True)
        torch.full((100_000,), -1.0, device="cuda")
    last = torch.ones(100_000, device="cuda")
    dist.all_reduce(last)
    dist.barrier()
    assert last.eq(size).all()


def test_tensors_live_until_their_operation_has_ended(run):
    run(2, drops)


def alternates(rank, size, put):
    here, there = torch.ones(5), torch.ones(5, device="cuda")
    for _ in range(500):
        dist.all_reduce(here, op=dist.ReduceOp.MAX)
        dist.all_reduce(there, op=dist.ReduceOp.MAX)
    assert here.eq(1).all() and there.eq(1).all()


def test_one_group_alternates_between_host_and_device(run):
    run(2, alternates)


def differs(rank, size, put):
    dist.all_reduce(torch.ones(5, device="cuda"))
    with pytest.raises(dist.DistBackendError, match="mismatch"):
        dist.all_reduce(torch.ones(5, device="cuda" if rank == 0 else "cpu"), async_op=True).wait(LIMIT)


def test_host_on_one_rank_and_device_on_the_other_is_a_mismatch(run):
    run(2, differs)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("trains", TRAININGS)
def test_training_learns_what_it_learns_in_one_process(trains, size, run):
    run(size, trains)
