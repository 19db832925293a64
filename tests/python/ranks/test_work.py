"""Tests waiting, chaining, threads and errors."""

import asyncio
import datetime
import threading
import time

import numpy
import pytest

import tutti


def test_messages(comm):
    size, rank = comm.size, comm.rank
    comm.send(numpy.array([rank, 7]), (rank + 1) % size, tag=rank)
    got = numpy.zeros(3, "int64")
    work = comm.recv(got)
    work.wait()
    source = (rank - 1) % size
    assert got.tolist() == [source, 7, 0]
    assert work.received == (source, source, 16)
    comm.barrier().wait()  # the receive from any rank must not match a message of a later test


def test_batch(comm):
    size, rank = comm.size, comm.rank
    got = [numpy.zeros(2) for _ in range(size)]
    transfers = [tutti.Send(numpy.full(2, float(rank)), peer, 3) for peer in range(size) if peer != rank]
    transfers += [tutti.Recv(got[peer], peer, 3) for peer in range(size) if peer != rank]
    comm.batch(transfers).wait()
    assert all((got[peer] == peer).all() for peer in range(size) if peer != rank)


def test_a_wait_with_a_limit(comm):
    work = comm.recv(numpy.zeros(1), tag=5)
    assert work.wait(0.01) is False
    assert not work.done() and work.error() is None
    comm.barrier().wait()
    comm.send(numpy.ones(1), (comm.rank + 1) % comm.size, tag=5)
    assert work.wait(60) is True
    assert work.done()


@pytest.mark.parametrize("seconds", [9e9, 1e12, datetime.timedelta.max.total_seconds(), float("inf")])
def test_times_that_no_clock_can_count_have_no_end(comm, seconds):
    got = numpy.zeros(1)
    work = comm.recv(got, (comm.rank - 1) % comm.size, tag=6, timeout=seconds)
    time.sleep(0.3)  # long enough for a timeout
    comm.barrier(timeout=seconds).wait(seconds)
    comm.send(numpy.ones(1), (comm.rank + 1) % comm.size, tag=6, timeout=seconds).wait()
    assert work.wait(seconds) is True and got[0] == 1


def test_times_that_make_no_sense(comm):
    work = comm.recv(numpy.zeros(1), comm.rank, tag=8)
    for seconds in (float("nan"), -1, float("-inf")):
        with pytest.raises(ValueError, match="a time must"):
            work.wait(seconds)
        with pytest.raises(ValueError, match="a time must"):
            tutti.init("tcp://127.0.0.1:1", rank=0, world_size=2, timeout=seconds)
    comm.send(numpy.zeros(1), comm.rank, tag=8).wait()
    work.wait()


def test_many_in_flight(comm):
    arrays = [numpy.full(100, comm.rank + i, "int64") for i in range(50)]
    works = [comm.all_reduce(a) for a in arrays]
    for work in reversed(works):
        work.wait()
    for i, a in enumerate(arrays):
        assert (a == sum(r + i for r in range(comm.size))).all()


def test_asyncio(comm):
    async def reduce(value):
        array = numpy.full(3, value + comm.rank)
        await comm.all_reduce(array)
        return array[0]

    async def everything():
        return await asyncio.gather(*(reduce(i) for i in range(8)))

    ranks = sum(range(comm.size))
    assert asyncio.run(everything()) == [i * comm.size + ranks for i in range(8)]


def test_then(comm):
    over = threading.Event()
    errors = []

    def note(error):
        errors.append(error)
        over.set()

    work = comm.all_reduce(numpy.zeros(1))
    work.then(note)
    work.wait()
    assert over.wait(60)
    assert errors == [None]


# `wait` must release the GIL. Otherwise the other thread could not send the message for which
# `wait` waits.
def test_other_threads_run_during_a_wait(comm):
    rank, peer = comm.rank, (comm.rank + 1) % comm.size
    thread = threading.Thread(target=lambda: comm.send(numpy.full(1, rank), peer, tag=9).wait())
    got = numpy.zeros(1, "int64")
    work = comm.recv(got, tag=9)
    thread.start()
    work.wait()
    thread.join()
    assert got[0] == (rank - 1) % comm.size


