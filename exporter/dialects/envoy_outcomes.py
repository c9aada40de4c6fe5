"""How requests through Envoy ended: each counted once, put together from counters that overlap.

Measured on Envoy 1.40, one kind of ending after the other:

- An answer's code is counted with its first byte: a stream that breaks off counts as a 200 as well.
- ``rx_reset`` counts every stream that was reset, by whomever. Those that Envoy broke off are in
  ``tx_reset`` too, those answered before their body had come in ``response_before_rq_complete``; the
  rest are clients who left, whether an answer had begun or not.
- A local 429 stands on the listener alone; a global limit's 429 on the cluster, as an engine's does.
- A breaker's 503 and a timeout's 504 stand on the cluster, among the engine's own answers.
"""

from __future__ import annotations

from collections.abc import Mapping

from exporter.dialects.envoy_names import Field
from exporter.gateway_sample import Outcome

_ANSWERED = (Field.ANSWERS, Field.REQUESTS, Field.ACTIVE)


def outcomes(
    table: Mapping[tuple[Field, str], Mapping[str | float, float]], listener: str | None, cluster: str | None
) -> tuple[tuple[Outcome, float], ...]:
    """All outcomes, none where listener or cluster is unknown or the listener doesn't count answers."""
    if listener is None or cluster is None or any((field, listener) not in table for field in _ANSWERED):
        return ()

    def at_listener(field: Field, detail: str = "") -> float:
        return table.get((field, listener), {}).get(detail, 0.0)

    def at_cluster(field: Field, detail: str = "") -> float:
        return table.get((field, cluster), {}).get(detail, 0.0)

    broken_off = at_listener(Field.RESETS_SENT)
    left = _positive(at_listener(Field.RESETS) - broken_off - at_listener(Field.ANSWERED_EARLY))
    errors_4xx, errors_5xx = at_listener(Field.ANSWERS, "4"), at_listener(Field.ANSWERS, "5")
    rejected = table.get((Field.RATE_LIMITED, ""), {}).get("", 0.0) + at_cluster(
        Field.UPSTREAM_ANSWERS, "429"
    )
    overflow = at_cluster(Field.PENDING_OVERFLOW) + at_cluster(Field.ACTIVE_OVERFLOW)
    late = at_cluster(Field.UPSTREAM_ANSWERS, "504")
    late_amid = min(broken_off, _positive(at_cluster(Field.TIMEOUTS) - late))
    reset_amid = broken_off - late_amid
    resets = sum(
        at_cluster(field)
        for field in (Field.BROKEN_CONNECTIONS, Field.UPSTREAM_RESETS, Field.CONNECT_FAILURES)
    )
    # attempts whose connection broke, as far as there are 503s that they can have ended in
    reset_before = min(
        _positive(at_cluster(Field.UPSTREAM_ANSWERS, "503") - overflow), _positive(resets - reset_amid)
    )
    ended = at_listener(Field.REQUESTS) - at_listener(Field.ACTIVE)
    return (
        (Outcome.OK, _positive(ended - errors_4xx - errors_5xx - left - broken_off)),
        (Outcome.CLIENT_ERROR, _positive(errors_4xx - rejected)),
        (Outcome.SERVER_ERROR, _positive(errors_5xx - overflow - late - reset_before)),
        (Outcome.REJECTED, rejected),
        (Outcome.TIMEOUT, late + late_amid),
        (Outcome.UPSTREAM_RESET, reset_before + reset_amid),
        (Outcome.OVERFLOW, overflow),
        (Outcome.CLIENT_LEFT, left),
    )


def _positive(difference: float) -> float:
    """Counters of several threads are read one after the other: a difference may be off by what just happened."""
    return max(0.0, difference)
