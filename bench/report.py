"""Writes the evaluation as Markdown tables and charts."""
import math
import os
import statistics
from pathlib import Path

import chart
from bars import IDEALS, STEP_NS
from evaluate import estimate, judge, short
from instructions import LAYERS
from peers import PEERS
from results import COLLECTIVES, human

PAIRS = (("tutti-tcp", ("gloo", "openmpi-tcp", "mpich-tcp")), ("tutti", ("gloo", "openmpi", "mpich")),
         ("tutti-registered", ("tutti",)))


def table(head, rows, align=None):
    align = align or ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in (head, align, *rows)) + "\n"


def machine():
    """Describes the machine in words."""
    info = Path("/proc/cpuinfo").read_text()
    model = next((line.split(":", 1)[1].strip() for line in info.splitlines() if line.startswith("model name")), "?")
    caches = Path("/sys/devices/system/cpu/cpu0/cache")
    last = max(caches.glob("index*"), default=None)
    cache = f", {(last / 'size').read_text().strip()} last-level cache" if last else ""
    congestion = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    return f"{os.cpu_count()} cores of {model}{cache}, Linux {os.uname().release}, TCP {congestion}"


def failing_cells(found):
    """Returns rows (cell, pair, estimate, bar), with the highest ratio first. `bar` is the highest
    bar that the ratio exceeds."""
    worst = {}
    for verdict in found:
        for cell, peer, ratio in verdict.failing:
            key = (cell, f"{verdict.bar.ours} / {peer}")
            if key not in worst or worst[key][1] < verdict.bar.bar:
                worst[key] = (ratio, verdict.bar.bar)
    order = sorted(worst.items(), key=lambda item: -item[1][0].median)
    return [[cell, pair, ratio, short(bar)] for (cell, pair), (ratio, bar) in order]


def _verdict(verdict):
    if verdict.passed is None:
        return "not measured"
    if not verdict.passed:
        return "**fails**"
    return "holds, within the noise" if verdict.doubtful else "holds"


def verdicts(figures, most=None):
    """Returns a table with a row for each bar. A second table lists the cells above a bar,
    worst first. It has at most `most` rows."""
    found = judge(figures)
    text = table(["bar", "found", "verdict"], [[v.words, v.found, _verdict(v)] for v in found],
                 ["---", "---", "---"])
    failing = failing_cells(found)
    if failing:
        shown = failing[:most]
        of = f" ({len(shown)} of {len(failing)})" if len(shown) < len(failing) else ""
        text += f"\nCells above a bar, the furthest first{of}:\n\n"
        text += table(["cell", "ratio", "median [95 %]", "bar"], shown, ["---", "---", "---:", "---:"])
    stalls = figures.stalls()
    if stalls:
        text += "\nStalled, and not counted: "
        text += "; ".join(f"{peer} with {ranks} ranks in {len(cells)} cells"
                          for (peer, ranks), cells in sorted(stalls.items())) + ".\n"
    return text


def limits(figures, values, units):
    rows = []
    for metric, by_round in values.items():
        found = estimate(by_round.values())
        rows.append([metric, short(found.median), f"{short(found.low)} to {short(found.high)}", units[metric]])
    text = table(["limit", "median", "95 %", "unit"], rows, ["---", "---:", "---:", "---"])
    rows = []
    for ideal in IDEALS:
        for ours in ideal.ours:
            found = figures.ratio(ideal.cell, ours, ideal.name)
            if found:
                rows.append([f"{ours}, {ideal.cell}", ideal.name[len("limit: "):], found, f"{1 / found.median:.0%}"])
    text += "\nTime over the least that the machine could need, and so the share of the limit:\n\n"
    return text + table(["cell", "limit", "median [95 %]", "share"], rows, ["---", "---", "---:", "---:"])


def _ratio_table(figures, ours, peer, ranks):
    cells = [cell for cell in figures.times if cell.ranks == ranks and figures.ratio(cell, ours, peer)]
    sizes = sorted({cell.bytes for cell in cells if cell.collective != "barrier"})
    rows = []
    for collective in COLLECTIVES:
        found = {cell.bytes: figures.ratio(cell, ours, peer) for cell in cells if cell.collective == collective}
        if collective == "barrier" and found:
            rows.append(["barrier", _ratio(found[0]), *[""] * (len(sizes) - 1)])
        elif found:
            rows.append([collective, *[_ratio(found.get(size)) for size in sizes]])
    return table(["", *map(human, sizes)], rows) if rows else ""