def test_split(comm):
    part = comm.split(comm.rank % 2, key=-comm.rank)
    array = numpy.array([comm.rank])
    part.all_reduce(array).wait()
    members = [r for r in range(comm.size) if r % 2 == comm.rank % 2]
    assert array[0] == sum(members)
    assert part.rank == members[::-1].index(comm.rank)
    part.close()
    assert part.closed
    with pytest.raises(ValueError, match="closed"):
        part.barrier()
    assert (comm.split(None if comm.rank == 0 else 1) is None) == (comm.rank == 0)


def test_group(comm):
    listed = list(range(comm.size))[::-1][:2]
    if comm.rank not in listed:
        with pytest.raises(ValueError, match="is not listed"):
            comm.group(listed)
        return
    part = comm.group(listed, timeout=60)
    assert (part.rank, part.size) == (listed.index(comm.rank), len(listed))
    array = numpy.array([comm.rank])
    part.all_reduce(array).wait()
    assert array[0] == sum(listed)
    part.close()


def test_mismatch(own):
    array = numpy.zeros(4)
    with pytest.raises(tutti.MismatchError) as caught:
        if own.rank == 0:
            own.all_reduce(array).wait()
        else:
            own.broadcast(array).wait()
    assert caught.value.code == "mismatch"
    assert "all_reduce" in str(caught.value) and "broadcast" in str(caught.value)
    assert isinstance(own.error(), tutti.MismatchError)


def test_close_ends_what_is_in_flight(own):
    if own.rank == 0:
        work = own.recv(numpy.zeros(1), tag=1)
        own.close()
        own.close()  # does nothing
    else:
        work = own.barrier()
    with pytest.raises(tutti.AbortedError, match="destroyed the communicator with operations in flight"):
        work.wait()


def test_abort(own):
    work = own.recv(numpy.zeros(1), tag=1)
    if own.rank == 0:
        own.abort("enough")
    with pytest.raises(tutti.AbortedError, match="enough") as caught:
        work.wait()
    assert caught.value.peer == 0


def test_timeout(own):
    with pytest.raises(TimeoutError) as caught:
        own.recv(numpy.zeros(1), (own.rank + 1) % own.size, tag=1, timeout=0.05).wait()
    assert isinstance(caught.value, tutti.TimeoutError)


def test_shrink(comm):
    old = comm.split(0)
    old.barrier().wait()
    comm.barrier().wait()
    survivors, completed = old.shrink()
    assert (survivors.size, completed) == (comm.size, 1)
    survivors.barrier().wait()


def test_descriptions(comm):
    assert comm.describe(0).startswith("rank 0 (host ")
    assert comm.statistics()["operations"] > 0
    assert (tutti.get_rank(), tutti.get_world_size()) == (comm.rank, comm.size)
    assert comm.error() is None
    assert isinstance(comm.descriptor(), int) and comm.progress() in (True, False)


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("bucket_bytes", [1, 100, 1 << 20])
def test_gradient_reducer(comm, mean, bucket_bytes):
    shapes = [(3, 4), (4,), 7, (), (2, 2)]
    reducer = tutti.GradientReducer(comm, shapes, "float64", bucket_bytes=bucket_bytes, mean=mean)
    # In every step, each rank's gradients become ready in a different order. One gradient is not
    # reported as ready, so `wait` must reduce it.
    for step in range(3):
        order = numpy.random.default_rng((comm.rank, step)).permutation(len(shapes))
        for i in order:
            reducer.gradients[i][...] = comm.rank + step + i
            if i != step:
                reducer.ready(i)
        reducer.wait()
        for i, gradient in enumerate(reducer.gradients):
            total = sum(r + step + i for r in range(comm.size))
            assert numpy.allclose(gradient, total / comm.size if mean else total)
    reducer.ready(0)
    with pytest.raises(ValueError, match="ready already"):
        reducer.ready(0)
    reducer.wait()
