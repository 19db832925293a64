"""This module calls operations of torch.distributed with tensors on a device and with tensors in
host memory.

Each function of REDUCTIONS and MOVES makes one kind of call, and returns this rank's results. `put` moves a tensor from
host memory to the device, or returns it unchanged.
"""
import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

COUNT = 37
MOVED = [torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
         torch.bool, torch.complex64, torch.float8_e5m2]
SUMMED = [torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool,
          torch.complex64, torch.float8_e4m3fn]


def values(rank, count=COUNT, dtype=torch.float32):
    """Returns small whole numbers that differ from rank to rank. Their sums and products are exact in every type."""
    numbers = (torch.arange(count) * 7 + rank * 3) % 4
    return numbers > 1 if dtype == torch.bool else numbers.to(dtype)


def sliced(put, tensor):
    """Returns the tensor with gaps between its elements."""
    wide = torch.zeros(len(tensor), 2, dtype=tensor.dtype)
    wide[:, 0] = tensor
    return put(wide)[:, 0]


def all_reduce(rank, size, put, dtype, op=ReduceOp.SUM):
    tensor = put(values(rank, dtype=dtype))
    dist.all_reduce(tensor, op=op)
    return [tensor]


def all_reduce_of_a_transposed_tensor(rank, size, put, dtype):
    tensor = put(values(rank, 36, dtype).reshape(4, 9)).t()
    dist.all_reduce(tensor)
    return [tensor]


def reduce(rank, size, put, dtype):
    tensor = put(values(rank, dtype=dtype))
    dist.reduce(tensor, size - 1)
    return [tensor] if rank == size - 1 else []


def reduce_scatter_tensor(rank, size, put, dtype):
    output = put(torch.empty(COUNT, dtype=dtype))
    dist.reduce_scatter_tensor(output, put(values(rank, COUNT * size, dtype)))
    return [output]


def reduce_scatter(rank, size, put, dtype):
    output = put(torch.empty(COUNT, dtype=dtype))
    dist.reduce_scatter(output, [put(values(rank + each, dtype=dtype)) for each in range(size)])
    return [output]


def reduce_scatter_of_different_sizes(rank, size, put, dtype):
    output = put(torch.empty(2 * rank + 1, dtype=dtype))
    dist.reduce_scatter(output, [put(values(rank, 2 * each + 1, dtype)) for each in range(size)])
    return [output]


def reduce_scatter_coalesced(rank, size, put, dtype):
    outputs = [put(torch.empty(count, dtype=dtype)) for count in (1, COUNT)]
    with dist._coalescing_manager():
        for output in outputs:
            dist.reduce_scatter_tensor(output, put(values(rank, output.numel() * size, dtype)))
    return outputs


