"""Writes small SVG charts of time over size. The panels have lines on logarithmic axes, and fit
light and dark pages."""
import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

from results import human

# Each library has a colour that is easy to see on both backgrounds. Its variants differ by their dashes.
COLORS = {"tutti": "#d9480f", "gloo": "#2b8a3e", "openmpi": "#1971c2", "mpich": "#9c36b5", "limit": "#868e96"}
DASHES = {"tutti-tcp": "6 3", "openmpi-tcp": "6 3", "mpich-tcp": "6 3", "tutti-registered": "2 2", "limit": "1 3"}
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #343a40 }
.title { font-weight: 600 } .small { font-size: 10px }
.page { fill: #ffffff } .grid { stroke: #dee2e6 } .frame { stroke: #868e96; fill: none }
@media (prefers-color-scheme: dark) {
  text { fill: #dee2e6 } .page { fill: #0d1117 } .grid { stroke: #343a40 }
}"""

WIDTH, HEIGHT = 300, 220  # of a panel's plot
LEFT, TOP, RIGHT, BOTTOM = 66, 30, 16, 42
LEGEND = 30


@dataclass
class Panel:
    title: str
    lines: dict  # name -> [(bytes, microseconds)]


def color_of(name):
    return COLORS[name.split("-")[0].split(":")[0]]


def dash_of(name):
    dash = DASHES.get(name.split(":")[0])
    return f' stroke-dasharray="{dash}"' if dash else ""


def time_words(microseconds):
    for unit, size in (("s", 1e6), ("ms", 1e3), ("µs", 1)):
        if microseconds >= size:
            return f"{microseconds / size:g} {unit}"
    return f"{microseconds * 1e3:g} ns"


def _range(values):
    """Returns (low, high), so that all values lie between 10**low and 10**high."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


class _Axes:
    def __init__(self, panel, left, top):
        points = [point for line in panel.lines.values() for point in line]
        self.sizes = sorted({x for x, _ in points})
        self.x_low, self.x_high = math.log2(self.sizes[0]), math.log2(self.sizes[-1])
        self.x_high = max(self.x_high, self.x_low + 1)
        self.y_low, self.y_high = _range([y for _, y in points])
        self.left, self.top = left + LEFT, top + TOP

    def x(self, value):
        return self.left + (math.log2(value) - self.x_low) / (self.x_high - self.x_low) * WIDTH

    def y(self, value):
        return self.top + (self.y_high - math.log10(value)) / (self.y_high - self.y_low) * HEIGHT


def _grid(axes):
    parts = []
    for exponent in range(axes.y_low, axes.y_high + 1):
        y = axes.y(10**exponent)
        parts.append(f'<line class="grid" x1="{axes.left}" y1="{y:.1f}" x2="{axes.left + WIDTH}" y2="{y:.1f}"/>')
        parts.append(f'<text class="small" text-anchor="end" x="{axes.left - 5}" y="{y + 3:.1f}">'
                     f"{time_words(10**exponent)}</text>")
    for size in axes.sizes:
        x = axes.x(size)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{axes.top}" x2="{x:.1f}" y2="{axes.top + HEIGHT}"/>')
        parts.append(f'<text class="small" text-anchor="middle" x="{x:.1f}" y="{axes.top + HEIGHT + 14}">'
                     f"{human(size).replace('iB', '').replace(' ', '')}</text>")
    parts.append(f'<rect class="frame" x="{axes.left}" y="{axes.top}" width="{WIDTH}" height="{HEIGHT}"/>')
    return parts


def _panel(panel, left, top):
    axes = _Axes(panel, left, top)
    middle = axes.top + HEIGHT / 2
    parts = _grid(axes)
    parts.append(f'<text class="title" x="{axes.left}" y="{axes.top - 10}">{escape(panel.title)}</text>')
    parts.append(f'<text class="small" text-anchor="middle" x="{axes.left + WIDTH / 2}" '
                 f'y="{axes.top + HEIGHT + 30}">bytes</text>')
    parts.append(f'<text class="small" text-anchor="middle" transform="translate({left + 14} {middle}) rotate(-90)">'
                 "time</text>")
    for name, points in panel.lines.items():
        path = " ".join(f"{axes.x(x):.1f},{axes.y(y):.1f}" for x, y in sorted(points))
        width = 2.4 if name.startswith("tutti") else 1.4
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color_of(name)}" stroke-width="{width}"'
                     f'{dash_of(name)}><title>{escape(name)}</title></polyline>')
        parts += [f'<circle cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}" r="2.2" fill="{color_of(name)}"/>'
                  for x, y in points]
    return parts


def _legend(names, width, y):
    parts, x, step = [], LEFT, 132
    for name in names:
        if x + step > width and x > LEFT:
            x, y = LEFT, y + 18
        parts.append(f'<line x1="{x}" y1="{y - 4}" x2="{x + 26}" y2="{y - 4}" stroke="{color_of(name)}" '
                     f'stroke-width="2.4"{dash_of(name)}/>')
        parts.append(f'<text x="{x + 32}" y="{y}">{escape(name)}</text>')
        x += step
    return parts, y


def svg(panels, columns):
    """Returns the text of an SVG file: a grid of panels under one legend."""
    panels = [panel for panel in panels if any(panel.lines.values())]
    columns = max(1, min(columns, len(panels)))
    width = columns * (LEFT + WIDTH + RIGHT)
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    parts, bottom = _legend(names, width, 20)
    top = bottom + LEGEND - 20
    step = TOP + HEIGHT + BOTTOM
    for i, panel in enumerate(panels):
        parts += _panel(panel, i % columns * (LEFT + WIDTH + RIGHT), top + i // columns * step)
    height = top + math.ceil(len(panels) / columns) * step
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return "\n".join([head, f"<style>{STYLE}</style>", f'<rect class="page" width="{width}" height="{height}"/>',
                      *parts, "</svg>", ""])
