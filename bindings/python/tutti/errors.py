"""What goes wrong, one class for each code. All are `tutti.Error`; where Python has a class that means the same,
they are that too, so `except TimeoutError` catches a `tutti.TimeoutError`."""

import builtins
from typing import Optional


class Error(RuntimeError):
    """A failed operation. The text names this rank, the operation, how long it took and the rank to blame."""

    code = "internal"
    #: The world rank that is to blame, if one is.
    peer: Optional[int] = None


class TimeoutError(Error, builtins.TimeoutError):
    """Not over in time; names the ranks that were late."""

    code = "timeout"


class PeerLostError(Error, ConnectionError):
    """A rank has died, frozen or been cut off; names it."""

    code = "peer_lost"


class AbortedError(Error):
    """Somebody called `abort`, or a rank has left."""

    code = "aborted"


class MismatchError(Error):
    """Ranks called different things; names both calls."""

    code = "mismatch"


class UnauthenticatedError(Error, PermissionError):
    """The other side has another token, or none."""

    code = "unauthenticated"


class UnreachableError(Error, ConnectionError):
    """No transport leads there."""

    code = "unreachable"


class InvalidArgumentError(Error, ValueError):
    """What was asked for makes no sense."""

    code = "invalid_argument"


class UnsupportedError(Error, TypeError):
    """What was asked for is not to be had: this operation on this type, say."""

    code = "unsupported"


class ResourceExhaustedError(Error, MemoryError):
    """Out of memory, descriptors or the like."""

    code = "resource_exhausted"


class ProtocolError(Error):
    """A peer said something that it must not."""

    code = "protocol_error"


class InternalError(Error):
    """A defect of tutti's."""

    code = "internal"


# In the order of the library's codes, of which 0 is "ok".
_CLASSES = (
    TimeoutError,
    PeerLostError,
    AbortedError,
    MismatchError,
    UnauthenticatedError,
    UnreachableError,
    InvalidArgumentError,
    UnsupportedError,
    ResourceExhaustedError,
    ProtocolError,
    InternalError,
)


def make(code: int, message: str, peer: Optional[int]) -> Error:
    """The exception for what the library reports."""
    error = _CLASSES[code - 1](message)
    error.peer = peer
    return error
