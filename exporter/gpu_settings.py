"""What can be set on the reading of GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from exporter.engine_settings import BasicAuthSettings, Seconds, Text, TlsSettings, checked_url
from exporter.settings import RefusedError


@dataclass(frozen=True, slots=True)
class DcgmSettings:
    """A dcgm-exporter to read. May be written as its URL alone."""

    shorthand: ClassVar[str] = "url"

    url: Annotated[
        str,
        Meta(
            description="Where its metrics are, with `http://` or `https://`; `/metrics` is added where there is no"
            " path."
        ),
    ]
    deadline_seconds: Annotated[Seconds, Meta(description="Seconds for a whole read.")] = 5.0
    max_body_bytes: Annotated[
        int, Meta(ge=1024, le=1 << 30, description="The most bytes a page may hold.")
    ] = 8 * 1024 * 1024
    tls: Annotated[TlsSettings, Meta(description="How to speak TLS, for an `https://` URL.")] = TlsSettings()
    basic_auth: Annotated[
        BasicAuthSettings | None,
        Meta(
            description="User and password for it. Only one of `basic_auth`, `bearer_token` and `bearer_token_file`"
            " can be set."
        ),
    ] = None
    bearer_token: Annotated[
        Text | None, Meta(description="A token for it, here in the file; better is `bearer_token_file`.")
    ] = field(default=None, repr=False)
    bearer_token_file: Annotated[
        Path | None, Meta(description="A file that holds the token and nothing else.")
    ] = None
    headers: Annotated[
        Mapping[str, str], Meta(description="Further headers of each request, by name. ASCII, never logged.")
    ] = field(default_factory=dict, repr=False, hash=False)

    def __post_init__(self) -> None:
        parts = checked_url(self.url)
        if parts.path in {"", "/"}:
            parts = parts._replace(path="/metrics")
        object.__setattr__(self, "url", parts.geturl())
        ways = (self.basic_auth, self.bearer_token, self.bearer_token_file)
        if sum(way is not None for way in ways) > 1:
            raise RefusedError((), "set only one of basic_auth, bearer_token and bearer_token_file")


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """The GPUs of this machine. May be written as ``auto``, ``always`` or ``never`` alone."""

    shorthand: ClassVar[str] = "nvml"

    nvml: Annotated[
        Literal["auto", "always", "never"],
        Meta(
            description="Whether to read them with NVIDIA's own library: `auto` where this machine has it, `always`,"
            " so that a missing one is shown as a source that is down, or `never`."
        ),
    ] = field(default="auto", metadata={"flag": "--gpus"})
    dcgm: Annotated[
        DcgmSettings | None,
        Meta(
            description="A dcgm-exporter to read, where the sidecar can't see the GPUs itself. Where both tell of a"
            " GPU, NVML goes first and what it can't tell is filled in."
        ),
    ] = None
    processes: Annotated[
        bool,
        Meta(
            description="Whether to list the processes on each GPU, every 30 s, for `gpu_processes` and"
            " `gpu_process_memory_bytes`. Off, because the call has been seen to"
            " take 4.5 ms under the driver's lock."
        ),
    ] = False
    pcie_window: Annotated[
        bool,
        Meta(
            description="Whether to measure PCIe over windows of 20 ms where nothing better is to be had. Off, because"
            " it looks at 2 % of the time, misses most bursts and has been seen to read twice the truth."
        ),
    ] = False
