"""Reads and writes the results: rows of CSV, appended after each launch so that an interrupted run can continue."""
import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

COLUMNS = ["peer", "collective", "bytes", "ranks", "lat_us_median", "lat_us_p99", "algbw_GBps", "busbw_GBps",
           "lat_us_min", "batches", "ops", "round", "others_pct"]
LIMIT_COLUMNS = ["metric", "value", "unit", "round", "others_pct"]
STALLED = "stalled"  # the value of lat_us_median if the launch stalled
COLLECTIVES = ["barrier", "broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "gather",
               "scatter", "pingpong"]


@dataclass(frozen=True, order=True)
class Cell:
    collective: str
    ranks: int
    bytes: int

    def __str__(self):
        size = f" of {human(self.bytes)}" if self.collective != "barrier" else ""
        return f"{self.collective}{size}, {self.ranks} ranks"


def human(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


def bytes_of(size):
    """Converts "64K" to 65536."""
    return int(size[:-1]) << {"K": 10, "M": 20}[size[-1]] if size[-1] in "KM" else int(size)


def cells(collectives, sizes, ranks):
    """Returns the cells that a launch measures, in the order of the harness."""
    found = []
    for collective in (name for name in COLLECTIVES if name in collectives):
        if collective == "barrier":
            found.append(Cell(collective, ranks, 0))
        elif collective != "pingpong" or ranks == 2:
            found += [Cell(collective, ranks, size) for size in sizes]
    return found


def append(path, columns, rows):
    new = not path.exists()
    with open(path, "a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(columns)
        writer.writerows(rows)


def read(path):
    if not Path(path).exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def times(rows, column="lat_us_median"):
    """Maps cell, peer and round to microseconds, which are infinite if the launch stalled."""
    found = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        cell = Cell(row["collective"], int(row["ranks"]), int(row["bytes"]))
        stalled = row["lat_us_median"] == STALLED
        found[cell][row["peer"]][int(row["round"])] = float("inf") if stalled else float(row[column])
    return found


def limits(rows, best=False):
    """Maps metric and round to a value. With `best`, every round gets the value of the best round."""
    found, units = defaultdict(dict), {}
    for row in rows:
        found[row["metric"]][int(row["round"])] = float(row["value"])
        units[row["metric"]] = row["unit"]
    if best:
        for metric, by_round in found.items():
            value = min(by_round.values()) if units[metric] == "us" else max(by_round.values())
            found[metric] = dict.fromkeys(by_round, value)
    return found
