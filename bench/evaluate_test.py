"""Tests the code that decides whether a bar is met, with invented figures for which the answer is known."""
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

import chart
import predictions
import publish
import results
import starting
from bars import BARS, HOST_BARS, MEDIUM, Cells, Mean, One
from evaluate import Figures, estimate, judge

CELL = results.Cell("all_reduce", 2, 65536)
CROWDED = results.Cell("all_reduce", 4, 65536)


def figures(times, limits=None, cores=2, bars=BARS):
    """Makes Figures from `times`, which maps a cell and then a peer to the times of rounds 1, 2, ..."""
    rows = [{"collective": cell.collective, "ranks": cell.ranks, "bytes": cell.bytes, "peer": peer, "round": i + 1,
             "lat_us_median": time}
            for cell, by_peer in times.items() for peer, series in by_peer.items() for i, time in enumerate(series)]
    return Figures(results.times(rows), limits or {}, cores, bars)


def verdict(found, kind, **fields):
    return next(v for v in judge(found) if isinstance(v.bar, kind)
                and all(getattr(v.bar, name) == value for name, value in fields.items()))


class Estimates(unittest.TestCase):
    def test_interval_holds_the_median_and_widens_with_the_spread(self):
        narrow, wide = estimate([1.0, 1.01, 1.02] * 4), estimate([0.5, 1.0, 2.0] * 4)
        self.assertTrue(narrow.low <= narrow.median <= narrow.high)
        self.assertGreater(wide.high - wide.low, narrow.high - narrow.low)

    def test_one_outlier_moves_nothing(self):
        self.assertLess(estimate([1.0] * 9 + [1000.0]).high, 1.1)

    def test_above_only_with_the_whole_interval(self):
        self.assertFalse(estimate([0.9, 1.2] * 5).above(1.0))
        self.assertTrue(estimate([1.1, 1.2] * 5).above(1.0))


class Ratios(unittest.TestCase):
    def test_are_of_the_same_round(self):
        found = figures({CELL: {"tutti": [1, 10, 100], "gloo": [2, 20, 200]}}).ratio(CELL, "tutti", "gloo")
        self.assertEqual((found.low, found.median, found.high), (0.5, 0.5, 0.5))

    def test_rounds_that_only_one_has_are_left_out(self):
        found = figures({CELL: {"tutti": [1, 1], "gloo": [2]}}).ratio(CELL, "tutti", "gloo")
        self.assertEqual(found.rounds, 1)

    def test_a_spinning_peer_without_cores_is_no_win(self):
        times = {cell: {"tutti": [10] * 3, "mpich": [5000] * 3, "openmpi": [20] * 3} for cell in (CELL, CROWDED)}
        found = figures(times)
        self.assertIsNone(found.ratio(CROWDED, "tutti", "mpich"))
        self.assertIsNotNone(found.ratio(CELL, "tutti", "mpich"))
        self.assertEqual(found.stalls(), {("mpich", 4): {CROWDED}})

    def test_a_peer_that_stalled_is_no_win_and_a_tutti_that_stalled_is_a_failure(self):
        self.assertIsNone(figures({CELL: {"tutti": [1], "gloo": ["stalled"]}}).ratio(CELL, "tutti", "gloo"))
        found = figures({CELL: {"tutti": ["stalled"] * 3, "gloo": [1] * 3}})
        self.assertTrue(math.isinf(found.ratio(CELL, "tutti", "gloo").median))
        self.assertFalse(verdict(found, Cells, ours="tutti", peers=("gloo",)).passed)


class Limits(unittest.TestCase):
    def test_the_best_round_is_the_fastest_of_times_and_the_largest_of_rates(self):
        rows = [{"metric": metric, "unit": unit, "round": number, "value": value}
                for metric, unit, values in (("line", "us", (0.1, 9)), ("copy", "GB/s", (5, 20)))
                for number, value in enumerate(values)]
        self.assertEqual(results.limits(rows)["line"], {0: 0.1, 1: 9})
        self.assertEqual(results.limits(rows, best=True), {"line": {0: 0.1, 1: 0.1}, "copy": {0: 20, 1: 20}})


