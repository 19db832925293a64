"""Runs the microbenchmarks (Google Benchmark) and reads their results."""
import json
import subprocess

REPETITIONS = 5


def measure(programs, out, filter_words):
    """Runs the microbenchmarks and returns their medians: name -> Google Benchmark's record."""
    file = out / "micro.json"
    command = [programs / "perf/micro", f"--benchmark_repetitions={REPETITIONS}", "--benchmark_min_time=0.05",
               "--benchmark_enable_random_interleaving=true", "--benchmark_report_aggregates_only=true",
               f"--benchmark_out={file}", "--benchmark_out_format=json", f"--benchmark_filter={filter_words}"]
    subprocess.run(command, check=True)
    return read(file)


def read(file):
    if not file.exists():
        return {}
    records = json.loads(file.read_text())["benchmarks"]
    return {record["run_name"]: record for record in records if record.get("aggregate_name") == "median"}
