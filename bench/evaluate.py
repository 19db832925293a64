"""Computes ratios with confidence intervals from the results, and a verdict for each bar."""
import math
import random
import statistics
from dataclasses import dataclass, field

from bars import BARS, IDEALS, STALL_FACTOR, STALL_US, Cells, Mean, One
from peers import PEERS

RESAMPLES = 1000


@dataclass(frozen=True)
class Estimate:
    """Holds a median over rounds and its 95 % bootstrap interval."""

    median: float
    low: float
    high: float
    rounds: int

    def above(self, bar):
        return self.low > bar

    def __str__(self):
        return f"{short(self.median)} [{short(self.low)}, {short(self.high)}]"


@dataclass
class Verdict:
    bar: object
    words: str  # the condition
    found: str
    passed: object  # True, False, or None if nothing was measured
    failing: list = field(default_factory=list)  # (cell, peer, Estimate)
    # True if the medians are above the bar. The bar may still be met, but only because the intervals
    # are wide.
    doubtful: bool = False


def short(value):
    """Formats a number with three significant digits and no exponent."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def estimate(values):
    values = list(values)
    if not values:
        return None
    # The seed is fixed, so that the same numbers give the same interval each time.
    source = random.Random(len(values))
    medians = sorted(statistics.median(source.choices(values, k=len(values))) for _ in range(RESAMPLES))
    tail = RESAMPLES // 40
    return Estimate(statistics.median(values), medians[tail], medians[-1 - tail], len(values))


class Figures:
    """Holds the measured times by cell, peer and round. The machine's limits count as peers."""

    def __init__(self, times, limits, cores, bars=BARS):
        self.times = times
        self.cores = cores
        self.bars = bars
        for ideal in IDEALS:
            for number, value in limits.get(ideal.metric, {}).items():
                is_time = not ideal.metric.startswith(("memcpy", "tcp_stream", "all_reduce"))
                self.times[ideal.cell][ideal.name][number] = value if is_time else ideal.cell.bytes / value / 1e3
        self._ratios = {}

    def peers(self):
        return {peer for by_peer in self.times.values() for peer in by_peer}

    def stalled(self, cell, peer, number):
        time = self.times[cell][peer][number]
        if math.isinf(time):
            return True
        if peer not in PEERS or not PEERS[peer].spins or cell.ranks <= self.cores or time < STALL_US:
            return False
        return time > STALL_FACTOR * min(rounds[number] for rounds in self.times[cell].values() if number in rounds)

    def ratios(self, cell, ours, peers):
        """Maps each round to the time of `ours` divided by the time of the fastest of `peers`. Ignores peers
        that stalled."""
        mine = self.times.get(cell, {}).get(ours, {})
        found = {}
        for number, time in mine.items():
            theirs = [self.times[cell][peer][number] for peer in peers
                      if number in self.times[cell].get(peer, {}) and not self.stalled(cell, peer, number)]
            if theirs:
                found[number] = time / min(theirs)
        return found

    def ratio(self, cell, ours, peer):
        """Returns the estimated ratio of `ours` to `peer` in one cell, or None if they have no round in common."""
        key = (cell, ours, peer)
        if key not in self._ratios:
            self._ratios[key] = estimate(self.ratios(cell, ours, (peer,)).values())
        return self._ratios[key]

    def stalls(self):
        """Maps (peer, number of ranks) to the cells that stalled in some round."""
        found = {}
        for cell, by_peer in self.times.items():
            for peer, rounds in by_peer.items():
                if any(self.stalled(cell, peer, number) for number in rounds):
                    found.setdefault((peer, cell.ranks), set()).add(cell)
        return found


def _mean(figures, bar):
    by_round = {}
    for cell in figures.times:
        if bar.size_class.has(cell):
            for number, ratio in figures.ratios(cell, bar.ours, (bar.peer,)).items():
                by_round.setdefault(number, {})[cell] = math.log(ratio) if ratio < math.inf else math.inf
    # An interrupted round lacks many cells and is left out. The mean covers the cells that all
    # remaining rounds have.
    most = max(map(len, by_round.values()), default=0)
    whole = [logs for logs in by_round.values() if len(logs) >= 0.9 * most]
    common = set.intersection(*map(set, whole)) if whole else ()
    words = f"{bar.ours} / {bar.peer}, geometric mean over {bar.size_class.name}: ≤ {bar.bar}"
    if not common:
        return Verdict(bar, words, "not measured", None)
    found = estimate(math.exp(statistics.fmean(logs[cell] for cell in common)) for logs in whole)
    return Verdict(bar, words, f"{found} over {len(common)} cells", not found.above(bar.bar),
                   doubtful=found.median > bar.bar)


def _cells(figures, bar):
    count, above, failing = 0, 0, []
    for cell in sorted(figures.times):
        for peer in bar.peers:
            found = figures.ratio(cell, bar.ours, peer)
            if found is not None:
                count += 1
                above += found.median > bar.bar
                if found.above(bar.bar):
                    failing.append((cell, peer, found))
    share = "every cell" if bar.share == 1 else f"{bar.share:.0%} of the cells"
    words = f"{bar.ours} / {', '.join(bar.peers)}: {share} ≤ {bar.bar}"
    if not count:
        return Verdict(bar, words, "not measured", None)
    return Verdict(bar, words, f"{count - len(failing)} of {count} cells ({1 - len(failing) / count:.0%}), "
                               f"{count - above} by their medians",
                   count - len(failing) >= bar.share * count, failing, count - above < bar.share * count)


def _one(figures, bar):
    found = estimate(figures.ratios(bar.cell, bar.ours, bar.peers).values())
    of = "the fastest peer" if len(bar.peers) > 1 else bar.peers[0]
    words = f"{bar.ours} / {of}, {bar.cell}: ≤ {short(bar.bar)}"
    if found is None:
        return Verdict(bar, words, "not measured", None)
    failing = [(bar.cell, of, found)] if found.above(bar.bar) else []
    return Verdict(bar, words, str(found), not failing, failing, found.median > bar.bar)


def judge(figures):
    """Returns a verdict for each bar."""
    how = {Mean: _mean, Cells: _cells, One: _one}
    return [how[type(bar)](figures, bar) for bar in figures.bars]
