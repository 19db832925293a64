"""Tests every operation, type and reduction. Each rank checks the results of tutti, and most results of Gloo,
against its own computation."""
import ctypes.util
import functools
import operator

import pytest
import ranks
import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed import ReduceOp

SIZES = [1, 2, 3, 4]
COUNT = 37
INTEGERS = [torch.int8, torch.uint8, torch.int32, torch.int64]
# These types were added in torch 2.3.
UNSIGNED = [getattr(torch, name) for name in ("uint32", "uint64") if hasattr(torch, name)]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
REDUCED = INTEGERS + UNSIGNED + FLOATS + [torch.bool, torch.complex64, torch.complex128]
MOVED = REDUCED + [torch.int16, torch.float8_e4m3fn, torch.float8_e5m2] + ([torch.uint16] if UNSIGNED else [])
BITWISE = {ReduceOp.BAND: torch.bitwise_and, ReduceOp.BOR: torch.bitwise_or, ReduceOp.BXOR: torch.bitwise_xor}
FOLDS = {ReduceOp.SUM: operator.add, ReduceOp.AVG: operator.add, ReduceOp.PRODUCT: operator.mul,
         ReduceOp.MIN: torch.minimum, ReduceOp.MAX: torch.maximum, **BITWISE}


def values(dtype, rank, count=COUNT):
    """Returns small numbers that differ from rank to rank. No operation on four ranks overflows with them."""
    numbers = (torch.arange(count) * 7 + rank * 3) % 4 + (torch.arange(count) % 2) * (rank == 1)
    if dtype == torch.bool:
        return numbers > 1
    if dtype.is_complex:
        return torch.complex(numbers.double(), numbers.double() + 1).to(dtype)
    return numbers.to(dtype)


def supported(op, dtype):
    if op in BITWISE:
        return dtype in INTEGERS + UNSIGNED + [torch.bool]
    if dtype.is_complex:
        return op in (ReduceOp.SUM, ReduceOp.AVG)
    return not (op == ReduceOp.AVG and dtype == torch.bool)


def reduced(op, dtype, size, count=COUNT):
    """Returns the expected result, computed in a type that loses no precision."""
    if dtype == torch.bool:
        wide = {ReduceOp.SUM: torch.logical_or, ReduceOp.MAX: torch.logical_or, ReduceOp.PRODUCT: torch.logical_and,
                ReduceOp.MIN: torch.logical_and}.get(op, FOLDS[op])
        return functools.reduce(wide, [values(dtype, rank, count) for rank in range(size)])
    exact = torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else torch.int64
    result = functools.reduce(FOLDS[op], [values(dtype, rank, count).to(exact) for rank in range(size)])
    if op == ReduceOp.AVG:
        result = torch.div(result, size, rounding_mode=None if exact != torch.int64 else "trunc")
    return result.to(dtype)


def comparable(tensor):
    return tensor.view(torch.uint8) if tensor.dtype.itemsize == 1 else tensor


def check(actual, expected, what):
    tolerance = {torch.float16: 1e-3, torch.bfloat16: 1e-2, torch.float32: 1e-6, torch.complex64: 1e-6,
                 torch.float64: 1e-14, torch.complex128: 1e-14}
    if actual.dtype in tolerance:
        torch.testing.assert_close(actual, expected, rtol=tolerance[actual.dtype], atol=0, msg=lambda text: f"{what}: {text}")
    else:
        same = torch.equal(comparable(actual), comparable(expected))
        assert same, f"{what}: {actual} is not {expected}"


def gloo_agrees(call, expected, what):
    """Checks Gloo's result. Returns 1, or 0 if Gloo does not have the operation."""
    try:
        result = call()
    except (RuntimeError, ValueError):
        return 0
    check(result, expected, f"Gloo's {what}")
    return 1


