"""Tests Ctrl-C. The interrupted rank raises KeyboardInterrupt, and the other ranks raise an error
that names that rank."""
import os
import pathlib
import signal
import subprocess
import sys

import pytest
import ranks

TELL = (pathlib.Path(__file__).parents[1] / "support" / "tell.py").read_text() + """
import sys, torch, torch.distributed as dist, tutti.torch
"""

ADDING = TELL + """
dist.init_process_group("tutti")
def add():
    while True:
        dist.all_reduce(torch.ones(8))
dist.barrier()
tell(add)
"""


def test_ctrl_c_at_the_terminal_reaches_all_ranks():
    size = 3
    launcher = subprocess.Popen(
        [os.environ["LAUNCHER"], "run", "-n", str(size), "--kill-grace", "60s", "--", sys.executable, "-c", ADDING],
        env=ranks.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    for _ in range(size):
        assert launcher.stdout.readline() == "ready\n"
    os.killpg(launcher.pid, signal.SIGINT)
    out, err = launcher.communicate(timeout=ranks.DEADLINE_SECONDS)
    lines = out.splitlines()
    assert len(lines) == size, out + err
    assert all(line == "KeyboardInterrupt" or line.startswith("DistBackendError ") and "aborted" in line
               for line in lines), out


# The ranks meet in one of torch's stores. Rank 2 never arrives.
MEETING = TELL + """
store = dist.FileStore(sys.argv[2], 3)
tell(lambda: dist.init_process_group("tutti", store=store, rank=int(sys.argv[1]), world_size=3))
"""


@pytest.mark.parametrize("interrupted", [0, 1])
def test_ctrl_c_while_the_ranks_meet(interrupted, tmp_path):
    both = [subprocess.Popen([sys.executable, "-c", MEETING, str(rank), str(tmp_path / "store")],
                             env=ranks.environment(TUTTI_LOG_LEVEL="debug"), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(2)]
    for rank in both:
        while "has arrived" not in (line := rank.stderr.readline()):
            assert line, "a rank ended"
    both[interrupted].send_signal(signal.SIGINT)
    outs = [rank.communicate(timeout=ranks.DEADLINE_SECONDS)[0] for rank in both]
    assert outs[interrupted] == "ready\nKeyboardInterrupt\n"
    assert f"rank {interrupted} (" in outs[1 - interrupted] and "was interrupted" in outs[1 - interrupted], outs