def all_reduce_coalesced(rank, size, put, dtype):
    tensors = [put(values(rank, count, dtype)) for count in (1, COUNT)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    return tensors


def broadcast(rank, size, put, dtype):
    tensor = put(values(rank, dtype=dtype))
    dist.broadcast(tensor, size - 1)
    return [tensor]


def all_gather(rank, size, put, dtype):
    outputs = [put(torch.empty(COUNT, dtype=dtype)) for _ in range(size)]
    dist.all_gather(outputs, put(values(rank, dtype=dtype)))
    return outputs


def all_gather_to_neighbours(rank, size, put, dtype):
    whole = put(torch.empty(COUNT * size, dtype=dtype))
    dist.all_gather(list(whole.split(COUNT)), put(values(rank, dtype=dtype)))
    return [whole]


def all_gather_of_slices(rank, size, put, dtype):
    outputs = [sliced(put, values(9, dtype=dtype)) for _ in range(size)]
    dist.all_gather(outputs, sliced(put, values(rank, dtype=dtype)))
    return outputs


def all_gather_of_different_sizes(rank, size, put, dtype):
    outputs = [put(torch.empty(3 * each, dtype=dtype)) for each in range(size)]
    dist.all_gather(outputs, put(values(rank, 3 * rank, dtype)))
    return outputs


def all_gather_into_tensor(rank, size, put, dtype):
    output = put(torch.empty(COUNT * size, dtype=dtype))
    dist.all_gather_into_tensor(output, put(values(rank, dtype=dtype)))
    return [output]


def all_gather_in_place(rank, size, put, dtype):
    whole = put(values(rank, COUNT * size, dtype))
    dist.all_gather_into_tensor(whole, whole.narrow(0, rank * COUNT, COUNT))
    return [whole]


def gather(rank, size, put, dtype):
    outputs = [put(torch.empty(COUNT, dtype=dtype)) for _ in range(size)] if rank == 0 else None
    dist.gather(put(values(rank, dtype=dtype)), outputs)
    return outputs or []


def scatter(rank, size, put, dtype):
    output = put(torch.empty(COUNT, dtype=dtype))
    dist.scatter(output, [sliced(put, values(each, dtype=dtype)) for each in range(size)] if rank == 0 else None)
    return [output]


def all_to_all(rank, size, put, dtype):
    outputs = [sliced(put, values(9, each + 1, dtype)) for each in range(size)]
    dist.all_to_all(outputs, [put(values(rank + each, rank + 1, dtype)) for each in range(size)])
    return outputs


def all_to_all_single(rank, size, put, dtype):
    output = put(torch.empty(COUNT * size, dtype=dtype))
    dist.all_to_all_single(output, put(values(rank, COUNT * size, dtype)))
    return [output]


def all_to_all_single_of_different_sizes(rank, size, put, dtype):
    output = put(torch.empty(sum(range(1, size + 1)), 3, dtype=dtype))
    rows = put(values(rank, 3 * size * (rank + 1), dtype).reshape(-1, 3))
    dist.all_to_all_single(output, rows, [each + 1 for each in range(size)], [rank + 1] * size)
    return [output]


def neighbours(rank, size):
    return (rank + 1) % size, (rank - 1) % size


def isend_and_irecv(rank, size, put, dtype):
    following, previous = neighbours(rank, size)
    output = put(torch.empty(COUNT, dtype=dtype))
    works = [dist.irecv(output, previous), dist.isend(put(values(rank, dtype=dtype)), following)]
    for work in works:
        work.wait()
    return [output]


def recv_from_any_rank(rank, size, put, dtype):
    if size == 1:  # `dist.recv` refuses a message from the rank itself
        return isend_and_irecv(rank, size, put, dtype)
    output = put(torch.empty(COUNT, dtype=dtype))
    work = dist.isend(put(values(rank, dtype=dtype)), neighbours(rank, size)[0])
    assert dist.recv(output) == neighbours(rank, size)[1]
    work.wait()
    return [output]


def batch_isend_irecv(rank, size, put, dtype):
    following, previous = neighbours(rank, size)
    outputs = [put(torch.empty(COUNT + each, dtype=dtype)) for each in range(2)]
    inputs = [put(values(rank + each, COUNT + each, dtype)) for each in range(2)]
    messages = [dist.P2POp(dist.irecv, each, previous) for each in outputs]
    messages += [dist.P2POp(dist.isend, each, following) for each in inputs]
    for work in dist.batch_isend_irecv(messages):
        work.wait()
    return outputs


REDUCTIONS = [all_reduce, all_reduce_of_a_transposed_tensor, reduce, reduce_scatter_tensor, reduce_scatter,
              reduce_scatter_of_different_sizes, reduce_scatter_coalesced, all_reduce_coalesced]
MOVES = [broadcast, all_gather, all_gather_to_neighbours, all_gather_of_slices, all_gather_of_different_sizes,
         all_gather_into_tensor, all_gather_in_place, gather, scatter, all_to_all, all_to_all_single,
         all_to_all_single_of_different_sizes, isend_and_irecv, recv_from_any_rank, batch_isend_irecv]


def compare(rank, size, put):
    """Makes every operation on the device and in host memory, and compares the results."""
    def compare_one(call, dtype, op=None):
        results = [call(rank, size, place, dtype, *([] if op is None else [op])) for place in (put, lambda tensor: tensor)]
        assert len(results[0]) == len(results[1])
        for there, expected in zip(*results):
            assert there.is_cuda
            actual = there.cpu()
            if dtype.is_floating_point and dtype.itemsize == 1:  # torch cannot compare such elements
                actual, expected = actual.float(), expected.float()
            if op == ReduceOp.AVG:  # NCCL multiplies by 1/size, which rounds differently
                torch.testing.assert_close(actual, expected)
            else:
                assert torch.equal(actual, expected), f"{call.__name__}({dtype}, {op}) on rank {rank}: {actual} is not {expected}"

    for call in REDUCTIONS:
        for dtype in SUMMED:
            compare_one(call, dtype)
    for op in (ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX, ReduceOp.AVG):
        compare_one(all_reduce, torch.float32, op)
    for op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR):
        compare_one(all_reduce, torch.int32, op)
    for factor in (0.5, put(torch.tensor([2.0]))):
        compare_one(all_reduce, torch.float64, dist._make_nccl_premul_sum(factor))
    for call in MOVES:
        for dtype in MOVED:
            compare_one(call, dtype)

