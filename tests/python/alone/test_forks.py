"""Tests children that a rank forks. A child never says goodbye for the rank, however the child ends. The
rank continues."""

import pytest
from worlds import finish, start_world

# The rank uses its communicator, forks a child, and uses the communicator again after the child has ended.
RANK = """
import gc, multiprocessing, os, subprocess, sys, threading, tutti
comm = tutti.init()
numbers = bytearray(8)

def check():
    numbers[:] = bytes([1] * 8)
    comm.all_reduce(numbers).wait()
    assert numbers == bytes([comm.size] * 8)

def forked(body, status=5):
    child = os.fork()
    if child == 0:
        body()
        sys.exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == status

def drop():
    global comm
    del comm
    gc.collect()

def use():
    try:
        comm.all_reduce(numbers).wait()
    except tutti.UnsupportedError as error:
        assert "forked child" in str(error)
        return
    sys.exit(1)

check()
{child}
check()
"""

CHILDREN = {
    "sys.exit": "forked(lambda: None)",
    "os._exit": "forked(lambda: os._exit(5))",
    "close": "forked(comm.close)",
    "del": "forked(drop)",
    "use": "forked(use)",
    "abort": "forked(lambda: comm.abort('by the child'))",
    "init again": "forked(lambda: tutti.init(rank=0, world_size=1).barrier().wait())",
    "in a thread": """
thread = threading.Thread(target=forked, args=(comm.close, 0))  # in a thread, SystemExit ends only the thread
thread.start()
thread.join()
""",
    "multiprocessing": """
child = multiprocessing.get_context("fork").Process(target=drop)
child.start()
child.join()
assert child.exitcode == 0
""",
    "a pool": """
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(abs, [-1, 2]) == [1, 2]
""",
    "subprocess": """
assert subprocess.run([sys.executable, "-c", "import sys, tutti; sys.exit(5)"]).returncode == 5
assert subprocess.run(["true"], preexec_fn=drop).returncode == 0
""",
    "a group of its own": """
part = comm.split(0)
forked(part.close)
part.barrier().wait()
""",
    "memory that ranks share": """
memory = memoryview(comm.allocate(8)).cast("B")
def let_go():
    global memory
    del memory
    drop()
forked(let_go)
memory[:] = bytes([1] * 8)
comm.all_reduce(memory).wait()
assert bytes(memory) == bytes([comm.size] * 8)
""",
    "an operation in flight": """
work = comm.recv(numbers, (comm.rank + 1) % comm.size, 7)
called = []
work.then(called.append)
def wait_and_drop():
    global work
    try:
        work.wait()
        sys.exit(1)
    except tutti.UnsupportedError:
        del work
        drop()
forked(wait_and_drop)
comm.send(bytes(8), (comm.rank - 1) % comm.size, 7).wait()
work.wait()
assert called == [None]
""",
    "while another thread waits": """
work = comm.recv(numbers, (comm.rank + 1) % comm.size, 7)
thread = threading.Thread(target=work.wait)
thread.start()
for _ in range(20):
    forked(drop)
comm.send(bytes(8), (comm.rank - 1) % comm.size, 7).wait()
thread.join()
""",
}


@pytest.mark.parametrize("transport", ["shm", "tcp"])
@pytest.mark.parametrize("child", CHILDREN)
def test_a_rank_goes_on_after_its_child_has_ended(child, transport):
    program = RANK.format(child=CHILDREN[child])
    for rank in start_world(2, program, TUTTI_TRANSPORTS=transport):
        assert finish(rank) == (0, "", "")
