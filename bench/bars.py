"""Lists all bars: upper limits for the results. A ratio is tutti's time divided by a peer's time in the same round."""
from dataclasses import dataclass

from results import Cell

KI, MI = 1 << 10, 1 << 20


@dataclass(frozen=True)
class SizeClass:
    name: str
    least: int
    most: int

    def has(self, cell):
        return self.least <= cell.bytes <= self.most


SMALL = SizeClass("≤ 1 KiB", 0, KI)
MEDIUM = SizeClass("64 KiB", 64 * KI, 64 * KI)
LARGE = SizeClass("≥ 1 MiB", MI, 1 << 62)
SIZE_CLASSES = (SMALL, MEDIUM, LARGE)


@dataclass(frozen=True)
class Mean:
    """Limits the geometric mean of the ratios over all cells of a size class. A cell is one collective at one number of
    ranks and one size."""

    ours: str
    peer: str
    size_class: SizeClass
    bar: float


@dataclass(frozen=True)
class Cells:
    """Limits the ratio to each peer in each cell. At least `share` of these ratios must not exceed the bar."""

    ours: str
    peers: tuple
    bar: float
    share: float = 1.0


@dataclass(frozen=True)
class One:
    """Limits the ratio in a single cell. In each round, tutti is compared with the fastest of the peers."""

    ours: str
    peers: tuple
    cell: Cell
    bar: float


LARGEST_ALL_REDUCE = Cell("all_reduce", 2, 64 * MI)
SMALL_ALL_REDUCE = Cell("all_reduce", 2, 8)

BARS = (
    Mean("tutti-tcp", "gloo", SMALL, 0.25),
    Mean("tutti-tcp", "gloo", MEDIUM, 0.4),
    Mean("tutti-tcp", "gloo", LARGE, 0.75),
    Cells("tutti-tcp", ("gloo",), 1.0),
    Mean("tutti", "gloo", SMALL, 0.02),
    Mean("tutti", "gloo", MEDIUM, 0.12),
    Mean("tutti", "gloo", LARGE, 0.5),
    Cells("tutti", ("gloo",), 1.0),
    Cells("tutti-tcp", ("openmpi-tcp", "mpich-tcp"), 1.0, share=0.9),
    Cells("tutti-tcp", ("openmpi-tcp", "mpich-tcp"), 2.0),
    Cells("tutti", ("openmpi", "mpich"), 1.0, share=0.9),
    Cells("tutti", ("openmpi", "mpich"), 2.0),
    One("tutti", ("gloo", "openmpi", "mpich", "openmpi-tcp", "mpich-tcp"), LARGEST_ALL_REDUCE, 0.5),
    One("tutti-registered", ("limit: two threads",), LARGEST_ALL_REDUCE, 1 / 0.8),
    One("tutti", ("limit: cache line",), SMALL_ALL_REDUCE, 2.5),
)

# The bars for ranks on several hosts (`./dev bench --hosts`).
HOST_BARS = (
    Cells("tutti", ("openmpi",), 1.0, share=0.9),
    Cells("tutti", ("openmpi",), 1.5),
    Cells("tutti", ("gloo",), 1.0),
    Cells("tutti", ("tutti-two-level",), 1.0),  # the chosen algorithm must not be slower
)


STEP_NS = 60  # the most nanoseconds that the executor may add to the work of a step


@dataclass(frozen=True)
class Ideal:
    """Names a lower limit for the time of a cell on this machine. perf_limits measures this limit, and the evaluation
    treats it like the time of a peer."""

    name: str
    ours: tuple  # the variants of tutti that are compared with this limit
    cell: Cell
    metric: str  # a metric of perf_limits: a time in us, or a rate in GB/s for the cell's bytes


IDEALS = (
    Ideal("limit: two threads", ("tutti", "tutti-registered"), LARGEST_ALL_REDUCE, "all_reduce_64MiB_2threads"),
    Ideal("limit: cache line", ("tutti",), SMALL_ALL_REDUCE, "cache_line_pingpong"),
    Ideal("limit: cache lines exchanged", ("tutti",), SMALL_ALL_REDUCE, "cache_line_exchange"),
    Ideal("limit: cache line", ("tutti",), Cell("pingpong", 2, 8), "cache_line_pingpong"),
    Ideal("limit: memcpy", ("tutti",), Cell("pingpong", 2, 64 * MI), "memcpy_64MiB"),
    Ideal("limit: memcpy", ("tutti",), Cell("broadcast", 2, 64 * MI), "memcpy_64MiB"),
    Ideal("limit: TCP round trip", ("tutti-tcp",), Cell("pingpong", 2, 8), "tcp_pingpong_polling"),
    Ideal("limit: TCP round trip", ("tutti-tcp",), SMALL_ALL_REDUCE, "tcp_pingpong_polling"),
    Ideal("limit: TCP stream", ("tutti-tcp",), Cell("pingpong", 2, 64 * MI), "tcp_stream"),
    Ideal("limit: TCP stream, reno", ("tutti-tcp",), Cell("pingpong", 2, 64 * MI), "tcp_stream_reno"),
)

# A peer that spins without yielding may wait for the scheduler instead of data if there are more
# ranks than cores. Its time is left out if it exceeds two limits: a time slice (STALL_US), and
# STALL_FACTOR times the time of the round's fastest peer.
STALL_FACTOR = 20
STALL_US = 2000