def all_types_reduce(rank, size):
    gloo = dist.new_group(backend="gloo")
    agreed = 0

    def all_reduce(dtype, op, group):
        tensor = values(dtype, rank)
        dist.all_reduce(tensor, op=op, group=group)
        return tensor

    def reduce(dtype, op, group):
        tensor = values(dtype, rank)
        dist.reduce(tensor, size - 1, op=op, group=group)
        return tensor

    def reduce_scatter_single(dtype, op, group):
        output = torch.empty(COUNT, dtype=dtype)
        dist.reduce_scatter_tensor(output, values(dtype, rank, COUNT * size), op=op, group=group)
        return output

    def reduce_scatter_list(dtype, op, group):
        output = torch.empty(COUNT, dtype=dtype)
        dist.reduce_scatter(output, list(values(dtype, rank, COUNT * size).split(COUNT)), op=op, group=group)
        return output

    for dtype in REDUCED:
        for op in FOLDS:
            if not supported(op, dtype):
                with pytest.raises((RuntimeError, ValueError)):
                    all_reduce(dtype, op, None)
                continue
            own = slice(rank * COUNT, (rank + 1) * COUNT)
            # Gloo adds up booleans as bytes, and has no average of complex numbers.
            comparable_to_gloo = dtype != torch.bool and not (dtype.is_complex and op == ReduceOp.AVG)
            for call, expected in ((all_reduce, reduced(op, dtype, size)), (reduce, reduced(op, dtype, size)),
                                   (reduce_scatter_single, reduced(op, dtype, size, COUNT * size)[own]),
                                   (reduce_scatter_list, reduced(op, dtype, size, COUNT * size)[own])):
                if call is reduce and rank != size - 1:
                    call(dtype, op, None)
                    if comparable_to_gloo:
                        gloo_agrees(lambda: call(dtype, op, gloo) * 0, values(dtype, rank) * 0, "reduce elsewhere")
                    continue
                what = f"{call.__name__}({dtype}, {op}) on rank {rank} of {size}"
                check(call(dtype, op, None), expected, what)
                # In some versions (torch 2.6) Gloo's reduce_scatter computes sums for every
                # operation.
                if comparable_to_gloo and (op == ReduceOp.SUM or call in (all_reduce, reduce)):
                    agreed += gloo_agrees(lambda: call(dtype, op, gloo), expected, what)
    return agreed


@pytest.mark.parametrize("size", SIZES)
def test_reductions(size):
    agreed = ranks.run(size, all_types_reduce)
    # Many results of Gloo were compared. (Before about torch 2.4, Gloo has no reduce_scatter.)
    assert min(agreed.values()) > 40


def premultiplied(rank, size):
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        tensor = torch.full((COUNT,), float(rank + 1), dtype=dtype)
        dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(0.5))
        check(tensor, torch.full((COUNT,), 0.25 * size * (size + 1), dtype=dtype), f"scaled sum of {dtype}")
    factor = torch.tensor([2.0])
    tensor = torch.ones(COUNT)
    dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(factor))
    check(tensor, torch.full((COUNT,), 2.0 * size), "sum scaled by a tensor")


@pytest.mark.parametrize("size", [2, 3])
def test_premultiplied_sum(size):
    ranks.run(size, premultiplied)


def all_types_move(rank, size):
    gloo = dist.new_group(backend="gloo")
    root = size - 1
    agreed = 0

    def broadcast(dtype, group):
        tensor = values(dtype, rank)
        dist.broadcast(tensor, root, group=group)
        return tensor

    def all_gather(dtype, group):
        outputs = [torch.empty(COUNT, dtype=dtype) for _ in range(size)]
        dist.all_gather(outputs, values(dtype, rank), group=group)
        return joined(outputs)

    def all_gather_into_tensor(dtype, group):
        output = torch.empty(COUNT * size, dtype=dtype)
        dist.all_gather_into_tensor(output, values(dtype, rank), group=group)
        return output

    def gather(dtype, group):
        outputs = [torch.empty(COUNT, dtype=dtype) for _ in range(size)] if rank == root else None
        dist.gather(values(dtype, rank), outputs, dst=root, group=group)
        return joined(outputs) if rank == root else None

    def scatter(dtype, group):
        output = torch.empty(COUNT, dtype=dtype)
        inputs = [values(dtype, to) for to in range(size)] if rank == root else None
        dist.scatter(output, inputs, src=root, group=group)
        return output

    def all_to_all_single(dtype, group):
        output = torch.empty(COUNT * size, dtype=dtype)
        dist.all_to_all_single(output, joined([values(dtype, rank + to) for to in range(size)]), group=group)
        return output

    def all_to_all(dtype, group):
        outputs = [torch.empty(COUNT, dtype=dtype) for _ in range(size)]
        dist.all_to_all(outputs, [values(dtype, rank + to) for to in range(size)], group=group)
        return joined(outputs)

    def send_around(dtype, group):
        output = torch.empty(COUNT, dtype=dtype)
        receiving = dist.irecv(output, (rank - 1) % size, group=group)
        dist.isend(values(dtype, rank), (rank + 1) % size, group=group).wait()
        receiving.wait()
        return output

    for dtype in MOVED:
        everybody = joined([values(dtype, each) for each in range(size)])
        exchanged = joined([values(dtype, rank + each) for each in range(size)])
        for call, expected in ((broadcast, values(dtype, root)), (all_gather, everybody),
                               (all_gather_into_tensor, everybody), (gather, everybody),
                               (scatter, values(dtype, rank)), (all_to_all_single, exchanged),
                               (all_to_all, exchanged), (send_around, values(dtype, (rank - 1) % size))):
            if call is send_around and size == 1:
                continue
            what = f"{call.__name__}({dtype}) on rank {rank} of {size}"
            result = call(dtype, None)
            if result is not None:
                check(result, expected, what)
            # Gloo gets no call with a type that it lacks. Some of its ranks would refuse such a call while others
            # already wait in the call. Gloo also lacks all_to_all.
            if dtype in INTEGERS + FLOATS and call not in (all_to_all,):
                try:
                    result = call(dtype, gloo)
                except RuntimeError as error:
                    # Gloo in torch 2.1 refuses all_gather_into_tensor and bfloat16 on all ranks.
                    if not any(text in str(error) for text in ("no support", "Invalid scalar type")):
                        raise
                    continue
                if result is not None:
                    check(result, expected, f"Gloo's {what}")
                    agreed += 1
    return agreed


