"""Says what a page looks like that answers 200 but lists no GPU: dcgm-exporter without any, or something else."""

from __future__ import annotations

from collections.abc import Collection

from exporter.dialects.dcgm_names import recognises
from exporter.dialects.registry import detect
from exporter.sources.failure import DCGM, Reason, one_line
from exporter.sources.lookalike import is_all_comments, text_looks_like

_OTHERS = (
    ("thrashold_", "a thrashold sidecar"),
    ("nvidia_smi_", "nvidia_gpu_exporter"),
    ("nvidia_gpu_", "another GPU exporter"),
    ("gpu_", "another GPU exporter, such as nvitop-exporter"),
    ("node_", "node_exporter"),
)
_HOST = "set gpus.dcgm to dcgm-exporter's own address, port 9400 unless it was told another"
_SEES_NONE = (
    "look into its log: is the driver loaded, does its container get the GPUs, and does each have a UUID?"
)


def not_dcgm(body: bytes, names: Collection[str]) -> tuple[Reason, str, str]:
    """``(reason, what it is, what to do)`` for a page with series of these ``names`` and no GPU among them."""
    if recognises(names):
        return Reason.NO_GPUS, "is dcgm-exporter's page, but lists no GPU that has a value", _SEES_NONE
    if not names and is_all_comments(body):  # also where it holds nothing
        return (
            Reason.NO_GPUS,
            "answers with an empty page, as dcgm-exporter does that sees no GPU or is starting",
            _SEES_NONE,
        )
    if not names:
        return (Reason.NOT_DCGM, *text_looks_like(body, DCGM.has_it_at))
    engine = detect(names)
    if engine is not None:
        return Reason.NOT_DCGM, f"is the page of an engine ({engine.kind}), not dcgm-exporter's", _HOST
    for prefix, other in _OTHERS:
        if any(name.startswith(prefix) for name in names):
            return Reason.NOT_DCGM, f"is the page of {other}, not dcgm-exporter's", _HOST
    some = one_line(", ".join(sorted(names)[:3]), 120)
    return Reason.NOT_DCGM, f"is a metrics page of something else ({some}), not dcgm-exporter's", _HOST
