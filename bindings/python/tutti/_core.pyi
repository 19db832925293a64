from types import TracebackType
from typing import Any, Callable, Dict, Generator, Iterable, Optional, Sequence, Tuple, Type, Union

from . import Recv, Send
from .errors import Error

__version__: str
ANY_RANK: int
ANY_TAG: int

# Whatever has the buffer protocol or __dlpack__.
Array = Any
Op = Union["ReduceOp", str]
# Gets left, right, where left[i] op right[i] goes, and the name of the element type.
UserFunction = Callable[[memoryview, memoryview, memoryview, str], None]

class ReduceOp:
    """How elements are combined; a name such as "sum" does as well."""

    SUM: ReduceOp
    PRODUCT: ReduceOp
    MIN: ReduceOp
    MAX: ReduceOp
    AVG: ReduceOp
    BIT_AND: ReduceOp
    BIT_OR: ReduceOp
    BIT_XOR: ReduceOp
    @staticmethod
    def premultiplied_sum(factor: float) -> ReduceOp: ...
    @staticmethod
    def user(name: str, function: UserFunction, commutative: bool = True) -> ReduceOp: ...
    @property
    def name(self) -> str: ...

class Work:
    """An operation in flight."""

    def wait(self, timeout: Optional[float] = None) -> bool: ...
    def done(self) -> bool: ...
    def error(self) -> Optional[Error]: ...
    def then(self, callback: Callable[[Optional[Error]], object]) -> None: ...
    @property
    def received(self) -> Tuple[int, int, int]: ...
    def __await__(self) -> Generator[Any, None, None]: ...

class Allocation:
    """Memory that the ranks of a host share; has the buffer protocol."""

    @property
    def nbytes(self) -> int: ...
    @property
    def registered(self) -> bool: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Communicator:
    """A group of ranks that compute together. Operations start at once and return a `Work`."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> Communicator: ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...
    def close(self) -> None: ...
    def error(self) -> Optional[Error]: ...
    def describe(self, rank: int) -> str: ...
    def split(self, color: Optional[int], key: int = 0) -> Optional[Communicator]: ...
    def shrink(self, min_size: int = 0) -> Tuple[Communicator, int]: ...
    def abort(self, reason: str = "no reason given") -> None: ...
    def statistics(self) -> Dict[str, int]: ...
    def descriptor(self) -> int: ...
    def progress(self) -> bool: ...
    def allocate(self, nbytes: int) -> Allocation: ...
    def all_reduce(
        self,
        array: Array,
        out: Optional[Array] = None,
        op: Op = "sum",
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def reduce(
        self,
        array: Array,
        out: Optional[Array] = None,
        root: int = 0,
        op: Op = "sum",
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def broadcast(
        self,
        array: Array,
        root: int = 0,
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def all_gather(
        self,
        array: Array,
        out: Optional[Array] = None,
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def all_gather_v(
        self,
        array: Array,
        out: Array,
        counts: Sequence[int],
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def reduce_scatter(
        self,
        array: Array,
        out: Optional[Array] = None,
        op: Op = "sum",
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def reduce_scatter_v(
        self,
        array: Array,
        out: Array,
        counts: Sequence[int],
        op: Op = "sum",
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def all_to_all(
        self,
        array: Array,
        out: Optional[Array] = None,
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def all_to_all_v(
        self,
        array: Array,
        in_counts: Sequence[int],
        out: Array,
        out_counts: Sequence[int],
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def gather(
        self,
        array: Array,
        out: Optional[Array] = None,
        root: int = 0,
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def gather_v(
        self,
        array: Array,
        out: Optional[Array] = None,
        counts: Optional[Sequence[int]] = None,
        root: int = 0,
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def scatter(
        self,
        array: Optional[Array],
        out: Array,
        root: int = 0,
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def scatter_v(
        self,
        array: Optional[Array],
        counts: Optional[Sequence[int]],
        out: Array,
        root: int = 0,
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def scan(
        self,
        array: Array,
        out: Optional[Array] = None,
        op: Op = "sum",
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def exscan(
        self,
        array: Array,
        out: Optional[Array] = None,
        op: Op = "sum",
        *,
        timeout: Optional[float] = None,
        algorithm: Optional[str] = None,
    ) -> Work: ...
    def barrier(self, *, timeout: Optional[float] = None, algorithm: Optional[str] = None) -> Work: ...
    def send(self, array: Array, peer: int, tag: int = 0, *, timeout: Optional[float] = None) -> Work: ...
    def recv(
        self, array: Array, peer: int = ANY_RANK, tag: int = ANY_TAG, *, timeout: Optional[float] = None
    ) -> Work: ...
    def batch(self, transfers: Iterable[Union[Send, Recv]], *, timeout: Optional[float] = None) -> Work: ...

def init(
    url: Optional[str] = None,
    rank: Optional[int] = None,
    world_size: Optional[int] = None,
    timeout: Optional[float] = None,
    transports: Sequence[str] = ...,
) -> Communicator: ...
def placement(
    url: Optional[str] = None, rank: Optional[int] = None, world_size: Optional[int] = None
) -> Tuple[int, int]: ...
def close_all() -> None: ...
