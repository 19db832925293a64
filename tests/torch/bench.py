"""Measures all_reduce through torch.distributed, on tutti and on Gloo. `./dev bench --torch` runs this
script.

Both backends run in the same ranks and take turns, batch by batch. So a change of the machine's speed affects
both backends. The cost of the binding is measured in rounds that alternate with `tutti bench`.
"""
import argparse
import csv
import multiprocessing
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

import tutti.torch  # noqa: F401  registers the backend

BACKENDS = ("tutti", "gloo")
SMALL = 8


def sizes(largest):
    """Yields 4, 8, 64, 512, ... bytes, and finally `largest`."""
    size, last = 4, 0
    while size <= largest:
        yield size
        last = size
        size *= 2 if size == 4 else 8
    if last < largest:
        yield largest


def batch(tensor, group, count):
    """Returns the seconds that one operation takes, as the mean of a batch."""
    began = time.perf_counter()
    for _ in range(count):
        dist.all_reduce(tensor, group=group)
    return (time.perf_counter() - began) / count


def measure(groups, size, rounds, budget):
    """Maps each backend to the seconds of one operation on the slowest rank, in each round."""
    tensor = torch.zeros(size // 4)
    counts, times = {}, {name: [] for name in groups}
    for name, group in groups.items():
        batch(tensor, group, 5)
        once = torch.tensor([batch(tensor, group, 5)])
        dist.broadcast(once, 0)  # all ranks must run the same number of operations
        counts[name] = max(1, min(2000, int(budget / once.item())))
    names = list(groups)
    for turn in range(rounds):
        for name in names if turn % 2 else reversed(names):
            dist.barrier()
            batch(tensor, groups[name], 1 + counts[name] // 10)
            slowest = torch.tensor([batch(tensor, groups[name], counts[name])], dtype=torch.float64)
            dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
            times[name].append(slowest.item())
    return times


def rank_main(rank, ranks, folder, all_sizes, rounds, budget, pipe):
    torch.set_num_threads(1)
    dist.init_process_group("tutti", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    for size in all_sizes:
        times = measure(groups, size, rounds, budget)
        if rank == 0:
            pipe.send((size, times))
    dist.destroy_process_group()


def launch(ranks, all_sizes, rounds, budget):
    """Maps each size and backend to the seconds of one operation in each round."""
    fork = multiprocessing.get_context("fork")
    pipe, theirs = fork.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        processes = [fork.Process(target=rank_main, args=(rank, ranks, folder, all_sizes, rounds, budget, theirs))
                     for rank in range(ranks)]
        for process in processes:
            process.start()
        theirs.close()
        figures = {}
        for _ in all_sizes:
            size, figures[size] = pipe.recv()
            print(".", end="", file=sys.stderr, flush=True)
        for process in processes:
            process.join()
    return figures


def from_cpp(program, ranks):
    """Returns the seconds that a small all_reduce takes in C++, as the median of some batches."""
    with tempfile.NamedTemporaryFile("r") as table:
        subprocess.run([program, "bench", "-n", str(ranks), "all_reduce", "--min-bytes", str(SMALL), "--max-bytes",
                        str(SMALL), "--budget-ms", "30", "--csv", table.name], check=True, stdout=subprocess.DEVNULL)
        (row,) = csv.DictReader(table)
    return float(row["lat_us_median"]) / 1e6


def quartiles(values):
    return statistics.median(values), *(statistics.quantiles(values, n=4, method="inclusive")[::2] if len(values) > 1 else values * 2)


def report(ranks, figures):
    print(f"\n{ranks} ranks\n\n| bytes | tutti, us | Gloo, us | ratio | quartiles |\n|---|---|---|---|---|")
    for size, times in figures.items():
        ratio, low, high = quartiles([ours / theirs for ours, theirs in zip(times["tutti"], times["gloo"])])
        ours, theirs = (1e6 * statistics.median(times[name]) for name in BACKENDS)
        print(f"| {size} | {ours:.1f} | {theirs:.1f} | {ratio:.2f} | {low:.2f} to {high:.2f} |")


def report_added(program, ranks, rounds):
    """Prints the time that torch and the binding add. Compares only the fastest rounds, to exclude
    other load."""
    cpp, through_torch = [], []
    for _ in range(rounds):
        cpp.append(from_cpp(program, ranks))
        through_torch.append(statistics.median(launch(ranks, [SMALL], 15, 0.002)[SMALL]["tutti"]))
    best, best_cpp = 1e6 * min(through_torch), 1e6 * min(cpp)
    print(f"\n{SMALL} bytes, {ranks} ranks, quietest of {rounds} rounds: {best:.1f} us through torch, {best_cpp:.1f} us from "
          f"C++: torch and the binding add {best - best_cpp:.1f} us")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench --torch", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--largest", type=int, default=64 << 20, help="bytes")
    parser.add_argument("--budget-ms", type=float, default=30, help="measuring time for each batch")
    parser.add_argument("--program", type=Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    # Without a token, each rank would warn that strangers can connect to it.
    os.environ.setdefault("TUTTI_TOKEN", secrets.token_hex(32))
    budget = options.budget_ms / 1000
    worlds = [int(word) for word in options.ranks.split(",")]
    for ranks in worlds:
        report(ranks, launch(ranks, list(sizes(options.largest)), options.rounds, budget))
    # A single rank waits for no other rank, so its difference measures only torch and the binding.
    for ranks in [1, *worlds]:
        report_added(options.program, ranks, options.rounds)


if __name__ == "__main__":
    main()
