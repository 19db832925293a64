"""Tests, with a fake of CUDA, that torch's allocator never reuses memory that an operation still needs.

Torch's allocator waits for two kinds of streams before it reuses a tensor's memory: the stream in which the
tensor was allocated, and the streams that were given to `record_stream`. The fake's allocator works in the
same way. In these tests, one of two streams is busy, and the program drops a tensor that was allocated in
the other stream. The allocator would free this tensor's memory at once if tutti did not keep the memory in use.
"""
import gc
import time

import torch
import torch.distributed as dist
from fake_devices import LIMIT, fake, held, in_stream, library, other_stream, run  # noqa: F401  every test uses `library`

COUNT = 1000


def lists(size, new):
    return [new() for _ in range(size)]


# Each function makes one operation on new tensors, and returns its Work.
COLLECTIVES = {
    "broadcast": lambda rank, size, new: dist.broadcast(new(), 0, async_op=True),
    "all_reduce": lambda rank, size, new: dist.all_reduce(new(), async_op=True),
    "reduce": lambda rank, size, new: dist.reduce(new(), 0, async_op=True),
    "all_gather": lambda rank, size, new: dist.all_gather(lists(size, new), new(), async_op=True),
    "all_gather of a slice": lambda rank, size, new: dist.all_gather(lists(size, new), new(2)[::2], async_op=True),
    "all_gather_into_tensor": lambda rank, size, new: dist.all_gather_into_tensor(new(size), new(), async_op=True),
    "all_gather_into_tensor of a slice":
        lambda rank, size, new: dist.all_gather_into_tensor(new(size), new(2)[::2], async_op=True),
    "gather": lambda rank, size, new: dist.gather(new(), lists(size, new) if rank == 0 else None, 0, async_op=True),
    "scatter": lambda rank, size, new: dist.scatter(new(), lists(size, new) if rank == 0 else None, 0, async_op=True),
    "reduce_scatter": lambda rank, size, new: dist.reduce_scatter(new(), lists(size, new), async_op=True),
    "reduce_scatter_tensor": lambda rank, size, new: dist.reduce_scatter_tensor(new(), new(size), async_op=True),
    "reduce_scatter_tensor of a slice":
        lambda rank, size, new: dist.reduce_scatter_tensor(new(), new(2 * size)[::2], async_op=True),
    "all_to_all": lambda rank, size, new: dist.all_to_all(lists(size, new), lists(size, new), async_op=True),
    "all_to_all_single": lambda rank, size, new: dist.all_to_all_single(new(size), new(size), async_op=True),
}


def copies_results(name, rank):
    """Returns whether tutti copies the results to their places after the operation itself has ended."""
    return name.split()[0] in ("all_gather", "all_to_all") or (name == "gather" and rank == 0)


def maker(rank):
    """Returns a function that allocates `times * COUNT` elements in the default stream."""
    def new(times=1):
        with in_stream(rank, 0):
            return torch.empty(COUNT * times, device=f"cuda:{rank}")
    return new


def expect_in_use(least):
    """Gives the device time to free memory, and checks that at least `least` bytes remain in use."""
    gc.collect()
    for _ in range(20):
        time.sleep(0.01)
        assert fake.device_bytes() >= least


def await_free(rank, least):
    while fake.device_bytes() > least:
        fake.synchronize(rank)
        gc.collect()


def drops_at_once(rank, size, put):
    new = maker(rank)
    dist.all_reduce(new())  # the first operation of a group on a device may block
    await_free(rank, 0)
    for name, collective in COLLECTIVES.items():
        with other_stream(rank):
            with held(rank):
                work = collective(rank, size, new)
                used = fake.device_bytes()
                del work
                expect_in_use(used)
            await_free(rank, 0)


def test_dropped_tensors_live_until_an_operation_in_another_stream_has_ended():
    run(2, drops_at_once)


def waits_elsewhere(rank, size, put):
    new = maker(rank)
    marker = new()
    dist.all_reduce(marker)
    fake.synchronize(rank)
    before = fake.device_bytes()
    for name, collective in COLLECTIVES.items():
        with other_stream(rank) as busy:
            with held(rank), in_stream(rank, 0):
                with held(rank):  # so that the operation cannot end before `wait`
                    work = collective(rank, size, new)
                    with in_stream(rank, busy):
                        work.wait()
                    used = fake.device_bytes()
                dist.all_reduce(marker, async_op=True).wait(LIMIT)
                assert work.is_completed() != copies_results(name, rank), name
                del work
                expect_in_use(used if copies_results(name, rank) else before)
            await_free(rank, before)


def test_dropped_tensors_live_until_the_results_have_been_copied_in_another_stream():
    run(2, waits_elsewhere)


def records(rank, size, put):
    new = maker(rank)
    dist.all_reduce(new())
    for name, collective in COLLECTIVES.items():
        with held(rank):
            work = collective(rank, size, new)
            with other_stream(rank) as stream:
                work.wait()
        work.wait(LIMIT)
        expected = [stream] if copies_results(name, rank) else []
        assert all(fake.users(output) == expected for output in work.result()), name


def test_the_allocator_is_told_of_the_stream_in_which_results_are_copied():
    run(2, records)


def records_without_wait(rank, size, put):
    new = maker(rank)
    dist.all_reduce(new())
    for name, collective in COLLECTIVES.items():
        work = collective(rank, size, new)
        while not work.is_completed():
            pass
        assert work.is_success(), work.exception()
        used = [fake.users(output) for output in work.result()]
        assert all(len(each) == copies_results(name, rank) and set(each) <= set(fake.pool()) for each in used), (name, used)


def test_the_allocator_is_told_of_the_pools_stream_if_nobody_has_waited():
    run(2, records_without_wait)
