"""Reports to `./dev test` how many tests ran, and why some were skipped, as tests/house/test_main.cc does."""

import os


def pytest_terminal_summary(terminalreporter):
    path = os.environ.get("TEST_SUMMARY")
    if path is None or os.environ.get("TUTTI_RANK", "0") != "0":
        return
    stats = terminalreporter.stats
    passed, failed, skipped = (len(stats.get(kind, ())) for kind in ("passed", "failed", "skipped"))
    failed += len(stats.get("error", ()))
    lines = [f"skip {report.nodeid}: {report.longrepr[2]}\n" for report in stats.get("skipped", ())]
    lines.append(f"ran {passed + failed + skipped} passed {passed} failed {failed} skipped {skipped}\n")
    # Many test programs share the file, so all lines are appended in a single write.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(descriptor, "".join(lines).encode())
    os.close(descriptor)
