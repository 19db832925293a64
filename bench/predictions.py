"""Compares the times that tutti takes across hosts with the times that its simulator predicts."""
import csv
import math
import statistics

import results
from evaluate import short
from report import table

COLUMNS = ["collective", "bytes", "ranks", "measured_us", "predicted_us", "ratio", "algorithm", "round"]
MOST_ERROR = 1.2  # the bar for the mean error, as a factor
PEERS = ("openmpi", "gloo")


def commands(place, ranks, rows):
    """Returns the commands that print a prediction for each row of results. Ranks on the hosts
    measure the costs of messages for the predictions."""
    file = place.scratch / "measured.csv"
    results.append(file, results.COLUMNS, [[row[column] for column in results.COLUMNS] for row in rows])
    start = [str(place.programs / "tutti"), "run", "-H", place.hosts(ranks), "--agent", place.network.agent(), "--"]
    return [place.on_host_of(0, [*start, str(place.programs / "tutti"), "explain", "--job", "--validate", str(file)])]


def parse(lines):
    """Returns the rows that `tutti explain --validate` has printed."""
    rows = list(csv.reader(line for line in lines if "," in line and not line.startswith("#")))
    return [row for row in rows if len(row) == len(COLUMNS) - 1 and row[0] != COLUMNS[0]]


class Predictions:
    """Holds the predicted times by cell. Predictions ignore other load on the machine, so each is compared with the
    lowest time that was measured in any round."""

    def __init__(self, rows, figures):
        self.predicted, self.algorithms = {}, {}
        self.lowest = {cell: min(by_peer["tutti"].values()) for cell, by_peer in figures.times.items()
                       if by_peer.get("tutti")}
        for row in rows:
            cell = results.Cell(row["collective"], int(row["ranks"]), int(row["bytes"]))
            if math.isfinite(self.lowest.get(cell, math.inf)):
                self.predicted.setdefault(cell, []).append(float(row["predicted_us"]))
                self.algorithms.setdefault(cell, []).append(row["algorithm"])

    def cells(self):
        return self.predicted.keys()

    def time(self, cell):
        return statistics.median(self.predicted[cell])

    def ratio(self, cell):
        return self.time(cell) / self.lowest[cell]

    def algorithm(self, cell):
        return statistics.mode(self.algorithms[cell])


def hosts_words(ranks, ranks_per_host):
    return f"{ranks // ranks_per_host} hosts of {ranks_per_host} ranks"


def errors(predicted, ranks_per_host):
    """Returns a table of the predictions' errors by number of hosts and in total. An error is the factor by which a
    prediction is too large or too small."""
    rows = []
    for ranks in (*sorted({cell.ranks for cell in predicted.cells()}), None):
        logs = [math.log(predicted.ratio(cell)) for cell in predicted.cells() if ranks in (None, cell.ranks)]
        if not logs:
            continue
        error = math.exp(statistics.fmean(map(abs, logs)))
        verdict = "holds" if error <= MOST_ERROR else "**fails**"
        rows.append([hosts_words(ranks, ranks_per_host) if ranks else "all", len(logs),
                     short(math.exp(statistics.fmean(logs))), short(error), short(math.exp(max(map(abs, logs)))), verdict])
    head = ["prediction / measurement", "cells", "bias", "mean error", "worst", f"mean error ≤ {MOST_ERROR}"]
    return table(head, rows) if rows else ""


def times(predicted, figures, ranks_per_host):
    """Returns, for each number of hosts, a table of all cells: the times of tutti and its peers, and the predictions."""
    text = ""
    for ranks in sorted({cell.ranks for cell in figures.times}):
        rows = []
        for collective in results.COLLECTIVES:
            for cell in sorted(cell for cell in figures.times if cell.collective == collective and cell.ranks == ranks):
                rows.append(_row(cell, predicted, figures))
        head = ["", "tutti, us", "lowest", "predicted", "/ lowest", "by"]
        for peer in PEERS:
            head += [f"{peer}, us", f"tutti / {peer}"]
        text += f"\n### {hosts_words(ranks, ranks_per_host)}\n\n{table(head, rows)}"
    return text


def _row(cell, predicted, figures):
    def microseconds(peer):
        finite = [time for time in figures.times[cell].get(peer, {}).values() if math.isfinite(time)]
        return short(statistics.median(finite)) if finite else "–"

    row = [f"{cell.collective}, {results.human(cell.bytes)}", microseconds("tutti")]
    if cell in predicted.cells():
        row += [short(predicted.lowest[cell]), short(predicted.time(cell)), short(predicted.ratio(cell)),
                predicted.algorithm(cell).replace("_", " ")]
    else:
        row += ["–"] * 4
    for peer in PEERS:
        ratio = figures.ratio(cell, "tutti", peer)
        mark = "**" if ratio is not None and ratio.above(1) else ""
        row += [microseconds(peer), f"{mark}{ratio}{mark}" if ratio is not None else "–"]
    return row
