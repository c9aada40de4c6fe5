"""Gateways in settings: their URLs, names and the engines behind them."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter.gateway_settings import GatewaySettings
from exporter.settings import SettingsError, load
from exporter.sidecar_settings import SidecarSettings
from tests.exporter.settings_files import write


@pytest.mark.parametrize(
    ("url", "kind", "wanted", "name"),
    [
        ("http://gw:9901", "auto", "http://gw:9901/stats/prometheus", "gw:9901"),
        ("http://gw:9901/", "envoy", "http://gw:9901/stats/prometheus", "gw:9901"),
        ("https://gw", "litellm", "https://gw/metrics/", "gw:443"),
        ("http://gw:15020/stats?filter=rq", "auto", "http://gw:15020/stats?filter=rq", "gw:15020"),
        ("http://[::1]:9901", "auto", "http://[::1]:9901/stats/prometheus", "[::1]:9901"),
    ],
)
def test_a_url_without_a_path_is_completed_by_kind(url: str, kind: str, wanted: str, name: str) -> None:
    settings = GatewaySettings(url, kind=kind)  # type: ignore[arg-type]
    assert (settings.url, settings.name) == (wanted, name)


def test_a_gateway_may_be_written_as_its_url_alone(tmp_path: Path) -> None:
    file = write(tmp_path, "engines: [http://w:8000]\ngateways: [http://gw:9901]\n")
    (gateway,) = load(SidecarSettings, file=file).gateways
    assert (gateway.name, gateway.kind, gateway.engines) == ("gw:9901", "auto", None)


def test_flag_and_variable_name_gateways_too() -> None:
    settings = load(SidecarSettings, environ={"THRASHOLD_GATEWAYS": "http://a:1, http://b:2"})
    assert [gateway.name for gateway in settings.gateways] == ["a:1", "b:2"]
    with pytest.raises(SettingsError, match=r"^--gateway: gateways\[0\]\.url: 'gw:9901' is not a URL"):
        load(SidecarSettings, flags={"gateways": ("gw:9901",)})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "engines: [{url: 'http://w:1', name: x}]\ngateways: [{url: 'http://gw:1', name: x}]\n",
            ":2: gateways[0]: the name x is already that of engines[0]; give one of them another name",
        ),
        (
            "gateways: ['http://gw:1', 'http://gw:1/other']\n",
            ":1: gateways[1]: the name gw:1 is already that of gateways[0]; give one of them another name",
        ),
        (
            "engines: ['http://w:1']\ngateways: [{url: 'http://gw:1', engines: [v]}]\n",
            ":2: gateways[0].engines[0]: no engine is called v; known here: w:1",
        ),
        (
            "gateways: [{url: 'http://gw:1', kind: litellm, cluster: c}]\n",
            ":1: gateways[0].cluster: is Envoy's; LiteLLM has none",
        ),
        ("gateways: [{url: 'http://gw:1', kind: nginx}]\n", ":1: gateways[0].kind: "),
        (
            "gateways: [{url: 'http://u:p@gw:1'}]\n",
            ":1: gateways[0].url: must not carry a user or a password",
        ),
        (
            "gateways: [{url: 'http://gw:1', bearer_token: a, bearer_token_file: b}]\n",
            ":1: gateways[0]: set only one of basic_auth, bearer_token and bearer_token_file",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(SidecarSettings, file=write(tmp_path, text))
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
