"""tutti lets a group of processes compute together. The same program is started several times. Each
process calls `init`, which returns when all processes have arrived:

    import numpy, tutti
    comm = tutti.init()
    values = numpy.full(4, comm.rank, dtype="float32")
    comm.all_reduce(values).wait()  # values is now the sum over all processes

Start the program with `tutti run -n 4 -- python program.py`, or with torchrun, mpirun, srun or another launcher (see
docs/python.md).
"""

import asyncio as _asyncio
import atexit as _atexit
import ctypes as _ctypes
import os as _os
import weakref as _weakref
from importlib.util import find_spec as _find_spec
from typing import Any, NamedTuple, Optional, Sequence, Tuple

from . import _core
from ._core import ANY_RANK, ANY_TAG, Allocation, Communicator, ReduceOp, Registration, Work, __version__
from .errors import (
    AbortedError,
    Error,
    InternalError,
    InvalidArgumentError,
    MismatchError,
    PeerLostError,
    ProtocolError,
    ResourceExhaustedError,
    TimeoutError,
    UnauthenticatedError,
    UnreachableError,
    UnsupportedError,
)

__all__ = [
    "ANY_RANK",
    "ANY_TAG",
    "AbortedError",
    "Allocation",
    "Communicator",
    "Error",
    "GradientReducer",
    "InternalError",
    "InvalidArgumentError",
    "MismatchError",
    "PeerLostError",
    "ProtocolError",
    "Recv",
    "ReduceOp",
    "Registration",
    "ResourceExhaustedError",
    "Send",
    "TimeoutError",
    "UnauthenticatedError",
    "UnreachableError",
    "UnsupportedError",
    "Work",
    "get_include",
    "get_library",
    "get_rank",
    "get_world_size",
    "init",
]

_world = None  # a weak reference to the communicator that `init` returned last


def init(
    url: Optional[str] = None,
    rank: Optional[int] = None,
    world_size: Optional[int] = None,
    timeout: Optional[float] = None,
    *,
    transports: Sequence[str] = (),
) -> Communicator:
    """Meets the other processes and returns the communicator of all of them. Blocks until all have
    arrived.

    `url` is "tcp://host:port", "file:///path", "mpi://" or "env://". The first two may carry
    ?rank=0&world_size=2 in place of the arguments `rank` and `world_size`. Missing values are taken
    from environment variables, which `tutti run`, torchrun, Open MPI, MPICH, Slurm and Kubernetes
    set. If there are no such variables, the world consists of this process alone.

    `timeout` limits the wait for the other processes, in seconds. If they do not arrive in time, a
    TimeoutError names the missing ranks. `transports` lists the transports to use ("shm", "tcp"), in order
    of preference. "auto" alone means all transports that work here. If the list is empty,
    TUTTI_TRANSPORTS decides. If that variable is not set either, all transports that work here are
    used.
    """
    global _world
    _load_nccl()
    communicator = _core.init(url, rank, world_size, timeout, list(transports))
    _world = _weakref.ref(communicator)
    return communicator


# Loads the library of the Python packages nvidia-nccl-cu12 and nvidia-nccl-cu13. The system's loader
# does not look in their folder, but `init` finds a library that the process has already loaded.
def _load_nccl() -> None:
    if "TUTTI_NCCL_LIBRARY" in _os.environ:
        return
    try:
        _ctypes.CDLL(_os.environ.get("TUTTI_CUDA_LIBRARY", "libcuda.so.1"))
        package = _find_spec("nvidia.nccl")
        for folder in package.submodule_search_locations or () if package is not None else ():
            _ctypes.CDLL(_os.path.join(folder, "lib", "libnccl.so.2"))
    except (ImportError, OSError):  # there is no driver or no such package
        pass


def _place() -> Tuple[int, int]:
    communicator = _world() if _world is not None else None
    if communicator is not None and not communicator.closed:
        return communicator.rank, communicator.size
    return _core.placement()


def get_rank() -> int:
    """Returns this process's rank in the world. It may be called before `init`."""
    return _place()[0]


def get_world_size() -> int:
    """Returns the number of ranks in the world. It may be called before `init`."""
    return _place()[1]


class Send(NamedTuple):
    """A `Send` describes a transfer for `Communicator.batch`. It sends `array` to rank `peer`."""

    array: Any
    peer: int
    tag: int = 0

    @property
    def sends(self) -> bool:
        return True


class Recv(NamedTuple):
    """A `Recv` describes a transfer for `Communicator.batch`. It receives into `array` from rank `peer`, or from any rank."""

    array: Any
    peer: int = ANY_RANK
    tag: int = ANY_TAG

    @property
    def sends(self) -> bool:
        return False


def get_include() -> str:
    """Returns the folder in which a C compiler finds <tutti/c.h>."""
    return _os.path.join(_os.path.dirname(__file__), "include")


def get_library() -> str:
    """Returns the path of the shared library that this package uses. C programs and extensions can link with it."""
    folder = _os.path.dirname(__file__)
    names = [name for name in _os.listdir(folder) if name.startswith("libtutti.so")]
    return _os.path.join(folder, names[0])


def _settle(future: "_asyncio.Future[None]") -> None:
    if not future.done():  # the future may have been cancelled
        future.set_result(None)


def _await(work: Work):
    """Implements `await work` for asyncio. The event loop keeps running, because the library's own
    thread makes progress."""
    if not work.done():
        loop = _asyncio.get_running_loop()
        future = loop.create_future()

        def over(_error: Optional[Error]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, future)

        work.then(over)
        yield from future
    work.wait()


def _close(communicator: Communicator, *_exception: Any) -> None:
    communicator.close()


Work.__await__ = _await
Communicator.__enter__ = lambda communicator: communicator
Communicator.__exit__ = _close
# The communicators are closed when the program ends. So the other ranks learn that this rank left
# and did not die.
_atexit.register(_core.close_all)

from .gradients import GradientReducer  # noqa: E402 (needs the names above)