class Verdicts(unittest.TestCase):
    def test_geometric_mean(self):
        other = results.Cell("broadcast", 2, 65536)
        found = figures({CELL: {"tutti": [1] * 5, "gloo": [100] * 5}, other: {"tutti": [1] * 5, "gloo": [4] * 5}})
        self.assertTrue(verdict(found, Mean, ours="tutti", size_class=MEDIUM).passed)  # 0.05
        found = figures({CELL: {"tutti": [1] * 5, "gloo": [10] * 5}, other: {"tutti": [1] * 5, "gloo": [4] * 5}})
        self.assertFalse(verdict(found, Mean, ours="tutti", size_class=MEDIUM).passed)  # 0.158

    def test_nine_of_ten(self):
        cells = [results.Cell("all_reduce", 2, 1 << i) for i in range(2, 12)]
        times = {cell: {"tutti": [1] * 5, "openmpi": [2] * 5} for cell in cells}
        times[cells[0]]["tutti"] = [3] * 5
        share = {"ours": "tutti", "peers": ("openmpi", "mpich"), "bar": 1.0}
        self.assertTrue(verdict(figures(times), Cells, **share).passed)
        times[cells[1]]["tutti"] = [3] * 5
        self.assertFalse(verdict(figures(times), Cells, **share).passed)

    def test_against_the_fastest_of_each_round_and_against_the_limit(self):
        cell = results.Cell("all_reduce", 2, 64 << 20)
        times = {cell: {"tutti": [10] * 5, "tutti-registered": [10_000] * 5, "gloo": [100] * 5, "mpich": [15] * 5}}
        limits = {"all_reduce_64MiB_2threads": {i: 8.0 for i in range(1, 6)}}  # GB/s: 8389 us
        found = figures(times, limits)
        self.assertFalse(verdict(found, One, ours="tutti", cell=cell).passed)  # 0.67
        self.assertTrue(verdict(found, One, ours="tutti-registered").passed)  # 1.19

    def test_a_bar_that_holds_by_wide_intervals_only_is_told_apart(self):
        found = verdict(figures({CELL: {"tutti": [0.4, 0.9] * 5, "gloo": [1] * 10}}), Mean, ours="tutti",
                        size_class=MEDIUM)
        self.assertFalse(found.passed)
        found = verdict(figures({CELL: {"tutti": [0.1, 0.2] * 5, "gloo": [1] * 10}}), Mean, ours="tutti",
                        size_class=MEDIUM)
        self.assertTrue(found.passed and found.doubtful)

    def test_nothing_measured_is_no_pass(self):
        self.assertTrue(all(v.passed is None for v in judge(figures({}))))


class AcrossHosts(unittest.TestCase):
    TIMES = {CROWDED: {"tutti": [10, 12, 14], "gloo": [100] * 3, "openmpi": [8] * 3, "tutti-two-level": [20] * 3}}

    def test_has_bars_of_its_own(self):
        found = judge(figures(self.TIMES, bars=HOST_BARS))
        self.assertEqual([(v.bar.peers, v.bar.bar, v.passed) for v in found],
                         [(("openmpi",), 1.0, False), (("openmpi",), 1.5, True), (("gloo",), 1.0, True),
                          (("tutti-two-level",), 1.0, True)])

    def test_a_prediction_is_compared_with_the_lowest_time(self):
        printed = ["# costs", "collective,bytes,ranks,measured_us,predicted_us,ratio,algorithm",
                   "all_reduce,65536,4,10,5,0.5,leaders", "# 4 ranks, up to 64 KiB: 1 cells"]
        rows = [dict(zip(predictions.COLUMNS, [*line, number])) for number in (1, 2, 3)
                for line in predictions.parse(printed)]
        found = figures(self.TIMES, bars=HOST_BARS)
        predicted = predictions.Predictions(rows, found)
        self.assertEqual(predicted.ratio(CROWDED), 0.5)
        self.assertIn("| 2 hosts of 2 ranks | 1 | 0.500 | 2.00 | 2.00 | **fails** |", predictions.errors(predicted, 2))
        self.assertIn("| all_reduce, 64 KiB | 12.0 | 10.0 | 5.00 | 0.500 | leaders | 8.00 |",
                      predictions.times(predicted, found, 2))

    def test_a_stalled_tutti_has_no_prediction(self):
        found = figures({CROWDED: {"tutti": ["stalled"], "gloo": [1], "openmpi": [1]}}, bars=HOST_BARS)
        rows = [dict(zip(predictions.COLUMNS, ["all_reduce", "65536", "4", "1", "5", "5", "leaders", 1]))]
        predicted = predictions.Predictions(rows, found)
        self.assertEqual(predictions.errors(predicted, 2), "")
        self.assertIn("all_reduce, 64 KiB", predictions.times(predicted, found, 2))


