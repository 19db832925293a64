"""The handwritten digits of examples/data, as tensors."""
from pathlib import Path

import torch

FILE = Path(__file__).resolve().parent.parent / "data" / "digits.csv"


def load():
    """(images, labels) to learn from and to test with; images are 8 by 8, from 0 to 1. Every fifth is for the test."""
    rows = torch.tensor([[int(word) for word in line.split(",")] for line in FILE.read_text().split()])
    images, labels = rows[:, :64].float() / 16, rows[:, 64]
    test = torch.arange(len(rows)) % 5 == 4
    return (images[~test], labels[~test]), (images[test], labels[test])


def batches(images, labels, size, epoch, rank, ranks):
    """This rank's share of each batch of an epoch; the order is the same on all ranks."""
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
    for batch in order[:len(order) // size * size].view(-1, size):
        share = batch.view(ranks, -1)[rank]
        yield images[share], labels[share]


def network():
    """The same weights on every rank."""
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64), torch.nn.ReLU(),
                               torch.nn.Linear(64, 10))
