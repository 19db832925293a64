"""Tests that a profiler records the same events as with Gloo, except for the name of the backend."""
import pytest
import ranks
import torch
import torch.distributed as dist


def sends_and_receives(rank, size):
    following, preceding = (rank + 1) % size, (rank - 1) % size
    mine, theirs = torch.ones(rank + 1, 3), torch.ones(preceding + 1, 3)
    for tag in (0, 7):
        sent = dist.isend(mine, following, tag=tag)
        dist.recv(theirs, preceding, tag=tag)
        sent.wait()
    received = dist.irecv(theirs, preceding, tag=8)
    dist.send(mine, following, tag=8)
    received.wait()
    sent = dist.isend(mine, following, tag=9)
    # recv without a source accepts a message from any rank.
    assert dist.recv(theirs, tag=9) == preceding
    sent.wait()
    sent = dist.isend(torch.ones(0), following, tag=10)
    dist.recv(torch.ones(0), preceding, tag=10)
    sent.wait()


def transfers_in_a_batch(rank, size):
    mine, theirs = torch.ones(rank + 1, 3), torch.ones((rank - 1) % size + 1, 3)
    batch = [dist.P2POp(dist.isend, mine, (rank + 1) % size, tag=3), dist.P2POp(dist.irecv, theirs, (rank - 1) % size, tag=3)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()


# Gloo implements these collectives directly. It builds its other collectives from these, and a profiler
# records only the parts of such a collective.
def collectives(rank, size):
    dist.all_reduce(torch.ones(5))
    dist.all_reduce(torch.ones(5), async_op=True).wait()
    dist.broadcast(torch.ones(2, 2), 0)
    dist.reduce(torch.ones(3), 0)
    dist.all_gather([torch.ones(2) for _ in range(size)], torch.ones(2))
    dist.gather(torch.ones(4), [torch.ones(4) for _ in range(size)] if rank == 0 else None)
    dist.scatter(torch.ones(4), [torch.ones(4) for _ in range(size)] if rank == 0 else None)
    dist.all_to_all_single(torch.ones(size), torch.ones(size))
    dist.barrier()


def records(rank, size, backend, body, profiler):
    with profiler(record_shapes=True) as profile:
        body(rank, size)
    events = profile.events() if profiler is torch.profiler.profile else profile.function_events
    return sorted((event.name[len(backend) :], event.is_async, str(event.input_shapes), event.count)
                  for event in events if event.name.startswith(f"{backend}:"))


@pytest.mark.parametrize("profiler", [torch.profiler.profile, torch.autograd.profiler.profile])
@pytest.mark.parametrize("body", [sends_and_receives, transfers_in_a_batch, collectives])
def test_records_are_those_of_gloo(body, profiler):
    ours, glooss = (ranks.run(3, records, backend, body, profiler, backend=backend) for backend in ("tutti", "gloo"))
    assert ours[0] and ours == glooss
