"""The examples share this module: the handwritten digits of examples/data as tensors, a network,
and its training."""
import argparse
from pathlib import Path

import torch
import torch.distributed as dist

FILE = Path(__file__).resolve().parent.parent / "data" / "digits.csv"


def load():
    """Returns two pairs (images, labels): for training and for the test. Every fifth image is for the test.

    Images have 8 by 8 grey values, from 0 to 1.
    """
    rows = torch.tensor([[int(word) for word in line.split(",")] for line in FILE.read_text().split()])
    images, labels = rows[:, :64].float() / 16, rows[:, 64]
    test = torch.arange(len(rows)) % 5 == 4
    return (images[~test], labels[~test]), (images[test], labels[test])


def batches(images, labels, size, epoch, rank, ranks):
    """Yields this rank's share of each batch of an epoch. The order of the images is the same on all ranks."""
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
    for batch in order[:len(order) // size * size].view(-1, size):
        share = batch.view(ranks, -1)[rank]
        yield images[share], labels[share]


def network():
    """Returns a network with the same weights on every rank."""
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64), torch.nn.ReLU(),
                               torch.nn.Linear(64, 10))


def train(model, epochs):
    """Trains the model, which exchanges the gradients itself. Returns the mean loss of all ranks in the last epoch, and
    the accuracy on the test images."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    (images, labels), (test_images, test_labels) = load()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        losses = []
        for share, expected in batches(images, labels, 64, epoch, rank, ranks):
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


def options():
    """Reads the command line. The launcher's variables replace --rank, --world-size and
    --init-method if these are missing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, default=-1)
    parser.add_argument("--world-size", type=int, default=-1)
    parser.add_argument("--init-method", help="env://, tcp://host:port, file:///path or mpi://")
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--epochs", type=int, default=15)
    return parser.parse_args()


def meet(options):
    dist.init_process_group(options.backend, init_method=options.init_method, rank=options.rank,
                            world_size=options.world_size)


def report(loss, accuracy):
    if dist.get_rank() == 0:
        print(f"final training loss {loss:.6f}\nfinal test accuracy {100 * accuracy:.2f} %")
