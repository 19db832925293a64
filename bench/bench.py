"""Measures tutti and its peers (other libraries) in turn, and evaluates the results. `./dev bench` runs this program.

Each round measures everything once. For each group of collectives and each number of ranks the peers take turns (A B C
..., and the next round begins with B). So changes in the machine's speed affect all peers alike. Each launch appends
its rows to results.csv. If a run was interrupted, the next one continues where it stopped, unless the options or the
programs have changed.

With --hosts, the ranks run on hosts that bench/hosts.py makes. Each round then also asks the simulator to predict the
times of tutti that the round has measured. With --starting, this program only measures how long ranks take to start
(bench/starting.py).
"""
import argparse
import contextlib
import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path

import instructions
import launch
import micro
import pages
import peers
import predictions
import publish
import report
import results
import starting
from hosts import NetworkHosts

ROOT = Path(__file__).resolve().parents[1]
# Each group is measured in one launch. Groups are large enough that starting a launch costs little, and small enough
# that peers alternate often.
GROUPS = (("barrier", "all_reduce", "pingpong"), ("broadcast", "reduce", "all_gather"),
          ("reduce_scatter", "all_to_all"), ("gather", "scatter"))
SIZES = "4,8,64,1K,8K,64K,1M,8M,64M"
HOST_SIZES = "8,64,512,4K,32K,256K,2M,16M"
HOST_COLLECTIVES = ["broadcast", "all_reduce", "all_gather", "all_to_all"]


def say(words):
    print(words, file=sys.stderr, flush=True)


def parse(arguments):
    def words(text):
        return text.split(",")

    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="the total number of rounds (10)")
    parser.add_argument("--peers", type=words, default=None, help="the peers to measure (all that are installed)")
    parser.add_argument("--collectives", type=words, help="what to measure (all; with --hosts: "
                        f"{' '.join(HOST_COLLECTIVES)})")
    parser.add_argument("--sizes", type=words, help=f"sizes ({SIZES}; with --hosts: {HOST_SIZES})")
    parser.add_argument("--ranks", type=words, help="numbers of ranks on this machine (2,4; with --starting: "
                        f"{starting.RANKS})")
    parser.add_argument("--hosts", type=words, metavar="H,...", help="measure across H hosts, which are network "
                        "namespaces (this needs root); several values of H are measured in turn. With --starting: "
                        f"the number of hosts ({starting.HOSTS})")
    parser.add_argument("--ranks-per-host", type=int, help="with --hosts: the ranks on each host (2; with --starting: "
                        f"{starting.RANKS_PER_HOST})")
    parser.add_argument("--budget-ms", type=int, default=25, help="measuring time for each figure (25)")
    parser.add_argument("--quick", action="store_true", help="3 rounds of a few sizes, in a minute or two")
    parser.add_argument("--stall-s", type=float, default=15, help="end a launch that prints no line for this long")
    parser.add_argument("--quiet-s", type=float, default=3, help="a launch waits this long at most for a quiet machine (3)")
    parser.add_argument("--fresh", action="store_true", help="start over instead of continuing an earlier run")
    parser.add_argument("--evaluate", action="store_true", help="only evaluate the results of earlier runs")
    parser.add_argument("--micro", nargs="?", const=".", metavar="FILTER",
                        help="run only the microbenchmarks (those that match the pattern)")
    parser.add_argument("--instructions", action="store_true",
                        help="only count the instructions of an all_reduce of 8 bytes, by callgrind")
    parser.add_argument("--starting", action="store_true",
                        help="only measure how long ranks take to start, on this machine and on hosts with an sshd")
    parser.add_argument("--by", choices=("median", "min"), default="median",
                        help="evaluate each launch, and the machine's limits, by the median of the measurements or by "
                             "the best one; choose min on a machine that others use at the same time")
    parser.add_argument("--publish", action="store_true", help="put tables and charts into docs/ and README.md too")
    parser.add_argument("--programs", type=Path, default=ROOT / "build/release/bin", help=argparse.SUPPRESS)
    parser.add_argument("--profiled", type=Path, default=ROOT / "build/profile/bin", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="folder for all output (build/bench; with --hosts: build/bench/hosts; "
                        "with --starting: build/bench/starting)")
    options = parser.parse_args(arguments)
    if options.hosts and options.ranks and not options.starting:
        parser.error("--hosts and --ranks-per-host say how many ranks there are: leave --ranks out")
    if options.quick:
        options.rounds = min(options.rounds, 3)
        options.sizes = words("8,1K,64K,1M,16M")
    complete(options)
    return options


