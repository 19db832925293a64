"""Gives ranks CUDA tensors, over a fake of CUDA. fake_device.cc connects the fake to torch.

The host cannot access the memory of the fake's devices, and streams work as with CUDA.
"""
import contextlib
import importlib.util
import os
from datetime import timedelta

import pytest
import ranks
import torch

LIBRARIES = {"nccl": "nccl,tcp", "staged": "tcp"}
LIMIT = timedelta(seconds=ranks.DEADLINE_SECONDS)

_spec = importlib.util.spec_from_file_location("fake_device", os.environ["FAKE_DEVICE"])
fake = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fake)


@pytest.fixture(params=LIBRARIES, autouse=True)
def library(request, monkeypatch):
    """Runs each test over NCCL (a fake), and over copies through the host."""
    for name, value in {"TUTTI_TRANSPORTS": LIBRARIES[request.param], "TUTTI_SOCKET_IFNAME": "lo",
                        "TUTTI_CUDA_LIBRARY": os.environ["FAKE_CUDA"], "TUTTI_NCCL_LIBRARY": os.environ["FAKE_NCCL"]}.items():
        monkeypatch.setenv(name, value)


def run(size, function, *arguments, **options):
    return ranks.run(size, with_devices, function, *arguments, **options)


def with_devices(rank, size, function, *arguments):
    """Gives each rank the device with its number. `function` gets a function that moves a tensor to
    this device."""
    fake.start(size)
    _pretend(rank, size)
    return function(rank, size, lambda tensor: fake.to_device(tensor, rank), *arguments)


@contextlib.contextmanager
def held(rank):
    """Keeps the current stream of this rank's device busy."""
    hold = fake.hold(rank)
    try:
        yield
    finally:
        fake.release(hold)


@contextlib.contextmanager
def in_stream(rank, stream):
    """Makes a stream the current stream. Stream 0 is the default stream."""
    before = fake.use_stream(rank, stream)
    try:
        yield stream
    finally:
        fake.use_stream(rank, before)


def other_stream(rank):
    return in_stream(rank, fake.new_stream(rank))


def full(value, count=1000):
    return torch.full((count,), float(value))


class _Stream(torch.Stream):
    def __new__(cls, device=None, priority=0):
        return super().__new__(cls, "cuda", priority=priority)


class _Event(torch.Event):
    def __new__(cls, **options):
        return super().__new__(cls, "cuda", **options)


def _pretend(device, count):
    """Makes torch.cuda work on the fake's devices. In torch's build for CPUs, torch.cuda lacks its
    functions."""
    cuda = torch.cuda
    fake.set_device(device)
    cuda._lazy_init = lambda: None
    cuda.is_initialized = lambda: True
    cuda.device_count = lambda: count
    cuda.current_device = lambda: device
    cuda.set_device = fake.set_device
    cuda.get_device_capability = lambda device: (9, 0)
    cuda.current_stream = lambda device=None: torch.accelerator.current_stream()
    cuda.stream = lambda stream: contextlib.nullcontext() if stream is None else stream
    cuda.Stream, cuda.Event = _Stream, _Event
    resize = torch.UntypedStorage.resize_

    def resize_on_device(storage, size):
        if storage.device.type != "cuda":
            return resize(storage, size)
        fake.replace_storage(storage, size)
        return storage

    torch.UntypedStorage.resize_ = resize_on_device
