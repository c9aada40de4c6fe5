"""abort-reason: matchers that pick aborts, and those that don't."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import finds_in


@pytest.mark.parametrize("matcher", ['="abort"', '=~"abort"', '=~"abort|error"', '=~"ab.*"'])
def test_aborts_alone_are_told(matcher: str) -> None:
    assert finds_in("abort-reason", f"rate(vllm:request_success_total{{finished_reason{matcher}}}[5m]) > 0")


@pytest.mark.parametrize("matcher", ['!="abort"', '="stop"', '=~".*"', '=~"stop|length|abort"', '!~"abort"'])
def test_others_are_not(matcher: str) -> None:
    assert not finds_in(
        "abort-reason", f"rate(vllm:request_success_total{{finished_reason{matcher}}}[5m]) > 0"
    )


def test_other_engines_count_theirs() -> None:
    assert not finds_in("abort-reason", 'rate(trtllm_request_success_total{finished_reason="abort"}[5m]) > 0')
