"""missing-runbook: what counts as a link, and who needs one."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import board, finds, rules


@pytest.mark.parametrize(
    ("annotations", "labels", "count"),
    [
        ({}, {}, 1),
        ({"summary": "x"}, {"severity": "page"}, 1),
        ({"runbook_url": ""}, {}, 1),
        ({"runbook_url": "https://x"}, {}, 0),
        ({"runbook": "https://x"}, {}, 0),
        ({"documentation": "https://x"}, {}, 0),
        ({}, {"severity": "info"}, 0),
        ({}, {"severity": "none"}, 0),
        ({}, {"severity": "warning"}, 1),
    ],
)
def test_links(annotations: dict[str, str], labels: dict[str, str], count: int) -> None:
    made = {"alert": "A", "expr": "x > 1", "annotations": annotations, "labels": labels}
    assert len(finds("missing-runbook", rules(made))) == count


def test_records_and_panels_need_none() -> None:
    assert not finds("missing-runbook", rules({"record": "a:b", "expr": "x"}))
    assert not finds("missing-runbook", board("x"))
