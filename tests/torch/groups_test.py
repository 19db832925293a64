"""Tests the functions of a process group besides collectives: point to point, objects, subgroups
and debugging."""
import pytest
import ranks
import torch
import torch.distributed as dist


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
    # The end of a group does not affect other groups. The ranks of the destroyed group can meet
    # again in a new group.
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
    # torch's debugging wrapper notices before the operation starts that the ranks' counts differ. In
    # torch 2.1, the backend notices it.
    with pytest.raises(RuntimeError, match="mismatch between collectives|mismatch: rank"):
        dist.all_reduce(torch.ones(3 + rank))
    return tensor[0].item()


def test_debug_detail():
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    try:
        assert ranks.run(2, detail) == {0: 2.0, 1: 2.0}
    finally:
        dist.set_debug_level(dist.DebugLevel.OFF)


def sequence_numbers(rank, size):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    backend._set_sequence_number_for_group()
    before = backend._get_sequence_number_for_group()
    for _ in range(5):
        dist.barrier()
    assert backend._get_sequence_number_for_group() == before + 5


def test_sequence_numbers():
    ranks.run(2, sequence_numbers)
