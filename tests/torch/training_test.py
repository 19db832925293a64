"""Tests that DistributedDataParallel gets the same results as with Gloo. Also tests communication hooks,
`join`, FSDP2 and DTensor."""
import subprocess
import sys
from pathlib import Path

import pytest
import ranks
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "torch"
sys.path.insert(0, str(EXAMPLES))
import ddp_digits  # noqa: E402
import fsdp_digits  # noqa: E402


def ddp(rank, size, epochs):
    return ddp_digits.train(epochs)


def fsdp(rank, size, epochs):
    return fsdp_digits.train(epochs)


@pytest.mark.parametrize("size, tolerance", [(2, 1e-4), (4, 1e-3)])
def test_ddp_learns_what_it_learns_with_gloo(size, tolerance, capsys):
    ours, theirs = (ranks.run(size, ddp, 5, backend=backend)[0] for backend in ("tutti", "gloo"))
    with capsys.disabled():
        print(f"\n{size} ranks: loss {ours[0]:.6f}, with Gloo {theirs[0]:.6f}")
    assert abs(ours[0] - theirs[0]) < tolerance
    assert ours[1] > 0.9


def test_fsdp2_learns_what_ddp_learns(capsys):
    sharded, whole = ranks.run(4, fsdp, 5)[0], ranks.run(4, ddp, 5)[0]
    with capsys.disabled():
        print(f"\n4 ranks: loss {sharded[0]:.6f} with FSDP2, {whole[0]:.6f} with DDP")
    assert abs(sharded[0] - whole[0]) < 1e-3


def distributed_tensors(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("rows", "columns"))
    torch.manual_seed(0)
    left, right = torch.randn(8, 12), torch.randn(12, 4)
    a = distribute_tensor(left, mesh, [Shard(0), Shard(1)])
    b = distribute_tensor(right, mesh, [Replicate(), Shard(0)])
    product = (a @ b).full_tensor()
    torch.testing.assert_close(product, left @ right)
    again = a.redistribute(mesh, [Shard(1), Replicate()]).redistribute(mesh, [Shard(0), Shard(1)])
    assert torch.equal(again.full_tensor(), left)


def test_distributed_tensors():
    ranks.run(4, distributed_tensors)


def hooks(rank, size):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    gradients = {}
    for name in ("none", "fp16", "powerSGD"):
        torch.manual_seed(3)
        model = DistributedDataParallel(torch.nn.Linear(64, 64))
        if name == "fp16":
            model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        if name == "powerSGD":  # its callbacks wait for other operations
            state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=32, start_powerSGD_iter=2)
            model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        for step in range(4):
            model.zero_grad()
            torch.manual_seed(10 * step + rank)
            model(torch.randn(16, 64)).pow(2).sum().backward()
        gradients[name] = model.module.weight.grad.clone()
        everybody = [torch.empty_like(gradients[name]) for _ in range(size)]
        dist.all_gather(everybody, gradients[name])
        for each in everybody:
            assert torch.equal(each, gradients[name])
    torch.testing.assert_close(gradients["fp16"], gradients["none"], rtol=1e-2, atol=1e-2)


def test_hooks():
    ranks.run(2, hooks)


def uneven_inputs(rank, size):
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    with model.join():
        for _ in range(3 + rank):
            model(torch.ones(2, 4)).sum().backward()
    dist.barrier()


def test_join():
    ranks.run(3, uneven_inputs)


@pytest.mark.parametrize("script", ["ddp_digits.py", "fsdp_digits.py"])
def test_options_of_scripts_for_gloo(script):
    environment = ranks.environment() | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(ranks.free_port())}
    command = [sys.executable, str(EXAMPLES / script), "--world-size", "2", "--init-method", "env://", "--backend", "tutti"]
    running = [subprocess.Popen([*command, "--rank", str(rank)], env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True) for rank in range(2)]
    output = [process.communicate(timeout=ranks.DEADLINE_SECONDS) for process in running]
    assert [process.returncode for process in running] == [0, 0], output
    assert "final test accuracy" in output[0][0]


def test_the_script_that_was_written_for_gloo():
    port = ranks.free_port()
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={port}",
               str(EXAMPLES / "mnist_style.py")]
    done = subprocess.run(command, env=ranks.environment(), capture_output=True, text=True, timeout=ranks.DEADLINE_SECONDS)
    assert done.returncode == 0, done.stderr
    accuracy = float(done.stdout.split("test accuracy ")[1].split()[0])
    assert accuracy > 90
