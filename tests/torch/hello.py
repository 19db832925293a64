"""Computes the sum of rank + 1 over all ranks: hello.py [INIT_METHOD RANK WORLD_SIZE]"""
import sys

import torch
import torch.distributed as dist

import tutti.torch  # noqa: F401  registers the backend

method, rank, size = (sys.argv[1:] + [None, -1, -1])[:3]
if method in (None, "env://"):
    dist.init_process_group("tutti", init_method=method)
else:
    dist.init_process_group("tutti", init_method=method, rank=int(rank), world_size=int(size))
tensor = torch.tensor(dist.get_rank() + 1.0)
dist.all_reduce(tensor)
# Under torchrun, Python does not buffer output. So `print` would write the end of the line separately, and the
# lines of two ranks would mix. `write` writes the whole line at once.
sys.stdout.write(f"rank {dist.get_rank()} of {dist.get_world_size()}: {tensor.item()}\n")
