"""Words that several boards share: legends that tell subjects apart, and lines that no alert has."""

from __future__ import annotations

from dashboards.shape import above

RANK = "rank {{rank}}"
GPU = "{{uuid}}"
INSTANCE = "{{instance}}"
DIRECTIONS = (("in", "to the GPU"), ("out", "to the host"))
"""Values of the label ``direction``, and what people call them."""
WASTED = above(0.1, 0.5)
"""Of work that is done twice: from a tenth on it costs something, from half on most is for nothing. No alert compares
with it."""
