"""tutti lets a group of processes compute together. The same program is started several times; each process calls
`init`, which returns when all have arrived:

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
    """Meets the other processes and returns the communicator of all of them; blocks until all have arrived.

    `url` is "tcp://host:port", "file:///path" or "env://". The first two may carry ?rank=0&world_size=2 in place of
    the arguments `rank` and `world_size`. Values that are not given are taken from environment variables, which
    `tutti run`, torchrun, Open MPI, MPICH, Slurm and Kubernetes set. Without any of these, the world is this process
    alone.

    `timeout` limits the wait for the other processes, in seconds. When it expires, a TimeoutError names the ranks
    that have not arrived. `transports` lists the transports to use ("shm", "tcp"), in order of preference. "auto"
    alone means all that work here. If the list is empty, TUTTI_TRANSPORTS decides. If that is not set either, all that
    work here are used.
    """
    global _world
    _load_nccl()
    communicator = _core.init(url, rank, world_size, timeout, list(transports))
    _world = _weakref.ref(communicator)
    return communicator


# The Python packages nvidia-nccl-cu12 and nvidia-nccl-cu13 keep their library where the system's loader does not look.
# `init` finds it if the process has loaded it.
def _load_nccl() -> None:
    if "TUTTI_NCCL_LIBRARY" in _os.environ:
        return
    try:
        _ctypes.CDLL(_os.environ.get("TUTTI_CUDA_LIBRARY", "libcuda.so.1"))
        package = _find_spec("nvidia.nccl")
        for folder in package.submodule_search_locations or () if package is not None else ():
            _ctypes.CDLL(_os.path.join(folder, "lib", "libnccl.so.2"))
    except (ImportError, OSError):  # there is no driver, or no such package
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
    """A `Send` is a transfer of `Communicator.batch`. It sends `array` to rank `peer`."""

    array: Any
    peer: int
    tag: int = 0

    @property
    def sends(self) -> bool:
        return True


class Recv(NamedTuple):
    """A `Recv` is a transfer of `Communicator.batch`. It receives into `array` from rank `peer`, or from any rank."""

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
    if not future.done():  # it may have been cancelled
        future.set_result(None)


def _await(work: Work):
    """Implements `await work` for asyncio. The event loop keeps running; the library's own thread makes progress."""
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
# When a program ends, its communicators are closed, so that the other ranks learn that it left and did not die.
_atexit.register(_core.close_all)

from .gradients import GradientReducer  # noqa: E402  (needs what is above)
