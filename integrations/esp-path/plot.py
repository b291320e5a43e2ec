# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Horizontal bars as SVG."""
from html import escape

LABELS, BARS, ROW, TOP = 380, 420, 26, 58


def bars(title, subtitle, values):
    """A bar for each pair of a label and a number."""
    most = max([number for _, number in values] + [1e-9])
    height = TOP + ROW * len(values) + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LABELS + BARS + 80} {height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="100%" height="100%" fill="#fff"/><text x="12" y="22" font-size="16">{escape(title)}</text>',
        f'<text x="12" y="42" font-size="11" fill="#555">{escape(subtitle)}</text>',
    ]
    for at, (label, number) in enumerate(values):
        y, width = TOP + ROW * at, max(number / most * BARS, 1)
        lines.append(f'<text x="{LABELS - 8}" y="{y + 14}" text-anchor="end">{escape(label)}</text>'
                     f'<rect x="{LABELS}" y="{y}" width="{width:.1f}" height="18" fill="#2f6f9f"/>'
                     f'<text x="{LABELS + width + 6:.1f}" y="{y + 14}">{number:.2f}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"
