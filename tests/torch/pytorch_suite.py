#!/usr/bin/env python3
"""Runs PyTorch's own distributed tests, which come with the torch package, on a backend.

    pytorch_suite.py [--backend tutti|gloo] [--like gloo|mpi] [--ranks N] [--match REGEX] [--limit N]
                     [--seconds N] [--results FILE] [--list]

Each test runs in its own forked ranks, with its own time limit. Each result is a line of JSON in FILE. Tests
that have a result in FILE are not run again, so that a run can be interrupted and continued. Each test looks
at the name of the backend to decide whether it applies. By default, the test sees the name "gloo", so that
every test for Gloo runs. With `--like mpi`, it sees "mpi", so that the tests of operations that Gloo lacks
run. pytorch_suite.txt lists the tests that do not apply to tutti, and why.
"""
import argparse
import datetime
import io
import json
import os
import re
import signal
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Alike(str):
    """The name of a backend. It also compares equal to `like`, which is the name of another backend."""

    like = ""

    def __eq__(self, other):
        return str.__eq__(self, other) or other == self.like

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    import torch.distributed as dist

    group = group if group is not None else dist.group.WORLD
    if group == dist.GroupMember.NON_GROUP_MEMBER:
        return
    if not isinstance(timeout, datetime.timedelta):
        timeout = datetime.timedelta(seconds=1800 if timeout is None else timeout)
    group.monitored_barrier(timeout, wait_all_ranks=wait_all_ranks)


def load(backend, like, ranks):
    """Returns the test case of the suite for `backend`, without running it."""
    os.environ.update(BACKEND=like, WORLD_SIZE=str(ranks), CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
    # The suite reads TEMP_DIR when it is imported. Each test makes its own folder in TEMP_DIR.
    os.environ.setdefault("TEMP_DIR", tempfile.gettempdir())
    import torch
    import torch.distributed as dist
    from torch.testing._internal.distributed import distributed_test as suite

    if backend != "gloo":
        import tutti.torch  # noqa: F401  registers the backend

        os.environ["BACKEND"] = backend
        suite.BACKEND = Alike(backend)
        suite.BACKEND.like = like
        # torch.distributed.monitored_barrier refuses every backend except one named gloo.
        dist.monitored_barrier = monitored_barrier
        for supported in (suite.PROFILING_SUPPORTED_BACKENDS, suite.SEND_RECV_PROFILING_SUPPORTED_BACKENDS):
            supported.append(dist.Backend(backend))

    class Suite(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    return Suite


def names(case, match):
    return [name for name in unittest.TestLoader().getTestCaseNames(case) if re.search(match, name)]


def run_here(case, name):
    """Runs one test in this process. Returns the outcome and the reason."""
    stream = io.StringIO()
    result = unittest.TextTestRunner(stream=stream, verbosity=0).run(unittest.TestSuite([case(name)]))
    if result.skipped:
        return "skipped", result.skipped[0][1]
    if result.wasSuccessful():
        return "passed", ""
    return "failed", (result.errors + result.failures)[0][1]


def run_forked(case, name, limit):
    """Runs one test in a separate process group, and kills it after `limit` seconds."""
    with tempfile.TemporaryFile("w+") as output, tempfile.NamedTemporaryFile("w+") as verdict:
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            outcome = run_here(case, name)
            Path(verdict.name).write_text(json.dumps(outcome))
            sys.stdout.flush()
            os._exit(0)
        deadline = time.monotonic() + limit
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return "failed", f"still running after {limit} s", tail(output)
            time.sleep(0.02)
        try:
            os.killpg(pid, signal.SIGKILL)  # ends ranks that a failed test left running
        except ProcessLookupError:
            pass
        text = Path(verdict.name).read_text()
        outcome, reason = json.loads(text) if text else ("failed", "the test process died")
        return outcome, reason, tail(output) if outcome == "failed" else ""


def exempt():
    """Returns the names of the tests that do not apply, each with the reason."""
    lines = (HERE / "pytorch_suite.txt").read_text().splitlines()
    return dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))


def tail(output):
    output.seek(0)
    return output.read()[-6000:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--like", default="gloo", choices=["gloo", "mpi"])
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--match", default="", help="run only tests whose name matches this regular expression")
    parser.add_argument("--limit", type=float, default=120, help="seconds a test may take")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no more tests after this many seconds")
    parser.add_argument("--results", type=Path, help="file of results, read and added to")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    case = load(options.backend, options.like, options.ranks)
    todo = names(case, options.match)
    if options.list:
        print("\n".join(todo))
        return 0
    known = {}
    if options.results and options.results.exists():
        known = {line["test"]: line for line in map(json.loads, options.results.read_text().splitlines())}
    start = time.monotonic()
    counts = {}
    reasons = exempt()
    for name in todo:
        if name in known:
            counts[known[name]["outcome"]] = counts.get(known[name]["outcome"], 0) + 1
            continue
        if time.monotonic() - start > options.seconds:
            counts["not run"] = counts.get("not run", 0) + 1
            continue
        if options.backend != "gloo" and name in reasons:
            counts["exempt"] = counts.get("exempt", 0) + 1
            continue
        began = time.monotonic()
        outcome, reason, output = run_forked(case, name, options.limit)
        line = {"test": name, "outcome": outcome, "seconds": round(time.monotonic() - began, 2), "reason": reason}
        if output:
            line["output"] = output
        counts[outcome] = counts.get(outcome, 0) + 1
        print(f"{outcome:8} {line['seconds']:6.1f} s  {name}  {reason.strip().splitlines()[-1] if reason else ''}", flush=True)
        if options.results:
            with options.results.open("a") as file:
                file.write(json.dumps(line) + "\n")
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    return 1 if counts.get("failed") else 0


if __name__ == "__main__":
    sys.exit(main())
