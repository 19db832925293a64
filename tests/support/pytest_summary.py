"""Writes the number of tests, and the skipped tests with their reasons, to the file that `./dev
test` prints at its end."""
import os

_counts = {"passed": 0, "failed": 0, "skipped": 0}
_lines = []


def pytest_runtest_logreport(report):
    if report.skipped:
        _counts["skipped"] += 1
        _lines.append(f"skip {report.nodeid}: {report.longrepr[2]}\n")
    elif report.failed:
        _counts["failed"] += 1
    elif report.when == "call":
        _counts["passed"] += 1


def pytest_sessionfinish():
    path = os.environ.get("TEST_SUMMARY")
    if path is None:
        return
    total = sum(_counts.values())
    _lines.append(f"ran {total} passed {_counts['passed']} failed {_counts['failed']} skipped {_counts['skipped']}\n")
    with open(path, "a") as file:
        file.write("".join(_lines))
