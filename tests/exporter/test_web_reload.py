"""Renewed certificates and changed passwords are taken up while the sidecar runs, or the old ones stay."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path
from typing import NoReturn

import bcrypt
import pytest
import trustme

from exporter.web_config import Passwords, read_web_config, tls_context
from exporter.web_reload import WebReload
from tests.exporter.web_files import HASH, Certificates, make_certificates, write


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return make_certificates(tmp_path)


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


def test_excluded_paths_are_taken_up_with_the_users(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    users = f"basic_auth_users: {{user: '{HASH}'}}\n"
    reload = reloading(certificates, users + "auth_excluded_paths: [/-/healthy]\n")
    assert reload.passwords is not None
    assert reload.passwords.open_paths == {"/-/healthy"}, "from the start"
    write(certificates, users + "auth_excluded_paths: [/-/ready]\n")
    reload.refresh()
    assert reload.passwords.open_paths == {"/-/ready"}
    for bad in ("auth_excluded_paths: [/*]\n", "auth_excluded_paths: /-/healthy\n"):
        write(certificates, users + bad)
        reload.refresh()
        assert reload.passwords.open_paths == {"/-/ready"}, "what can't be used opens nothing"
    assert caplog.text.count("not taken up") == 2
    write(certificates, users)
    reload.refresh()
    assert not reload.passwords.open_paths
    assert asyncio.run(reload.passwords.right(b"user", b"right"))


def test_an_emptied_file_does_not_say_that_nothing_is_protected(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    text = f"basic_auth_users: {{user: '{HASH}'}}\nauth_excluded_paths: [/-/healthy]\n"
    reload = reloading(certificates, text)
    write(certificates, "")
    reload.refresh()
    assert "needs a restart" in caplog.text
    assert "nothing is protected" not in caplog.text, "the passwords are still asked for"
    assert reload.passwords is not None
    assert reload.passwords.open_paths == {"/-/healthy"}


def renew(certificates: Certificates) -> bytes:
    """Write another certificate with its key to ``both.pem``; gives it as a client sees it."""
    leaf = certificates.authority.issue_cert("127.0.0.1")
    leaf.private_key_and_cert_chain_pem.write_to_path(str(certificates.folder / "both.pem"))
    return ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())


def handshake(server: ssl.SSLContext | None, client: ssl.SSLContext) -> bytes | None:
    """Let both speak with each other; gives what the server showed. Raises SSLError."""
    assert server is not None
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_side = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    server_side = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client_side, server_side):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return client_side.getpeercert(binary_form=True)


BOTH = "tls_server_config:\n  cert_file: both.pem\n  key_file: both.pem\n"


def test_a_renewed_certificate_is_taken_up(certificates: Certificates) -> None:
    first = renew(certificates)
    reload = reloading(certificates, BOTH)
    assert handshake(reload.tls, certificates.client()) == first
    (certificates.folder / "both.pem").write_text("half a file")
    reload.refresh()
    assert handshake(reload.tls, certificates.client()) == first
    second = renew(certificates)
    reload.refresh()
    assert handshake(reload.tls, certificates.client()) == second != first


@pytest.mark.parametrize("error", [FileNotFoundError(2, "No such file or directory"), ssl.SSLError(1, "bad")])
def test_files_that_go_while_they_are_read_leave_the_old_certificate(
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: OSError,
) -> None:
    def gone(*_: object, **__: object) -> NoReturn:
        raise error

    first = renew(certificates)
    reload = reloading(certificates, BOTH)
    second = renew(certificates)
    with monkeypatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_cert_chain", gone)
        reload.refresh()
        reload.refresh()
    assert caplog.text.count("not taken up") == 1, "once for each change"
    assert "both.pem" in caplog.text
    assert handshake(reload.tls, certificates.client()) == first
    write(certificates, BOTH + "  min_version: TLS12\n")
    reload.refresh()
    assert handshake(reload.tls, certificates.client()) == second


def test_a_certificate_without_its_key_leaves_the_old_pair(certificates: Certificates) -> None:
    first = renew(certificates)
    reload = reloading(certificates, BOTH)
    write(certificates, BOTH.replace("key_file: both.pem", "key_file: other.key"))
    reload.refresh()
    assert handshake(reload.tls, certificates.client()) == first


def test_a_renewed_authority_of_the_clients_is_taken_up(certificates: Certificates) -> None:
    def known(client: ssl.SSLContext) -> bool:
        try:
            handshake(reload.tls, client)
        except ssl.SSLError:
            return False
        return True

    newer = trustme.CA()
    clients = [
        certificates.client(own=authority.issue_cert("prometheus"))
        for authority in (certificates.authority, newer)
    ]
    certificates.authority.cert_pem.write_to_path(str(certificates.folder / "clients.pem"))
    renew(certificates)
    text = BOTH + "  client_ca_file: clients.pem\n  client_auth_type: RequireAndVerifyClientCert\n"
    reload = reloading(certificates, text)
    assert [known(client) for client in clients] == [True, False]
    newer.cert_pem.write_to_path(str(certificates.folder / "clients.pem"))
    reload.refresh()
    assert [known(client) for client in clients] == [False, True]
    (certificates.folder / "clients.pem").write_text("half a file")
    reload.refresh()
    assert [known(client) for client in clients] == [False, True]
    write(certificates, BOTH)
    reload.refresh()
    assert [known(client) for client in clients] == [False, True], "whom to ask needs a restart"


def test_looking_goes_on_after_a_bug_of_ours(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("exporter.web_reload.LOOK_SECONDS", 0.0)
    reload = reloading(certificates, f"basic_auth_users: {{user: '{HASH}'}}\n")
    looks = 0
    looked_again = asyncio.Event()

    def broken(_: object) -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise ZeroDivisionError
        looked_again.set()

    monkeypatch.setattr(WebReload, "refresh", broken)

    async def some() -> None:
        task = asyncio.create_task(reload.run())
        await asyncio.wait_for(looked_again.wait(), 30)
        task.cancel()

    asyncio.run(some())
    assert caplog.text.count("an error in thrashold itself") == 1
