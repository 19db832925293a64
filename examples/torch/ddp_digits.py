"""Trains a network that reads digits. The training uses DistributedDataParallel, which adds up the
gradients of one bucket while the gradients of other buckets are still being computed.

    tutti run -n 4 -- python ddp_digits.py
    torchrun --nproc-per-node 4 ddp_digits.py --backend gloo
"""
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import digits
import tutti.torch  # noqa: F401  registers the backend "tutti"


def train(epochs):
    # The buckets are small, so that several are in flight at the same time.
    model = DistributedDataParallel(digits.network(), bucket_cap_mb=0.02)
    return digits.train(model, epochs)


if __name__ == "__main__":
    options = digits.options()
    digits.meet(options)
    digits.report(*train(options.epochs))
    dist.destroy_process_group()
