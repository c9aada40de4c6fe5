"""Says what a page that answers 200 but is no engine's looks like: whoever set the URL has to find out."""

from __future__ import annotations

import re
from collections.abc import Collection

from exporter.dialects.registry import DIALECTS
from exporter.sources.failure import ENGINE, one_line

_LOOKED_AT = 4096
_LOGIN = re.compile(rb"password|log[ -]?in|sign[ -]?in|sso|oauth|saml", re.IGNORECASE)
_TITLE = re.compile(rb"<title[^>]*>([^<]{1,200})", re.IGNORECASE)
# What a process tells of itself, whatever it does; an engine's page holds no more before its first step.
_OF_THE_PROCESS = ("python_", "process_", "http_", "go_", "promhttp_", "up", "scrape_")
_OWN = "thrashold_"

_ENGINES = (
    ("vllm:", "vLLM"),
    ("sglang:", "SGLang"),
    ("sglang_", "SGLang"),
    ("trtllm_", "TensorRT-LLM"),
    ("nv_trt_llm_", "TensorRT-LLM"),
    ("llamacpp:", "llama.cpp"),
    ("tgi_", "Text Generation Inference"),
    ("lmdeploy:", "LMDeploy"),
    # last, as it passes the series of the engine behind it on beside its own
    ("dynamo_", "Dynamo"),
)
"""What engines call their series: their users are to learn that the address is right and that the engine is what
we can't read, or that its names have changed."""

_ROUTERS = (
    ("envoy_", "Envoy"),
    ("litellm_", "LiteLLM"),
    ("sgl_router_", "the SGLang router"),
    ("smg_", "the SGLang router"),
    ("inference_extension_", "the inference gateway"),
    ("inference_pool_", "the inference gateway"),
    ("inference_objective_", "the inference gateway"),
    ("nginx_", "nginx"),
    ("haproxy_", "HAProxy"),
    ("traefik_", "Traefik"),
    ("istio_", "Istio"),
    ("kong_", "Kong"),
)
_GPU_EXPORTERS = (("DCGM_", "the DCGM exporter"), ("nvidia_", "a GPU exporter"))


def looks_like(body: bytes, names: Collection[str]) -> tuple[str, str]:
    """``(what it is, what to do)`` for a page with series of these ``names`` (none for other text)."""
    return _metrics_look_like(names) if names else _text_looks_like(body)


def _text_looks_like(body: bytes) -> tuple[str, str]:
    if not body.strip():
        return (
            "answers with an empty page",
            "the engine may still be loading its model, or has metrics disabled",
        )
    if is_all_comments(body):
        return (
            "names metrics but holds no values",
            "the engine has exposed nothing yet, or has metrics disabled",
        )
    return text_looks_like(body, ENGINE.has_it_at)


def text_looks_like(body: bytes, have_it: str) -> tuple[str, str]:
    """``(what it is, what to do)`` for text without a metric; ``have_it`` says who has metrics at which path."""
    start = body.lstrip()[:_LOOKED_AT]
    if start[:200].lower().startswith((b"<!doctype html", b"<html", b"<?xml", b"<head", b"<body")):
        title = _TITLE.search(start)
        called = f' called "{_excerpt(title[1])}"' if title else ""
        if _LOGIN.search(body[: 16 * _LOOKED_AT]):
            return f"is a login page{called}", "use its own address, not the one behind the login"
        return f"is an HTML page{called}", f"check the path of the URL: {have_it}"
    if start[:1] in b"{[":
        return f"is JSON ({_excerpt(start)})", f"check the path of the URL: {have_it}"
    return f"is no metrics page ({_excerpt(start)})", "check host, port and path of the URL"


def is_all_comments(body: bytes) -> bool:
    """Whether a page names metrics at most."""
    return all(line.startswith(b"#") for line in body.splitlines() if line.strip())


def _metrics_look_like(names: Collection[str]) -> tuple[str, str]:
    if any(name.startswith(_OWN) for name in names):
        return (
            "is the page of a thrashold sidecar",
            "set the URL to the engine it reads; sidecars don't read each other",
        )
    for prefix, engine in _ENGINES:
        if any(name.startswith(prefix) for name in names):
            return _engine_looks_like(engine)
    for prefix, router in _ROUTERS:
        if any(name.startswith(prefix) for name in names):
            return f"is the page of {router}", "set the URL to an engine behind it"
    for prefix, exporter in _GPU_EXPORTERS:
        if any(name.startswith(prefix) for name in names):
            return f"is the page of {exporter}", "set the URL to the engine that runs on these GPUs"
    if all(name.startswith(_OF_THE_PROCESS) for name in names):
        return (
            "has only series of its own process; the engine has exposed nothing yet",
            "wait until it has loaded its model, or enable its metrics",
        )
    some = ", ".join(sorted(name for name in names if not name.startswith(_OF_THE_PROCESS))[:3])
    return (
        f"is a metrics page of something else ({one_line(some, 120)})",
        f"check host and port; this release reads {_read_in_words()}",
    )


def _engine_looks_like(engine: str) -> tuple[str, str]:
    if engine in _what_is_read():
        return (
            f"looks like the page of {engine}, but no series on it is one that is known",
            "please report this, with the page and the engine's version",
        )
    return f"looks like the page of {engine}", f"this release reads {_read_in_words()}"


def _what_is_read() -> list[str]:
    return [dialect.title for dialect in DIALECTS]


def _read_in_words() -> str:
    return ", ".join(_what_is_read())


def _excerpt(text: bytes) -> str:
    return one_line(text[:400].decode("utf-8", "replace"), 60)
