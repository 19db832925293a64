"""Tests memory of CUDA devices. The driver and NCCL are fakes (tests/support/fake_cuda.h and fake_nccl.h)."""

import os

from worlds import finish, start_world

# `values(memory)` returns the memory as bytes that the host can access.
BEGIN = """
import ctypes, gc, os, sys, tutti
comm = tutti.init()
fake = ctypes.CDLL(os.environ["TUTTI_CUDA_LIBRARY"])
fake.fake_cuda_host_address.restype = ctypes.c_void_p
fake.fake_cuda_host_address.argtypes = [ctypes.c_uint64, ctypes.c_size_t]
get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype = ctypes.c_void_p
get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

def values(memory):
    capsule = memory.__dlpack__()
    address = ctypes.cast(get_pointer(capsule, b"dltensor"), ctypes.POINTER(ctypes.c_uint64))[0]
    here = fake.fake_cuda_host_address(address, memory.nbytes)
    return (ctypes.c_uint8 * memory.nbytes).from_address(here)
"""

USE = """
memory = comm.allocate(1000, device=comm.rank % 2)
assert memory.nbytes == 1000 and not memory.registered
assert memory.__dlpack_device__() == (2, comm.rank % 2)
assert bytes(values(memory)) == bytes(1000)
values(memory)[999] = 3
comm.all_reduce(memory).wait()
assert values(memory)[999] == 3 * comm.size
for refused in (lambda: memoryview(memory), lambda: memory.__dlpack__(copy=True)):
    try:
        refused()
        sys.exit("nothing was refused")
    except BufferError:
        pass
"""

FAIL = """
def error_of(nbytes, device):
    try:
        comm.allocate(nbytes, device=device)
        sys.exit("there was no error")
    except tutti.Error as error:
        return error

error = error_of(1 << 50 if comm.rank == 1 else 8, 0)
assert isinstance(error, tutti.ResourceExhaustedError) and error.peer == 1, error
error = error_of(8, -1)
assert isinstance(error, tutti.InvalidArgumentError) and "-1 is not a CUDA device" in str(error), error
error = error_of(8, 0 if comm.rank == 0 else None)
assert isinstance(error, tutti.MismatchError), error
comm.barrier().wait()
"""

FORK = """
memory = comm.allocate(8, device=0)
values(memory)[0] = 1
child = os.fork()
if child == 0:
    del memory, comm
    gc.collect()
    sys.exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
comm.all_reduce(memory).wait()
assert values(memory)[0] == comm.size
"""


# Only memory from NCCL is registered.
PACKAGE = """
memory = comm.allocate(8, device=comm.rank)
assert memory.registered
comm.all_reduce(memory).wait()
"""


def run(program, size=2, **environment):
    for rank in start_world(size, BEGIN + program, TUTTI_CUDA_LIBRARY=os.environ["FAKE_CUDA"], **environment):
        assert finish(rank) == (0, "", "")


def test_memory_of_a_device():
    run(USE, size=3)


def test_all_ranks_learn_why_there_is_no_memory():
    run(FAIL)


def test_a_child_leaves_the_memory_alone():
    run(FORK)


def test_memory_outlives_its_communicator():
    run("memory = comm.allocate(8, device=0)\ncomm.close()\nassert values(memory)[7] == 0\ndel memory\n")


def test_nccl_of_a_python_package_is_found():
    paths = [os.environ["FAKE_NCCL_PACKAGE"], os.environ["PYTHONPATH"]]
    run(PACKAGE, TUTTI_TRANSPORTS="nccl,tcp", PYTHONPATH=os.pathsep.join(paths))
