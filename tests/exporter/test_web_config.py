"""TLS and basic auth of the sidecar's own pages, on a real server with real certificates."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import bcrypt
import httpx
import pytest
import trustme

from exporter.settings import SettingsError
from exporter.web_config import Passwords, read_web_config, tls_context
from exporter.web_reload import WebReload
from tests.exporter.running import call, hanging_engine, running

HASH = bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()


@dataclass(frozen=True, slots=True)
class Certificates:
    folder: Path
    authority: trustme.CA

    def client(self, *, own: trustme.LeafCert | None = None) -> ssl.SSLContext:
        """What a client needs to trust the server; with ``own`` it shows a certificate of its own."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        if own is not None:
            own.configure_cert(context)
        return context


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    server = authority.issue_cert("127.0.0.1", "localhost")
    server.private_key_pem.write_to_path(str(folder / "server.key"))
    for place, pem in enumerate(server.cert_chain_pems):
        pem.write_to_path(str(folder / "server.pem"), append=place > 0)
    other = trustme.CA().issue_cert("elsewhere")
    other.private_key_pem.write_to_path(str(folder / "other.key"))
    return Certificates(folder, authority)


@pytest.fixture
def engine_url() -> Iterator[str]:
    with hanging_engine() as url:
        yield url


def write(certificates: Certificates, text: str) -> Path:
    file = certificates.folder / "web.yml"
    file.write_text(text)
    return file


TLS = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n"


def get(url: str, trust: ssl.SSLContext | None = None, auth: tuple[str, str] | None = None) -> httpx.Response:
    verify = trust if trust is not None else False
    with httpx.Client(verify=verify, trust_env=False, timeout=10) as client:
        return client.get(url, auth=auth)


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


def test_a_right_password_costs_its_slow_hash_once() -> None:
    rounds = 10
    passwords = Passwords({"user": bcrypt.hashpw(b"right", bcrypt.gensalt(rounds)).decode()})

    async def seconds(user: bytes, password: bytes, *, right: bool) -> float:
        start = time.perf_counter()
        assert await passwords.right(user, password) is right
        return time.perf_counter() - start

    async def all_of_it() -> None:
        first = await seconds(b"user", b"right", right=True)
        again = min([await seconds(b"user", b"right", right=True) for _ in range(3)])
        wrong = min([await seconds(b"user", b"wrong", right=False) for _ in range(3)])
        nobody = min([await seconds(b"nobody", b"right", right=False) for _ in range(3)])
        assert again < first / 10
        assert wrong > again * 10, "a wrong password is never the quick way"
        assert 0.2 < nobody / wrong < 5, "the time taken does not tell which users exist"
        assert await seconds(b"user", b"right", right=True) < first / 10, "wrong ones do not push it out"

    asyncio.run(all_of_it())


def test_a_password_longer_than_bcrypt_reads_is_cut_as_htpasswd_does() -> None:
    passwords = Passwords({"user": bcrypt.hashpw(b"x" * 72, bcrypt.gensalt(4)).decode()})
    assert asyncio.run(passwords.right(b"user", b"x" * 100))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("basic_auth_users: {u: hunter2}", "web.yml:1: basic_auth_users.u: is not a bcrypt hash"),
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


def reloading(certificates: Certificates, text: str) -> WebReload:
    file = write(certificates, text)
    web = read_web_config(file)
    tls = tls_context(web.tls_server_config) if web.tls_server_config else None
    return WebReload(file, web, tls, Passwords(web.basic_auth_users) if web.basic_auth_users else None)


def test_a_changed_password_is_taken_up(certificates: Certificates) -> None:
    reload = reloading(certificates, f"basic_auth_users: {{user: '{HASH}'}}\n")
    assert reload.passwords is not None
    assert asyncio.run(reload.passwords.right(b"user", b"right"))
    newer = bcrypt.hashpw(b"newer", bcrypt.gensalt(4)).decode()
    write(certificates, f"basic_auth_users: {{user: '{newer}'}}  # changed\n")
    reload.refresh()
    assert not asyncio.run(reload.passwords.right(b"user", b"right"))
    assert asyncio.run(reload.passwords.right(b"user", b"newer"))


def test_what_can_not_be_used_is_not_taken_up(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    reload = reloading(certificates, f"basic_auth_users: {{user: '{HASH}'}}\n")
    assert reload.passwords is not None
    for text in ("basic_auth_users: {user: plain}\n", "basic_auth_users: [\n"):
        write(certificates, text)
        reload.refresh()
        reload.refresh()
        assert asyncio.run(reload.passwords.right(b"user", b"right"))
    assert caplog.text.count("not taken up") == 2, "once for each change"
    write(certificates, "{}\n")
    reload.refresh()
    assert "needs a restart" in caplog.text
    assert asyncio.run(reload.passwords.right(b"user", b"right")), "no password any more is no small change"


def test_a_renewed_certificate_is_taken_up(certificates: Certificates, tmp_path: Path) -> None:
    def renew() -> bytes:
        leaf = certificates.authority.issue_cert("127.0.0.1")
        leaf.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "both.pem"))
        return ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())

    def handshake(server: ssl.SSLContext) -> bytes | None:
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        client_side = certificates.client().wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
        server_side = server.wrap_bio(to_server, to_client, server_side=True)
        for _ in range(4):
            for side in (client_side, server_side):
                with contextlib.suppress(ssl.SSLWantReadError):
                    side.do_handshake()
        return client_side.getpeercert(binary_form=True)

    first = renew()
    both = tmp_path / "both.pem"
    reload = reloading(certificates, f"tls_server_config: {{cert_file: {both}, key_file: {both}}}\n")
    assert reload.tls is not None
    assert handshake(reload.tls) == first
    both.write_text("half a file")
    reload.refresh()
    assert handshake(reload.tls) == first
    second = renew()
    reload.refresh()
    assert handshake(reload.tls) == second != first
