"""The key metrics that the postmortem of 2026-09-29 lists, and why the drill's are others where they are."""

from __future__ import annotations

from drill.scenarios.published import Figure, Published

_BASE, _PEAK, _AFTER = "baseline", "peak", "after"
_ZERO = Figure(0.0, "0")

POSTMORTEM = Published(
    "the postmortem of 2026-09-29",
    {
        "tpot_p50_seconds": {
            _BASE: Figure(0.022, "22 ms"),
            _PEAK: Figure(2.410, "2,410 ms"),
            _AFTER: Figure(0.021, "21 ms"),
        },
        "tpot_p99_seconds": {
            _BASE: Figure(0.180, "180 ms"),
            _PEAK: Figure(18.420, "18,420 ms"),
            _AFTER: Figure(0.174, "174 ms"),
        },
        "sessions": {
            _BASE: Figure(450.0, "450"),
            _PEAK: Figure(1200.0, "1,200"),
            _AFTER: Figure(1200.0, "1,200"),
        },
        "swapped_sequences": {_BASE: _ZERO, _PEAK: Figure(310.0, "310"), _AFTER: _ZERO},
        "pcie_bytes_per_second": {
            _BASE: Figure(2.1e9, "2.1 GB/s"),
            _PEAK: Figure(61.8e9, "61.8 GB/s"),
            _AFTER: Figure(2.4e9, "2.4 GB/s"),
        },
        "pcie_saturation_ratio": {
            _BASE: Figure(2.1 / 64, "3%"),
            _PEAK: Figure(61.8 / 64, "97%"),
            _AFTER: Figure(2.4 / 64, "4%"),
        },
        "copying_bytes_per_second": {_PEAK: Figure(61.8e9, "61.8 GB/s")},
        "swapped_blocks_per_second": {_BASE: _ZERO, _PEAK: Figure(1420.0, "1,420"), _AFTER: _ZERO},
        "requests_hit": {_BASE: _ZERO, _PEAK: Figure(34_210.0, "34,210"), _AFTER: _ZERO},
    },
    {
        "sessions": "a small run has fewer engines, of whose burst each gets a seventh more sessions; clients that "
        "wait before they come again are counted in none",
        ("tpot_p50_seconds", _BASE): "half of the gaps lie in one bucket, 10 to 25 ms, and the median is "
        "interpolated in it",
        (
            "tpot_p50_seconds",
            _PEAK,
        ): "the median of 60 s is one of decodes that go on: a gap of a minute is one gap among thousands",
        (
            "tpot_p50_seconds",
            _AFTER,
        ): "all sessions of the burst go on reading long documents: their keys and values alone "
        "take some 20 ms of memory bandwidth a token, and a chunk of a prompt goes along. 21 ms are those of a "
        "fleet whose burst has ended",
        ("tpot_p99_seconds", _BASE): "interpolated in the bucket of 0.15 to 0.2 s",
        (
            "tpot_p99_seconds",
            _PEAK,
        ): "it depends on how few other tokens there are within the same 60 s, and on "
        "how long the queue of orphans has grown before engines are restarted; it is interpolated in buckets of "
        "5 to 7.5, 7.5 to 10, 10 to 20, 20 to 40 and 40 to 80 s",
        (
            "tpot_p99_seconds",
            _AFTER,
        ): "no prompt holds up decodes for longer than a chunk of 512 tokens takes",
        "swapped_sequences": "it depends on how long answers have grown when the orphans' connections time out",
        ("pcie_bytes_per_second", _BASE): "all-reduces go over NVLink; inputs and outputs of iterations, and "
        "whatever else uses the link, are not in the model",
        (
            "pcie_bytes_per_second",
            _AFTER,
        ): "as at the baseline: nothing but swap goes over the link in the model",
        (
            "pcie_bytes_per_second",
            _PEAK,
        ): "on the mean of a second. A sequence goes out every few seconds, and "
        "61.8 GB/s would carry 94,000 blocks in one, more than the pool has: only a meter that looks at "
        "some 20 ms, as NVML's older one, can have shown it",
        "copying_bytes_per_second": "V0 copies a block in 160 pieces of 4 KiB to or from each GPU, a call each of "
        "2.3 us: 1.8 GB/s, and 9 % of headers, bound by calls, whatever the link carries. 61.8 GB/s need "
        "blocks in one piece (the scenario incident-pages). Nor do 1,420 blocks a second explain them: they are "
        "7.4 GB/s, over all eight GPUs",
        "pcie_saturation_ratio": "as the bytes",
        "swapped_blocks_per_second": "the most within one second, all engines together; swapped sequences come "
        "back all at once when orphans' connections time out",
        "requests_hit": "no request fails before the burst",
        (
            "requests_hit",
            _PEAK,
        ): "attempts that timed out, failed or were turned away. Each session fails once in "
        "some 33 s for as long as it lasts; what the figure counts there is not known",
        ("requests_hit", _AFTER): "admission control turns requests away at once, and they come again",
    },
)
