"""Tests children that a rank forks. The end of a child never ends the rank's connections, and the rank
continues."""
import gc
import multiprocessing
import os
import subprocess
import sys

import pytest
import ranks
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


def check(size):
    """Checks that the group works, with a reduction and with a future. The future uses another
    thread."""
    ones = torch.ones(8)
    dist.all_reduce(ones)
    assert ones[0] == size
    future = dist.all_reduce(ones, async_op=True).get_future()
    future.wait()
    assert ones[0] == size * size


def forked(body):
    """Forks a child that runs `body` and ends as the interpreter does. Returns the child's exit
    status."""
    child = os.fork()
    if child == 0:
        try:
            body()
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(7)
        import threading  # the next call waits for threads, like the interpreter at its end

        threading._shutdown()
        import atexit

        atexit._run_exitfuncs()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Numbers(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.tensor([float(index)])


def loads_data():
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, multiprocessing_context="fork")
    assert sum(batch.sum().item() for batch in loader) == 120


def keeps_a_loader():
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, persistent_workers=True, multiprocessing_context="fork")
    for _ in range(2):
        assert sum(batch.sum().item() for batch in loader) == 120


def child_of_multiprocessing():
    child = multiprocessing.get_context("fork").Process(target=gc.collect)
    child.start()
    child.join()
    assert child.exitcode == 0


def runs_a_program():
    assert subprocess.run([sys.executable, "-c", "import sys; sys.exit(3)"]).returncode == 3
    assert subprocess.run(["true"], preexec_fn=gc.collect).returncode == 0


def child_destroys_the_group():
    assert forked(dist.destroy_process_group) == 0


def child_drops_the_group():
    def drop():
        dist.distributed_c10d._world = None
        gc.collect()

    assert forked(drop) == 0


def child_just_ends():
    assert forked(lambda: None) == 0


def child_uses_the_group():
    def use():
        with pytest.raises(RuntimeError, match="forked child"):
            dist.all_reduce(torch.ones(1))

    assert forked(use) == 0


def child_meets_anew():
    def meet():
        dist.destroy_process_group()
        dist.init_process_group("tutti", store=dist.HashStore(), rank=0, world_size=1)
        check(1)
        dist.destroy_process_group()

    assert forked(meet) == 0


def child_has_work_in_flight():
    work = dist.irecv(torch.ones(1), src=(dist.get_rank() + 1) % dist.get_world_size(), tag=9)
    future = dist.all_reduce(torch.ones(1), async_op=True).get_future()

    def drop():
        nonlocal work, future
        with pytest.raises(RuntimeError, match="forked child"):
            work.wait()
        del work, future
        gc.collect()

    assert forked(drop) == 0
    dist.send(torch.ones(1), dst=(dist.get_rank() - 1) % dist.get_world_size(), tag=9)
    work.wait()


CHILDREN = [loads_data, keeps_a_loader, child_of_multiprocessing, runs_a_program, child_destroys_the_group,
            child_drops_the_group, child_just_ends, child_uses_the_group, child_meets_anew,
            child_has_work_in_flight]


def goes_on(rank, size, child):
    check(size)
    child()
    check(size)
    return True


@pytest.mark.parametrize("child", CHILDREN)
def test_a_rank_goes_on_after_its_child_has_ended(child):
    assert ranks.run(2, goes_on, child) == {0: True, 1: True}


# This is a separate program, so that pytest is not in the child, and the child ends as programs usually do.
ENDING = """
import os, sys, torch, torch.distributed as dist, tutti.torch
dist.init_process_group("tutti")
dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()
if os.fork() == 0:
    sys.exit(int(sys.argv[1]))
assert os.waitstatus_to_exitcode(os.wait()[1]) == int(sys.argv[1])
ones = torch.ones(1)
dist.all_reduce(ones)
assert ones[0] == 2
"""


@pytest.mark.parametrize("status", [0, 3])
def test_a_child_that_leaves_by_sys_exit(status):
    done = subprocess.run([os.environ["LAUNCHER"], "run", "-n", "2", "--", sys.executable, "-c", ENDING, str(status)],
                          env=ranks.environment(), capture_output=True, text=True, timeout=ranks.DEADLINE_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
