"""Runs the tests and measurements that need a GPU, from a folder of built programs. `./dev test --gpu` calls
this script.

    run.py FOLDER [--output RESULTS] [--quick]

FOLDER is a bundle (`./dev bundle`) or a build tree. The folder RESULTS gets the logs and figures. The script
needs only Python, and no network.
TUTTI_CUDA_LIBRARY and TUTTI_NCCL_LIBRARY may name the libraries. The ranks may share one GPU.
"""
import argparse
import ctypes
import glob
import importlib.util
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# NCCL uses only this machine. The ranks must make NCCL believe that they run on different hosts,
# because NCCL lets ranks share a GPU only in that case.
NCCL = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_NET": "Socket", "NCCL_RAS_ENABLE": "0"}
WHOLE = 570  # the limit in seconds for all parts together
NOTHING_RAN = 77  # the exit status if all parts were skipped


class Skipped(Exception):
    pass


class Failed(Exception):
    def __init__(self, words, text=""):
        super().__init__(words)
        self.text = text  # the output of the program


def nccl_library():
    """Returns the file of NCCL: the one in TUTTI_NCCL_LIBRARY, that of the Python package, or that
    of the system."""
    if named := os.environ.get("TUTTI_NCCL_LIBRARY"):
        return named
    try:
        package = importlib.util.find_spec("nvidia.nccl")
    except ImportError:
        package = None
    for folder in package.submodule_search_locations or () if package else ():
        if (library := Path(folder, "lib", "libnccl.so.2")).exists():
            return str(library)
    return "libnccl.so.2"


def compute_sanitizer():
    """Returns the file of the tool, or None. Searches PATH, and then the toolkit's folder, which
    often is not in PATH."""
    folders = [os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin", *glob.glob("/usr/local/cuda-*/bin")]
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(folders))


def missing_device(cuda):
    """Returns the reason why there is no device, or None."""
    try:
        driver = ctypes.CDLL(cuda)
    except OSError as error:
        return f"there is no CUDA driver: {error}"
    outcome = driver.cuInit(0)
    return f"the CUDA driver finds no device: cuInit returns {outcome}" if outcome else None


