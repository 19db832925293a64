"""This module averages gradients over the ranks while other gradients are still being computed."""

from typing import TYPE_CHECKING, Any, List, Sequence, Tuple, Union

from . import _core

if TYPE_CHECKING:
    import numpy

Shape = Union[int, Tuple[int, ...]]


class _Bucket:
    """A bucket holds gradients that are adjacent in memory. One operation reduces them all."""

    def __init__(self, memory: Any, members: Sequence[int]):
        self.memory = memory
        self.members = frozenset(members)
        self.missing = set(members)


class GradientReducer:
    """Averages (or sums) a model's gradients over all ranks, in buckets, as soon as they are
    computed.

        reducer = tutti.GradientReducer(comm, [w.shape for w in weights], dtype="float32")
        for batch in batches:
            for i in reversed(range(len(weights))):
                reducer.gradients[i][...] = ...  # backward pass
                reducer.ready(i)                 # starts the reduction of its bucket once the bucket is complete
            reducer.wait()                       # now every rank's reducer.gradients holds the same means

    Gradients lie in the buckets' memory, so nothing is copied. Buckets are filled from the last gradient to the
    first, which is the order of a backward pass. All ranks reduce the buckets in that order, even if gradients become
    ready in another order. A reducer serves any number of steps, and needs NumPy. Threads must not share a reducer.

    Args:
        communicator: the ranks to average over. Each of them makes a reducer with the same shapes.
        shapes: the shape of each gradient.
        dtype: the type of all gradients: "float32", or anything that numpy.dtype accepts and tutti supports.
        bucket_bytes: the size of a bucket in bytes. The reduction of a small bucket starts earlier; a large bucket
            costs less for each byte.
        mean: whether to divide by the number of ranks.
    """

    def __init__(
        self,
        communicator: _core.Communicator,
        shapes: Sequence[Shape],
        dtype: Any = "float32",
        *,
        bucket_bytes: int = 4 << 20,
        mean: bool = True,
    ):
        import numpy

        self._communicator = communicator
        self._op = "avg" if mean else "sum"
        self._dtype = numpy.dtype(dtype)
        self._buckets: List[_Bucket] = []
        self._bucket_of: List[_Bucket] = []
        self._works: List[_core.Work] = []
        self._next = 0  # the first bucket whose reduction has not started
        sizes = [int(numpy.prod(shape, dtype=numpy.int64)) for shape in shapes]
        gradients: List[Any] = [None] * len(sizes)
        bucket_of: List[Any] = [None] * len(sizes)
        for members in self._group(sizes, bucket_bytes):
            memory = numpy.zeros(sum(sizes[i] for i in members), self._dtype)
            bucket = _Bucket(memory, members)
            self._buckets.append(bucket)
            start = 0
            for i in members:
                gradients[i] = memory[start : start + sizes[i]].reshape(shapes[i])
                bucket_of[i] = bucket
                start += sizes[i]
        self._bucket_of = bucket_of
        #: One array for each shape. The program writes a gradient into it. After `wait` it holds the mean (or the sum).
        self.gradients: Tuple["numpy.ndarray", ...] = tuple(gradients)

    def _group(self, sizes: Sequence[int], bucket_bytes: int) -> List[List[int]]:
        """Returns groups of consecutive indices, from the last to the first. Each group fills one bucket."""
        groups: List[List[int]] = []
        filled = 0
        for i in reversed(range(len(sizes))):
            size = sizes[i] * self._dtype.itemsize
            if not groups or filled + size > bucket_bytes:
                groups.append([])
                filled = 0
            groups[-1].append(i)
            filled += size
        return groups

    def ready(self, index: int) -> None:
        """Marks the gradient `index` as complete. The program must not read or write it until
        `wait` has returned."""
        bucket = self._bucket_of[index]
        if index not in bucket.missing:
            raise ValueError(f"gradient {index} was ready already")
        bucket.missing.remove(index)
        while self._next < len(self._buckets) and not self._buckets[self._next].missing:
            self._start(self._buckets[self._next])

    def _start(self, bucket: _Bucket) -> None:
        self._next += 1
        self._works.append(self._communicator.all_reduce(bucket.memory, op=self._op))

    def wait(self) -> None:
        """Reduces the remaining gradients, even those that `ready` has not marked, and waits until all are reduced.
        Raises an error if an operation failed. After `wait`, the next step may begin."""
        for bucket in self._buckets[self._next :]:
            self._start(bucket)
        works, self._works, self._next = self._works, [], 0
        for bucket in self._buckets:
            bucket.missing = set(bucket.members)
        for work in works:
            work.wait()
