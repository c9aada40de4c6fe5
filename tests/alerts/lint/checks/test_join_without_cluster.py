"""join-without-cluster: joins where several clusters are, and where they aren't."""

from __future__ import annotations

import pytest

from alerts.lint.settings import LintSettings
from tests.alerts.lint.linting import alert, finds, finds_in, rules

SEVERAL = LintSettings(several_clusters=True)


@pytest.mark.parametrize(
    "expr",
    [
        "a and on (ns) b",
        "a unless on (ns, pod) b",
        "a * on (pod) group_left (model) b",
        "a / ignoring (cluster, x) b",
        "a > 1 or on () b",
    ],
)
def test_a_join_without_the_label_is_told(expr: str) -> None:
    assert len(finds_in("join-without-cluster", expr, SEVERAL)) == 1
    assert not finds_in("join-without-cluster", expr)


@pytest.mark.parametrize(
    "expr",
    [
        "a and on (cluster, ns) b",
        "a and b",
        "a / ignoring (x) b",
        "a > 5",
        "scalar(a) * b",
        'a{cluster="x"} and on (ns) b{cluster="x"}',
    ],
)
def test_one_with_it_or_within_one_cluster_is_not(expr: str) -> None:
    assert not finds_in("join-without-cluster", expr, SEVERAL)


def test_a_file_that_names_clusters_has_several() -> None:
    join = alert("a and on (ns) b")
    for other in ("sum by (cluster) (c) > 1", 'c{cluster=~"east-.*"} > 1', "c and on (cluster, ns) d"):
        assert finds("join-without-cluster", rules(join, alert(other))), other
    assert not finds("join-without-cluster", rules(join, alert("sum by (namespace) (c) > 1")))
    one = LintSettings(several_clusters=False)
    assert not finds("join-without-cluster", rules(join, alert("sum by (cluster) (c) > 1")), one)


def test_the_labels_are_the_users() -> None:
    settings = LintSettings(cluster_labels=("region", "k8s"), several_clusters=True)
    (found,) = finds_in("join-without-cluster", "a and on (region, ns) b", settings)
    assert "leaves k8s out" in found.what
    assert found.fix == "on (k8s, region, ns)"
