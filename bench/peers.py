"""Lists the peers that `./dev bench` compares, with the commands that start their ranks.

For every peer, ranks are not pinned, and there may be more ranks than cores. Some peers are tutti with a chosen
transport, a chosen algorithm or registered memory; otherwise tutti runs with its defaults. A new peer needs one
function and one line in PEERS, or in HOST_PEERS if its ranks run on several hosts.
"""
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from results import COLLECTIVES


@dataclass(frozen=True)
class Place:
    """Says where a launch runs. It names two folders: the folder of the programs
    (build/<preset>/bin), and a folder for files of the launch."""

    programs: Path
    scratch: Path
    network: object = None  # the NetworkHosts on which the ranks run; None if they run on this machine itself
    ranks_per_host: int = 0

    def address_of(self, rank):
        return self.network.address(rank // self.ranks_per_host)

    def hosts(self, ranks):
        """Returns the hosts for this number of ranks, in the form that `tutti run` and mpirun
        know."""
        return self.network.hosts_with_slots(ranks // self.ranks_per_host, self.ranks_per_host)

    def on_host_of(self, rank, command):
        return self.network.on(rank // self.ranks_per_host, command)


# A `Commands` function takes the place, the number of ranks and the arguments of the benchmark. It returns the commands
# to start together.
Commands = Callable[[Place, int, list], list]


@dataclass(frozen=True)
class Peer:
    name: str
    program: str  # the name of the program in bin/perf
    commands: Commands
    environment: dict = field(default_factory=dict)
    collectives: tuple = tuple(COLLECTIVES)
    # True if the peer never yields while it waits. With more ranks than cores, the scheduler then decides how
    # fast the peer is.
    spins: bool = False


def _tutti(place, ranks, words):
    return [[str(place.programs / "tutti"), "run", "-n", str(ranks), "--", str(place.programs / "perf/tutti"), *words]]


def _registered(place, ranks, words):
    return _tutti(place, ranks, [*words, "--registered=1"])


def _gloo(place, ranks, words):
    program = str(place.programs / "perf/gloo")
    return [[program, f"--rank={r}", f"--size={ranks}", f"--store={place.scratch}", *words] for r in range(ranks)]


MPIRUN = ["mpirun.openmpi", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]


def _openmpi(*options):
    def commands(place, ranks, words):
        return [[*MPIRUN, "-np", str(ranks), "--oversubscribe", *options, str(place.programs / "perf/openmpi"), *words]]

    return commands


def _mpich(place, ranks, words):
    start = ["mpirun.mpich", "-bind-to", "none", "-np", str(ranks)]
    return [[*start, str(place.programs / "perf/mpich"), *words]]


def _tutti_on_hosts(place, ranks, words):
    program = str(place.programs / "perf/tutti")
    start = [str(place.programs / "tutti"), "run", "-H", place.hosts(ranks), "--agent", place.network.agent(), "--"]
    return [place.on_host_of(0, [*start, program, *words])]


def _gloo_on_hosts(place, ranks, words):
    return [place.on_host_of(rank, [*command, f"--address={place.address_of(rank)}"])
            for rank, command in enumerate(_gloo(place, ranks, words))]


def _openmpi_on_hosts(place, ranks, words):
    """Uses shared memory within a host and TCP between hosts. mpirun's helpers on the hosts stay
    children of mpirun, so that their processor time counts for this launch."""
    start = [*MPIRUN, "-np", str(ranks), "--host", place.hosts(ranks), "--leave-session-attached",
             "--mca", "plm_rsh_agent", place.network.agent(), "--mca", "pml", "ob1", "--mca", "btl", "vader,tcp,self"]
    return [place.on_host_of(0, [*start, str(place.programs / "perf/openmpi"), *words])]


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

# The ranks of these peers run on several hosts.
HOST_PEERS = {
    peer.name: peer
    for peer in (
        Peer("tutti", "tutti", _tutti_on_hosts),
        # This peer shows whether tutti chooses the algorithm `two_level` where it is the fastest.
        Peer("tutti-two-level", "tutti", _tutti_on_hosts, {"TUTTI_ALGORITHM": "all_reduce:two_level"}, ("all_reduce",)),
        Peer("gloo", "gloo", _gloo_on_hosts),
        Peer("openmpi", "openmpi", _openmpi_on_hosts, AS_ROOT),
    )
}


def installed(programs, peers):
    """Returns the names of the peers whose programs were built."""
    return [name for name, peer in peers.items() if os.access(programs / "perf" / peer.program, os.X_OK)]
