"""What counts as an array, what does not, and how long it lives."""

import array
import gc
import weakref

import numpy
import pytest

import tutti


class OnlyDLPack:
    """As a tensor of another framework."""

    def __init__(self, inner):
        self.inner = inner

    def __dlpack__(self, **options):
        return self.inner.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()


def everything(values):
    """The same numbers as different kinds of arrays."""
    plain = numpy.array(values, "float64")
    yield plain.copy()
    yield array.array("d", values)
    yield memoryview(bytearray(plain.tobytes())).cast("d")
    yield OnlyDLPack(plain.copy())


def test_buffers_and_dlpack(comm):
    for mine in everything([1.0, comm.rank]):
        out = numpy.zeros(2)
        comm.all_reduce(mine, out).wait()
        assert out.tolist() == [comm.size, sum(range(comm.size))]
        comm.all_reduce(mine).wait()
        result = mine.inner if isinstance(mine, OnlyDLPack) else mine
        assert list(result) == out.tolist()


def test_bytes_are_read(comm):
    out = bytearray(3 * comm.size)
    comm.all_gather(b"abc", out).wait()
    assert out == b"abc" * comm.size


def test_torch_tensors(comm):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for dtype in (torch.bfloat16, torch.float32, torch.int64, torch.bool):
        tensor = torch.ones(5, dtype=dtype)
        comm.all_reduce(tensor).wait()
        assert (tensor == torch.full((5,), comm.size).to(dtype)).all()
    with pytest.raises(ValueError, match="not contiguous"):
        comm.all_reduce(torch.ones(4, 4).t())


def test_refusals_say_why(comm):
    with pytest.raises(ValueError, match="not contiguous.*ascontiguousarray"):
        comm.all_reduce(numpy.zeros((4, 4))[:, ::2])
    with pytest.raises(tutti.InvalidArgumentError, match="not contiguous"):
        comm.all_reduce(OnlyDLPack(numpy.zeros((4, 3)).T))
    with pytest.raises(ValueError, match="read-only"):
        comm.all_reduce(b"abc")
    with pytest.raises(tutti.UnsupportedError, match='format "h"'):
        comm.all_reduce(numpy.zeros(3, "int16"))
    with pytest.raises(tutti.UnsupportedError, match="element type"):
        comm.all_reduce(OnlyDLPack(numpy.zeros(3, "int16")))
    with pytest.raises(TypeError, match="buffer protocol"):
        comm.all_reduce([1, 2, 3])
    with pytest.raises(TypeError, match="ReduceOp"):
        comm.all_reduce(numpy.zeros(3), op=3)
    with pytest.raises(ValueError, match='no operation "median"'):
        comm.all_reduce(numpy.zeros(3), op="median")
    with pytest.raises(ValueError, match="negative"):
        comm.all_reduce(numpy.zeros(3), timeout=-1)
    # None of these was an operation: the ranks are still in step.
    comm.barrier().wait()


def test_an_array_lives_as_long_as_its_operation(comm):
    peer = (comm.rank + 1) % comm.size
    target = numpy.zeros(4)
    alive = weakref.ref(target)
    comm.recv(target, tag=77)  # neither the handle nor the array is kept
    del target
    gc.collect()
    assert alive() is not None
    comm.barrier().wait()
    comm.send(numpy.ones(4), peer, tag=77).wait()
    comm.barrier().wait()
    for _ in range(10_000):  # let go of by an operation after it is over; these are with nobody else
        comm.progress()
        comm.send(numpy.ones(1), comm.rank, tag=78)
        comm.recv(numpy.zeros(1), comm.rank, tag=78).wait()
        if alive() is None:
            break
    assert alive() is None


def test_shared_memory(comm):
    memory = comm.allocate(1 << 18)
    assert memory.nbytes == 1 << 18
    values = numpy.frombuffer(memory, "float32")
    del memory
    values[:] = 1
    comm.all_reduce(values).wait()
    assert (values == comm.size).all()


def test_shared_memory_may_be_the_last_of_its_communicator(comm):
    """It is torn down then, while another thread may want the GIL for a user's function."""

    def right_one(left, right, out, dtype):
        out[:] = right

    op = tutti.ReduceOp.user("right_one", right_one)
    for _ in range(10):
        part = comm.split(0)
        memory = part.allocate(4096)
        works = [comm.all_reduce(numpy.full(100_000, comm.rank, "float32"), op=op) for _ in range(3)]
        part.close()
        del memory
        for work in works:
            work.wait()
