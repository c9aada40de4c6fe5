"""NVLink: bytes over all links of a GPU, and how many of them are up."""

from __future__ import annotations

from exporter.gpu_sample import NvLink
from exporter.sampler.backend import ReadError, Remedy
from exporter.sampler.nvml_errors import INVALID_ARGUMENT, error_of_code
from exporter.sampler.nvml_fields import ALL_LINKS, NVLINK_IN_KIB, NVLINK_OUT_KIB, field_values
from exporter.sampler.nvml_parts import Parts

_MOST_LINKS = 18
"""NVML_NVLINK_MAX_LINKS."""
_KIBIBYTE = 1024.0
_CALL = "nvmlDeviceGetNvLinkState"
_NO_SUCH_LINK = error_of_code(_CALL, INVALID_ARGUMENT).reason


def read_nvlink(parts: Parts) -> NvLink:
    """States and bytes. Raises ReadError: with DROP where the GPU has no NVLink."""
    states = parts.known("nvlink_states", lambda: _states(parts))
    out_bytes, in_bytes = parts.known("nvlink_bytes", lambda: _bytes(parts, len(states or ()))) or (
        None,
        None,
    )
    never = parts.refusal("nvlink_states", "nvlink_bytes")
    if never is not None:
        raise never
    if states is None and out_bytes is None and in_bytes is None:
        raise ReadError("no_data", Remedy.SKIP, "NVLink: nothing at this moment")
    active = None if states is None else sum(states)
    return NvLink(out_bytes, in_bytes, active, None if states is None else len(states) - sum(states))


def _states(parts: Parts) -> list[bool]:
    states: list[bool] = []
    for link in range(_MOST_LINKS):
        try:
            states.append(bool(parts.call(_CALL, link)))
        except ReadError as error:
            # past the last link some drivers say the one, some the other
            if not states or (error.reason != _NO_SUCH_LINK and error.remedy != Remedy.DROP):
                raise
            break
    return states


def _bytes(parts: Parts, links: int) -> tuple[float | None, float | None]:
    """Bytes that left and that came; of all links at once, or of each where the driver has no such sum."""
    found = _sums(parts, [ALL_LINKS])
    if found == (None, None) and links:
        found = _sums(parts, list(range(links)))
    if found == (None, None):
        raise ReadError("not_supported", Remedy.DROP, "NVLink: the driver counts no bytes")
    return found


def _sums(parts: Parts, scopes: list[int]) -> tuple[float | None, float | None]:
    wanted = [(field, scope) for field in (NVLINK_OUT_KIB, NVLINK_IN_KIB) for scope in scopes]
    answers = field_values(parts.library, parts.handle, wanted)
    sums: list[float | None] = []
    for direction in (answers[: len(scopes)], answers[len(scopes) :]):
        errors = [answer.error for answer in direction if answer.error is not None]
        for error in errors:
            if error.remedy != Remedy.DROP:
                raise error
        sums.append(None if errors else _KIBIBYTE * sum(answer.value for answer in direction))
    return sums[0], sums[1]