class Starting(unittest.TestCase):
    @staticmethod
    def rows(*starts):
        """Makes rows from (hosts, ranks, round, seconds until all have met)."""
        return [dict(zip(starting.COLUMNS, map(str, [hosts, ranks, 0.5, met, 4, 6, 3, 24 if number == 1 else "", number, 0])))
                for hosts, ranks, number, met in starts]

    def test_figures_are_those_of_the_last_rank(self):
        lines = ["rank 0 began 2000000000 met 7000000000 tcp 3 local 1", "noise",
                 "rank 1 began 4000000000 met 6000000000 tcp 1 local 1"]
        found = starting.Start(1_000_000_000, lines, 2)
        self.assertEqual((found.launched_s, found.met_s, found.tcp, found.local), (3.0, 6.0, [3, 1], [1, 1]))
        with self.assertRaises(starting.StartError):
            starting.Start(0, lines, 3)

    def test_curve_has_a_row_for_each_number_of_ranks_on_this_machine(self):
        text = starting.curve(self.rows((1, 8, 1, 0.3), (1, 2, 1, 0.1), (1, 2, 2, 0.1), (8, 8, 1, 9)))
        self.assertIn("| 2 | 500 | 100 [100, 100] | 4 | 6 | 3 | 24 | 12.0 |\n| 8 | 500 | 300", text)
        self.assertNotIn("9000", text)

    def test_hosts_are_compared_within_a_round(self):
        rows = self.rows(*[(hosts, 64, number, hosts ** 0.5 * number) for hosts in (1, 4) for number in (1, 2, 3)])
        self.assertIn("| 4 hosts of 16 ranks | 500 | 2000 | 500 | 4000 | 2.00 [2.00, 2.00] | holds |",
                      starting.comparison(rows))
        rows = self.rows(*[(hosts, 64, number, hosts) for hosts in (1, 4) for number in (1, 2, 3)])
        self.assertIn("| 4.00 [4.00, 4.00] | **fails** |", starting.comparison(rows))
        self.assertEqual(starting.comparison(self.rows((1, 64, 1, 1))), "Not measured.\n")


class Output(unittest.TestCase):
    def test_chart_is_well_formed(self):
        from xml.etree import ElementTree
        lines = {"tutti": [(8, 1.0), (65536, 30.0)], "gloo": [(8, 90.0)], "limit: memcpy": [(8, 0.1)]}
        ElementTree.fromstring(chart.svg([chart.Panel("all_reduce <2 ranks>", lines)] * 4, 3))

    def test_sections_are_replaced_and_other_text_is_kept(self):
        page = "a\n<!-- bench: run -->\nold\n<!-- bench: end -->\nb\n<!-- bench: x -->\nx\n<!-- bench: end -->\n"
        new = publish.replace_section(page, "run", "new\n")
        self.assertEqual(new, page.replace("old", "new"))
        self.assertEqual(publish.replace_section(page, "none", "new"), page)

    def test_cells_of_a_launch(self):
        names = [str(cell) for cell in results.cells(["pingpong", "barrier", "gather"], [8], 4)]
        self.assertEqual(names, ["barrier, 4 ranks", "gather of 8 B, 4 ranks"])

    def test_a_folder_without_figures(self):
        program = pathlib.Path(__file__).with_name("bench.py")
        with tempfile.TemporaryDirectory() as folder:
            ended = subprocess.run([sys.executable, program, "--evaluate", "--out", folder], capture_output=True,
                                   text=True)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("no figures to evaluate", ended.stderr)


if __name__ == "__main__":
    unittest.main()
