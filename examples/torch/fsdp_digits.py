"""The same with fully sharded data parallelism: no rank holds the whole network. Its layers are gathered when they are
needed, and gradients are scattered as they are added up.

    tutti run -n 4 -- python fsdp_digits.py
"""
import argparse

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import digits
import tutti.torch  # noqa: F401  registers the backend "tutti"


def train(epochs):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    (images, labels), (test_images, test_labels) = digits.load()
    mesh = init_device_mesh("cpu", (ranks,))
    model = digits.network()
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        losses = []
        for share, expected in digits.batches(images, labels, 64, epoch, rank, ranks):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(share), expected)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        mean = torch.stack(losses).mean()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        if rank == 0 and (epoch + 1) % 5 == 0:
            print(f"epoch {epoch + 1}: loss {mean.item():.4f}", flush=True)
    with torch.no_grad():
        accuracy = (model(test_images).argmax(1) == test_labels).float().mean()
    return mean.item(), accuracy.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--epochs", type=int, default=15)
    options = parser.parse_args()
    dist.init_process_group(options.backend)
    loss, accuracy = train(options.epochs)
    if dist.get_rank() == 0:
        print(f"final training loss {loss:.6f}\nfinal test accuracy {100 * accuracy:.2f} %")
    dist.destroy_process_group()
