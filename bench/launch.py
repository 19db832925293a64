"""Starts programs, reads the lines that they print, and ends them when they stall."""
import contextlib
import ctypes
import os
import resource
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

QUIET_PCT = 10  # the machine is quiet if other processes use less than this percentage of it
TERMINATE_S = 3  # at most this many seconds pass between SIGTERM and SIGKILL
PR_SET_CHILD_SUBREAPER = 36  # an option of prctl


@dataclass
class Launch:
    lines: list  # the lines of stdout
    others_pct: float  # the share of the machine's processor time that other processes used, in percent
    seconds: float
    stalled: bool  # this program ended the launch, which had printed nothing for too long
    status: int  # the worst exit status
    errors: str  # the end of stderr


def machine_seconds():
    """Returns the (busy, total) processor time of all cores so far, in seconds."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    per_second = os.sysconf("SC_CLK_TCK")
    idle = ticks[3] + ticks[4]
    return (sum(ticks) - idle) / per_second, sum(ticks) / per_second


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def wait_until_quiet(percent, limit_s):
    """Waits until other processes use less than `percent` of the machine, but at most `limit_s` seconds."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        busy, total = machine_seconds()
        time.sleep(0.2)
        busy_now, total_now = machine_seconds()
        if busy_now - busy <= percent / 100 * max(total_now - total, 0.01):
            return


def _process_table():
    """Returns a map from the pid of every running process to its (parent, start time)."""
    table = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # the process has just ended
            table[int(entry.name)] = (int(words[1]), words[19])
    return table


def _descendants(pids):
    """Maps each of `pids`, and the pid of each descendant, to the process's start time. A reused
    pid has a different start time."""
    table = _process_table()
    found = {pid: table[pid][1] for pid in pids if pid in table}
    grown = True
    while grown:
        below = {pid: start for pid, (parent, start) in table.items() if parent in found and pid not in found}
        found.update(below)
        grown = bool(below)
    return found


def _end(processes):
    """Sends SIGTERM to `processes`, and waits at most TERMINATE_S for their end. Then kills all of
    them and of their descendants that still run.
    """
    ours = _descendants([process.pid for process in processes])
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + TERMINATE_S
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
    now = _process_table()
    for pid, start in ours.items():
        if pid in now and now[pid][1] == start:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    for process in processes:
        process.wait()


def _read_lines(processes, stall_s):
    """Returns the lines of all processes, and whether reading stopped because no line arrived for `stall_s` seconds."""
    selector = selectors.DefaultSelector()
    for process in processes:
        selector.register(process.stdout, selectors.EVENT_READ)
    lines, rest = [], {}
    while selector.get_map():
        ready = selector.select(stall_s)
        if not ready:
            return lines, True
        for key, _ in ready:
            data = os.read(key.fd, 65536)
            if not data:
                selector.unregister(key.fileobj)
                continue
            *whole, rest[key.fd] = (rest.get(key.fd, b"") + data).split(b"\n")
            lines += [line.decode(errors="replace") for line in whole]
    return lines, False


def adopt_orphans():
    """Makes this process the parent of descendants whose own parents end. Otherwise this process
    could not learn how much processor time they have used."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _reap_orphans():
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


def launch(commands, environment, scratch, stall_s, end_rest=lambda: None):
    """Runs the commands together until they end, or until none of them has printed a line for
    `stall_s` seconds. Then calls `end_rest`, which ends the remaining processes of the commands."""
    errors = scratch / "stderr"
    adopt_orphans()
    busy, total = machine_seconds()
    own, begin = children_seconds(), time.monotonic()
    with open(errors, "wb") as stderr:
        processes = [
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
                             env={**os.environ, **environment})
            for command in commands
        ]
        stalled = True
        try:
            lines, stalled = _read_lines(processes, stall_s)
        finally:
            if stalled:
                _end(processes)
            for process in processes:
                process.wait()
                process.stdout.close()
            end_rest()
            _reap_orphans()
    busy_now, total_now = machine_seconds()
    others = (busy_now - busy) - (children_seconds() - own)
    return Launch(lines, max(0.0, 100 * others / max(total_now - total, 0.01)), time.monotonic() - begin, stalled,
                  max(abs(process.returncode) for process in processes),
                  errors.read_text(errors="replace")[-2000:])
