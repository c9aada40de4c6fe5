"""TLS and basic auth of the sidecar's own pages, on a real server with real certificates."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from typing import NoReturn

import bcrypt
import httpx
import pytest
import trustme

from exporter.settings import SettingsError
from exporter.web_config import Passwords, read_web_config, tls_context
from tests.exporter.running import call, hanging_engine, running
from tests.exporter.web_files import HASH, TLS, Certificates, get, make_certificates, write


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def engine_url() -> Iterator[str]:
    with hanging_engine() as url:
        yield url


def test_tls_serves_those_who_trust_it(certificates: Certificates, engine_url: str) -> None:
    config = write(certificates, TLS)
    with running("--engine", engine_url, "--web-config", str(config)) as sidecar:
        assert sidecar.url.startswith("https://")
        answer = get(f"{sidecar.url}/metrics", certificates.client())
        assert answer.status_code == 200
        assert "thrashold_source_up" in answer.text
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            get(f"{sidecar.url}/metrics", ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        with pytest.raises(httpx.RemoteProtocolError):
            get(sidecar.url.replace("https", "http") + "/metrics")


def test_a_minimum_version_is_kept(certificates: Certificates, engine_url: str) -> None:
    config = write(certificates, TLS + "  min_version: TLS13\n")
    old = certificates.client()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with running("--engine", engine_url, "--web-config", str(config)) as sidecar:
        assert get(f"{sidecar.url}/metrics", certificates.client()).status_code == 200
        with pytest.raises(httpx.ConnectError):
            get(f"{sidecar.url}/metrics", old)


def test_client_certificates_are_asked_for(certificates: Certificates, engine_url: str) -> None:
    text = TLS + "  client_ca_file: ca.pem\n  client_auth_type: RequireAndVerifyClientCert\n"
    config = write(certificates, text)
    ours = certificates.client(own=certificates.authority.issue_cert("prometheus"))
    theirs = certificates.client(own=trustme.CA().issue_cert("stranger"))
    with running("--engine", engine_url, "--web-config", str(config)) as sidecar:
        assert get(f"{sidecar.url}/metrics", ours).status_code == 200
        # TLS 1.3 tells a client only after its own handshake is done that it is not wanted.
        for stranger in (certificates.client(), theirs):
            with pytest.raises((httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError)):
                get(f"{sidecar.url}/metrics", stranger)


def test_a_certificate_if_given_must_be_ours(certificates: Certificates, engine_url: str) -> None:
    text = TLS + "  client_ca_file: ca.pem\n  client_auth_type: VerifyClientCertIfGiven\n"
    config = write(certificates, text)
    with running("--engine", engine_url, "--web-config", str(config)) as sidecar:
        assert get(f"{sidecar.url}/metrics", certificates.client()).status_code == 200
        theirs = certificates.client(own=trustme.CA().issue_cert("stranger"))
        with pytest.raises((httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError)):
            get(f"{sidecar.url}/metrics", theirs)


def test_everything_is_behind_the_password(certificates: Certificates, engine_url: str) -> None:
    text = f"basic_auth_users: {{prometheus: '{HASH}'}}\nhttp_server_config: {{headers: {{X-Frame-Options: deny}}}}\n"
    config = write(certificates, text)
    with running("--engine", engine_url, "--web-config", str(config)) as sidecar:
        for path in ("/metrics", "/", "/-/healthy", "/-/ready", "/nothing"):
            answer = get(sidecar.url + path)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Basic realm=")
            assert "thrashold_" not in answer.text
        for auth in (
            ("prometheus", "wrong"),
            ("nobody", "right"),
            ("", ""),
            ("prometheus", ""),
            ("prometheus", "é" * 99),
        ):
            assert get(f"{sidecar.url}/metrics", auth=auth).status_code == 401
        for _ in range(2):
            answer = get(f"{sidecar.url}/metrics", auth=("prometheus", "right"))
            assert answer.status_code == 200
            assert answer.headers["x-frame-options"] == "deny"
        assert get(f"{sidecar.url}/nothing", auth=("prometheus", "right")).status_code == 404


def test_headers_that_are_no_credentials_get_a_401(certificates: Certificates, engine_url: str) -> None:
    config = write(certificates, f"basic_auth_users: {{prometheus: '{HASH}'}}\n")
    good = b"cHJvbWV0aGV1czpyaWdodA=="
    headers = (b"", b"Basic", b"Basic !!!", b"Basic cHJvbWV0aGV1cw==", b"Bearer " + good, b"Basic \xff", good)
    with running("--engine", engine_url, "--web-config", str(config)) as sidecar, sidecar.client() as client:
        for header in headers:
            assert client.get("/metrics", headers={b"Authorization": header}).status_code == 401
        assert client.get("/metrics", headers={b"Authorization": b"basic " + good}).status_code == 200


def test_a_right_password_costs_its_slow_hash_once(monkeypatch: pytest.MonkeyPatch) -> None:
    costs: list[bytes] = []
    check = bcrypt.checkpw

    def counted(password: bytes, hashed: bytes) -> bool:
        assert threading.current_thread() is not threading.main_thread(), "beside the loop"
        costs.append(hashed.split(b"$")[2])
        return check(password, hashed)

    monkeypatch.setattr(bcrypt, "checkpw", counted)
    passwords = Passwords({"user": bcrypt.hashpw(b"right", bcrypt.gensalt(5)).decode()})

    def spent(user: bytes, password: bytes, *, right: bool) -> list[bytes]:
        costs.clear()
        assert asyncio.run(passwords.right(user, password)) is right
        return list(costs)

    assert spent(b"user", b"right", right=True) == [b"05"]
    assert spent(b"user", b"right", right=True) == []
    for _ in range(2):
        assert spent(b"user", b"wrong", right=False) == [b"05"], "a wrong password is never the quick way"
        # as much work as for a user who exists: the time taken does not tell
        assert spent(b"nobody", b"right", right=False) == [b"05"]
    assert spent(b"user", b"right", right=True) == [], "wrong ones do not push it out"


def test_knowing_users_hashes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    users = {"user": "$2b$14$" + "x" * 53}

    def slow(*_: object) -> NoReturn:
        raise AssertionError("the loop waits for this")

    monkeypatch.setattr(bcrypt, "hashpw", slow)
    monkeypatch.setattr(bcrypt, "checkpw", slow)
    Passwords(users).replace(users)


def test_the_dearest_hash_that_is_taken(certificates: Certificates) -> None:
    config = read_web_config(write(certificates, f"basic_auth_users: {{u: '$2b$14${'x' * 53}'}}\n"))
    assert config.basic_auth_users.keys() == {"u"}


def test_a_password_longer_than_bcrypt_reads_is_cut_as_htpasswd_does() -> None:
    passwords = Passwords({"user": bcrypt.hashpw(b"x" * 72, bcrypt.gensalt(4)).decode()})
    assert asyncio.run(passwords.right(b"user", b"x" * 100))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("basic_auth_users: {u: hunter2}", "web.yml:1: basic_auth_users.u: is not a bcrypt hash"),
        (
            f"basic_auth_users: {{u: '$2b$15${'x' * 53}'}}",
            "basic_auth_users.u: has a bcrypt cost of 15, above 14",
        ),
        (
            f"basic_auth_users: {{u: '$2y$31${'x' * 53}'}}",
            "basic_auth_users.u: has a bcrypt cost of 31, above 14",
        ),
        ("basic_auth_user: {}", "web.yml:1: basic_auth_user: unknown key; did you mean basic_auth_users?"),
        ("tls_server_config: {cert_file: server.pem}", "web.yml:1: tls_server_config: lacks key_file"),
        (TLS + "  min_version: TLS10\n", "web.yml:4: tls_server_config.min_version: "),
        (
            TLS + "  min_version: TLS13\n  max_version: TLS12\n",
            "web.yml:4: tls_server_config.min_version: TLS13 is above",
        ),
        (TLS + "  client_auth_type: RequireAnyClientCert\n", "client_auth_type: must be one of"),
        (TLS + "  client_auth_type: RequireAndVerifyClientCert\n", "needs client_ca_file"),
        (TLS + "  client_ca_file: ca.pem\n", "web.yml:4: tls_server_config.client_ca_file: has no use"),
        (TLS.replace("server.key", "none.key"), "none.key: cannot be read: No such file or directory"),
        (TLS.replace("server.key", "other.key"), "server.pem: not a certificate that goes with the key in "),
        (TLS.replace("server.pem", "server.key"), "server.key: not a certificate that goes with the key in "),
        (
            TLS + "  client_ca_file: server.key\n  client_auth_type: RequireAndVerifyClientCert\n",
            "server.key: holds no CA certificate",
        ),
    ],
)
def test_a_bad_web_config_is_one_clear_line(certificates: Certificates, text: str, said: str) -> None:
    done = call("--engine", "http://127.0.0.1:1", "--web-config", str(write(certificates, text)))
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert "hunter2" not in done.stderr


def test_an_encrypted_key_is_refused_without_asking_on_the_terminal(certificates: Certificates) -> None:
    key = certificates.folder / "server.key"
    locked = certificates.folder / "locked.key"
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - trustme brings it

    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    locked.write_bytes(
        loaded.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    config = read_web_config(write(certificates, TLS.replace("server.key", "locked.key")))
    assert config.tls_server_config is not None
    with pytest.raises(SettingsError, match=r"locked\.key"):
        tls_context(config.tls_server_config)
