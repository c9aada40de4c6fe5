"""The configuration of an Envoy before engines. That a real one goes by it, ``make e2e`` shows."""

from __future__ import annotations

import pytest

from deploy.envoy import UnservableError, configuration
from deploy.ports import Ports


def _address(host: str, port: int) -> dict[str, object]:
    return {"socket_address": {"address": host, "port_value": port}}


def test_all_engines_stand_behind_one_port_of_loopback() -> None:
    made = configuration(
        ("http://127.0.0.1:8000", "worker-8=http://worker-8:8001/metrics", "b=http://[::1]"), Ports()
    )
    (listener,), (cluster,) = made["static_resources"]["listeners"], made["static_resources"]["clusters"]
    assert listener["address"] == _address("127.0.0.1", 10000)
    assert made["admin"]["address"] == _address("127.0.0.1", 9901)
    (group,) = cluster["load_assignment"]["endpoints"]
    assert [each["endpoint"]["address"] for each in group["lb_endpoints"]] == [
        _address("127.0.0.1", 8000),
        _address("worker-8", 8001),
        _address("::1", 80),
    ]


@pytest.mark.parametrize(
    "engine", ["https://a:1", "a=https://a:1", "a:8000", "http://:1", "http://a:x", "http://[1"]
)
def test_what_it_cant_be_put_before_is_refused_by_name(engine: str) -> None:
    with pytest.raises(UnservableError) as refused:
        configuration(("http://127.0.0.1:8000", engine), Ports())
    assert str(refused.value).startswith(f"{engine}: ")
