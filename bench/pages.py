"""Evaluates the results of `./dev bench` and makes the sections of the pages that show them."""
import json
import os
import shutil
import subprocess

import micro
import predictions
import report
import results
import starting
from bars import BARS, HOST_BARS
from evaluate import Figures


def sections(options, root):
    """Returns the sections by their names. Writes report.md, the charts and the summary, and prints the verdicts."""
    if options.starting:
        return _starting(options, root)
    if options.hosts:
        return _across_hosts(options, root)
    made = {}
    found = micro.read(options.out / "micro.json")
    if found:
        made["micro"] = f"On {report.machine()}.\n\n{report.micro(found)}"
    counts = options.out / "instructions.json"
    if counts.exists():
        counted = report.instructions(json.loads(counts.read_text()))
        made["instructions"] = f"On {report.machine()}.\n\n{counted}"
    if (options.out / "results.csv").exists():
        made.update(_on_one_host(options, root))
    return made


def _run(options, rows, root):
    rounds = len({row["round"] for row in rows})
    return (f"{rounds} interleaved rounds on {report.machine()}, commit {_commit(root)}; of each launch the "
            f"{'median' if options.by == 'median' else 'best'} of its batches. {report.load(rows)}\n")


def _write_summary(path, figures):
    path.unlink(missing_ok=True)
    results.append(path, ["peer", "collective", "ranks", "bytes", "median_us"],
                   [[peer, cell.collective, cell.ranks, cell.bytes, f"{median:.3f}"]
                    for peer, cell, median in report.medians(figures)])


def _on_one_host(options, root):
    rows, limit_rows = results.read(options.out / "results.csv"), results.read(options.out / "limits.csv")
    limits = results.limits(limit_rows, best=options.by == "min")
    figures = Figures(results.times(rows, f"lat_us_{options.by}"), limits, os.cpu_count(), BARS)
    made = {
        "run": _run(options, rows, root),
        "verdicts": report.verdicts(figures),
        "means": report.means(figures),
        "limits": report.limits(figures, limits, {row["metric"]: row["unit"] for row in limit_rows}),
        "ratios": report.ratios(figures),
    }
    (options.out / "report.md").write_text(
        "# Side by side\n\n" + "\n".join(made[name] for name in ("run", "verdicts", "limits", "ratios")))
    for name, svg in report.charts(figures).items():
        (options.out / name).write_text(svg)
    _write_summary(options.out / "summary.csv", figures)
    if not (options.micro or options.instructions):
        print("\n".join([made["run"], report.verdicts(figures, most=30), made["limits"]]))
    return made


def _across_hosts(options, root):
    rows = results.read(options.out / "results.csv")
    if not rows:
        return {}
    figures = Figures(results.times(rows, f"lat_us_{options.by}"), {}, os.cpu_count(), HOST_BARS)
    predicted = predictions.Predictions(results.read(options.out / "predictions.csv"), figures)
    made = {
        "hosts run": _run(options, rows, root),
        "hosts verdicts": report.verdicts(figures),
        "hosts predictions": predictions.errors(predicted, options.ranks_per_host),
        "hosts times": predictions.times(predicted, figures, options.ranks_per_host),
    }
    (options.out / "report.md").write_text("# Across hosts\n\n" + "\n".join(made.values()))
    _write_summary(options.out / "hosts.csv", figures)
    print("\n".join([made["hosts run"], report.verdicts(figures, most=30), made["hosts predictions"]]))
    return made


def _starting(options, root):
    rows = results.read(options.out / "starting.csv")
    if not rows:
        return {}
    rounds = len({row["round"] for row in rows})
    made = {
        "starting run": f"{rounds} rounds on {report.machine()}, commit {_commit(root)}. {report.load(rows)}\n",
        "starting curve": starting.curve(rows),
        "starting hosts": starting.comparison(rows),
    }
    (options.out / "report.md").write_text("# Starting\n\n" + "\n".join(made.values()))
    print("\n".join(made.values()))
    return made


def _commit(root):
    if not shutil.which("git"):
        return "unknown"
    found = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"], capture_output=True, text=True,
                           check=False)
    return found.stdout.strip() or "unknown"
