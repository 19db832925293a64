"""Tests Ctrl-C. The interrupted rank raises KeyboardInterrupt. Ranks whose calls then fail raise
tutti.Error."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest
from worlds import DEADLINE_SECONDS, ENVIRONMENT, finish, places, start, start_world

TELL = (pathlib.Path(__file__).parents[2] / "support" / "tell.py").read_text()

# The signal arrives while tutti makes the exception for a failed call. tutti runs no other Python
# code before the program gets the exception.
MAKING_AN_ERROR = TELL + """
import signal, tutti.errors
make = tutti.errors.make
def slow_make(*arguments):
    signal.raise_signal(signal.SIGINT)
    return make(*arguments)
tutti.errors.make = slow_make
comm = tutti.init()
tell(comm.send, b"x", 7)
"""


def test_ctrl_c_while_an_exception_is_made():
    assert finish(start(MAKING_AN_ERROR)) == (0, "ready\nKeyboardInterrupt\n", "")


IN_A_CALLBACK = TELL + """
import signal
comm = tutti.init()
work = comm.all_reduce(bytearray(1))
def interrupted():
    work.then(lambda error: signal.raise_signal(signal.SIGINT))
    comm.recv(bytearray(1), 0).wait()
tell(interrupted)
"""


def test_ctrl_c_during_a_callback_is_not_lost():
    assert finish(start(IN_A_CALLBACK)) == (0, "ready\nKeyboardInterrupt\n", "")


IN_AN_OPERATION = TELL + """
import signal
comm = tutti.init()
def left(left, right, out, kind):
    if comm.rank == 0:
        signal.raise_signal(signal.SIGINT)
    out[:] = left
def combine():
    comm.all_reduce(bytearray(8), op=tutti.ReduceOp.user("left", left)).wait()
tell(combine)
"""


def test_ctrl_c_during_an_operation_of_the_users_is_not_lost():
    ranks = start_world(2, IN_AN_OPERATION)
    assert finish(ranks[0])[:2] == (0, "ready\nKeyboardInterrupt\n")
    finish(ranks[1])


WAITING = TELL + """
comm = tutti.init()
tell(comm.recv(bytearray(1), (comm.rank + 1) % 2).wait)
"""


@pytest.mark.parametrize("interrupted", [0, 1])
def test_ctrl_c_ends_a_wait(interrupted):
    ranks = start_world(2, WAITING)
    for rank in ranks:
        assert rank.stdout.readline() == "ready\n"
    ranks[interrupted].send_signal(signal.SIGINT)
    assert finish(ranks[interrupted])[:2] == (0, "KeyboardInterrupt\n")
    status, out, err = finish(ranks[1 - interrupted])  # this rank reports that its peer has left
    assert (status, err) == (0, "") and out.startswith("tutti.Error aborted") and f" rank {interrupted} (" in out, out


ADDING = TELL + """
comm = tutti.init()
def add():
    while True:
        comm.all_reduce(bytearray(8)).wait()
comm.barrier().wait()
tell(add)
"""


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_ctrl_c_at_the_terminal_reaches_all_ranks(transport):
    size = 4
    launcher = subprocess.Popen(
        [os.environ["LAUNCHER"], "run", "-n", str(size), "--kill-grace", "60s", "--", sys.executable, "-c", ADDING],
        env={**ENVIRONMENT, "TUTTI_TRANSPORTS": transport}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )
    for _ in range(size):
        assert launcher.stdout.readline() == "ready\n"
    os.killpg(launcher.pid, signal.SIGINT)
    _, out, err = finish(launcher)
    lines = out.splitlines()
    assert len(lines) == size, out + err
    assert all(line.startswith(("KeyboardInterrupt", "tutti.Error aborted ")) for line in lines), out


MEETING = TELL + """
tell(tutti.init)
"""


def await_log(rank, text):
    while text not in (line := rank.stderr.readline()):
        assert line, "a rank ended"


# The test starts only three of four ranks, so that these three wait for the fourth rank.
@pytest.mark.parametrize("interrupted", [0, 1, 2])
@pytest.mark.parametrize("by", ["tcp", "file"])
def test_ctrl_c_while_the_ranks_meet(interrupted, by, tmp_path):
    method = {} if by == "tcp" else {"TUTTI_INIT_METHOD": f"file://{tmp_path}/meeting"}
    if by == "file":
        own = [{"TUTTI_RANK": str(rank), "TUTTI_WORLD_SIZE": "4", **method} for rank in range(3)]
    else:
        own = places(4)[:3]
    ranks = [start(MEETING, TUTTI_LOG_LEVEL="debug", **place) for place in own]
    for rank in ranks:
        assert rank.stdout.readline() == "ready\n"
    for rank in ranks:  # all three must wait in the same store first
        await_log(rank, "has arrived")
    ranks[interrupted].send_signal(signal.SIGINT)
    assert finish(ranks[interrupted])[1] == "KeyboardInterrupt\n"
    for rank in ranks[:interrupted] + ranks[interrupted + 1 :]:
        out = finish(rank)[1]
        assert out.startswith(f"tutti.Error aborted {interrupted} ") and "was interrupted" in out, out


@pytest.mark.parametrize("method", ["tcp://127.0.0.1:1", "file://{}/meeting"])
def test_ctrl_c_while_the_store_is_looked_for(method, tmp_path):
    place = {"TUTTI_INIT_METHOD": method.format(tmp_path), "TUTTI_RANK": "1", "TUTTI_WORLD_SIZE": "2"}
    rank = start(MEETING, TUTTI_LOG_LEVEL="debug", **place)
    await_log(rank, "meeting at")
    rank.send_signal(signal.SIGINT)
    assert finish(rank)[:2] == (0, "ready\nKeyboardInterrupt\n")


# Rank 0 makes no call, so rank 1 waits for rank 0.
SHRINKING = TELL + """
import time
comm = tutti.init()
tell((lambda: time.sleep(600)) if comm.rank == 0 else comm.shrink)
"""


def test_ctrl_c_ends_a_shrink():
    ranks = start_world(2, SHRINKING)
    for rank in ranks:
        assert rank.stdout.readline() == "ready\n"
    ranks[1].send_signal(signal.SIGINT)
    assert finish(ranks[1])[:2] == (0, "KeyboardInterrupt\n")
    ranks[0].kill()
    finish(ranks[0])
