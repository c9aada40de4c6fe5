"""dropped-label: which labels a result can have, as texts name them."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import RUNBOOK, alert, board, finds, rules


def dropped(expr: str, label: str) -> bool:
    text = f"{{{{ $labels.{label} }}}} is in trouble"
    return bool(
        finds("dropped-label", rules(alert(expr, annotations={"summary": text, "runbook_url": RUNBOOK})))
    )


@pytest.mark.parametrize(
    ("expr", "label", "gone"),
    [
        ("sum by (pod) (x) > 1", "instance", True),
        ("sum by (pod) (x) > 1", "pod", False),
        ("sum(x) > 1", "pod", True),
        ("sum without (pod) (x) > 1", "pod", True),
        ("sum without (pod) (x) > 1", "instance", False),
        ("x > 1", "anything", False),
        ("x > 1", "alertname", True),
        ("ALERTS > 0", "alertname", False),
        ('absent(up{job="a", x=~"b"})', "job", False),
        ('absent(up{job="a", x=~"b"})', "x", True),
        ("vector(1)", "job", True),
        ("x and on (pod) sum by (pod) (y)", "instance", False),
        ("sum by (pod) (x) or sum by (node) (y)", "node", False),
        ("sum by (pod) (x) or sum by (node) (y)", "zone", True),
        ("sum by (pod) (x) or y", "zone", False),
        ("x / on (pod) y > 1", "instance", True),
        ("x / ignoring (pod) y > 1", "pod", True),
        ("sum by (pod) (x) * on (pod) group_left (model) y > 1", "model", False),
        ("sum by (pod) (x) * on (pod) group_right (zone) y > 1", "instance", False),
        ("topk(3, sum by (pod) (x)) > 1", "pod", False),
        ("topk by (zone) (3, x) > 1", "pod", False),
        ("histogram_quantile(0.9, sum by (le, pod) (rate(x_bucket[5m]))) > 1", "le", True),
        ("histogram_quantile(0.9, sum by (le, pod) (rate(x_bucket[5m]))) > 1", "pod", False),
        ('label_replace(sum by (pod) (x), "host", "$1", "pod", "(.*)") > 1', "host", False),
        ('count_values("version", x) > 1', "version", False),
        ("sum by (a) (sum by (b) (x)) > 1", "a", True),
        ("time() - max(x) > 1", "pod", True),
        ("time() - x > 1", "pod", False),
        ("-x > 1", "pod", False),
        ("max_over_time(sum by (pod) (x)[5m:1m]) > 1", "instance", True),
        ("sum without (pod) (x) or sum without (node) (y)", "pod", False),
        ('{__name__=~"a.*"} > 1', "alertname", False),
    ],
)
def test_what_an_expression_drops(expr: str, label: str, gone: bool) -> None:  # noqa: FBT001
    assert dropped(expr, label) is gone


def test_labels_are_texts_too_and_a_question_is_no_use() -> None:
    made = alert("sum(x) > 1", labels={"team": "{{ $labels.team }}"})
    (found,) = finds("dropped-label", rules(made))
    assert "no label team" in found.what
    assert "the result has none" in found.fix
    asked = {"summary": "{{ if $labels.pod }}{{ $labels.pod }}{{ end }}", "runbook_url": RUNBOOK}
    assert not finds("dropped-label", rules(alert("sum(x) > 1", annotations=asked)))
    indexed = {"summary": '{{ index $labels "pod" }}', "runbook_url": RUNBOOK}
    assert finds("dropped-label", rules(alert("sum(x) > 1", annotations=indexed)))


@pytest.mark.parametrize(
    ("legend", "count"),
    [("{{pod}}", 0), ("{{ instance }}", 1), ("__auto", 0), ("total", 0), ("{{pod}} {{le}}", 1)],
)
def test_legends(legend: str, count: int) -> None:
    text = board("x", targets=[{"expr": "sum by (pod) (x)", "legendFormat": legend}])
    assert len(finds("dropped-label", text)) == count