class Suite:
    def __init__(self, folder, output, quick):
        self.folder, self.output, self.quick = folder, output, quick
        self.deadline = time.monotonic() + WHOLE
        self.cuda = os.environ.get("TUTTI_CUDA_LIBRARY", "libcuda.so.1")
        self.missing = missing_device(self.cuda)
        self.nccl = nccl_library()
        self.transports = {"nccl": "nccl,tcp", "staged": "tcp"}
        self.report = []  # lines about the parts
        self.comparisons = []
        self.facts = {}

    def run(self, command, limit, good=(0,), **variables):
        """Runs a program, with a limit in seconds, and returns its output. `good` has the exit
        statuses that mean success."""
        limit = min(limit, self.deadline - time.monotonic())
        if limit < 1:
            raise Skipped("there is no time left")
        log = self.output / f"{len(list(self.output.glob('*.log'))):02}-{Path(command[0]).name}.log"
        with open(log, "w+") as out:
            process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, env={**os.environ, **NCCL, **variables},
                                       cwd=ROOT, start_new_session=True)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            out.seek(0)
            text = out.read()
        if status not in good:
            ended = f"took longer than {limit:.0f} s" if status is None else f"ended with status {status}"
            raise Failed(f"{Path(command[0]).name} {ended}; the end of {log}:\n" + "".join(text.splitlines(True)[-30:]), text)
        return text

    def launch(self, ranks, *command, library, limit):
        """Runs a program on some ranks."""
        return self.run([self.folder / "bin/tutti", "run", "-n", ranks, "--", *command], limit,
                        TUTTI_TRANSPORTS=self.transports[library], TUTTI_CUDA_LIBRARY=self.cuda,
                        TUTTI_NCCL_LIBRARY=self.nccl)

    # --- the parts; each returns a text about its results ---

    def collectives(self):
        """all collectives, against results of the host; a rank that is killed"""
        text = self.run([self.folder / "bin/tests/faults_device", "--gtest_filter=Devices*"], 300,
                        TEST_CUDA_LIBRARY=self.cuda, TEST_NCCL_LIBRARY=self.nccl)
        return text.split("[  PASSED  ]")[-1].strip()

    def python(self):
        """tests/gpu, with pytest"""
        if not list((ROOT / "tests/gpu").glob("*_test.py")):
            raise Skipped("tests/gpu has no tests for Python")
        folders = ["python"] if importlib.util.find_spec("pytest") else ["python", "packages"]
        variables = {"PYTHONPATH": os.pathsep.join(str(self.folder / each) for each in folders),
                     "PYTHONDONTWRITEBYTECODE": "1", "LAUNCHER": str(self.folder / "bin/tutti")}
        for module in ("pytest", "torch", "tutti"):
            try:
                self.run([sys.executable, "-c", f"import {module}"], 120, **variables)
            except Failed as failure:
                raise Skipped(str(failure).splitlines()[-1]) from None
        # pytest ends with status 5 if no test ran.
        text = self.run([sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "tests/gpu"], 240, good=(0, 5),
                        **variables)
        last = text.splitlines()[-1]
        if " passed" not in last:
            raise Skipped("; ".join(line for line in text.splitlines() if line.startswith("SKIPPED")) or last)
        return last

    def figures(self):
        """time of calls, beside NCCL alone and beside the parts of a staged call"""
        largest = 1 << 20 if self.quick else 64 << 20
        failures = []
        for library in self.transports:
            try:
                text = self.launch(2, self.folder / "bin/perf/device", library, largest, library=library, limit=180)
            except Failed as failure:
                text = failure.text
                failures.append(str(failure))
            for line in text.splitlines():
                if line.startswith('{"what"') and line.endswith("}}"):
                    self.comparisons.append(json.loads(line))
                elif line.startswith('{"nccl"'):
                    self.facts |= json.loads(line)
        written = self.write_figures()
        if failures:
            raise Failed("\n".join(failures))
        return written

    def sanitizer(self):
        """every collective under compute-sanitizer"""
        tool = compute_sanitizer()
        if tool is None:
            raise Skipped("there is no compute-sanitizer in PATH, nor in CUDA's toolkit")
        # NCCL calls CUDA functions that fail if a device lacks a feature, so these errors are not
        # reported. tutti itself checks the result of each call.
        checked = [tool, "--error-exitcode=9", "--report-api-errors=no", self.folder / "bin/tests/device_rank", "kinds", self.cuda]
        for library in self.transports:
            self.launch(2, *checked, library=library, limit=200)
        return "no errors"

    # --- what is written ---

    def write_figures(self):
        self.facts |= machine()
        rows = [row for each in self.comparisons for row in evaluate(each)]
        table = "".join(f"| {' | '.join(row)} |\n" for row in [HEADER, ["---"] * len(HEADER), *rows])
        about = ", ".join(f"{name}: {value}" for name, value in self.facts.items())
        (self.output / "figures.md").write_text(f"2 ranks on one machine; {about}\n\n{table}")
        (self.output / "figures.json").write_text(json.dumps({"facts": self.facts, "comparisons": self.comparisons}, indent=1))
        print(f"\n{about}\n\n{table}")
        return f"written to {self.output / 'figures.md'} and figures.json"

    def part(self, name):
        work = getattr(self, name)
        print(f"\n=== {name}: {work.__doc__}", flush=True)
        start = time.monotonic()
        try:
            if self.missing:
                raise Skipped(self.missing)
            verdict, words = "passed", work()
        except Skipped as reason:
            verdict, words = "skipped", str(reason)
        except Failed as reason:
            verdict, words = "FAILED", str(reason)
        line = f"{name}: {verdict} ({time.monotonic() - start:.0f} s): {words}"
        print(line, flush=True)
        self.report.append(line.splitlines()[0])
        return verdict


HEADER = ["what", "bytes", "tutti, µs", "compared with", "its time, µs", "difference, µs", "ratio of times"]


def machine():
    """Returns the names of the GPU and its driver, if nvidia-smi shows them."""
    try:
        text = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=60, check=True).stdout
        gpu, driver = text.splitlines()[0].split(", ")
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        gpu = driver = "unknown"
    return {"GPU": gpu, "driver": driver}


def evaluate(comparison):
    """Returns rows of the table. A difference or ratio compares two times of the same round. The table has
    the medians over all rounds."""
    us = dict(comparison["us"])
    ours = us.pop("tutti")
    if comparison["what"] == "staged":
        # A staged call can at best be as fast as the slowest of its parts.
        us["the slowest part"] = [max(times) for times in zip(*us.values())]
    for name, theirs in us.items():
        pairs = list(zip(ours, theirs))
        yield [comparison["what"], str(comparison["bytes"]), f"{statistics.median(ours):.1f}", name,
               f"{statistics.median(theirs):.1f}", f"{statistics.median(a - b for a, b in pairs):.1f}",
               f"{statistics.median(a / b for a, b in pairs):.3f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=ROOT / "build/gpu-results", help="for logs and figures")
    parser.add_argument("--quick", action="store_true", help="measures small sizes only")
    options = parser.parse_args()
    shutil.rmtree(options.output, ignore_errors=True)
    options.output.mkdir(parents=True)
    suite = Suite(options.folder.resolve(), options.output.resolve(), options.quick)
    verdicts = [suite.part(name) for name in ("collectives", "figures", "python", "sanitizer")]
    print("\n=== summary\n" + "\n".join(suite.report))
    sys.exit(1 if "FAILED" in verdicts else 0 if "passed" in verdicts else NOTHING_RAN)


if __name__ == "__main__":
    main()
