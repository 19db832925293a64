"""Trains small models on CUDA devices, with DDP and with FSDP2, and compares them with training in one process on the host."""
import torch
import torch.distributed as dist


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))


def batch(step):
    numbers = torch.Generator().manual_seed(step)
    return torch.randn(24, 16, generator=numbers), torch.randn(24, 4, generator=numbers)


def train(model, part, put=lambda tensor: tensor):
    """Trains the model on a few batches, and returns its weights. `part` selects this rank's part of a
    batch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(5):
        inputs, targets = (put(part(tensor)) for tensor in batch(step))
        optimizer.zero_grad()
        (model(inputs) - targets).pow(2).mean().backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


def check(rank, size, put, model):
    """Trains a data-parallel model that starts with the weights of `network()`, and compares it with training
    in one process."""
    weights = train(model, lambda tensor: tensor.chunk(size)[rank], put)
    expected = train(network(), lambda tensor: tensor)
    for there, here in zip(weights, expected):
        whole = there.full_tensor() if hasattr(there, "full_tensor") else there
        assert whole.is_cuda
        torch.testing.assert_close(whole.cpu(), here, rtol=1e-4, atol=1e-5)


def trains_with_ddp(rank, size, put):
    model = network()._apply(put)
    check(rank, size, put, torch.nn.parallel.DistributedDataParallel(model, device_ids=[torch.cuda.current_device()]))


def trains_with_fsdp2(rank, size, put):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = network()._apply(put)
    mesh = init_device_mesh("cuda", (size,))
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    check(rank, size, put, fully_shard(model, mesh=mesh))


TRAININGS = [trains_with_ddp, trains_with_fsdp2]
