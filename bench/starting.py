"""Measures how long ranks take to start, from the start of `tutti run` to the end of the last
rank's `init`.

`./dev bench --starting` calls this module. Each round starts 1 to 256 ranks on this machine. It
also starts ranks on hosts that bench/hosts.py makes and that the launcher reaches by ssh. The same
number of ranks is started on this machine directly before or after. The module also counts the
connections that the ranks have after `init`, and the requests that they make to the store.
"""
import contextlib
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import launch
import results
from evaluate import estimate, short
from hosts import NetworkHosts
from report import table
from ssh_servers import SERVER, SshServers

RANKS = "1,2,4,8,16,32,64,128,256"
HOSTS = RANKS_PER_HOST = 8
STALL_S = 120  # a start that prints nothing for this long is ended
MOST_RATIO = 3.0  # the bar for the start on hosts, compared with the start on one machine
COLUMNS = ["hosts", "ranks", "launched_s", "met_s", "tcp", "tcp_total", "local", "requests", "round", "others_pct"]
LINE = re.compile(r"rank (\d+) began (\d+) met (\d+) tcp (\d+) local (\d+)")


class StartError(Exception):
    pass


class Start:
    """Computes the figures of one start from the lines that the ranks have printed
    (bench/starting.cc)."""

    def __init__(self, begin_ns, lines, ranks):
        found = [tuple(map(int, match.groups())) for match in map(LINE.search, lines) if match]
        if len(found) != ranks:
            raise StartError(f"{len(found)} of {ranks} ranks have started")
        self.launched_s = (max(began for _, began, *_ in found) - begin_ns) / 1e9  # until the last rank's main
        self.met_s = (max(met for _, _, met, *_ in found) - begin_ns) / 1e9  # until the last rank's init has ended
        self.tcp = [tcp for *_, tcp, _ in found]
        self.local = [local for *_, local in found]


