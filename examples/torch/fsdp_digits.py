"""Does the same as ddp_digits.py, but with fully sharded data parallelism. No rank holds the whole network. Layers are
gathered when they are needed, and gradients are added up and scattered (reduce_scatter).

    tutti run -n 4 -- python fsdp_digits.py
"""
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import digits
import tutti.torch  # noqa: F401  registers the backend "tutti"


def train(epochs):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = digits.network()
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return digits.train(model, epochs)


if __name__ == "__main__":
    options = digits.options()
    digits.meet(options)
    digits.report(*train(options.epochs))
    dist.destroy_process_group()