def complete(options):
    """Sets the options that depend on whether the ranks run on this machine or on several hosts."""
    if options.starting:
        options.hosts = [int((options.hosts or [starting.HOSTS])[0])]
        options.ranks_per_host = options.ranks_per_host or starting.RANKS_PER_HOST
        options.ranks = list(map(int, options.ranks or starting.RANKS.split(",")))
        options.out = options.out or ROOT / "build/bench/starting"
        return
    options.out = options.out or ROOT / ("build/bench/hosts" if options.hosts else "build/bench")
    options.ranks_per_host = options.ranks_per_host or (measured_ranks_per_host(options.out) if options.evaluate else 2)
    if options.hosts:
        options.ranks = [int(hosts) * options.ranks_per_host for hosts in options.hosts]
    else:
        options.ranks = list(map(int, options.ranks or ("2", "4")))
    options.collectives = options.collectives or (HOST_COLLECTIVES if options.hosts else results.COLLECTIVES)
    options.sizes = options.sizes or (HOST_SIZES if options.hosts else SIZES).split(",")


def measured_ranks_per_host(out):
    """Returns the number of ranks on each host in the runs whose results are in the folder `out`."""
    plan = out / "plan.json"
    return json.loads(plan.read_text()).get("ranks_per_host", 2) if plan.exists() else 2


def _why(found):
    """Says why a launch did not print all of its results."""
    return "stalled" if found.stalled else f"exit status {found.status}"


