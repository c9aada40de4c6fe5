"""Reads the LiteLLM proxy's own metrics, by the names that are there across its releases."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from exporter.dialects.cells import NOT_A_NUMBER
from exporter.dialects.gateway_dialect import Asked
from exporter.exposition import Series
from exporter.gateway_sample import GatewaySample, KeyUse, Outcome

PREFIX = "litellm_"
TOO_MANY_FAILED = "more_failed_than_requests"

MOST_KEYS = 200
"""Keys told apart, those of most tokens; a proxy can have many thousands."""

LONG_PROMPTS = "64k+"
"""LiteLLM's label for prompts of 64,000 tokens and more (``prometheus_emit_input_sequence_length_label``)."""

_NOBODY = frozenset({"", "None", "null"})
"""How LiteLLM writes a label that it has no value for."""
_TIMED_OUT = frozenset({"408", "504"})
_CLIENT_CLOSED = "499"
_REJECTED = "429"


class Field(enum.Enum):
    """What a series counts: by its name without ``litellm_`` and, on counters, without ``_total``."""

    REQUESTS = "proxy_total_requests_metric"
    """Requests that have ended, by ``status_code`` (from 1.5x; before, without)."""
    FAILED = "proxy_failed_requests_metric"
    """Those without success, by ``exception_status``: the same requests once more."""
    INFLIGHT = "in_flight_requests"
    """All HTTP requests in the proxy, the read of the page itself among them (from 1.8x)."""
    SENT = "deployment_total_requests"
    """Calls of a deployment, LiteLLM's own retries included."""
    STATE = "deployment_state"
    INPUT_TOKENS = "input_tokens_metric"
    LATENCY = "request_total_latency_metric_count"


_BY_NAME = {field.value: field for field in Field}
_KEY = ("api_key_alias", "hashed_api_key")
_TOLD_BY = {
    Field.REQUESTS: ("status_code",),
    Field.FAILED: ("exception_status",),
    Field.STATE: ("api_base", "model_id"),
    Field.INPUT_TOKENS: _KEY,
    Field.LATENCY: _KEY,
}
"""The labels that tell readings of one field apart, the first that has a value."""
_COUNTERS = frozenset({Field.REQUESTS, Field.FAILED, Field.SENT, Field.INPUT_TOKENS})


class Slot(NamedTuple):
    """What a series means; ``detail`` is a status, a backend or a key."""

    field: Field
    detail: str = ""


Cells = Mapping[str, float]

_FROM_THE_FIRST = "shown from the first request on, with callbacks: [prometheus] under litellm_settings"
ABSENCES = (
    ("inflight", "shown by newer releases"),
    ("upstream_inflight", "LiteLLM doesn't tell what a deployment is working on"),
    ("pending", "LiteLLM has no queue that it shows"),
    ("outcomes_total", _FROM_THE_FIRST),
    ("retries_total", "LiteLLM counts its retries among what it sends to deployments"),
    ("upstream_requests_total", _FROM_THE_FIRST),
    ("breakers", "LiteLLM has no breaker that it shows"),
    ("request_time", "LiteLLM has no histogram of what it answers itself"),
    ("keys", _FROM_THE_FIRST),
    ("long_prompts", "shown with prometheus_emit_input_sequence_length_label: true under litellm_settings"),
)


