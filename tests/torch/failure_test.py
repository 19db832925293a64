"""Tests the errors that the other ranks get after the loss of a rank, and the interruption of a
waiting program."""
import itertools
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta

import pytest
import ranks
import torch
import torch.distributed as dist

# A rank learns of a failure inside an operation, from a future, or at its next operation.
WAYS = ["all_reduce", "future", "later"]


def loses_a_rank(rank, size, lost, way):
    """Returns the time at which this rank learned of the loss, and the text of the error."""
    for _ in range(50):
        dist.all_reduce(torch.ones(8))
    if rank == lost:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(dist.DistBackendError) as caught:
        if way == "all_reduce":
            while True:
                dist.all_reduce(torch.ones(8))
        elif way == "future":
            dist.all_reduce(torch.ones(8), async_op=True).get_future().wait()
        else:
            time.sleep(1)
            dist.all_reduce(torch.ones(8))
    return time.monotonic(), str(caught.value)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size, lost", [(2, 1), (4, 0), (4, 2)])
def test_a_killed_rank_is_named(size, lost, way, capsys):
    processes, pipes = ranks.start(size, loses_a_rank, lost, way)
    processes[lost].join(ranks.DEADLINE_SECONDS)
    died = time.monotonic()
    assert processes[lost].exitcode == -signal.SIGKILL
    seen = ranks.results(processes, pipes, expected=[rank for rank in range(size) if rank != lost])
    for text in (text for _, text in seen.values()):
        assert "peer_lost" in text and f"rank {lost} (host" in text and f"pid {processes[lost].pid}" in text
    if way != "later":
        with capsys.disabled():
            latest = max(when for when, _ in seen.values()) - died
            print(f"\nrank {lost} of {size} killed, {way}: the last of the others had its exception after {latest:.3f} s")


failures = itertools.count()


def fails(rank, group=None):
    """Waits until all ranks have completed their earlier calls. Then each rank makes a different
    call, so the group fails."""
    store, key = dist.distributed_c10d._get_default_store(), f"before failure {next(failures)}"
    store.add(key, 1)
    while store.add(key, 0) < dist.get_world_size():
        time.sleep(0.01)
    with pytest.raises(dist.DistBackendError, match="mismatch"):
        dist.all_reduce(torch.ones(1 + rank), group=group)
    with pytest.raises(dist.DistBackendError):
        dist.all_reduce(torch.ones(1), group=group)


def works(size, group=None):
    ones = torch.ones(3)
    dist.all_reduce(ones, group=group)
    assert ones.tolist() == [size] * 3


def begins_anew(rank, size, folder):
    for attempt in range(3):
        dist.init_process_group("tutti", init_method=f"file://{folder}/{attempt}", rank=rank, world_size=size)
        works(size)
        fails(rank)
        dist.destroy_process_group()
    dist.init_process_group("tutti", init_method=f"file://{folder}/last", rank=rank, world_size=size)
    works(size)
    return True


def meets_again_in_the_same_store(rank, size, folder):
    store = dist.FileStore(f"{folder}/store", size)
    for attempt in range(3):
        dist.init_process_group("tutti", store=dist.PrefixStore(str(attempt), store), rank=rank, world_size=size)
        works(size)
        fails(rank)
        dist.destroy_process_group()
    return True


def makes_another_subgroup(rank, size, folder):
    dist.init_process_group("tutti", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    for _ in range(3):
        group = dist.new_group()
        works(size, group)
        fails(rank, group)
        works(size)  # the world is a different group that has not failed
        dist.destroy_process_group(group)
    fails(rank)
    works(size, dist.new_group())  # its ranks meet through torch's store, which has not failed
    return True


@pytest.mark.parametrize("again", [begins_anew, meets_again_in_the_same_store, makes_another_subgroup])
def test_a_group_that_is_made_after_another_has_failed(again, tmp_path):
    assert ranks.run(3, again, str(tmp_path), backend=None) == {0: True, 1: True, 2: True}


def goes_on_with_the_survivors(rank, size, folder):
    """Rank 1 dies. The other two ranks make a new group in the same processes."""
    dist.init_process_group("tutti", init_method=f"file://{folder}/all", rank=rank, world_size=size)
    works(size)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(dist.DistBackendError, match=r"peer_lost.*rank 1 \(host"):
        while True:
            dist.all_reduce(torch.ones(8))
    dist.destroy_process_group()
    dist.init_process_group("tutti", init_method=f"file://{folder}/survivors", rank=rank // 2, world_size=2)
    works(2)
    return True


def test_survivors_make_a_group(tmp_path):
    processes, pipes = ranks.start(3, goes_on_with_the_survivors, str(tmp_path), backend=None)
    assert ranks.results(processes, pipes, expected=[0, 2]) == {0: True, 2: True}


def all_reduces():
    dist.all_reduce(torch.ones(1))


def passes_a_monitored_barrier():
    dist.group.WORLD.monitored_barrier(timedelta(seconds=ranks.DEADLINE_SECONDS))


def interrupted(rank, size, waiting, wait):
    if rank != waiting:
        time.sleep(ranks.DEADLINE_SECONDS)  # this rank makes no call
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 2)
    with pytest.raises(KeyboardInterrupt):
        wait()
    return True


@pytest.mark.parametrize("waiting", [0, 1])  # rank 0 leads a monitored barrier
@pytest.mark.parametrize("wait", [all_reduces, passes_a_monitored_barrier])
def test_a_waiting_program_can_be_interrupted(wait, waiting):
    processes, pipes = ranks.start(2, interrupted, waiting, wait)
    assert ranks.results(processes, pipes, expected=[waiting]) == {waiting: True}


def test_a_program_that_just_ends_is_not_lost():
    program = ("import sys, time, torch, torch.distributed as dist, tutti.torch\n"
               "rank = int(sys.argv[1])\n"
               f"dist.init_process_group('tutti', init_method='tcp://127.0.0.1:{ranks.free_port()}', rank=rank, world_size=2)\n"
               "dist.barrier()\n"
               "if rank == 1: sys.exit()\n"
               "time.sleep(1)\n"
               "try: dist.barrier()\n"
               "except dist.DistBackendError as error: print(error)\n")
    programs = [subprocess.Popen([sys.executable, "-c", program, str(rank)], env=ranks.environment(), text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for rank in range(2)]
    output = [each.communicate(timeout=ranks.DEADLINE_SECONDS)[0] for each in programs]
    assert [each.returncode for each in programs] == [0, 0], output
    assert "has left" in output[0] and "peer_lost" not in output[0]
