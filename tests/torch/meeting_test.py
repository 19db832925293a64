"""Tests how ranks meet: by torchrun, by `tutti run`, by each kind of URL, and several times over one store."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import ranks
import torch
import torch.distributed as dist

HERE = Path(__file__).resolve().parent


def launch(command, **changes):
    done = subprocess.run(command, env=ranks.environment(**changes), capture_output=True, text=True,
                          timeout=ranks.DEADLINE_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_torchrun():
    output = launch([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2",
                     f"--master-port={ranks.free_port()}", str(HERE / "hello.py")])
    assert output.count("of 2: 3.0") == 2


def test_tutti_run():
    tutti = os.environ.get("LAUNCHER")
    if tutti is None:
        pytest.skip("LAUNCHER does not say where the command tutti is")
    output = launch([tutti, "run", "-n", "2", "--", sys.executable, str(HERE / "hello.py")])
    assert output.count("of 2: 3.0") == 2


@pytest.mark.parametrize("url, libuv", [("tcp", "1"), ("tcp", "0"), ("env", "1"), ("file", "1")])
def test_ways_to_meet(url, libuv):
    port = ranks.free_port()
    with tempfile.TemporaryDirectory() as folder:
        methods = {"tcp": f"tcp://127.0.0.1:{port}", "env": "env://", "file": f"file://{folder}/store"}
        programs = [subprocess.Popen([sys.executable, str(HERE / "hello.py"), methods[url], str(rank), "2"],
                                     env=ranks.environment(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                                                           WORLD_SIZE="2", USE_LIBUV=libuv), stdout=subprocess.PIPE, text=True)
                    for rank in range(2)]
        for rank, program in enumerate(programs):
            output, _ = program.communicate(timeout=ranks.DEADLINE_SECONDS)
            assert program.returncode == 0 and f"rank {rank} of 2: 3.0" in output


LATE = """
import os, time
import torch.distributed as dist
import tutti.torch
dist.init_process_group("tutti")
if dist.get_rank() == 1:
    time.sleep(1)
dist.new_group()
dist.barrier()
dist.destroy_process_group()
"""


def test_the_wait_for_a_late_rank_is_silent():
    """Checks that torch logs nothing while a rank waits. (Torch's own wait at a store would log a
    warning at each timeout.)"""
    changes = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(ranks.free_port()), "WORLD_SIZE": "2"}
    programs = [subprocess.Popen([sys.executable, "-c", LATE], env=ranks.environment(RANK=str(rank), **changes),
                                 stderr=subprocess.PIPE, text=True) for rank in range(2)]
    for program in programs:
        _, errors = program.communicate(timeout=ranks.DEADLINE_SECONDS)
        assert program.returncode == 0, errors
        assert "c10d" not in errors


def meets_again(rank, size):
    """Meets the other ranks several times over one store."""
    store = dist.FileStore(f"{os.environ['MEETING']}/store", size)
    sums = []
    for _ in range(3):
        dist.init_process_group("tutti", store=store, rank=rank, world_size=size)
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        sums.append(tensor.item())
        dist.destroy_process_group()
    return sums


def test_a_store_serves_many_meetings(monkeypatch):
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("MEETING", folder)
        assert ranks.run(2, meets_again, backend=None) == {0: [2.0] * 3, 1: [2.0] * 3}
