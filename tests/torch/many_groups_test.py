"""Tests that process groups share the threads and connections of one world."""
import os
import resource
import time

import pytest
import ranks
import torch
import torch.distributed as dist

GROUPS = 1000


def held():
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def use(group):
    """Runs a collective and a future on the group."""
    size = dist.get_world_size(group)
    tensor = torch.full((10,), dist.get_rank(group) + 1.0)
    dist.all_reduce(tensor, group=group)
    assert tensor[0].item() == size * (size + 1) / 2
    dist.barrier(group=group, async_op=True).get_future().wait()


def makes_many(rank, size):
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    use(dist.group.WORLD)
    threads, descriptors = held()
    groups, seconds = [], 0.0
    for i in range(GROUPS):
        members = [each for each in range(size) if each != i % (size + 1)]
        began = time.monotonic()
        group = dist.new_group(members)
        seconds += time.monotonic() - began
        if rank in members:
            groups.append(group)
            use(group)
    for group in groups:
        use(group)
    now = held()
    dist.barrier()
    return now[0] - threads, now[1] - descriptors, seconds / GROUPS


def test_a_thousand_groups(capsys):
    seen = ranks.run(4, makes_many)
    with capsys.disabled():
        for rank, (threads, descriptors, seconds) in sorted(seen.items()):
            print(f"\nrank {rank}: {GROUPS} groups hold {threads} threads and {descriptors} descriptors more than one; "
                  f"making one took {seconds * 1e6:.0f} us", end="")
    for threads, descriptors, _ in seen.values():
        assert threads <= 3 and descriptors <= 10


def makes_only_its_own(rank, size):
    pair = [rank // 2 * 2, rank // 2 * 2 + 1]
    for _ in range(3):
        group = dist.new_group(pair, use_local_synchronization=True)
        use(group)
    dist.barrier()
    return dist.get_world_size(group)


def test_the_others_take_no_part():
    assert set(ranks.run(4, makes_only_its_own).values()) == {2}


def gives_up_a_group(rank, size):
    """Rank 1 does not make the first call of new_group. All ranks can still make a group after that."""
    if rank != 1:
        with pytest.raises(dist.DistBackendError, match=r"timeout.*rank 1 \(host"):
            dist.new_group([0, 1, 2], timeout=ranks.timedelta(seconds=2), use_local_synchronization=True)
    else:
        time.sleep(6)
    use(dist.group.WORLD)
    use(dist.new_group([0, 1, 2]))
    return True


def test_a_group_after_one_that_a_rank_did_not_make():
    assert all(ranks.run(3, gives_up_a_group).values())