class Starts:
    """Starts ranks on this machine and on hosts, and appends a row to a file for each start.
    `network` is None if all ranks start on this machine."""

    def __init__(self, options, say, network, ssh_options):
        self.options = options
        self.say = say
        self.network = network
        self.ssh_options = ssh_options
        self.file = options.out / "starting.csv"
        self.tutti = str(options.programs / "tutti")
        self.program = str(options.programs / "perf/starting")

    def measure(self):
        self.file.unlink(missing_ok=True)
        compared = self.network.count * self.options.ranks_per_host if self.network else None
        numbers = sorted({*self.options.ranks, compared} - {None})
        for number in range(1, self.options.rounds + 1):
            for ranks in numbers:
                starts = [self._here, self._on_hosts] if ranks == compared else [self._here]
                for start in starts if number % 2 else reversed(starts):
                    start(number, ranks)

    def _here(self, number, ranks):
        found = self._start([self.tutti, "run", "-n", str(ranks), "--", self.program], {}, ranks)
        self._write(number, 1, ranks, *found, self._store_requests(ranks) if number == 1 else "")

    def _on_hosts(self, number, ranks):
        with tempfile.TemporaryDirectory() as folder:
            hostfile = Path(folder, "hosts")
            hostfile.write_text("".join(f"{self.network.address(host)} slots={self.options.ranks_per_host}\n"
                                        for host in range(self.network.count)))
            command = [self.tutti, "run", "--hostfile", str(hostfile), *self.ssh_options, "--", self.program]
            found, _ = self._start(self.network.on(0, command), {}, ranks)
        # The logins are children of the servers. So this program does not know how much of the
        # machine other processes used.
        self._write(number, self.network.count, ranks, found, None, "")

    def _start(self, command, environment, ranks):
        launch.wait_until_quiet(launch.QUIET_PCT, self.options.quiet_s)
        with tempfile.TemporaryDirectory() as scratch:
            begin = time.monotonic_ns()
            done = launch.launch([command], environment, Path(scratch), STALL_S)
        if done.status != 0:  # all ranks may still have met
            self.say(f"bench: {' '.join(command)}: status {done.status}\n{done.errors.rstrip()}")
        return Start(begin, done.lines, ranks), done.others_pct

    def _write(self, number, hosts, ranks, start, others_pct, requests):
        others = "" if others_pct is None else f"{others_pct:.0f}"
        results.append(self.file, COLUMNS, [[hosts, ranks, f"{start.launched_s:.6f}", f"{start.met_s:.6f}",
                                             max(start.tcp), sum(start.tcp) // 2, max(start.local), requests, number,
                                             others]])
        self.say(f"bench: round {number}, {ranks} ranks on {_hosts_words(hosts)}: {start.met_s:.3f} s"
                 + (f", others {others} %" if others else ""))

    def _store_requests(self, ranks):
        """Returns how many requests the ranks make to the store. They meet at a store that this
        function starts, since the launcher does not print how many requests its own store gets."""
        with tempfile.TemporaryDirectory() as folder:
            token = Path(folder, "token")
            token.write_text(os.urandom(32).hex())
            token.chmod(0o600)
            environment = {"TUTTI_TOKEN_FILE": str(token)}
            store = subprocess.Popen([self.tutti, "store", "--port", "0"], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
            try:
                address = re.search(r"serving at (\S+)", store.stdout.readline()).group(1)
                self._start([self.tutti, "run", "-n", str(ranks), "--", "env", f"TUTTI_STORE={address}", self.program],
                            environment, ranks)
            finally:
                store.terminate()
                rest = store.communicate()[1]
        return int(re.search(r"served (\d+) requests", rest).group(1))


def _hosts_words(hosts):
    return "this machine" if hosts == 1 else f"{hosts} hosts"


def _why_no_hosts():
    """Returns the reason why hosts with an sshd cannot be made here, or None."""
    if os.geteuid() != 0:
        return "making hosts takes root's rights"
    missing = [name for name in (SERVER, "ssh", "ssh-keygen", "ip") if not shutil.which(name)]
    return f"there is no {missing[0]}" if missing else None


def measure(options, say):
    why_not = _why_no_hosts()
    if why_not:
        say(f"bench: no start on hosts is measured: {why_not}")
    with contextlib.ExitStack() as stack:
        network = None if why_not else stack.enter_context(NetworkHosts(options.hosts[0]))
        ssh_options = stack.enter_context(SshServers(network)).options() if network else []
        Starts(options, say, network, ssh_options).measure()


def _by_ranks(rows, on_hosts):
    found = {}
    for row in rows:
        if (int(row["hosts"]) > 1) == on_hosts:
            found.setdefault(int(row["ranks"]), []).append(row)
    return found


def _milliseconds(rows, column="met_s"):
    return f"{1000 * statistics.median(float(row[column]) for row in rows):.0f}"


def curve(rows):
    """Returns a table with a row for each number of ranks on this machine."""
    lines = []
    for ranks, starts in sorted(_by_ranks(rows, on_hosts=False).items()):
        met = estimate(1000 * float(row["met_s"]) for row in starts)
        requests = next((int(row["requests"]) for row in starts if row["requests"]), None)
        lines.append([ranks, _milliseconds(starts, "launched_s"), f"{met.median:.0f} [{met.low:.0f}, {met.high:.0f}]",
                      *[max(int(row[column]) for row in starts) for column in ("tcp", "tcp_total", "local")],
                      *(["–", "–"] if requests is None else [requests, short(requests / ranks)])])
    return table(["ranks", "all run, ms", "all have met, ms [95 %]", "TCP connections of a rank", "in total",
                  "local connections of a rank", "requests at the store", "for each rank"], lines)


def comparison(rows):
    """Returns a table that compares starts on hosts with starts of the same number of ranks on this
    machine, by round."""
    lines = []
    for ranks, there in _by_ranks(rows, on_hosts=True).items():
        here = _by_ranks(rows, on_hosts=False).get(ranks, [])
        seconds = {row["round"]: float(row["met_s"]) for row in here}
        ratio = estimate(float(row["met_s"]) / seconds[row["round"]] for row in there if row["round"] in seconds)
        if ratio is None:
            continue
        hosts = int(there[0]["hosts"])
        verdict = "**fails**" if ratio.above(MOST_RATIO) else "holds"
        lines.append([f"{hosts} hosts of {ranks // hosts} ranks", _milliseconds(here, "launched_s"), _milliseconds(here),
                      _milliseconds(there, "launched_s"), _milliseconds(there), ratio, verdict])
    head = ["", "here: all run, ms", "all have met", "on hosts: all run, ms", "all have met", "ratio [95 %]",
            f"ratio ≤ {MOST_RATIO}"]
    return table(head, lines) if lines else "Not measured.\n"
