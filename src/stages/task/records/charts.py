"""Small inline SVG charts. Colours are CSS classes, so that a page's themes apply to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from draftmesh.stages.task.records.console import shorten

_WIDTH, _HEIGHT = 460, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 8, 18, 40
_SHARE_WIDTH, _SHARE_HEIGHT = 960, 30
_CELL_HEIGHT, _ROW_LABEL = 16, 70
_LENGTH_WIDTH, _LENGTH_HEIGHT, _LENGTH_VALUE = 960, 26, 60
_CHARACTER, _LONGEST = 6.6, 70


@dataclass(frozen=True)
class Bar:
    """One bar: the label below it, its share of 1, the text above it, the text when pointed at."""

    label: str
    share: float
    text: str
    hint: str


@dataclass(frozen=True)
class Share:
    """A part of a whole: its name, its CSS class, its share of 1, and its amount as text."""

    name: str
    css: str
    share: float
    amount: str


@dataclass(frozen=True)
class Length:
    """A horizontal bar: the label beside it, its length, the texts at its end and on pointing."""

    label: str
    length: float
    text: str
    hint: str


def bar_chart(bars: Sequence[Bar], axis: str) -> str:
    """Vertical bars of shares, 0 to 100 %; `axis` names what runs along the bottom."""
    plot_w, plot_h = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    base = _TOP + plot_h
    parts = [_open_svg("chart", _WIDTH, _HEIGHT, axis)]
    for quarter in range(5):
        y = base - plot_h * quarter / 4
        parts.append(_line("axis" if quarter == 0 else "grid", _LEFT, _WIDTH - _RIGHT, y))
        parts.append(_text(_LEFT - 6, y + 4, f"{quarter * 25} %", anchor="end"))
    slot = plot_w / max(len(bars), 1)
    width = min(slot * 0.7, 56)
    for index, bar in enumerate(bars):
        middle, height = _LEFT + slot * (index + 0.5), plot_h * bar.share
        shape = _rect("bar", middle - width / 2, base - height, width, height, bar.hint)
        parts += [shape, _text(middle, base - height - 5, bar.text, "value")]
        parts.append(_text(middle, base + 15, bar.label))
    parts += [_text(_LEFT + plot_w / 2, _HEIGHT - 6, axis), "</svg>"]
    return "".join(parts)


def length_chart(bars: Sequence[Length], label: str) -> str:
    """Horizontal bars of any unit, from 0 to the longest, one below the other. A label that is too
    long is cut; the text on pointing has all of it."""
    names = [shorten(bar.label, _LONGEST) for bar in bars]
    left = _CHARACTER * max(map(len, names)) + 12
    room = _LENGTH_WIDTH - left - _LENGTH_VALUE
    longest = max(bar.length for bar in bars) or 1.0
    parts = [_open_svg("wide", _LENGTH_WIDTH, _LENGTH_HEIGHT * len(bars), label)]
    for row, (bar, name) in enumerate(zip(bars, names, strict=True)):
        top, width = row * _LENGTH_HEIGHT, room * bar.length / longest
        hint = bar.hint if name == bar.label else f"{bar.label}: {bar.hint}"
        parts.append(_text(left - 8, top + 17, name, anchor="end"))
        parts.append(_rect("bar", left, top + 4, width, _LENGTH_HEIGHT - 8, hint))
        parts.append(_text(left + width + 6, top + 17, bar.text, "tick", anchor="start"))
    return "".join([*parts, "</svg>"])


def share_bar(shares: Sequence[Share], label: str) -> str:
    """One bar split by shares, with a legend below."""
    parts = [_open_svg("stretch", _SHARE_WIDTH, _SHARE_HEIGHT, label)]
    x = 0.0
    for part in shares:
        width = _SHARE_WIDTH * part.share
        hint = f"{part.name}: {part.share:.1%}, {part.amount}"
        parts.append(_rect(part.css, x, 0, width, _SHARE_HEIGHT, hint))
        x += width
    parts.append('</svg><p class="legend">')
    parts += [
        f'<span><i class="swatch {part.css}"></i>{escape(part.name)} <b>{part.share:.1%}</b> '
        f"{escape(part.amount)}</span>"
        for part in shares
    ]
    return "".join([*parts, "</p>"])


def heat_map(rows: Sequence[Sequence[float]], row_name: str, column_name: str) -> str:
    """Cells [row][column] shaded by their value over the row's mean; 1 is a balanced load."""
    columns = max((len(row) for row in rows), default=0)
    cell_w = max(8, min(34, 900 // max(columns, 1)))
    height = len(rows) * _CELL_HEIGHT
    means = [sum(row) / len(row) if row else 0 for row in rows]
    relative = [[v / m if m else 0 for v in row] for row, m in zip(rows, means, strict=True)]
    peak = max((value for row in relative for value in row), default=0) or 1
    label = f"{column_name} load per {row_name}"
    parts = [_open_svg("fixed", _ROW_LABEL + columns * cell_w + 4, height + 34, label)]
    for y, (row, counts) in enumerate(zip(relative, rows, strict=True)):
        if y % max(1, len(rows) // 12) == 0:
            label = f"{row_name} {y}"
            parts.append(_text(_ROW_LABEL - 6, y * _CELL_HEIGHT + 12, label, anchor="end"))
        for x, (value, count) in enumerate(zip(row, counts, strict=True)):
            hint = f"{row_name} {y}, {column_name} {x}: {count:.0f}, {value:.2f} of the mean"
            at = (_ROW_LABEL + x * cell_w, y * _CELL_HEIGHT, cell_w - 1, _CELL_HEIGHT - 1)
            parts.append(_rect("cell", *at, hint, opacity=0.06 + 0.94 * value / peak))
    for x in range(0, columns, max(1, columns // 16)):
        parts.append(_text(_ROW_LABEL + (x + 0.5) * cell_w, height + 14, str(x)))
    parts += [_text(_ROW_LABEL + columns * cell_w / 2, height + 30, column_name), "</svg>"]
    note = f"The darkest cell has {peak:.2f} times its {row_name}'s mean; 1 is balanced."
    return f'<div class="scroll">{"".join(parts)}</div><p class="note">{note}</p>'


def _open_svg(css: str, width: float, height: float, label: str) -> str:
    size = f' width="{width}" height="{height}"' if css == "fixed" else ""
    ratio = ' preserveAspectRatio="none"' if css == "stretch" else ""
    return (
        f'<svg class="{css}" viewBox="0 0 {width} {height}"{size}{ratio} role="img" '
        f'aria-label="{escape(label)}">'
    )


def _rect(
    css: str, x: float, y: float, width: float, height: float, hint: str, opacity: float = 1
) -> str:
    see_through = f' fill-opacity="{opacity:.3f}"' if opacity != 1 else ""
    return (
        f'<rect class="{css}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        f"{see_through}><title>{escape(hint)}</title></rect>"
    )


def _text(x: float, y: float, text: str, css: str = "tick", anchor: str = "middle") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{css}" {place}>{escape(text)}</text>'


def _line(css: str, x1: float, x2: float, y: float) -> str:
    return f'<line class="{css}" x1="{x1}" x2="{x2}" y1="{y:.1f}" y2="{y:.1f}"/>'
