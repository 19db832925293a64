"""Tests which objects count as arrays, and how long operations keep an array alive."""

import array
import ctypes
import gc
import weakref

import ml_dtypes
import numpy
import pytest

import tutti


class OnlyDLPack:
    """Wraps an array so that it only supports DLPack, like a tensor of another framework."""

    def __init__(self, inner):
        self.inner = inner

    def __dlpack__(self, **options):
        return self.inner.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()


def everything(values):
    """Yields several kinds of arrays, all with the same numbers."""
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


def zeros(count=6, dtype="float64"):
    return numpy.zeros(count, dtype)


def read_only():
    array = zeros()
    array.flags.writeable = False
    return array


def overlapping(comm):
    whole = zeros()
    return comm.all_reduce(whole[:4], whole[2:])


VALUE, TYPE, UNSUPPORTED = tutti.InvalidArgumentError, TypeError, tutti.UnsupportedError
# Each call is listed with its exception and the text of that exception. The call itself, and not
# `wait`, must raise the exception.
REFUSALS = {
    "steps": (lambda c: c.all_reduce(numpy.zeros((4, 4))[:, ::2]), VALUE, "not contiguous.*ascontiguousarray"),
    "transposed": (lambda c: c.all_reduce(OnlyDLPack(numpy.zeros((4, 3)).T)), VALUE, "not contiguous"),
    "bfloat16 with steps": (lambda c: c.all_reduce(zeros(6, ml_dtypes.bfloat16)[::2]), VALUE, "not contiguous"),
    "read only bytes": (lambda c: c.all_reduce(b"abc"), VALUE, "read-only"),
    "read only out": (lambda c: c.all_gather(zeros(2), read_only()), VALUE, "read-only"),
    "read only by DLPack": (lambda c: c.recv(OnlyDLPack(read_only())), VALUE, "read-only"),
    "complex64": (lambda c: c.all_reduce(zeros(3, "complex64")), UNSUPPORTED, "type complex64: tutti has .*bfloat16"),
    "int16": (lambda c: c.all_reduce(zeros(3, "int16")), UNSUPPORTED, "type int16: tutti has int8"),
    "datetime64": (lambda c: c.broadcast(zeros(3, "M8[s]")), UNSUPPORTED, r"type datetime64\[s\]: tutti has"),
    "int4": (lambda c: c.broadcast(zeros(3, ml_dtypes.int4)), UNSUPPORTED, "type int4: tutti has"),
    "a format": (lambda c: c.all_reduce(array.array("h", [1])), UNSUPPORTED, 'format "h": tutti has'),
    "DLPack int16": (lambda c: c.all_reduce(OnlyDLPack(zeros(3, "int16"))), UNSUPPORTED, "elements: tutti has"),
    "a list": (lambda c: c.all_reduce([1, 2, 3]), TYPE, "buffer protocol"),
    "no array": (lambda c: c.all_reduce(None), TYPE, None),
    "op of another type": (lambda c: c.all_reduce(zeros(), op=3), TYPE, "ReduceOp"),
    "unknown op": (lambda c: c.all_reduce(zeros(), op="median"), VALUE, 'no operation "median"; there are sum, '),
    "bits of floats": (lambda c: c.all_reduce(zeros(), op="bit_and"), UNSUPPORTED, "bit_and is not defined on float64"),
    "mean of bool": (lambda c: c.scan(zeros(3, bool), op="avg"), UNSUPPORTED, "avg is not defined on bool"),
    "unknown algorithm": (lambda c: c.barrier(algorithm="magic"), VALUE, 'no algorithm "magic" for barrier; it has: '),
    "negative time": (lambda c: c.all_reduce(zeros(), timeout=-1), VALUE, "negative"),
    "time that is not a number": (lambda c: c.barrier(timeout=float("nan")), VALUE, "NaN"),
    "time as text": (lambda c: c.barrier(timeout="1s"), TYPE, "wrong option or value: timeout"),
    "an unknown option": (lambda c: c.all_reduce(zeros(), colour=1), TYPE, "wrong option or value: colour"),
    "a stream": (lambda c: c.all_reduce(zeros(), stream=7), UNSUPPORTED, "nothing here can follow a stream"),
    "a region": (lambda c: c.send(zeros(), 0, region=7), UNSUPPORTED, "nothing here can use a registered region"),
    "out of another size": (lambda c: c.all_reduce(zeros(3), zeros(4)), VALUE, "holds 4 elements, needs 3"),
    "out of another type": (lambda c: c.all_reduce(zeros(3), zeros(3, "int32")), VALUE, "in is float64, out is int32"),
    "in and out overlap": (overlapping, VALUE, "overlap"),
    "all_gather": (lambda c: c.all_gather(zeros(2), zeros(2 * c.size + 1)), VALUE, "out holds"),
    "all_gather in place": (lambda c: c.all_gather(zeros(c.size + 1)), VALUE, "holds"),
    "all_gather_v": (lambda c: c.all_gather_v(zeros(1), zeros(c.size), [1]), VALUE, "counts has 1 entries"),
    "negative counts": (lambda c: c.all_gather_v(zeros(1), zeros(c.size), [-1] * c.size), TYPE, None),
    "reduce_scatter": (lambda c: c.reduce_scatter(zeros(2 * c.size + 1), zeros(2)), VALUE, "in holds"),
    "reduce_scatter_v": (lambda c: c.reduce_scatter_v(zeros(), zeros(2), [2]), VALUE, "counts has 1 entries"),
    "all_to_all": (lambda c: c.all_to_all(zeros(c.size + 1), zeros(c.size + 1)), VALUE, "holds"),
    "all_to_all_v": (lambda c: c.all_to_all_v(zeros(), [6], zeros(), [1] * c.size), VALUE, "in_counts has 1 entries"),
    "no such root": (lambda c: c.broadcast(zeros(), root=c.size), VALUE, "root . of . ranks"),
    "a negative root": (lambda c: c.gather(zeros(), root=-1), VALUE, "root -1 of . ranks"),
    "a root that is not a number": (lambda c: c.reduce(zeros(), root="0"), TYPE, None),
    "gather without out": (lambda c: c.gather(zeros(), root=c.rank), VALUE, "the root needs an output"),
    "gather_v without out": (lambda c: c.gather_v(zeros(), root=c.rank), VALUE, "the root needs an output and the counts"),
    "scatter of None": (lambda c: c.scatter(None, zeros(), root=c.rank), VALUE, "the root needs an input"),
    "scatter to None": (lambda c: c.scatter(zeros(), None, root=c.rank), TYPE, "NoneType"),
    "scatter_v of None": (lambda c: c.scatter_v(None, [1], zeros(), root=c.rank), VALUE, "the root needs an input"),
    "scatter_v without counts": (lambda c: c.scatter_v(zeros(), None, zeros(), root=c.rank), VALUE, "the counts"),
    "no such peer": (lambda c: c.send(zeros(), c.size), VALUE, "peer . of . ranks"),
    "a large tag": (lambda c: c.send(zeros(), 0, tag=1 << 63), VALUE, r"2\^63"),
    "a negative tag": (lambda c: c.send(zeros(), 0, tag=-1), TYPE, None),
    "a batch of numbers": (lambda c: c.batch([3]), TYPE, "tutti.Send and tutti.Recv"),
    "a batch's peer": (lambda c: c.batch([tutti.Send(zeros(), "0")]), TYPE, "peer"),
    "a batch with one bad leg": (
        lambda c: c.batch([tutti.Recv(zeros(), 0, 1), tutti.Send(zeros(), c.size)]), VALUE, "peer . of . ranks"
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_wrong_arguments_raise_at_the_call(comm, name):
    call, exception, words = REFUSALS[name]
    with pytest.raises(exception, match=words):
        call(comm)
    # The refused call did not count as an operation, so the ranks still agree on the next
    # operation.
    comm.barrier().wait()


def test_tensors_that_cannot_be_had_say_why(comm):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(tutti.UnsupportedError, match="type torch.complex64: tutti has"):
        comm.all_reduce(torch.zeros(3, dtype=torch.complex64))
    with pytest.raises(tutti.UnsupportedError, match="DLPack: .*meta"):
        comm.all_reduce(torch.zeros(3, device="meta"))
    with pytest.raises(tutti.UnsupportedError, match="DLPack: .*layout"):
        comm.all_reduce(torch.zeros(3).to_sparse())


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("dimensions", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("offset", ctypes.c_uint64)]


class _DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


class OnCuda:
    """Claims to be a tensor of float32 on a CUDA device. No process can access its address, so an
    access crashes."""

    kept = []  # objects that DLPack's consumers still use

    def __init__(self, device, count):
        self.device, self.count = device, count

    def __dlpack_device__(self):
        return 2, self.device

    def __dlpack__(self, **_options):
        shape, strides = (ctypes.c_int64 * 1)(self.count), (ctypes.c_int64 * 1)(1)
        tensor = _DLTensor(0x1000, 2, self.device, 1, 2, 32, 1, shape, strides, 0)
        managed = _DLManagedTensor(tensor, None, _DLManagedTensor._fields_[2][1](lambda _tensor: None))
        self.kept.append((managed, shape, strides))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(managed), b"dltensor", None)


def test_the_memory_of_a_device_is_refused_on_all_ranks(comm):
    there = OnCuda(comm.rank, 3 * comm.size)
    calls = {
        "all_reduce": lambda: comm.all_reduce(there),
        "broadcast": lambda: comm.broadcast(there),
        "all_gather": lambda: comm.all_gather(there),
        "scan": lambda: comm.scan(there, OnCuda(comm.rank, 3 * comm.size)),
    }
    for name, call in calls.items():
        with pytest.raises(tutti.UnsupportedError, match=name + ".*on a device.*memory of a CUDA device"):
            call().wait()
        here = numpy.ones(2)
        comm.all_reduce(here).wait()
        assert here.tolist() == [comm.size] * 2
    with pytest.raises(tutti.UnsupportedError, match="memory of a CUDA device"):
        comm.send(there, 0)
    with pytest.raises(tutti.InvalidArgumentError, match="in is memory of the host, out is memory of CUDA device 4"):
        comm.all_reduce(numpy.ones(5, "float32"), OnCuda(4, 5))
    comm.barrier().wait()


def test_host_memory_on_one_rank_is_a_mismatch(own):
    mine = numpy.ones(3, "float32") if own.rank == 1 else OnCuda(0, 3)
    with pytest.raises(tutti.MismatchError, match="on a device"):
        own.all_reduce(mine).wait()


def test_an_array_lives_as_long_as_its_operation(comm):
    peer = (comm.rank + 1) % comm.size
    target = numpy.zeros(4)
    alive = weakref.ref(target)
    comm.recv(target, tag=77)  # this test keeps neither the handle nor the array
    del target
    gc.collect()
    assert alive() is not None
    comm.barrier().wait()
    comm.send(numpy.ones(4), peer, tag=77).wait()
    comm.barrier().wait()
    for _ in range(10_000):  # an operation releases its arrays some time after its end
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
    same = numpy.from_dlpack(memory).view("float32")
    del memory
    values[:] = 1
    comm.all_reduce(values).wait()
    assert (values == comm.size).all()
    assert (same == comm.size).all()


def test_shared_memory_keeps_what_is_in_flight(comm):
    part = comm.split(0)
    memory = part.allocate(4096)
    work = part.recv(numpy.zeros(1), comm.rank, tag=1)
    part.close()
    assert work.wait(0.1) is False  # the memory keeps the communicator alive
    comm.barrier().wait()
    del memory
    with pytest.raises(tutti.AbortedError):
        work.wait()


def test_shared_memory_may_be_the_last_of_its_communicator(comm):
    """Tests the end of memory that keeps a communicator alive. Meanwhile, another thread may need
    the GIL for a user's function."""

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


def test_registered_memory(comm):
    values = numpy.full(1 << 18, comm.rank + 1, "float32")
    registration = comm.register_memory(values)
    assert isinstance(registration, tutti.Registration)
    comm.broadcast(values, root=0).wait()
    assert (values == 1).all()
    assert comm.statistics()["bytes_in_place"] == 0  # neither shm nor tcp writes into a peer's memory
    del registration
    with pytest.raises(tutti.InvalidArgumentError):
        comm.register_memory(values[::2])
