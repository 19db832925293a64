"""Runs clang-tidy on the sources in build/dev, except those of bench/ and tests/.

Usage: tidy.py JOBS, in the root of the tree.

Most of clang-tidy's time goes into the headers of the system. So up to 16 sources that have the same
compile command are first checked as one file, which takes a tenth of the time. Only if clang-tidy finds
anything in this file, or cannot compile it, is each source checked alone. (In such a file, the use of a
name in one source might hide that another source declares it without use. sources_test.cc finds such
declarations.)

A source that has passed is checked again only when its key changes. The key changes with anything that
could change clang-tidy's result: the source, its headers, the compile command, the checks and the version
of clang-tidy.
"""

import collections
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path.cwd()
BUILD = ROOT / "build" / "dev"
LINT = ROOT / "build" / "lint"
TIDY = ["clang-tidy", "--quiet", "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wthread-safety"]
MOST_JOINED = 16
ALONE = "collectives/schedule/algorithms/"  # these sources use the same names for different things


@functools.cache
def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def files_read():
    """Maps an object's name to the files from which it was made."""
    done = subprocess.run(["ninja", "-C", BUILD, "-t", "deps"], check=True, capture_output=True, text=True)
    read = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        if line.startswith(" "):
            read[output].append(os.path.normpath(BUILD / line.strip()))
        else:
            output = line.split(":")[0]
    return read


def compilations():
    """Maps each source to its entries in compile_commands.json."""
    found = collections.defaultdict(list)
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        source = os.path.relpath(entry["file"], ROOT)
        if source.endswith(".cc") and not source.startswith(("build/", "bench/", "tests/")):
            found[source].append(entry)
    return found


def keys(entries):
    """Maps each source to its key."""
    version = subprocess.run(["clang-tidy", "--version"], check=True, capture_output=True).stdout
    checker = version + " ".join(TIDY).encode() + (ROOT / ".clang-tidy").read_bytes()
    read, found = files_read(), {}
    for source, commands in entries.items():
        key = hashlib.sha256(checker)
        for entry in commands:
            files = read[os.path.relpath(entry["output"], BUILD)]
            if not files:
                sys.exit(f"dev: {source} has not been compiled")
            words = [entry["command"]] + [f"{file} {digest(file)}" for file in files]
            key.update("\n".join(words).replace(f"{ROOT}/", "").encode())
        found[source] = key.hexdigest()[:32]
    return found


def command_of(source, entry):
    """Returns the compile command without the names of the source and the object."""
    return entry["command"].replace(str(ROOT / source), "").replace(entry["output"], "").replace(
        os.path.relpath(entry["output"], BUILD), "")


def groups(sources, entries):
    """Divides the sources into groups that can be checked as one file."""
    alike = collections.defaultdict(list)
    for source in sources:
        alone = source if source.startswith(ALONE) else ""
        alike[alone, *(command_of(source, entry) for entry in entries[source])].append(source)
    return [same[i:i + MOST_JOINED] for same in alike.values() for i in range(0, len(same), MOST_JOINED)]


def join(group, number, entries):
    """Writes the joined file of a group, and returns its entry for compile_commands.json."""
    joined = LINT / "joined" / f"{number}.cc"
    joined.write_text("".join((ROOT / source).read_text() + "\n" for source in group))
    entry = entries[group[0]][0]
    command = entry["command"].replace(str(ROOT / group[0]), str(joined))
    return {**entry, "file": str(joined), "command": command}


def passes(database, file):
    """Returns whether clang-tidy finds nothing in a file, and what it found."""
    command = [*TIDY, "-p", database, file]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.returncode == 0, done.stdout


def check(group, number):
    """Checks a group. Returns the sources that passed, and what was found in the others."""
    if len(group) > 1 and passes(LINT / "joined", LINT / "joined" / f"{number}.cc")[0]:
        return group, ""
    results = [passes(BUILD, source) for source in group]
    passed = [source for source, (good, _) in zip(group, results) if good]
    return passed, "".join(found for _, found in results)


def main():
    entries = compilations()
    if not entries:
        sys.exit("dev: found no sources to check")
    key = keys(entries)
    (LINT / "joined").mkdir(parents=True, exist_ok=True)
    pending = groups([source for source in entries if not (LINT / key[source]).exists()], entries)
    joined = [join(group, number, entries) for number, group in enumerate(pending)]
    (LINT / "joined" / "compile_commands.json").write_text(json.dumps(joined))
    failed = False
    with concurrent.futures.ThreadPoolExecutor(int(sys.argv[1])) as pool:
        for group, (passed, found) in zip(pending, pool.map(check, pending, range(len(pending)))):
            for source in passed:
                (LINT / key[source]).touch()
            print(found, end="", flush=True)
            failed = failed or len(passed) < len(group)
    sys.exit(failed)


if __name__ == "__main__":
    main()
