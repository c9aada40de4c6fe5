"""PromQL: where nodes stand in the text, with Grafana's variables in it too."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.lint.promql.parse import PromqlError, parse
from alerts.lint.promql.tree import (
    Aggregation,
    Binary,
    Call,
    Matcher,
    Negative,
    Node,
    Number,
    Selector,
    Subquery,
    Text,
    Window,
    selectors,
    walk,
)

SPACE = st.sampled_from(["", " ", "\n", "  # why\n "])
NAMES = st.sampled_from(
    ["a", "b:c", "sum", "by_x", "on", "rate", "vllm:num_requests_running", "offset_x", "inf_x"]
).filter(lambda name: name != "on")
LABELS = st.lists(st.sampled_from(["pod", "le", "on", "by"]), max_size=2).map(", ".join)
MATCHERS = st.sampled_from(["", "{}", '{a="b"}', '{a="sum(x) > 5",b=~"c|d",}', "{le='1'}"])


@st.composite
def vectors(draw: st.DrawFn, depth: int = 3) -> str:  # noqa: PLR0911 -- a return a kind
    kind = draw(st.integers(0, 6)) if depth else 0
    gap = draw(SPACE)
    inner = vectors(depth - 1)
    if kind == 0:
        after = draw(st.sampled_from(["", " offset 5m", " offset -1h", " @ end()", " @ 100"]))
        return draw(NAMES) + draw(MATCHERS) + after
    if kind == 1:
        call = draw(st.sampled_from(["rate", "increase", "max_over_time"]))
        return f"{call}{gap}({gap}{draw(NAMES)}{draw(MATCHERS)}[{draw(st.sampled_from(['5m', ' 1h ', '90s']))}]{gap})"
    if kind == 2:
        grouping = draw(st.sampled_from(["by", "without"])) + f"{gap}({draw(LABELS)})"
        of = f"({gap}{draw(inner)}{gap})"
        return draw(st.sampled_from(["sum", "max", "AVG"])) + draw(
            st.sampled_from([f" {grouping} {of}", f"{gap}{of}{gap} {grouping}", of])
        )
    if kind == 3:
        operator = draw(
            st.sampled_from(["+", "-", "/", "*", "> bool", "==", "and", "or", "unless", "and on (pod)"])
        )
        operator += draw(st.sampled_from(["", " ignoring(le)"])) if operator in ("+", "/") else ""
        return f"({draw(inner)}{gap} {operator} {gap}{draw(inner)})"
    if kind == 4:
        number = draw(st.sampled_from(["5", "0.5", "1e3", "-2", "Inf", "0x1f"]))
        return f"({draw(inner)} {draw(st.sampled_from(['>', '*', '<=']))} {number})"
    if kind == 5:
        return f"topk{gap}({gap}3{gap},{gap}{draw(inner)})"
    return f"max_over_time(({draw(inner)})[5m:{draw(st.sampled_from(['', '1m']))}])"


def name_of(node: Node) -> str:
    """What has to stand where the node says it does."""
    if isinstance(node, Selector | Call | Aggregation):
        return node.name
    return node.operator if isinstance(node, Binary) else ""


@given(vectors())
def test_every_node_stands_where_it_says(text: str) -> None:
    for node, _ in walk(parse(text)):
        if name := name_of(node):
            assert text[node.at :].lower().startswith(name.lower()), (text, node)  # type: ignore[union-attr]
        if isinstance(node, Number):
            assert text[node.at].isdigit() or text[node.at] == "I", (text, node)
        if isinstance(node, Selector) and node.window is not None:
            assert f"[{node.window.text}]" in text.replace(" ", "")


def test_an_expression_as_a_tree() -> None:
    tree = parse('topk by (a) (2, -x / on (a) group_left (b) max without (c) (y{d!="e"})) > 1')
    inner = Aggregation(43, "max", Selector(60, "y", (Matcher("d", "!=", "e"),)), ("c",), drops=True)
    join = Binary(19, "/", Negative(Selector(17, "x")), inner, ("a",), None, "left", ("b",))
    most = Aggregation(0, "topk", join, ("a",), drops=False, parameter=Number(13, 2.0))
    assert tree == Binary(72, ">", most, Number(74, 1.0))


@pytest.mark.parametrize(
    ("text", "name", "window"),
    [
        ("rate(x[$__rate_interval])", "x", Window(None, "$__rate_interval")),
        ("rate(x[${w}m])", "x", Window(None, "${w}m")),
        ("rate(x[5m])", "x", Window(300.0, "5m")),
        ("rate(x[[[w]]])", "x", Window(None, "[[w]]")),
        ('x{a=~"$job.*", b="${b:regex}"}', "x", None),
        ("x offset $off", "x", None),
    ],
)
def test_variables_are_taken_for_what_may_stand_there(text: str, name: str, window: Window | None) -> None:
    (found,) = selectors(parse(text))
    assert (found.name, found.window) == (name, window)
    assert text[found.at :].startswith(name)


def test_numbers_and_aggregations_may_be_variables() -> None:
    tree = parse("$agg by (pod) (x) > $limit")
    assert isinstance(tree, Binary)
    assert isinstance(tree.left, Aggregation)
    assert (tree.left.name, tree.right) == ("", Number(20, None))
    parse("topk($n, x) and bottomk(${n}, quantile($q, y)) or x * $factor + histogram_quantile($q, z_bucket)")
    parse("sum by ($by, ${more}) (${metric}{a='$b'}) / ${metric}_total")


def test_a_subquery_and_a_text() -> None:
    tree = parse('label_replace(max_over_time(x[1h:30s]), "a", "$1", "b", "(.*)")')
    assert isinstance(tree, Call)
    inner = tree.arguments[0]
    assert isinstance(inner, Call)
    assert inner.arguments == (Subquery(Selector(28, "x"), Window(3600.0, "1h:30s"), 30.0),)
    assert tree.arguments[1] == Text("a")


@pytest.mark.parametrize(
    "text", ["", "rate(x", "x >", "x{", "nope(x)", "rate(x)", "sum by (a x)", 'x{a="b" or c="d"}']
)
def test_what_is_no_promql_is_refused(text: str) -> None:
    with pytest.raises(PromqlError, match=r"\w"):
        parse(text)


@given(st.text(st.sampled_from("abx5$ ()[]{}<>=!~+-*/\"'.,:mrate\n#@"), max_size=25))
def test_whatever_is_given_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(PromqlError):
        parse(text)
