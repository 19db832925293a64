#!/usr/bin/env python3
"""Measures collectives over TCP on this machine and compares them with what the simulator predicts.

Each combination of collective, size and number of ranks is measured in several rounds. The lowest median of all rounds
counts, since predictions do not include other load on the machine. Prints what `tutti explain --validate --measure`
says about these times.
"""
import argparse
import csv
import pathlib
import subprocess
import sys
import tempfile

COLLECTIVES = ["all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"]


def measure(tutti, ranks, options, file):
    subprocess.run([tutti, "bench", *COLLECTIVES, "-n", str(ranks), "--transport", "tcp", "--min-bytes", "8",
                    "--max-bytes", options.max_bytes, "--factor", "8", "--budget-ms", str(options.budget_ms),
                    "--csv", file],
                   check=True, stdout=subprocess.DEVNULL)
    with open(file, encoding="utf-8") as table:
        return list(csv.DictReader(table))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tutti", help="the command, of a release build")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--max-bytes", default="16M")
    parser.add_argument("--budget-ms", type=int, default=40)
    options = parser.parse_args()
    quickest = {}
    with tempfile.TemporaryDirectory() as folder:
        file = str(pathlib.Path(folder) / "results.csv")
        for _ in range(options.rounds):
            for ranks in options.ranks:
                for row in measure(options.tutti, ranks, options, file):
                    key = row["collective"], row["bytes"], row["ranks"]
                    if key not in quickest or float(row["lat_us_median"]) < float(quickest[key]["lat_us_median"]):
                        quickest[key] = row
        with open(file, "w", encoding="utf-8", newline="") as table:
            writer = csv.DictWriter(table, fieldnames=next(iter(quickest.values())).keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(quickest.values())
        return subprocess.run([options.tutti, "explain", "--validate", file, "--measure"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
