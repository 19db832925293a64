"""Teaches a network to read digits with DistributedDataParallel: gradients are added up, bucket by bucket, while the
rest of them is still computed.

    tutti run -n 4 -- python ddp_digits.py
    torchrun --nproc-per-node 4 ddp_digits.py --backend gloo
"""
import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import digits
import tutti.torch  # noqa: F401  registers the backend "tutti"


def train(epochs):
    """The mean loss of the last epoch over all ranks, and the accuracy on images never seen before."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    (images, labels), (test_images, test_labels) = digits.load()
    # Small buckets, so that there are several in flight.
    model = DistributedDataParallel(digits.network(), bucket_cap_mb=0.02)
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
