"""Lists the peers that `./dev bench` compares, with the commands that start their ranks.

For every peer, ranks are not pinned, and there may be more ranks than cores. tutti runs with its defaults, except for
the choice of transports. A new peer needs one function and one line in PEERS.
"""
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from results import COLLECTIVES


@dataclass(frozen=True)
class Place:
    """Names two folders: one with the programs of a launch (build/<preset>/bin), and one where the launch may keep
    files."""

    programs: Path
    scratch: Path


# A `Commands` function takes the place, the number of ranks and the arguments of the benchmark. It returns the commands
# to start together.
Commands = Callable[[Place, int, list], list]


@dataclass(frozen=True)
class Peer:
    name: str
    program: str  # in bin/perf
    commands: Commands
    environment: dict = field(default_factory=dict)
    collectives: tuple = tuple(COLLECTIVES)
    spins: bool = False  # never yields while it waits; with more ranks than cores, the scheduler decides its speed


def _tutti(place, ranks, words):
    return [[str(place.programs / "tutti"), "run", "-n", str(ranks), "--", str(place.programs / "perf/tutti"), *words]]


def _registered(place, ranks, words):
    return _tutti(place, ranks, [*words, "--registered=1"])


def _gloo(place, ranks, words):
    program = str(place.programs / "perf/gloo")
    return [[program, f"--rank={r}", f"--size={ranks}", f"--store={place.scratch}", *words] for r in range(ranks)]


def _openmpi(*options):
    def commands(place, ranks, words):
        start = ["mpirun.openmpi", "-np", str(ranks), "--oversubscribe", "--bind-to", "none"]
        start += ["--mca", "mpi_yield_when_idle", "1", *options]
        return [[*start, str(place.programs / "perf/openmpi"), *words]]

    return commands


def _mpich(place, ranks, words):
    start = ["mpirun.mpich", "-bind-to", "none", "-np", str(ranks)]
    return [[*start, str(place.programs / "perf/mpich"), *words]]


AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Debian's MPICH uses UCX, so UCX's variable chooses the transport. NOLOCAL turns off special collectives for ranks of
# one host.
MPICH_TCP = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}

PEERS = {
    peer.name: peer
    for peer in (
        Peer("tutti", "tutti", _tutti),
        Peer("tutti-tcp", "tutti", _tutti, {"TUTTI_TRANSPORTS": "tcp"}),
        # This peer is tutti on memory from Communicator::allocate.
        Peer("tutti-registered", "tutti", _registered, collectives=("all_reduce",)),
        Peer("gloo", "gloo", _gloo),
        Peer("openmpi", "openmpi", _openmpi(), AS_ROOT),
        Peer("openmpi-tcp", "openmpi", _openmpi("--mca", "pml", "ob1", "--mca", "btl", "tcp,self"), AS_ROOT),
        Peer("mpich", "mpich", _mpich, spins=True),
        Peer("mpich-tcp", "mpich", _mpich, MPICH_TCP, spins=True),
    )
}


def installed(place):
    """Returns the names of the peers whose programs were built."""
    return [name for name, peer in PEERS.items() if os.access(place.programs / "perf" / peer.program, os.X_OK)]