def joined(tensors):
    """Concatenates tensors of any type. torch.cat does not support every type."""
    flat = torch.cat([each.view(torch.uint8) for each in tensors])
    return flat.view(tensors[0].dtype)


@pytest.mark.parametrize("size", SIZES)
def test_moves(size):
    agreed = ranks.run(size, all_types_move)
    assert min(agreed.values()) > 30  # Gloo's results were compared


def uneven(rank, size):
    lengths = [2 * each + 1 for each in range(size)]
    parts = [torch.arange(length, dtype=torch.float32) + 100 * each for each, length in enumerate(lengths)]
    outputs = [torch.empty(length) for length in lengths]
    dist.all_gather(outputs, parts[rank])
    for output, part in zip(outputs, parts):
        check(output, part, "all_gather of different lengths")
    output = torch.empty(lengths[rank])
    dist.reduce_scatter(output, [part.clone() for part in parts])
    check(output, parts[rank] * size, "reduce_scatter of different lengths")
    # The tensor of rank 0, which comes first in lists, is empty.
    lengths = [3 * each for each in range(size)]
    parts = [torch.full((length,), float(each)) for each, length in enumerate(lengths)]
    outputs = [torch.empty(length) for length in lengths]
    dist.all_gather(outputs, parts[rank])
    for output, part in zip(outputs, parts):
        check(output, part, "all_gather of nothing and something")
    output = torch.empty(lengths[rank])
    dist.reduce_scatter(output, [part.clone() for part in parts])
    check(output, parts[rank] * size, "reduce_scatter of nothing and something")
    outputs = [torch.empty(length) for length in lengths]
    dist.all_to_all(outputs, [parts[rank].clone() for _ in range(size)])
    for output, part in zip(outputs, parts):
        check(output, part, "all_to_all of nothing and something")
    # Rank r has r + 1 rows for every rank.
    rows = torch.full((size * (rank + 1), 3), float(rank))
    received = torch.empty(sum(each + 1 for each in range(size)), 3)
    dist.all_to_all_single(received, rows, [each + 1 for each in range(size)], [rank + 1] * size)
    check(received, torch.cat([torch.full((each + 1, 3), float(each)) for each in range(size)]), "all_to_all_single")


@pytest.mark.parametrize("size", SIZES)
def test_uneven(size):
    ranks.run(size, uneven)


def in_place(rank, size):
    whole = torch.zeros(COUNT * size)
    own = whole.narrow(0, rank * COUNT, COUNT)
    own.copy_(values(torch.float32, rank))
    dist.all_gather_into_tensor(whole, own)
    check(whole, torch.cat([values(torch.float32, each) for each in range(size)]), "all_gather in place")
    whole = values(torch.float32, rank, COUNT * size)
    own = whole.narrow(0, rank * COUNT, COUNT)
    dist.reduce_scatter_tensor(own, whole)
    check(own, reduced(ReduceOp.SUM, torch.float32, size, COUNT * size)[rank * COUNT:(rank + 1) * COUNT],
          "reduce_scatter in place")
    # The tensors of this list lie one after the other in memory.
    whole = torch.zeros(COUNT * size)
    dist.all_gather(list(whole.split(COUNT)), values(torch.float32, rank))
    check(whole, torch.cat([values(torch.float32, each) for each in range(size)]), "all_gather to neighbours")


