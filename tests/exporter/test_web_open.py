"""What a web config leaves open: the paths it takes out of basic auth, and all of them where it is empty."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from exporter.web_config import read_web_config
from tests.exporter.running import call, hanging_engine, running
from tests.exporter.web_files import HASH, TLS, Certificates, get, make_certificates, write


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def engine_url() -> Iterator[str]:
    with hanging_engine() as url:
        yield url


EXCLUDED = f"basic_auth_users: {{prometheus: '{HASH}'}}\nauth_excluded_paths: [/-/healthy, /-/ready]\n"


def test_excluded_paths_are_open_and_no_others(certificates: Certificates, engine_url: str) -> None:
    config = write(certificates, EXCLUDED)
    with running("--engine", engine_url, "--web-config", str(config)) as sidecar:
        healthy = get(f"{sidecar.url}/-/healthy")
        assert (healthy.status_code, healthy.text) == (200, "healthy\n")
        assert get(f"{sidecar.url}/%2d/healthy?probe=1").status_code == 200, (
            "the same path, written otherwise"
        )
        assert get(f"{sidecar.url}/-/ready").status_code == 503, "the page itself answers"
        wrong = get(f"{sidecar.url}/-/healthy", auth=("prometheus", "wrong"))
        assert wrong.status_code == 200, "nobody is asked"
        for path in (
            "/metrics",
            "/",
            "/-/",
            "/-/healthy/",
            "//-/healthy",
            "/-/Healthy",
            "/-/healthy%00",
            "/-/healthy%3Fx",
            "/metrics?/-/healthy",
            "/metrics#/-/healthy",
            "/-/healthy/%2e%2e/%2e%2e/metrics",
        ):
            assert get(sidecar.url + path).status_code == 401, path
        assert get(f"{sidecar.url}/metrics", auth=("prometheus", "right")).status_code == 200


def test_client_certificates_are_asked_for_at_excluded_paths_too(
    certificates: Certificates, engine_url: str
) -> None:
    text = TLS + "  client_ca_file: ca.pem\n  client_auth_type: RequireAndVerifyClientCert\n" + EXCLUDED
    config = write(certificates, text)
    ours = certificates.client(own=certificates.authority.issue_cert("kubelet"))
    with running("--engine", engine_url, "--web-config", str(config)) as sidecar:
        assert get(f"{sidecar.url}/-/healthy", ours).status_code == 200
        assert get(f"{sidecar.url}/metrics", ours).status_code == 401
        with pytest.raises((httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError)):
            get(f"{sidecar.url}/-/healthy", certificates.client())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "web.yml is empty: nothing is protected"),
        ("# nothing yet\n", "web.yml is empty: nothing is protected"),
        ("{}\n", "web.yml is empty: nothing is protected"),
        (
            "http_server_config: {http2: false}\n",
            "web.yml sets neither TLS nor passwords: nothing is protected",
        ),
        ("basic_auth_users: {}\n", "web.yml is empty: nothing is protected"),
        (f"basic_auth_users: {{u: '{HASH}'}}\n", ""),
        (TLS, ""),
    ],
    # a hash has another salt in each process, and processes that share the tests call each the same
    ids=["empty", "a comment", "an empty map", "HTTP/2 alone", "no users", "a password", "TLS"],
)
def test_a_web_config_that_protects_nothing_is_taken_and_said(
    certificates: Certificates, caplog: pytest.LogCaptureFixture, text: str, said: str
) -> None:
    file = write(certificates, text)
    read_web_config(file)
    assert caplog.messages == ([f"{file.parent}/{said}"] if said else [])


def test_an_empty_web_config_serves_as_none_would(certificates: Certificates, engine_url: str) -> None:
    config = write(certificates, "")
    with running("--engine", engine_url, "--web-config", str(config)) as sidecar:
        assert get(f"{sidecar.url}/metrics").status_code == 200
        assert sidecar.log().count(f"{config} is empty: nothing is protected") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("auth_excluded_paths: [/-/healthy]", "web.yml:1: auth_excluded_paths: has no use without basic"),
        (
            EXCLUDED.replace("[/-/healthy, /-/ready]", "/-/healthy"),
            "web.yml:2: auth_excluded_paths: expected a list",
        ),
        (
            EXCLUDED.replace("/-/ready", "7"),
            "web.yml:2: auth_excluded_paths[1]: expected text, got a whole number",
        ),
        (
            EXCLUDED.replace("/-/ready", "{a: b}"),
            "web.yml:2: auth_excluded_paths[1]: expected text, got keys",
        ),
        (EXCLUDED.replace("/-/ready", "''"), "web.yml:2: auth_excluded_paths[1]: is not one whole path"),
        (EXCLUDED.replace("/-/ready", "-/ready"), "web.yml:2: auth_excluded_paths[1]: is not one whole path"),
        (
            EXCLUDED.replace("/-/ready", "/-/*"),
            "auth_excluded_paths[1]: is not one whole path, such as /-/healthy;",
        ),
        (
            EXCLUDED.replace("/-/ready", "'/-/ready?x'"),
            "web.yml:2: auth_excluded_paths[1]: is not one whole path",
        ),
        (
            EXCLUDED.replace("excluded_paths", "exclude_paths"),
            "unknown key; did you mean auth_excluded_paths?",
        ),
    ],
)
def test_excluded_paths_that_can_not_be_used_are_one_clear_line(
    certificates: Certificates, text: str, said: str
) -> None:
    done = call("--engine", "http://127.0.0.1:1", "--web-config", str(write(certificates, text)))
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
