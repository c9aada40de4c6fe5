"""Envoy's own stats: captured after one kind of request at a time, and written where a capture has none."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.dialects.envoy import NOT_A_NUMBER, SEVERAL_LISTENERS, SEVERAL_SERVICES, EnvoyDialect
from exporter.dialects.gateway_dialect import AmbiguousError
from exporter.dialects.gateways import detect_gateway
from exporter.exposition import Reader
from exporter.gateway_sample import Breaker
from tests.support.gateways import ended, envoy_names, envoy_page, envoy_sample

# page: what had ended by then, arrived, sent to the engine, retried, turned away
TRUTH: dict[str, tuple[dict[str, float], float, float, float, float]] = {
    "whole/00-fresh": ({}, 0, 0, 0, 0),
    "whole/01-ok3": ({"ok": 3}, 3, 3, 0, 0),
    "whole/02-bucket": ({"ok": 12, "rejected": 3}, 15, 12, 0, 3),
    "whole/03-err": ({"ok": 12, "rejected": 3, "server_error": 1}, 16, 14, 1, 3),
    "whole/04-reset": ({"ok": 12, "rejected": 3, "server_error": 1, "upstream_reset": 1}, 17, 16, 2, 3),
    "whole/05-upstream429-400": (
        {"ok": 12, "rejected": 4, "server_error": 1, "upstream_reset": 1, "client_error": 1},
        19,
        18,
        2,
        3,
    ),
    "whole/06-timeout": (
        {"ok": 12, "rejected": 4, "server_error": 1, "upstream_reset": 1, "client_error": 1, "timeout": 1},
        20,
        19,
        2,
        3,
    ),
    "whole/09-left": (
        {
            "ok": 16,
            "rejected": 4,
            "server_error": 1,
            "upstream_reset": 1,
            "client_error": 1,
            "timeout": 1,
            "overflow": 3,
            "client_left": 1,
        },
        28,
        24,
        2,
        6,
    ),
    "streams/01-stream-ok": ({"ok": 1}, 1, 1, 0, 0),
    "streams/02-left-midway": ({"ok": 1, "client_left": 1}, 2, 2, 0, 0),
    "streams/03-timeout-midway": ({"ok": 1, "client_left": 1, "timeout": 1}, 3, 3, 0, 0),
    "streams/04-died-midway": (
        {"ok": 1, "client_left": 1, "timeout": 1, "upstream_reset": 1},
        4,
        4,
        0,
        0,
    ),
    "bodies/01-bodies": ({"ok": 8, "rejected": 6}, 14, 8, 0, 6),
    "bodies/02-slow-bodies": ({"ok": 16, "rejected": 12}, 28, 16, 0, 12),
    "services/01-one-busy": ({"ok": 3}, 3, 3, 0, 0),
    "services/03-reset": ({"ok": 1}, 1, 1, 0, 0),
}


@pytest.mark.parametrize("name", TRUTH)
def test_each_request_is_counted_once_by_how_it_ended(name: str) -> None:
    sample = envoy_sample(envoy_page(name))
    how, arrived, sent, retried, turned_away = TRUTH[name]
    assert ended(sample) == how
    assert sample.requests_total == arrived
    assert sample.upstream_requests_total == sent
    assert sample.retries_total == retried
    assert sample.turned_away_total == turned_away
    assert sample.notes == ()


@pytest.mark.parametrize("name", [name for name in envoy_names() if not name.startswith("services/0")])
def test_what_has_not_ended_is_in_flight(name: str) -> None:
    sample = envoy_sample(envoy_page(name))
    assert sample.ended is not None
    assert sample.inflight == sample.requests_total - sample.ended  # type: ignore[operator]
    assert sample.inflight == {"whole/07-open": 4, "streams/06-active": 1}.get(name, 0)
    assert sample.upstream_inflight == sample.inflight
    assert sample.pending == 0
    assert sample.backends == 1


@pytest.mark.parametrize(
    ("name", "attempts"),
    [
        ("whole/01-ok3", 0),
        ("whole/05-upstream429-400", 1),  # the connection after an error that was retried
        ("whole/06-timeout", 2),
        ("whole/09-left", 3),
        ("streams/02-left-midway", 1),
        ("streams/03-timeout-midway", 2),
        ("streams/04-died-midway", 2),
    ],
)
def test_what_it_gave_up_itself_is_counted_and_what_the_engine_broke_off_is_not(
    name: str, attempts: int
) -> None:
    assert envoy_sample(envoy_page(name)).given_up_total == attempts


def test_attempts_given_up_over_either_http_add_up_and_are_absent_without_a_word_of_them() -> None:
    page = envoy_page("whole/09-left").decode()
    both = page.replace(
        'upstream_rq_tx_reset{envoy_cluster_name="engine"} 0',
        'upstream_rq_tx_reset{envoy_cluster_name="engine"} 5',
    )
    assert envoy_sample(both).given_up_total == 8
    lines = page.splitlines(keepends=True)
    without = [line for line in lines if "rq_tx_reset" not in line and "destroy_local_with" not in line]
    assert envoy_sample("".join(without)).given_up_total is None


def test_a_breaker_is_open_while_it_is_at_its_limit() -> None:
    before, amid, after = (
        {breaker[:2] for breaker in envoy_sample(envoy_page(f"whole/{name}")).breakers if breaker.is_open}
        for name in ("06-timeout", "07-open", "08-overflow")
    )
    assert (before, amid, after) == (set(), {("default", "requests")}, set())
    assert len(envoy_sample(envoy_page("whole/07-open")).breakers) == 10
    assert Breaker("high", "pending", is_open=False) in envoy_sample(envoy_page("whole/07-open")).breakers


def test_histograms_are_seconds() -> None:
    sample = envoy_sample(envoy_page("whole/09-left"))
    assert sample.request_time is not None
    assert sample.upstream_time is not None
    assert sample.request_time.bounds[:3] == (0.0005, 0.001, 0.005)
    assert sample.request_time.count == 27
    # four that took 1.5 s, two that met the timeout of 2 s
    assert sample.request_time.counts[sample.request_time.bounds.index(2.5)] == 27
    assert sample.upstream_time.count == 19
    assert sample.upstream_time.mean == pytest.approx(0.3, abs=0.1)


def test_the_histogram_of_a_cluster_that_has_answered_nothing_is_empty() -> None:
    page = envoy_page("whole/00-fresh")
    without = b"".join(
        line
        for line in page.splitlines(keepends=True)
        if not line.startswith(b"envoy_cluster_upstream_rq_time")
    )
    sample = envoy_sample(without)
    assert sample.request_time is not None
    assert sample.upstream_time is not None
    assert (sample.upstream_time.bounds, sample.upstream_time.count) == (sample.request_time.bounds, 0)


def test_listeners_repeat_what_connection_managers_count_and_are_not_read() -> None:
    dialect = EnvoyDialect()
    lines = [
        line
        for line in envoy_page("whole/09-left").splitlines(keepends=True)
        if line.startswith(b"envoy_listener")
    ]
    assert len(lines) > 20
    assert Reader(dialect.interpret).read(b"".join(lines)) == []


def test_the_only_cluster_with_requests_is_the_engines() -> None:
    assert envoy_sample(envoy_page("services/00-fresh")).upstream_requests_total is None
    assert envoy_sample(envoy_page("services/00-fresh")).notes == ("no_traffic_yet",)
    assert (
        envoy_sample(envoy_page("services/00-fresh"), cluster="engines", listener="chat").requests_total == 0
    )
    assert envoy_sample(envoy_page("services/01-one-busy")).backends == 1


def test_of_several_clusters_with_requests_settings_have_to_name_one() -> None:
    page = envoy_page("services/02-both-busy")
    with pytest.raises(
        AmbiguousError, match=r"sends requests to 2 clusters \(engines, index\); set the gateway's cluster"
    ):
        envoy_sample(page)
    with pytest.raises(AmbiguousError, match=r"has no cluster engine \(it has engines, index, xds_cluster\)"):
        envoy_sample(page, cluster="engine")
    with pytest.raises(AmbiguousError, match=r"has no listener ingress \(it has chat, search\)"):
        envoy_sample(page, cluster="engines", listener="ingress")
    sample = envoy_sample(page, cluster="engines")
    # clients of other services come to the same listeners, for all that can be told
    assert (sample.upstream_requests_total, sample.requests_total, sample.outcomes_total) == (3, None, ())
    assert sample.notes == (SEVERAL_SERVICES,)
    sample = envoy_sample(page, cluster="engines", listener="chat")
    assert (ended(sample), sample.notes) == ({"ok": 3}, ())


@pytest.mark.parametrize(
    ("name", "is_own"),
    [
        ("xds_cluster", True),
        ("xds-grpc", True),
        ("prometheus_stats", True),
        ("ext_authz", True),
        ("ext_proc_cluster", True),
        ("extproc", True),
        ("agent", True),
        ("admin", True),
        ("agent_llm", False),
        ("agent-backend", False),
        ("stats-summary-model", False),
        ("admin_assistant", False),
        ("adsorption", False),
        ("engines", False),
    ],
)
def test_a_cluster_of_envoys_own_is_known_by_its_name_and_engines_may_be_called_alike(
    name: str, *, is_own: bool
) -> None:
    page = series(requests=3, a2xx=3, sent=3, u200=3).replace('"engines"', f'"{name}"')
    sample = envoy_sample(page)
    assert (sample.upstream_requests_total, sample.notes) == (
        (None, ("no_traffic_yet",)) if is_own else (3, ())
    )


def test_one_cluster_behind_two_listeners_has_no_outcomes_until_one_is_named() -> None:
    page = envoy_page("services/01-one-busy").replace(
        b'envoy_http_downstream_rq_total{envoy_http_conn_manager_prefix="search"} 0',
        b'envoy_http_downstream_rq_total{envoy_http_conn_manager_prefix="search"} 2',
    )
    assert envoy_sample(page).notes == (SEVERAL_LISTENERS,)
    assert envoy_sample(page).outcomes_total == ()
    assert ended(envoy_sample(page, listener="chat")) == {"ok": 3}


def series(**counts: float) -> str:
    """A page written by hand: one listener and one cluster that all requests come to."""
    names = {"requests": "http_downstream_rq_total", "active": "http_downstream_rq_active"}
    lines = []
    for name, count in {"requests": 0, "active": 0, "a2xx": 0, "sent": 0, **counts}.items():
        if name.startswith("a") and name.endswith("xx"):
            labels = f'envoy_response_code_class="{name[1]}",envoy_http_conn_manager_prefix="in"'
            lines.append(f"envoy_http_downstream_rq_xx{{{labels}}} {count}")
        elif name.startswith("u") and name[1:].isdecimal():
            labels = f'envoy_response_code="{name[1:]}",envoy_cluster_name="engines"'
            lines.append(f"envoy_cluster_upstream_rq{{{labels}}} {count}")
        elif name in {"requests", "active", "rx_reset", "tx_reset", "response_before_rq_complete"}:
            full = names.get(name, f"http_downstream_rq_{name}")
            lines.append(f'envoy_{full}{{envoy_http_conn_manager_prefix="in"}} {count}')
        elif name == "limited":
            lines += [
                f'envoy_http_local_rate_limit_{each}{{envoy_local_http_ratelimit_prefix="b"}} {count}'
                for each in ("enforced", "rate_limited")
            ]
        else:
            full = {"sent": "upstream_rq_total"}.get(name, name)
            lines.append(f'envoy_cluster_{full}{{envoy_cluster_name="engines"}} {count}')
    return "\n".join(lines) + "\n"


def test_a_global_limit_is_counted_once_though_two_series_tell_of_it() -> None:
    page = series(requests=9, a2xx=5, a4xx=4, sent=5, u200=5, u429=4, ratelimit_over_limit=4)
    assert ended(envoy_sample(page)) == {"ok": 5, "rejected": 4}


def test_envoys_before_1_40_count_all_that_a_breaker_turns_away_as_pending_overflow() -> None:
    page = series(requests=9, a2xx=5, a5xx=4, sent=5, u200=5, u503=4, upstream_rq_pending_overflow=4)
    assert ended(envoy_sample(page)) == {"ok": 5, "overflow": 4}


def test_a_503_is_the_engines_own_where_no_connection_broke() -> None:
    page = series(requests=9, a2xx=5, a5xx=4, sent=9, u200=5, u503=4)
    assert ended(envoy_sample(page)) == {"ok": 5, "server_error": 4}


def test_what_counts_down_from_no_limit_is_no_number() -> None:
    page = series(requests=3, a2xx=3, sent=3, upstream_rq_active=18446744073709551615.0)
    sample = envoy_sample(page)
    assert sample.upstream_inflight is None
    assert sample.notes == (NOT_A_NUMBER,)


def test_a_page_without_active_requests_tells_no_outcomes() -> None:
    page = series(requests=3, a2xx=3, sent=3).replace("envoy_http_downstream_rq_active", "envoy_else")
    assert envoy_sample(page).outcomes_total == ()


def test_is_told_from_other_pages_by_its_names() -> None:
    names = {line.split(b"{")[0].decode() for line in envoy_page("whole/00-fresh").splitlines()}
    assert detect_gateway(names) is not None
    assert detect_gateway(names, "litellm") is None
    assert detect_gateway({"envoy_server_live", "up"}) is None


# What each ending adds to Envoy's counters, as captured.
CHARGES: dict[str, dict[str, int]] = {
    "ok": {"requests": 1, "a2xx": 1, "sent": 1, "u200": 1},
    "client_error": {"requests": 1, "a4xx": 1, "sent": 1, "u400": 1},
    "rejected": {"requests": 1, "a4xx": 1, "limited": 1},
    "rejected early": {
        "requests": 1,
        "a4xx": 1,
        "limited": 1,
        "rx_reset": 1,
        "response_before_rq_complete": 1,
    },
    "rejected by the engine": {"requests": 1, "a4xx": 1, "sent": 1, "u429": 1},
    "server_error": {"requests": 1, "a5xx": 1, "sent": 1, "u500": 1},
    "timeout": {"requests": 1, "a5xx": 1, "sent": 1, "u504": 1, "upstream_rq_timeout": 1},
    "timeout amid": {
        "requests": 1,
        "a2xx": 1,
        "sent": 1,
        "u200": 1,
        "upstream_rq_timeout": 1,
        "tx_reset": 1,
        "rx_reset": 1,
    },
    "upstream_reset": {
        "requests": 1,
        "a5xx": 1,
        "sent": 1,
        "u503": 1,
        "upstream_cx_destroy_remote_with_active_rq": 1,
    },
    "upstream_reset amid": {
        "requests": 1,
        "a2xx": 1,
        "sent": 1,
        "u200": 1,
        "upstream_cx_destroy_remote_with_active_rq": 1,
        "tx_reset": 1,
        "rx_reset": 1,
    },
    "overflow": {"requests": 1, "a5xx": 1, "u503": 1, "upstream_rq_active_overflow": 1},
    "client_left": {"requests": 1, "sent": 1, "rx_reset": 1},
    "client_left amid": {"requests": 1, "a2xx": 1, "sent": 1, "u200": 1, "rx_reset": 1},
    "active": {"requests": 1, "active": 1, "sent": 1},
    "active amid": {"requests": 1, "active": 1, "a2xx": 1, "sent": 1, "u200": 1},
}


@given(st.lists(st.sampled_from(sorted(CHARGES)), max_size=60))
def test_any_mixture_of_endings_is_told_apart(endings: list[str]) -> None:
    counts: Counter[str] = Counter()
    for ending in endings:
        counts.update(CHARGES[ending])
    true = Counter(ending.split()[0] for ending in endings)
    sample = envoy_sample(series(**counts))
    assert sample.inflight == true.pop("active", 0)
    assert ended(sample) == dict(true)
    assert sample.ended == sum(true.values())