def _ratio(found):
    if found is None:
        return "–"
    return f"**{short(found.median)}**" if found.above(1) else short(found.median)


def ratios(figures):
    text = ""
    for ours, peers in PAIRS:
        for peer in peers:
            for ranks in sorted({cell.ranks for cell in figures.times}):
                found = _ratio_table(figures, ours, peer, ranks)
                if found:
                    text += f"\n### {ours} / {peer}, {ranks} ranks\n\n{found}"
    return text


def means(figures):
    """Returns the geometric means in one small table."""
    bars = [v for v in judge(figures) if hasattr(v.bar, "size_class")]
    rows = [[f"{bar.bar.ours} / {bar.bar.peer}, {bar.bar.size_class.name}", bar.found, bar.bar.bar] for bar in bars]
    return table(["geometric mean of the ratios", "found", "bar"], rows)


def medians(figures):
    """Yields (peer, cell, median microseconds) for the results of PEERS. Stalled rounds are left out."""
    for cell in sorted(figures.times, key=lambda c: (COLLECTIVES.index(c.collective), c.ranks, c.bytes)):
        for peer, rounds in figures.times[cell].items():
            finite = [time for number, time in rounds.items() if not figures.stalled(cell, peer, number)]
            if finite and peer in PEERS:
                yield peer, cell, statistics.median(finite)


def charts(figures):
    """Returns a map from file names to SVG charts of time over size. There is a chart for each
    number of ranks, and one for all_reduce alone."""
    lines = {}
    for peer, cell, median in medians(figures):
        if cell.bytes:
            lines.setdefault((cell.collective, cell.ranks), {}).setdefault(peer, []).append((cell.bytes, median))
    panels = {key: chart.Panel(f"{key[0]}, {key[1]} ranks", found) for key, found in lines.items()}
    made = {f"times-{ranks}-ranks.svg": chart.svg([p for (_, n), p in panels.items() if n == ranks], 3)
            for ranks in sorted({ranks for _, ranks in panels})}
    all_reduce = [panel for (collective, _), panel in panels.items() if collective == "all_reduce"]
    if all_reduce:
        made["all_reduce.svg"] = chart.svg(all_reduce, 2)
    return made


def micro(found):
    """Returns a table of names and times. Some rows also have a rate or the time of a step. The first row compares the
    slowest step with its limit."""
    rows = []
    slowest = max((record["per_step"] * 1e9 for record in found.values() if "per_step" in record), default=None)
    if slowest is not None:
        verdict = "holds" if slowest <= STEP_NS else "**fails**"
        rows.append([f"the most expensive step, ≤ {STEP_NS} ns", f"{short(slowest)} ns", verdict])
    for name, record in sorted(found.items()):
        extra = ""
        if "per_step" in record:
            extra = f"{short(record['per_step'] * 1e9)} ns per step"
        elif "bytes_per_second" in record:
            extra = f"{short(record['bytes_per_second'] / 1e9)} GB/s"
        rows.append([name.removesuffix("/real_time"), f"{short(record['real_time'])} {record['time_unit']}", extra])
    return table(["microbenchmark", "median", ""], rows)


def instructions(counts):
    """Returns a table with a row for each layer that executes instructions, and a row for the sum."""
    layers = [layer for layer in LAYERS if any(count.get(layer, 0) >= 1 for count in counts.values())]
    rows = [[f"`{layer}/`" if layer not in ("program", "libraries") else layer,
             *[str(round(count[layer])) for count in counts.values()]] for layer in layers]
    rows.append(["all", *[str(round(count["all"])) for count in counts.values()]])
    return table(["instructions per operation", *counts], rows)


def load(rows):
    """Returns a sentence about how much other processes disturbed the launches."""
    others = sorted(float(row["others_pct"]) for row in rows if row["others_pct"])
    if not others:
        return ""
    return (f"Other processes used {short(statistics.median(others))} % of the machine during half of the launches, "
            f"at most {short(others[math.ceil(0.9 * len(others)) - 1])} % during nine of ten.")
