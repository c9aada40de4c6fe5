"""What tools of others say of an engine's pages: the end of ``docs/scoreboard.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_HEAD = """
## Tools

Tools that somebody runs have no alerts. They are asked 20 s before the trouble and at its peak, of the first that
is affected, by its page alone. vllm-doctor reads one page; with a Prometheus behind it, which it hasn't here, it judges
latencies too. inferpilot compares two pages that are 45 s apart. What they say is in their words; what `thrashold
triage` says at the same moments is in [triage.md](triage.md#how-good-is-it).
"""


def tools_section(told: Mapping[str, Any] | None) -> Iterator[str]:
    """``told``: as ``docs/scoreboard.json`` has it under ``tools``; None: they weren't run."""
    if told is None:
        yield from (
            "",
            "## Tools",
            "",
            "vllm-doctor and inferpilot weren't run: `make scoreboard TOOLS=--tools` does.",
        )
        return
    tools = list(told["versions"])
    yield _HEAD
    columns = (f" {name} {version}, before | at its peak |" for name, version in told["versions"].items())
    yield f"| scenario |{''.join(columns)}"
    yield f"|---|{'---|---|' * len(tools)}"
    for scenario, said in told["said"].items():
        cells = (said[name][moment] for name in tools for moment in ("before", "peak"))
        yield f"| {scenario} | {' | '.join(cells)} |"
    yield from ("", f"They were asked in {len(told['said'])} scenarios.")
    for name in tools:
        alike = [
            scenario for scenario, said in told["said"].items() if said[name]["before"] == said[name]["peak"]
        ]
        yield f"{name} says the same before and at the peak in {len(alike)} of {len(told['said'])}."
