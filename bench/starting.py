#!/usr/bin/env python3
"""Measures how long ranks take to start: from the start of `tutti run` until the last rank's `init` has ended.

    bench/starting.py build/release/bin                      1 to 256 ranks on this machine
    bench/starting.py build/release/bin --hosts 8            64 ranks here, and 8 ranks on each of 8 hosts, in turn

For each number of ranks it also counts the connections that the ranks have after `init`, and the requests that they
have made to the store. --hosts makes hosts as `./dev bench --hosts` does (bench/hosts.py), and compares the start of
the same number of ranks on them and on this machine alone. The launcher reaches a host by entering its namespaces, or
by ssh with --ssh.
"""
import argparse
import contextlib
import csv
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import report
from evaluate import estimate, short
from hosts import NetworkHosts
from ssh_servers import SshServers

RANKS = "1,2,4,8,16,32,64,128,256"
LINE = re.compile(r"rank (\d+) began (\d+) met (\d+) tcp (\d+) local (\d+)")
MOST_RATIO = 3.0  # the bar for the start on hosts, compared with the start on one machine


class StartError(Exception):
    pass


class Start:
    """The figures of one start."""

    def __init__(self, begin_ns, output, ranks):
        found = [tuple(map(int, match)) for match in LINE.findall(output)]
        if len(found) != ranks:
            raise StartError(f"{len(found)} of {ranks} ranks have started")
        self.launched_s = (max(began for _, began, *_ in found) - begin_ns) / 1e9  # until the last rank's main
        self.met_s = (max(met for _, _, met, *_ in found) - begin_ns) / 1e9  # until the last rank's init has ended
        self.tcp = [tcp for *_, tcp, _ in found]
        self.local = [local for *_, local in found]


def start(command, ranks, environment=None):
    begin = time.monotonic_ns()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600,
                          env={**os.environ, **(environment or {})})
    try:
        found = Start(begin, done.stdout, ranks)
    except StartError as error:
        raise StartError(f"{' '.join(command)}: {error}\n{done.stderr[-2000:]}") from None
    if done.returncode != 0:  # all ranks have met, but did not end in order
        print(f"starting: {' '.join(command)}: status {done.returncode}\n{done.stderr[:500]}", file=sys.stderr)
    return found


def local_command(programs, ranks):
    return [str(programs / "tutti"), "run", "-n", str(ranks), "--", str(programs / "perf/starting")]


def store_requests(programs, ranks):
    """Returns how many requests the ranks make to the store. They meet at a store that this function serves, since the
    launcher's own store does not tell."""
    with tempfile.TemporaryDirectory() as folder:
        token = Path(folder, "token")
        token.write_text(os.urandom(32).hex())
        token.chmod(0o600)
        environment = {**os.environ, "TUTTI_TOKEN_FILE": str(token)}
        store = subprocess.Popen([str(programs / "tutti"), "store", "--port", "0"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, env=environment)
        try:
            address = re.search(r"serving at (\S+)", store.stdout.readline()).group(1)
            command = local_command(programs, ranks)
            at = command.index("--") + 1
            command[at:at] = ["env", f"TUTTI_STORE={address}"]
            start(command, ranks, environment)
        finally:
            store.terminate()
            rest = store.communicate()[1]
    return int(re.search(r"served (\d+) requests", rest).group(1))


def curve(options):
    """Prints a table with a row for each number of ranks, and writes all figures to a CSV file."""
    found = {ranks: [] for ranks in options.ranks}
    for number in range(options.rounds):
        for ranks in options.ranks:
            found[ranks].append(start(local_command(options.programs, ranks), ranks))
            print(f"starting: round {number + 1}, {ranks} ranks: {found[ranks][-1].met_s:.3f} s", file=sys.stderr)
    rows, plain = [], []
    for ranks, starts in found.items():
        met, launched = estimate(one.met_s for one in starts), estimate(one.launched_s for one in starts)
        requests = store_requests(options.programs, ranks)
        last = starts[-1]
        rows.append([ranks, *[f"{1000 * value:.0f}" for value in (launched.median, met.median, met.low, met.high)],
                     max(last.tcp), sum(last.tcp) // 2, max(last.local), requests, short(requests / ranks)])
        plain.append([ranks, *[f"{one.met_s:.6f}" for one in starts]])
    print(report.table(["ranks", "all run, ms", "all have met, ms", "95 %, from", "to", "TCP connections of a rank",
                        "in total", "local connections of a rank", "requests at the store", "for each rank"], rows))
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(plain)


def across_hosts(options):
    """Compares the start of ranks on several hosts with the start of as many ranks on this machine, in turn."""
    ranks = options.hosts * options.ranks_per_host
    program = [str(options.programs / "perf/starting")]
    here, there = [], []
    with NetworkHosts(options.hosts) as network, contextlib.ExitStack() as stack:
        way = stack.enter_context(SshServers(network)).options() if options.ssh else ["--agent", network.agent()]
        slots = network.hosts_with_slots(options.hosts, options.ranks_per_host)
        run = [str(options.programs / "tutti"), "run", "-H", slots, *way]
        for number in range(options.rounds):
            here.append(start(local_command(options.programs, ranks), ranks).met_s)
            there.append(start(network.on(0, [*run, "--", *program]), ranks).met_s)
            print(f"starting: round {number + 1}, {ranks} ranks here: {here[-1]:.3f} s, on hosts: {there[-1]:.3f} s",
                  file=sys.stderr)
    ratio = estimate(b / a for a, b in zip(here, there))
    verdict = "**fails**" if ratio.above(MOST_RATIO) else "holds"
    print(report.table(["ranks", "here, ms", f"on {options.hosts} hosts, ms", "ratio [95 %]", f"≤ {MOST_RATIO}"],
                       [[ranks, f"{1000 * statistics.median(here):.0f}", f"{1000 * statistics.median(there):.0f}", ratio,
                         verdict]]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path, help="the folder of the programs: build/release/bin")
    parser.add_argument("--ranks", type=lambda text: list(map(int, text.split(","))), default=RANKS,
                        help=f"the numbers of ranks ({RANKS})")
    parser.add_argument("--hosts", type=int, help="compare with so many hosts")
    parser.add_argument("--ranks-per-host", type=int, default=8)
    parser.add_argument("--ssh", action="store_true", help="reach the hosts by ssh: each gets an sshd of its own")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--csv", type=Path, help="write the times of all rounds to this file")
    options = parser.parse_args()
    options.programs = options.programs.resolve()
    print(f"On {report.machine()}.\n")
    if options.hosts:
        across_hosts(options)
    else:
        curve(options)


if __name__ == "__main__":
    main()
