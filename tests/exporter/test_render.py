"""A snapshot's bytes: those of prometheus_client, made once for each format."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter.render import PLAIN, Rendering, SnapshotCollector, negotiate
from exporter.signal import Confidence, Kind, Scope, Signal
from exporter.snapshot import Snapshot, Value

OPENMETRICS = negotiate("application/openmetrics-text; version=1.0.0; escaping=allow-utf-8")
PROMETHEUS_3_ACCEPT = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


def signal(
    name: str, kind: Kind, scope: Scope = Scope.RANK, labels: tuple[str, ...] = (), text: str = "Help."
) -> Signal:
    return Signal(name, kind, scope, text, Confidence.MEASURED, "method", (), labels=labels)


SIGNALS = (
    signal("sequences", Kind.GAUGE, labels=("state",), text='Back\\slash, "quotes",\nlines.'),
    signal("kv_usage_ratio", Kind.GAUGE, text="Ünïcode help"),
    signal("preemptions_total", Kind.COUNTER),
    signal("aborts_total", Kind.COUNTER, Scope.ENGINE, text='"'),
    signal("source_up", Kind.GAUGE, Scope.SOURCE),
    signal("cycles_total", Kind.COUNTER, Scope.SIDECAR),
)


@st.composite
def values(draw: st.DrawFn) -> Value:
    chosen = draw(st.sampled_from(SIGNALS))
    size = len(chosen.label_names)
    # Real label values are Unicode without lone surrogates: those can't be sent as UTF-8.
    label = st.text(st.characters(codec="utf-8"))
    labels = draw(st.lists(label, min_size=size, max_size=size))
    peak = chosen.kind is Kind.GAUGE and draw(st.booleans())
    return Value(chosen, tuple(labels), draw(st.floats()), is_peak=peak)


@pytest.mark.parametrize("wanted", [PLAIN, OPENMETRICS, negotiate("application/openmetrics-text")])
@settings(deadline=None)
@given(drawn=st.lists(values()))
def test_bytes_are_those_of_prometheus_client(wanted: object, drawn: list[Value]) -> None:
    assert isinstance(wanted, type(PLAIN))
    body = Rendering(Snapshot(0.0, tuple(drawn), ready=True)).body(wanted)
    assert body == wanted.encode(SnapshotCollector(drawn))


def test_other_spellings_are_left_to_prometheus_client() -> None:
    wanted = negotiate("application/openmetrics-text; version=1.0.0; escaping=dots")
    body = Rendering(
        Snapshot(0.0, (Value(SIGNALS[1], ("e", "0", "m"), 0.5, is_peak=False),), ready=True)
    ).body(wanted)
    assert b"thrashold__kv__usage__ratio" in body


@pytest.mark.parametrize("wanted", [PLAIN, OPENMETRICS])
def test_a_parser_reads_back_what_was_in_the_snapshot(wanted: object) -> None:
    assert isinstance(wanted, type(PLAIN))
    labels = ("e", "0", 'm"\\\n')
    given_values = (
        Value(SIGNALS[2], labels, 3.0, is_peak=False),
        Value(SIGNALS[1], labels, 0.5, is_peak=False),
        Value(SIGNALS[1], labels, 0.75, is_peak=True),
    )
    text = Rendering(Snapshot(0.0, given_values, ready=True)).body(wanted).decode()
    parse = parse_openmetrics if wanted is OPENMETRICS else parse_text
    families = list(parse(text))
    assert [(each.name, each.type) for each in families] == [
        ("thrashold_preemptions", "counter"),
        ("thrashold_kv_usage_ratio", "gauge"),
        ("thrashold_kv_usage_ratio_peak", "gauge"),
    ]
    samples = [(each.samples[0].name, each.samples[0].value) for each in families]
    assert samples == [
        ("thrashold_preemptions_total", 3.0),
        ("thrashold_kv_usage_ratio", 0.5),
        ("thrashold_kv_usage_ratio_peak", 0.75),
    ]
    expected = {"engine": "e", "rank": "0", "model_name": 'm"\\\n'}
    assert all(each.samples[0].labels == expected for each in families)


def test_each_format_is_made_once() -> None:
    rendering = Rendering(Snapshot(0.0, (Value(SIGNALS[4], ("e",), 1.0, is_peak=False),), ready=True))
    for wanted in (PLAIN, OPENMETRICS):
        for zipped in (False, True):
            assert rendering.body(wanted, zipped=zipped) is rendering.body(wanted, zipped=zipped)
        assert gzip.decompress(rendering.body(wanted, zipped=True)) == rendering.body(wanted)
    assert rendering.body(PLAIN) != rendering.body(OPENMETRICS)


def test_any_version_that_a_client_invents_shares_the_same_bytes() -> None:
    rendering = Rendering(Snapshot(0.0, (), ready=True))
    bodies = {
        id(rendering.body(negotiate(f"application/openmetrics-text; version=1.0.{n}"))) for n in range(50)
    }
    assert len(bodies) == 1


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/html", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/plain;version=0.0.4", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        (
            PROMETHEUS_3_ACCEPT,
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8",
        ),
        ("application/openmetrics-text; version=newest", "text/plain; version=0.0.4; charset=utf-8"),
    ],
)
def test_the_format_follows_the_accept_header(accept: str, content_type: str) -> None:
    assert negotiate(accept).content_type == content_type