class Run:
    def __init__(self, options, network=None):
        self.options = options
        self.network = network
        self.results = options.out / "results.csv"
        self.limits = options.out / "limits.csv"
        self.predictions = options.out / "predictions.csv"
        self.table = peers.HOST_PEERS if options.hosts else peers.PEERS
        known = peers.installed(options.programs, self.table)
        self.peers = [name for name in options.peers or known if name in known]
        for name in set(options.peers or ()) - set(known):
            say(f"bench: {name} is not built and is left out")

    def prepare(self):
        """Keeps existing results if the same plan produced them, unless --fresh is given. Otherwise sets them aside."""
        names = ("collectives", "sizes", "ranks", "ranks_per_host", "budget_ms")
        plan = {name: getattr(self.options, name) for name in names}
        plan["peers"] = self.peers
        plan["programs"] = self._fingerprint()
        file = self.options.out / "plan.json"
        same = file.exists() and json.loads(file.read_text()) == plan
        if self.options.fresh or not same:
            for path in (self.results, self.limits, self.predictions):
                if path.exists():
                    path.replace(path.with_suffix(".csv.old"))
        file.write_text(json.dumps(plan, indent=1) + "\n")

    def _fingerprint(self):
        """Returns a hash of all programs and libraries that are measured."""
        digest = hashlib.sha256()
        files = [*self.options.programs.glob("perf/*"), *self.options.programs.glob("../lib/libtutti.so.*")]
        for path in sorted(files):
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def measure(self):
        done = {(int(row["round"]), int(row["ranks"]), row["peer"], row["collective"])
                for row in results.read(self.results)}
        limits_done = {int(row["round"]) for row in results.read(self.limits)}
        for number in range(1, self.options.rounds + 1):
            begin = time.monotonic()
            if number not in limits_done and not self.network:
                self._measure_limits(number)
            for ranks in self.options.ranks:
                self._measure_ranks(number, ranks, done)
                if self.network:
                    self._predict(number, ranks)
            if time.monotonic() - begin > 1:
                say(f"bench: round {number} of {self.options.rounds} took {time.monotonic() - begin:.0f} s")

    def _measure_ranks(self, number, ranks, done):
        for group in GROUPS:
            for i in range(len(self.peers)):
                peer = self.peers[(i + number - 1) % len(self.peers)]
                collectives = [name for name in group if name in self.options.collectives
                               and name in self.table[peer].collectives]
                cells = results.cells(collectives, list(map(results.bytes_of, self.options.sizes)), ranks)
                if cells and not any((number, ranks, peer, cell.collective) in done for cell in cells):
                    self._measure_peer(number, peer, ranks, cells)

    def _launch(self, commands, environment):
        launch.wait_until_quiet(launch.QUIET_PCT, self.options.quiet_s)
        with tempfile.TemporaryDirectory() as scratch:
            place = peers.Place(self.options.programs, Path(scratch), self.network, self.options.ranks_per_host)
            end_rest = self.network.kill_all if self.network else lambda: None
            return launch.launch(commands(place), environment, Path(scratch), self.options.stall_s, end_rest)

    def _measure_limits(self, number):
        found = self._launch(lambda place: [[str(place.programs / "perf/limits")]], {})
        results.append(self.limits, results.LIMIT_COLUMNS,
                       [[*line.split(","), number, f"{found.others_pct:.0f}"] for line in found.lines])
        say(f"bench: round {number}, limits, {found.seconds:.1f} s, others {found.others_pct:.0f} %")
        if found.stalled or found.status != 0:
            say(f"bench: some limits are without a figure, {_why(found)}\n{found.errors.rstrip()}")

    def _measure_peer(self, number, name, ranks, cells):
        collectives = list(dict.fromkeys(cell.collective for cell in cells))
        words = [f"--peer={name}", f"--collectives={','.join(collectives)}",
                 f"--sizes={','.join(self.options.sizes)}", f"--budget-ms={self.options.budget_ms}"]
        peer = self.table[name]
        found = self._launch(lambda place: peer.commands(place, ranks, words), peer.environment)
        lines = [line.split(",") for line in found.lines if line.startswith(name + ",")]
        have = {(line[1], int(line[2])) for line in lines}
        lines += [[name, cell.collective, cell.bytes, ranks, results.STALLED, *[""] * 6] for cell in cells
                  if (cell.collective, cell.bytes) not in have]
        results.append(self.results, results.COLUMNS, [[*line, number, f"{found.others_pct:.0f}"] for line in lines])
        say(f"bench: round {number}, {ranks} ranks, {name}, {' '.join(collectives)}: {found.seconds:.1f} s, "
            f"others {found.others_pct:.0f} %")
        missing = len(cells) - len(have)
        if missing:
            say(f"bench: {missing} of {len(cells)} cells without a figure, {_why(found)}\n{found.errors.rstrip()}")

    def _predict(self, number, ranks):
        """Asks the simulator to predict the times of tutti that this round has measured. Ranks on
        the same hosts measure the costs of messages for the simulator."""
        rows = [row for row in results.read(self.results) if row["peer"] == "tutti" and int(row["round"]) == number
                and int(row["ranks"]) == ranks and row["lat_us_median"] != results.STALLED]
        known = results.read(self.predictions)
        if not rows or any(int(row["round"]) == number and int(row["ranks"]) == ranks for row in known):
            return
        found = self._launch(lambda place: predictions.commands(place, ranks, rows), {})
        lines = predictions.parse(found.lines)
        results.append(self.predictions, predictions.COLUMNS, [[*line, number] for line in lines])
        say(f"bench: round {number}, {ranks} ranks, {len(lines)} predictions: {found.seconds:.1f} s")
        if len(lines) < len(rows):
            say(f"bench: {len(rows) - len(lines)} of {len(rows)} cells without a prediction\n{found.errors.rstrip()}")


def main():
    options = parse(sys.argv[1:])
    options.out.mkdir(parents=True, exist_ok=True)
    if options.evaluate and not [*options.out.glob("*.csv"), *options.out.glob("*.json")]:
        sys.exit(f"bench: no figures to evaluate in {options.out}; run without --evaluate first")
    if options.micro:
        micro.measure(options.programs, options.out, options.micro)
    if options.instructions:
        counts = instructions.measure(options.programs, options.profiled, ROOT, say)
        (options.out / "instructions.json").write_text(json.dumps(counts, indent=1) + "\n")
        print(report.instructions(counts))
    if options.starting and not options.evaluate:
        starting.measure(options, say)
    if not (options.evaluate or options.micro or options.instructions or options.starting):
        with NetworkHosts(max(map(int, options.hosts))) if options.hosts else contextlib.nullcontext() as network:
            run = Run(options, network)
            run.prepare()
            run.measure()
    sections = pages.sections(options, ROOT)
    say(f"bench: everything is in {options.out}")
    if options.publish:
        publish.publish(ROOT, options.out, sections)


if __name__ == "__main__":
    main()
