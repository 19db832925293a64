"""Tests every operation, type and kind of reduction against NumPy."""

import functools

import ml_dtypes
import numpy
import pytest

import tutti

INTEGERS = ["int8", "uint8", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64", ml_dtypes.bfloat16]
OPERATIONS = {
    "sum": numpy.add,
    "product": numpy.multiply,
    "min": numpy.minimum,
    "max": numpy.maximum,
    "bit_and": numpy.bitwise_and,
    "bit_or": numpy.bitwise_or,
    "bit_xor": numpy.bitwise_xor,
}


def data(rank, count, dtype="float32"):
    """Returns the input of `rank`. The numbers are small and whole, so that every type holds every
    result exactly."""
    return ((numpy.arange(count) * 3 + rank * 7) % 5 + 1).astype(dtype)


def reduced(ranks, count, dtype, op="sum"):
    return functools.reduce(OPERATIONS[op], [data(r, count, dtype) for r in ranks])


def types_and_operations():
    for dtype in INTEGERS + FLOATS:
        for op in OPERATIONS:
            if not (op.startswith("bit") and dtype in FLOATS):
                yield pytest.param(dtype, op, id=f"{numpy.dtype(dtype).name}-{op}")


@pytest.mark.parametrize("dtype, op", list(types_and_operations()))
def test_all_reduce(comm, dtype, op):
    expected = reduced(range(comm.size), 37, dtype, op)
    array = data(comm.rank, 37, dtype)
    out = numpy.zeros_like(array)
    comm.all_reduce(array, out, op).wait()
    assert (out == expected).all()
    comm.all_reduce(array, op=op).wait()
    assert (array == expected).all()


def test_bool_is_logical(comm):
    mine = numpy.array([comm.rank == 0, True, False])
    either, both = numpy.zeros(3, bool), numpy.zeros(3, bool)
    comm.all_reduce(mine, either, "sum").wait()
    comm.all_reduce(mine, both, "min").wait()
    assert either.tolist() == [True, True, False]
    assert both.tolist() == [comm.size == 1, True, False]


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_float8(comm, dtype):
    array = numpy.ones(9, dtype)
    comm.all_reduce(array).wait()
    assert (array == numpy.full(9, comm.size, dtype)).all()


def test_average_and_scaled_sum(comm):
    array = data(comm.rank, 10, "float64")
    comm.all_reduce(array, op="avg").wait()
    assert numpy.allclose(array, reduced(range(comm.size), 10, "float64") / comm.size)
    scaled = data(comm.rank, 10)
    comm.all_reduce(scaled, op=tutti.ReduceOp.premultiplied_sum(0.5)).wait()
    assert (scaled == reduced(range(comm.size), 10, "float32") / 2).all()


def test_function_that_raises(own):
    # Raises an exception on each rank that combines the last rank's input.
    def picky(left, right, out, dtype):
        l, r = numpy.frombuffer(left, dtype), numpy.frombuffer(right, dtype)
        if own.size in l or own.size in r:
            raise ValueError("element 7 is odd")
        numpy.frombuffer(out, dtype)[:] = numpy.maximum(l, r)

    array = numpy.full(3, own.rank + 1.0)
    with pytest.raises(tutti.AbortedError, match="rank . .*ValueError: element 7 is odd"):
        own.all_reduce(array, op=tutti.ReduceOp.user("picky", picky)).wait()
    assert isinstance(own.error(), tutti.AbortedError)


def test_function_of_the_user(comm):
    def last(left, right, out, dtype):
        r = numpy.frombuffer(right, dtype)
        numpy.frombuffer(out, dtype)[:] = numpy.where(r != 0, r, numpy.frombuffer(left, dtype))

    op = tutti.ReduceOp.user("last", last, commutative=False)
    array = numpy.array([comm.rank + 1, 0, 4 if comm.rank == 0 else 0], "int32")
    comm.all_reduce(array, op=op).wait()
    assert array.tolist() == [comm.size, 0, 4]


@pytest.mark.parametrize("root", [0, 1, 2])
def test_rooted(comm, root):
    if root >= comm.size:
        pytest.skip(f"there is no rank {root}")
    size, rank, is_root = comm.size, comm.rank, comm.rank == root
    total = reduced(range(size), 6, "int64")
    result = numpy.zeros(6, "int64") if is_root else None
    comm.reduce(data(rank, 6, "int64"), result, root).wait()
    assert not is_root or (result == total).all()
    in_place = data(rank, 6, "int64")
    comm.reduce(in_place, root=root).wait()
    assert (in_place == (total if is_root else data(rank, 6, "int64"))).all()

    array = data(rank, 5)
    if is_root:
        array.flags.writeable = False  # the root only reads its array
    comm.broadcast(array, root).wait()
    assert (array == data(root, 5)).all()

    everybodys = numpy.zeros((size, 4), "float32") if is_root else None
    comm.gather(data(rank, 4), everybodys, root).wait()
    if is_root:
        assert all((everybodys[r] == data(r, 4)).all() for r in range(size))
    mine = numpy.zeros(4, "float32")
    comm.scatter(everybodys, mine, root).wait()
    assert (mine == data(rank, 4)).all()

    counts = list(range(size))
    joined = numpy.zeros(sum(counts), "float32") if is_root else None
    comm.gather_v(data(rank, rank), joined, counts if is_root else None, root).wait()
    if is_root:
        assert (joined == numpy.concatenate([data(r, r) for r in range(size)])).all()
    part = numpy.zeros(rank, "float32")
    comm.scatter_v(joined, counts if is_root else None, part, root).wait()
    assert (part == data(rank, rank)).all()


def test_gather_and_scatter_of_all(comm):
    size, rank = comm.size, comm.rank
    everybodys = numpy.concatenate([data(r, 8) for r in range(size)])
    out = numpy.zeros(8 * size, "float32")
    comm.all_gather(data(rank, 8), out).wait()
    assert (out == everybodys).all()
    in_place = numpy.zeros((size, 8), "float32")
    in_place[rank] = data(rank, 8)
    comm.all_gather(in_place).wait()
    assert (in_place.ravel() == everybodys).all()

    counts = [r + 1 for r in range(size)]
    joined = numpy.zeros(sum(counts), "float32")
    comm.all_gather_v(data(rank, rank + 1), joined, counts).wait()
    assert (joined == numpy.concatenate([data(r, r + 1) for r in range(size)])).all()

    total = reduced(range(size), 8 * size, "float32").reshape(size, 8)
    block = numpy.zeros(8, "float32")
    comm.reduce_scatter(data(rank, 8 * size), block).wait()
    assert (block == total[rank]).all()
    whole = data(rank, 8 * size).reshape(size, 8)
    comm.reduce_scatter(whole).wait()
    assert (whole[rank] == total[rank]).all()
    uneven = numpy.zeros(counts[rank], "float32")
    comm.reduce_scatter_v(data(rank, sum(counts)), uneven, counts).wait()
    start = sum(counts[:rank])
    assert (uneven == reduced(range(size), sum(counts), "float32")[start : start + counts[rank]]).all()


def test_all_to_all(comm):
    size, rank = comm.size, comm.rank
    expected = numpy.stack([data(r, 2 * size).reshape(size, 2)[rank] for r in range(size)])
    out = numpy.zeros((size, 2), "float32")
    comm.all_to_all(data(rank, 2 * size), out).wait()
    assert (out == expected).all()
    in_place = data(rank, 2 * size).reshape(size, 2)
    comm.all_to_all(in_place).wait()
    assert (in_place == expected).all()
    # Rank a sends a + b elements to rank b.
    counts = [rank + r for r in range(size)]
    given = numpy.full(sum(counts), rank, "int32")
    taken = numpy.full(sum(counts), -1, "int32")
    comm.all_to_all_v(given, counts, taken, counts).wait()
    assert taken.tolist() == [r for r in range(size) for _ in range(rank + r)]


def test_scans(comm):
    for name, ranks in (("scan", range(comm.rank + 1)), ("exscan", range(comm.rank))):
        out = numpy.full(7, -1, "int32")
        getattr(comm, name)(data(comm.rank, 7, "int32"), out).wait()
        in_place = data(comm.rank, 7, "int32")
        getattr(comm, name)(in_place).wait()
        if ranks:
            assert (out == reduced(ranks, 7, "int32")).all()
            assert (in_place == out).all()
        else:
            assert (out == -1).all()


def test_large(comm):
    array = numpy.full(300_001, comm.rank + 1, "float32")
    comm.all_reduce(array).wait()
    assert (array == comm.size * (comm.size + 1) / 2).all()


def test_algorithm_by_name(comm):
    array = data(comm.rank, 16)
    with pytest.raises(tutti.InvalidArgumentError, match="no such thing"):
        comm.split(0).all_reduce(array, algorithm="no such thing").wait()
    comm.barrier(timeout=60).wait()
