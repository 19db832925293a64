"""Tests torchrun on two hosts, with the command lines of torchrun's manual. The hosts are pods on
this machine."""
import os
import sys
from pathlib import Path

import pods
import pytest

HERE = Path(__file__).resolve().parent
COMMANDS = {
    "static": "torchrun --nnodes=2 --nproc-per-node=2 --node-rank={node} --master-addr={first} --master-port=29500 {script}",
    "elastic": "torchrun --nnodes=2 --nproc-per-node=2 --rdzv-id=100 --rdzv-backend=c10d --rdzv-endpoint={first}:29400 {script}",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_torchrun_on_two_hosts(command, cluster):
    variables = {name: os.environ[name] for name in ("PYTHONPATH", "OMP_NUM_THREADS") if name in os.environ}
    variables |= {"PATH": f"{Path(sys.executable).parent}:{pods.PATH}", "TUTTI_TOKEN": "0f9e8d7c6b5a49382716051423324150"}
    hosts = [cluster.pod(f"host-{number}", "job", variables) for number in range(2)]
    cluster.publish(hosts)
    running = [host.start(command.format(node=node, first="host-0.job", script=HERE / "hello.py").split())
               for node, host in enumerate(hosts)]
    for host in running:
        assert host.wait() == 0, host.out + host.err
        assert "without a token" not in host.err
    lines = sorted(line for host in running for line in host.out.splitlines())
    assert lines == [f"rank {rank} of 4: 10.0" for rank in range(4)]
