"""Lead against noise as a drawing, for a page."""

from __future__ import annotations

from markupsafe import Markup

from analysis.backtest.sweep import Swept
from analysis.page.document import Block, paragraph
from analysis.wording import count, duration

_WIDE, _HIGH, _EDGE = 640, 260, 60


def curve_svg(swept: Swept) -> Block:
    """All settings as points: noise a week to the right, lead upwards."""
    told = [(point, found) for point in swept.points if (found := point.measures.lead_seconds) is not None]
    if not told:
        return paragraph("No setting tells of that moment.")
    most = max(point.measures.noise_per_week for point, _ in told)
    low, high = min(found for _, found in told), max(found for _, found in told)
    parts = [
        Markup(
            '<svg role="img" viewBox="0 0 {} {}" style="max-width:100%;height:auto">'
            "<title>Lead in seconds against noise a week</title>"
        ).format(_WIDE + 2 * _EDGE, _HIGH + 2 * _EDGE)
    ]
    parts.append(
        Markup(
            '<path d="M{0} {1}V{2}H{3}" fill="none" stroke="currentColor"/>'
            '<text x="{0}" y="{4}" fill="currentColor" font-size="13">lead {5} to {6}</text>'
            '<text x="{3}" y="{7}" fill="currentColor" font-size="13" text-anchor="end">'
            "noise 0 to {8} a week</text>"
        ).format(
            _EDGE,
            _EDGE,
            _EDGE + _HIGH,
            _EDGE + _WIDE,
            _EDGE - 14,
            duration(abs(low)) + (" after" if low < 0 else " before"),
            duration(abs(high)) + (" after" if high < 0 else " before"),
            _EDGE + _HIGH + 24,
            count(most),
        )
    )
    for point, found in sorted(told, key=lambda each: (each[0].shipped, each[0].best)):
        across = _EDGE + (point.measures.noise_per_week / most * _WIDE if most else 0.0)
        down = _EDGE + _HIGH - ((found - low) / (high - low) * _HIGH if high > low else 0.0)
        fill, radius = ("#d9480f", 7) if point.shipped else ("#1864ab", 5) if point.best else ("#868e96", 2)
        words = ", ".join(f"{axis.name} {value:g}" for axis, value in zip(swept.axes, point.at, strict=True))
        parts.append(
            Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{}" fill="{}"><title>{}</title></circle>').format(
                across, down, radius, fill, words
            )
        )
    parts.append(Markup("</svg><p>Orange: as it is set. Blue: no other beats it. Grey: all others.</p>"))
    return Block(Markup("").join(parts))
