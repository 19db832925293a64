"""This module has one exception class for each error code. All derive from `tutti.Error`. An
exception also derives from Python's class with the same meaning, if there is one. For example,
`except TimeoutError` catches a `tutti.TimeoutError`."""

import builtins
from typing import Optional


class Error(RuntimeError):
    """An operation failed. The message names this rank, the operation, how long it took and the rank to blame."""

    code = "internal"
    #: The world rank to blame, or None.
    peer: Optional[int] = None


class TimeoutError(Error, builtins.TimeoutError):
    """An operation did not end in time. The message names the ranks that were late."""

    code = "timeout"


class PeerLostError(Error, ConnectionError):
    """A rank has died, frozen or been cut off. The message names the rank."""

    code = "peer_lost"


class AbortedError(Error):
    """A rank called `abort` or left, a user-defined operation failed, or the communicator was closed."""

    code = "aborted"


class MismatchError(Error):
    """Ranks made different calls, or a message does not fit the receive's array. The text says what differs."""

    code = "mismatch"


class UnauthenticatedError(Error, PermissionError):
    """The other side has a different token, or none."""

    code = "unauthenticated"


class UnreachableError(Error, ConnectionError):
    """A name, an address or a rank cannot be reached."""

    code = "unreachable"


class InvalidArgumentError(Error, ValueError):
    """An argument is not valid."""

    code = "invalid_argument"


class UnsupportedError(Error, TypeError):
    """The request is not supported: for example, this operation on elements of this type."""

    code = "unsupported"


class ResourceExhaustedError(Error, MemoryError):
    """Memory, descriptors or another resource are exhausted."""

    code = "resource_exhausted"


class ProtocolError(Error):
    """A peer sent something that the protocol forbids."""

    code = "protocol_error"


class InternalError(Error):
    """There is a bug in tutti itself, or the system failed in an unexpected way."""

    code = "internal"


# The classes are in the order of the library's codes, from code 1. Code 0 is "ok".
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
    """Returns the exception for a code of the library."""
    error = _CLASSES[code - 1](message)
    error.peer = peer
    return error
