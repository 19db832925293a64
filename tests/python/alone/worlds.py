"""Starts worlds of real processes. Each process runs a program that the test gives as text."""

import os
import socket
import subprocess
import sys

# The limit is generous, so that a test fails if it hangs, but not because the machine is slow.
DEADLINE_SECONDS = 600
# Variables of launchers and of tutti are not inherited, so that a test behaves the same on every
# machine.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("TUTTI_", "OMPI_", "PMI_", "PMIX_", "SLURM_")) and name not in ("RANK", "WORLD_SIZE")
}
ENVIRONMENT.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


def start(program, *arguments, **environment):
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(
        command, env={**ENVIRONMENT, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def places(size):
    """Returns the environment variables of each rank, as a list."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    return [
        {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        for rank in range(size)
    ]


def start_world(size, program, **environment):
    return [start(program, **place, **environment) for place in places(size)]


def finish(process):
    try:
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, out, err