@pytest.mark.parametrize("size", [2, 3])
def test_in_place(size):
    ranks.run(size, in_place)


def layouts(rank, size):
    gapped = torch.zeros(6, 8)[:, ::2]
    for call in (lambda: dist.all_reduce(gapped), lambda: dist.broadcast(gapped, 0), lambda: dist.reduce(gapped, 0),
                 lambda: dist.isend(gapped, 0), lambda: dist.irecv(gapped, 0),
                 lambda: dist.all_gather_into_tensor(gapped, torch.zeros(6, 4) if size == 1 else torch.zeros(24 // size))):
        with pytest.raises((RuntimeError, ValueError), match="contiguous"):
            call()
    # A tensor without gaps may have its elements in any order, since all_reduce works element by element.
    turned = (torch.arange(12.0).reshape(3, 4) + rank).t()
    dist.all_reduce(turned)
    check(turned, (size * torch.arange(12.0).reshape(3, 4) + sum(range(size))).t(), "transposed")
    # Tensors in lists may have any layout, because their elements are copied.
    outputs = [torch.zeros(3, 4)[:, ::2] for _ in range(size)]
    dist.all_gather(outputs, torch.arange(12.0).reshape(3, 4)[:, ::2])
    for output in outputs:
        check(output, torch.arange(12.0).reshape(3, 4)[:, ::2], "gathered from and to slices")
    with pytest.raises((RuntimeError, NotImplementedError)):
        dist.broadcast(torch.eye(3).to_sparse(), 0)
    empty = torch.empty(0)
    dist.all_reduce(empty)
    scalar = torch.tensor(1.0)
    dist.all_reduce(scalar)
    assert scalar.item() == size


@pytest.mark.parametrize("size", [2, 3])
def test_layouts(size):
    ranks.run(size, layouts)


def sparse(rank, size):
    indices = torch.tensor([[0, rank + 1, rank + 1], [0, 1, 1]])
    own = torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2.0, 3.0]), (8, 2))
    total = own.clone()
    dist.all_reduce(total)
    expected = torch.zeros(8, 2)
    expected[0, 0] = size
    expected[1:size + 1, 1] = 5.0
    check(total.to_dense(), expected, "sparse all_reduce")
    with pytest.raises(RuntimeError, match="only works with ReduceOp.SUM"):
        dist.all_reduce(own.clone(), op=ReduceOp.MAX)


@pytest.mark.parametrize("size", [1, 3])
def test_sparse(size):
    ranks.run(size, sparse)


def on_cuda(index=0):
    """Returns a tensor that claims to be on a CUDA device. It has no elements, since this machine
    may have no such device."""
    with FakeTensorMode():
        return torch.empty(0, device=f"cuda:{index}")


def refusals(rank, size):
    """Calls the backend directly, since torch.distributed does not pass on the tensors of FakeTensorMode."""
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))
    assert backend is dist.group.WORLD._get_backend(torch.device("cpu"))
    there = on_cuda(rank)
    calls = {
        "all_reduce": lambda: backend.allreduce([there], c10d.AllreduceOptions()),
        "broadcast": lambda: backend.broadcast([there], c10d.BroadcastOptions()),
        "all_gather": lambda: backend.allgather([[on_cuda(rank) for _ in range(size)]], [there], c10d.AllgatherOptions()),
    }
    for name, call in calls.items():
        with pytest.raises(NotImplementedError, match=name + r"\(.*on a device.*memory of a CUDA device"):
            call().wait()
        ones = torch.ones(3)
        dist.all_reduce(ones)
        check(ones, torch.full((3,), float(size)), "all_reduce in host memory")
    with pytest.raises(RuntimeError, match="_all_gather_base: tensors on different devices: cuda.* and cpu"):
        backend._allgather_base(torch.empty(0), there, c10d.AllgatherOptions())
    with pytest.raises(NotImplementedError, match="memory of a CUDA device"):
        backend.send([there], 0, 0).wait()
    if size == 1:
        return
    with pytest.raises(dist.DistBackendError, match="mismatch.*on a device"):
        backend.allreduce([there if rank == 1 else torch.ones(0)], c10d.AllreduceOptions()).wait()
        # The barrier fails if the empty all_reduce completed before this rank learned of the mismatch.
        dist.barrier()


@pytest.mark.skipif(ctypes.util.find_library("cuda") is not None, reason="this machine has a CUDA driver")
@pytest.mark.parametrize("size", [1, 2, 3])
def test_without_a_driver_the_memory_of_a_device_is_refused_on_all_ranks(size):
    ranks.run(size, refusals)
