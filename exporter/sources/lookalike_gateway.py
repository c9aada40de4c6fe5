"""Says what a page looks like that answers 200 but is no gateway's that we read."""

from __future__ import annotations

from collections.abc import Collection

from exporter.dialects.dcgm_names import recognises as is_dcgm
from exporter.dialects.gateways import GATEWAYS, detect_gateway
from exporter.dialects.registry import detect
from exporter.sources.failure import GATEWAY, one_line
from exporter.sources.lookalike import is_all_comments, text_looks_like

_HOST = "set the gateway's url to its own stats: Envoy has them at its admin port, /stats/prometheus"
_READ = " and ".join(each.kind for each in GATEWAYS)
_OF_THE_PROCESS = ("python_", "process_", "go_")


def not_a_gateway(body: bytes, names: Collection[str], kind: str) -> tuple[str, str]:
    """``(what it is, what to do)`` for a page with series of these ``names`` where ``kind`` was looked for."""
    if names:
        return _metrics_of(names, kind)
    if is_all_comments(body):
        return (
            "answers with a page without a value",
            "its stats may be filtered away, or nothing has gone through it yet",
        )
    return text_looks_like(body, GATEWAY.has_it_at)


def _metrics_of(names: Collection[str], kind: str) -> tuple[str, str]:
    other, engine = detect_gateway(names), detect(names)
    if other is not None:
        return f"is the page of {other.kind}, and the gateway's kind is set to {kind}", "correct its kind"
    if engine is not None:
        return f"is the page of an engine ({engine.kind})", f"list it under engines; {_HOST}"
    for found, whose in (
        (any(name.startswith("thrashold_") for name in names), "a thrashold sidecar"),
        (is_dcgm(names), "dcgm-exporter"),
    ):
        if found:
            return f"is the page of {whose}", _HOST
    if all(name.startswith(_OF_THE_PROCESS) for name in names):
        return (
            "has only series of its own process",
            "LiteLLM needs callbacks: [prometheus] under litellm_settings, and shows series from the first request on",
        )
    some = one_line(", ".join(sorted(names)[:3]), 120)
    return f"is a metrics page of something else ({some})", f"this release reads {_READ}; {_HOST}"
