#!/usr/bin/env python3
"""Plots the times that `tutti explain --scaling` estimates for every algorithm, against the number of ranks.

    scaling.py TUTTI FOLDER    writes a chart for each vector size into FOLDER
"""
import collections
import csv
import io
import math
import pathlib
import subprocess
import sys
from xml.sax.saxutils import escape

from chart import STYLE, time_words

PALETTE = ["#d9480f", "#1971c2", "#2b8a3e", "#9c36b5", "#e8a400", "#0b7285", "#c2255c"]
WIDTH, HEIGHT = 330, 240  # of a panel's plot
LEFT, TOP, RIGHT, BOTTOM = 66, 30, 96, 42
COLUMNS = 2


def decades(values):
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


class Panel:
    """Shows one collective: the lower bound, and a line for each algorithm. Dots mark simulated times."""

    def __init__(self, title, rows, left, top):
        self.title, self.rows, self.left, self.top = title, rows, left + LEFT, top + TOP
        self.ranks = sorted({int(row["ranks"]) for row in rows})
        times = [float(row[column]) * 1e6 for row in rows for column in ("seconds", "bound")]
        self.low, self.high = decades([time for time in times if time > 0])

    def x(self, ranks):
        first, last = math.log2(self.ranks[0]), math.log2(self.ranks[-1])
        return self.left + (math.log2(ranks) - first) / (last - first) * WIDTH

    def y(self, microseconds):
        return self.top + (self.high - math.log10(microseconds)) / (self.high - self.low) * HEIGHT

    def grid(self):
        parts = [f'<text class="title" x="{self.left}" y="{self.top - 10}">{escape(self.title)}</text>']
        for exponent in range(self.low, self.high + 1):
            y = self.y(10**exponent)
            parts.append(f'<line class="grid" x1="{self.left}" y1="{y:.1f}" x2="{self.left + WIDTH}" y2="{y:.1f}"/>')
            parts.append(f'<text class="small" text-anchor="end" x="{self.left - 5}" y="{y + 3:.1f}">'
                         f"{time_words(10**exponent)}</text>")
        for ranks in (8, 64, 512, 4096, 32768, 100000):
            x = self.x(ranks)
            parts.append(f'<line class="grid" x1="{x:.1f}" y1="{self.top}" x2="{x:.1f}" y2="{self.top + HEIGHT}"/>')
            parts.append(f'<text class="small" text-anchor="middle" x="{x:.1f}" y="{self.top + HEIGHT + 14}">{ranks}'
                         "</text>")
        parts.append(f'<rect class="frame" x="{self.left}" y="{self.top}" width="{WIDTH}" height="{HEIGHT}"/>')
        parts.append(f'<text class="small" text-anchor="middle" x="{self.left + WIDTH / 2}" '
                     f'y="{self.top + HEIGHT + 30}">ranks, 8 on each host</text>')
        return parts

    def line(self, name, points, color, dash=""):
        path = " ".join(f"{self.x(ranks):.1f},{self.y(time):.1f}" for ranks, time, _ in points)
        parts = [f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.6"{dash}>'
                 f"<title>{escape(name)}</title></polyline>"]
        parts += [f'<circle cx="{self.x(ranks):.1f}" cy="{self.y(time):.1f}" r="2" fill="{color}"/>'
                  for ranks, time, how in points if how == "events"]
        return parts

    def draw(self):
        lines = collections.defaultdict(list)
        bound = {}
        for row in self.rows:
            lines[row["algorithm"]].append((int(row["ranks"]), float(row["seconds"]) * 1e6, row["how"]))
            bound[int(row["ranks"])] = float(row["bound"]) * 1e6
        parts = self.grid()
        points = [(ranks, time, "bound") for ranks, time in sorted(bound.items()) if time > 0]
        parts += self.line("lower bound", points, "#868e96", ' stroke-dasharray="2 3"')
        names = [("lower bound", "#868e96")]
        for color, (name, points) in zip(PALETTE, lines.items()):
            parts += self.line(name, sorted(points), color)
            names.append((name, color))
        for i, (name, color) in enumerate(names):
            parts.append(f'<text class="small" x="{self.left + WIDTH + 5}" y="{self.top + 12 + 14 * i}" '
                         f'style="fill:{color}">{escape(name.replace("_", " "))}</text>')
        return parts


def svg(rows):
    step_x, step_y = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM
    names = list(dict.fromkeys(row["collective"] for row in rows))
    parts = []
    for i, name in enumerate(names):
        cells = [row for row in rows if row["collective"] == name]
        parts += Panel(name, cells, i % COLUMNS * step_x, i // COLUMNS * step_y).draw()
    width, height = COLUMNS * step_x, math.ceil(len(names) / COLUMNS) * step_y
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return "\n".join([head, f"<style>{STYLE}</style>", f'<rect class="page" width="{width}" height="{height}"/>',
                      *parts, "</svg>", ""])


def main():
    tutti, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    text = subprocess.run([tutti, "explain", "--scaling"], check=True, capture_output=True, text=True).stdout
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(csv.DictReader(io.StringIO(text)))
    for size in sorted({int(row["bytes"]) for row in rows}):
        cells = [row for row in rows if int(row["bytes"]) == size]
        (folder / f"{size}-bytes.svg").write_text(svg(cells), encoding="utf-8")


if __name__ == "__main__":
    main()
