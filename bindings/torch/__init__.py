"""Registers tutti as the backend "tutti" of torch.distributed when it is imported.

    import tutti.torch
    torch.distributed.init_process_group("tutti")
"""
import atexit

import torch.distributed as _dist

from tutti import _load_nccl

from ._load import load as _load

_C = _load()


def _create(options, backend_options):
    _load_nccl()
    return _C.create(options.store, options.group_rank, options.group_size, options.timeout, options.global_ranks_in_group)


# `leave` tells the other ranks that this rank has left, if a program ends without
# destroy_process_group. Otherwise they would count it as lost.
atexit.register(_C.leave)
if "tutti" not in _dist.Backend.backend_list:
    _dist.Backend.register_backend("tutti", _create, extended_api=True, devices=["cpu", "cuda"])