class LitellmDialect:
    """LiteLLM from the first releases of its proxy metrics to 1.110.

    Keys go by the alias that LiteLLM shows, else by the hash that it shows: it never shows a key.
    """

    kind = "litellm"
    title = "LiteLLM"
    absences = ABSENCES

    def recognises(self, names: Collection[str]) -> bool:
        """Whether any of the names is LiteLLM's."""
        return any(name.startswith(PREFIX) for name in names)

    def interpret(self, series: Series) -> Slot | None:
        """What one series means."""
        prefix, stem = series.name[: len(PREFIX)], series.name[len(PREFIX) :]
        plain = stem.removesuffix("_total")
        field = _BY_NAME.get(stem) or _BY_NAME.get(plain)
        if prefix != PREFIX or field is None or (plain != stem and field not in _COUNTERS):
            return None
        labels = dict(series.labels)
        if field is Field.LATENCY and labels.get("input_sequence_length") != LONG_PROMPTS:
            return None
        return Slot(field, _first(labels, _TOLD_BY.get(field, ())))

    def sample(
        self, readings: Sequence[tuple[Slot, float]], asked: Asked, *, at: float, read_seconds: float
    ) -> GatewaySample:
        """One read. Which deployments are engines can't be told, so ``asked`` is looked at for the name alone."""
        notes: set[str] = set()
        table: defaultdict[Field, dict[str, float]] = defaultdict(dict)
        for (field, detail), value in readings:
            if not 0.0 <= value < float("inf"):
                notes.add(NOT_A_NUMBER)
                continue
            table[field][detail] = table[field].get(detail, 0.0) + value
        inflight = _sum(table.get(Field.INFLIGHT))
        tokens = table.get(Field.INPUT_TOKENS)
        states = table.get(Field.STATE)
        keys = _keys(tokens or {}, table.get(Field.LATENCY))
        return GatewaySample(
            at,
            asked.gateway,
            self.kind,
            read_seconds,
            # the read of this page is one of them
            inflight=None if inflight is None else max(0.0, inflight - 1),
            requests_total=_sum(table.get(Field.REQUESTS)),
            outcomes_total=_outcomes(table, notes),
            upstream_requests_total=_sum(table.get(Field.SENT)),
            backends=float(len(states)) if states else None,
            keys=keys,
            has_more_keys=sum(map(bool, tokens or ())) > len(keys),
            keys_prompt_tokens_total=_sum(tokens),
            notes=tuple(sorted(notes)),
        )


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    """The value of the first of these labels that has one."""
    return next((labels[name] for name in names if labels.get(name, "") not in _NOBODY), "")


def _sum(cells: Cells | None) -> float | None:
    return None if cells is None else sum(cells.values())


def _outcome(status: str) -> Outcome:
    if status == _REJECTED:
        return Outcome.REJECTED
    if status in _TIMED_OUT:
        return Outcome.TIMEOUT
    if status == _CLIENT_CLOSED:
        return Outcome.CLIENT_LEFT
    if status.startswith(("2", "3")):
        return Outcome.OK
    return Outcome.CLIENT_ERROR if status.startswith("4") else Outcome.SERVER_ERROR


def _outcomes(table: Mapping[Field, Cells], notes: set[str]) -> tuple[tuple[Outcome, float], ...]:
    """By the requests' status; where they bear none, failures by theirs, and success is what is left."""
    requests = table.get(Field.REQUESTS)
    if requests is None:
        return ()
    by_status = dict(requests)
    unknown = sum(by_status.pop(nobody, 0.0) for nobody in _NOBODY)
    if not by_status and unknown:
        by_status = dict(table.get(Field.FAILED, {}))
        failed = sum(by_status.values())
        if failed > unknown:
            notes.add(TOO_MANY_FAILED)
        by_status["200"] = max(0.0, unknown - failed)
    elif unknown:
        by_status["500"] = by_status.get("500", 0.0) + unknown
    counts = dict.fromkeys(
        (Outcome.OK, Outcome.CLIENT_ERROR, Outcome.SERVER_ERROR, Outcome.REJECTED, Outcome.TIMEOUT), 0.0
    )
    for status, count in by_status.items():
        outcome = _outcome(status)
        counts[outcome] = counts.get(outcome, 0.0) + count
    return tuple(counts.items())


def _keys(tokens: Cells, long_prompts: Cells | None) -> tuple[KeyUse, ...]:
    """Those of most tokens. Long prompts are absent where no series bears the label, 0 for a key without any."""
    most = sorted((item for item in tokens.items() if item[0]), key=lambda item: (-item[1], item[0]))[
        :MOST_KEYS
    ]
    return tuple(
        KeyUse(key, count, None if long_prompts is None else long_prompts.get(key, 0.0))
        for key, count in most
    )
