"""Runs a function on several ranks, each in a forked process, and returns the result of each rank."""
import multiprocessing
import os
import tempfile
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

import tutti.torch  # noqa: F401  registers the backend

# The limit is generous, so that only a hang makes a test fail, and not a slow machine.
DEADLINE_SECONDS = 600


class RankFailed(AssertionError):
    pass


def _rank(function, rank, size, folder, backend, timeout, arguments, pipe):
    torch.set_num_threads(1)
    try:
        if backend is not None:
            dist.init_process_group(backend, init_method=f"file://{folder}/store", rank=rank, world_size=size,
                                    timeout=timedelta(seconds=timeout))
        pipe.send((True, function(rank, size, *arguments)))
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:
        pipe.send((False, traceback.format_exc()))


def start(size, function, *arguments, backend="tutti", timeout=60):
    """Starts a process for each rank. Returns the processes, and a pipe for the result of each
    process."""
    fork = multiprocessing.get_context("fork")
    folder = tempfile.mkdtemp()
    processes, pipes = [], []
    for rank in range(size):
        pipe, theirs = fork.Pipe()
        process = fork.Process(target=_rank, args=(function, rank, size, folder, backend, timeout, arguments, theirs))
        process.start()
        theirs.close()
        processes.append(process)
        pipes.append(pipe)
    return processes, pipes


def results(processes, pipes, expected=None):
    """Returns the results of the ranks in `expected` (default: all), or raises an error with a failed rank's traceback."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    outcomes, problem = {}, None
    for rank in expected if expected is not None else range(len(processes)):
        try:
            if not pipes[rank].poll(max(0, deadline - time.monotonic())):
                raise RankFailed(f"rank {rank} has not answered within {DEADLINE_SECONDS} s")
            ok, outcomes[rank] = pipes[rank].recv()
            if not ok:
                problem = problem or f"rank {rank}:\n{outcomes[rank]}"
        except EOFError:
            problem = problem or f"rank {rank} died"
        if problem is not None:
            break
    for process in processes:
        if problem is None and expected is None:
            process.join(max(0, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
        process.join()
    if problem is not None:
        raise RankFailed(problem)
    return outcomes


def run(size, function, *arguments, **options):
    return results(*start(size, function, *arguments, **options))


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(**changes):
    """Returns the environment for a new program: that of this process, with one OpenMP thread and `changes`."""
    return {**os.environ, "OMP_NUM_THREADS": "1", **changes}
