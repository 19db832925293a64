"""Counts the instructions of an all_reduce of 8 bytes, for each folder of the source tree. Other load on the machine
does not change these counts.

Every rank runs under callgrind, once with FEW and once with MANY operations. The difference between rank 0's two
counts, divided by MANY - FEW, is the count of one operation, without the program's start and end. Ranks do not poll
(TUTTI_SPIN=0): a waiting rank sleeps, so the count does not depend on how long it waits.
"""
import os
import re
import statistics
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

FEW, MANY, REPEATS = 1000, 3000, 3
LIMIT_S = 180
CASES = {  # name -> (ranks, transport)
    "world of one": (1, None),
    "2 ranks, tcp": (2, "tcp"),
    "2 ranks, shm": (2, "shm"),
}
LAYERS = ("bindings", "collectives", "control", "transport", "transport/tcp", "transport/shm", "include", "core", "program",
          "libraries")
WAYS = ("tcp", "shm", "inproc")


def layer_of(file, root):
    """Returns the layer of a function, according to its source file."""
    try:
        path = Path(file).resolve().relative_to(root)
    except ValueError:
        return "libraries"
    if path.parts[0] == "transport" and path.parts[1] in WAYS:
        return "/".join(path.parts[:2])
    return "program" if path.parts[0] == "bench" else path.parts[0]


def count(profile, root):
    """Reads the instructions of each layer from callgrind's file. Inlined code counts as part of the function around
    it."""
    names, totals = {}, defaultdict(int)
    file, skip = "", False
    for line in profile.read_text(errors="replace").splitlines():
        found = re.match(r"fl=\((\d+)\)(?: (.*))?", line)
        if found:
            if found[2]:
                names[found[1]] = found[2]
            file = names[found[1]]
        elif line.startswith(("fi=", "fe=", "cfi=", "cfl=")):
            # The following counts still belong to `file`. But this line may define the number of a
            # file name, and a later fl= line may use that number.
            inner = re.match(r"\w+=\((\d+)\)(?: (.*))?", line)
            if inner[2]:
                names[inner[1]] = inner[2]
        elif line.startswith("calls="):
            skip = True  # the next line is the cost of the callee
        elif line[:1] in "+-*" or line[:1].isdigit():
            words = line.split()  # position, count; the count is missing if it is zero
            if not skip and len(words) > 1:
                totals[file] += int(words[1])
            skip = False
    layers = defaultdict(int)
    for name, instructions in totals.items():
        layers[layer_of(name, root)] += instructions
    return layers


def _profile(program, ranks, transport, operations, scratch):
    """Runs all ranks and returns rank 0's profile."""
    environment = {**os.environ, "TUTTI_SPIN": "0", "TUTTI_WORLD_SIZE": str(ranks),
                   "TUTTI_INIT_METHOD": f"file://{scratch}/meet"}
    if transport:
        environment["TUTTI_TRANSPORTS"] = transport
    started = []
    for rank in range(ranks):
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={scratch}/{rank}.out", str(program),
                   str(operations)]
        started.append(subprocess.Popen(command, env={**environment, "TUTTI_RANK": str(rank)},
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    try:
        for process in started:
            _, errors = process.communicate(timeout=LIMIT_S)
            if process.returncode:
                raise RuntimeError(f"exit status {process.returncode}: {errors[-1000:]}")
    finally:
        for process in started:
            process.kill()
            process.wait()
    return Path(scratch) / "0.out"


def _count_once(program, root, ranks, transport):
    counts = []
    for operations in (FEW, MANY):
        with tempfile.TemporaryDirectory() as scratch:
            counts.append(count(_profile(program, ranks, transport, operations, scratch), root))
    few, many = counts
    return {layer: (many[layer] - few[layer]) / (MANY - FEW) for layer in many}


def transports(programs):
    """Returns which of tcp and shm this build has."""
    words = subprocess.run([programs / "tutti", "info"], capture_output=True, text=True, check=True).stdout.split()
    return [name for name in ("tcp", "shm") if name in words]


def measure(programs, profiled, root, say):
    """Returns the instructions per operation, as case -> layer -> count. Each count is the median of several runs."""
    found = {}
    available = transports(programs)
    for name, (ranks, transport) in CASES.items():
        if transport and transport not in available:
            say(f"bench: no instructions for {name}: this build has no such transport")
            continue
        runs = [_count_once(profiled / "perf/instructions", root, ranks, transport) for _ in range(REPEATS)]
        found[name] = {layer: statistics.median(run.get(layer, 0) for run in runs) for layer in LAYERS}
        totals = sorted(sum(run.values()) for run in runs)
        found[name]["all"] = totals[len(totals) // 2]
        say(f"bench: {name}: {totals[0]:.0f} to {totals[-1]:.0f} instructions per operation in {REPEATS} runs")
    return found
