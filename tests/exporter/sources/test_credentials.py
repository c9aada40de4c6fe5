"""TLS, tokens and passwords: the right ones work, the wrong ones say what to do, none is ever shown."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from exporter.connection_settings import BasicAuthSettings, TlsSettings
from exporter.observation import Observation
from tests.exporter.sources.certificates import Certificates
from tests.exporter.sources.reading import PAGE, failed, observed, read, run, source
from tests.support.http_servers import guarded, page, serving, slam


def over_tls(certificates: Certificates, *, asks_client: bool = False, **tls: Any) -> Observation:  # noqa: ANN401 - any setting
    async def work() -> Observation:
        context = certificates.server(asks_client=asks_client)
        async with serving(page(PAGE), tls=context) as server:
            return await read(source(server.url, tls=TlsSettings(**tls)))

    return run(work())


def test_the_right_authority(certificates: Certificates) -> None:
    assert over_tls(certificates, ca_file=certificates.file("ca.pem")).status.answering


def test_an_unknown_authority(certificates: Certificates) -> None:
    reason, line = failed(over_tls(certificates))
    assert (reason, "not trusted" in line, "tls.ca_file" in line) == ("tls", True, True), line


def test_no_verification_where_it_was_asked_for(certificates: Certificates) -> None:
    assert over_tls(certificates, insecure_skip_verify=True).status.answering


@pytest.mark.parametrize(("name", "good"), [("engine.test", True), ("other.test", False)])
def test_the_name_to_expect(certificates: Certificates, name: str, *, good: bool) -> None:
    observation = over_tls(certificates, ca_file=certificates.file("ca.pem"), server_name=name)
    assert observation.status.answering is good
    if not good:
        reason, line = failed(observation)
        assert (reason, "tls.server_name" in line) == ("tls", True), line


def test_a_client_certificate(certificates: Certificates) -> None:
    ca_file = certificates.file("ca.pem")
    pair = {"cert_file": certificates.file("client.pem"), "key_file": certificates.file("client.key")}
    assert over_tls(certificates, asks_client=True, ca_file=ca_file, **pair).status.answering
    reason, line = failed(over_tls(certificates, asks_client=True, ca_file=ca_file))
    # whether the server's word arrives before its reset is up to the kernel
    assert reason in {"tls", "disconnected"}
    assert "tls.cert_file" in line


def test_files_that_cannot_be_used(certificates: Certificates, tmp_path: Path) -> None:
    reason, line = failed(over_tls(certificates, ca_file=tmp_path / "none.pem"))
    assert (reason, f"tls.ca_file {tmp_path / 'none.pem'} cannot be used (No such file" in line) == (
        "tls",
        True,
    ), line
    (tmp_path / "bad.pem").write_text("not PEM")
    reason, line = failed(over_tls(certificates, ca_file=tmp_path / "bad.pem"))
    assert (reason, "bad.pem cannot be used" in line) == ("tls", True), line
    cert_file, key_file = certificates.file("client.pem"), certificates.file("server.key")
    reason, line = failed(over_tls(certificates, cert_file=cert_file, key_file=key_file))
    assert (reason, "client.pem or tls.key_file" in line) == ("tls", True), line


def test_a_renewed_authority_is_taken_up(certificates: Certificates, tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    ca_file.write_bytes(certificates.file("client.pem").read_bytes())

    async def work() -> list[bool]:
        async with serving(page(PAGE), tls=certificates.server()) as server:
            engine = source(server.url, tls=TlsSettings(ca_file=ca_file))
            answers = [(await read(engine)).status.answering]
            ca_file.write_bytes(certificates.file("ca.pem").read_bytes())
            answers += [(await read(engine)).status.answering for _ in range(2)]
            return answers

    assert run(work())[::2] == [False, True]


def test_tls_asked_of_a_server_without(certificates: Certificates) -> None:
    async def work() -> tuple[Observation, Observation]:
        async with (
            serving(page(PAGE)) as plain,
            serving(page(PAGE), tls=certificates.server()) as encrypted,
        ):
            wrong = await read(source(plain.url.replace("http:", "https:")))
            return wrong, await read(source(encrypted.url.replace("https:", "http:")))

    too_much, too_little = run(work())
    reason, line = failed(too_much)
    assert (reason, "use http://" in line) == ("tls", True), line
    reason, line = failed(too_little)
    assert reason in {"not_text", "disconnected"}
    assert "https" in line, line


def test_a_port_that_has_tls_alone_and_drops_plain_http_is_named_as_one_cause() -> None:
    reason, line = failed(observed(slam))
    assert reason == "disconnected"
    assert line.endswith("is restarting, or whether the port speaks https"), line


def test_a_token(tmp_path: Path) -> None:
    behaviour = guarded(page(PAGE), "Bearer s3cret-token")
    assert observed(behaviour, bearer_token="s3cret-token").status.answering  # noqa: S106
    token = tmp_path / "token"
    token.write_text("s3cret-token\n")
    assert observed(behaviour, bearer_token_file=token).status.answering
    token.write_text("s3cret-other")
    reason, line = failed(observed(behaviour, bearer_token_file=token))
    assert (reason, "401 Unauthorized" in line, "s3cret" in line) == ("unauthorised", True, False)
    assert failed(observed(behaviour))[0] == "unauthorised"


def test_a_token_that_is_rotated_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    async def work() -> list[str]:
        async with serving(page(PAGE)) as server:
            engine = source(server.url, bearer_token_file=token)
            await engine.read_once()
            # as mounted secrets are replaced: another file under the same name
            (tmp_path / "next").write_text("new")
            os.replace(tmp_path / "next", token)  # noqa: PTH105
            await engine.read_once()
            token.unlink()
            await engine.read_once()
            assert "cannot be read" in engine.observe().status.last_error
            token.write_text("back")
            await engine.read_once()
            return [request.headers["authorization"] for request in server.requests]

    assert run(work()) == ["Bearer old", "Bearer new", "Bearer back"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"one\ntwo", "more than one line"),
        (b"\xff\xfe", "cannot be read (it is not text)"),
        ("schlüssel".encode(), "characters a header can't carry"),
    ],
)
def test_a_token_file_that_cannot_be_used(tmp_path: Path, content: bytes | None, says: str) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)
    reason, line = failed(observed(page(PAGE), bearer_token_file=token))
    assert (reason, says in line, f"bearer_token_file {token}" in line) == ("unauthorised", True, True), line


def test_user_and_password(tmp_path: Path) -> None:
    expected = "Basic " + base64.b64encode("prometheus:pässword".encode()).decode()
    behaviour = guarded(page(PAGE), expected)
    auth = BasicAuthSettings("prometheus", password="pässword")  # noqa: S106
    assert observed(behaviour, basic_auth=auth).status.answering
    (tmp_path / "password").write_text("pässword\n")
    auth = BasicAuthSettings("prometheus", password_file=tmp_path / "password")
    assert observed(behaviour, basic_auth=auth).status.answering
    auth = BasicAuthSettings("prometheus", password="wrong-one")  # noqa: S106
    reason, line = failed(observed(behaviour, basic_auth=auth))
    assert (reason, "wrong-one" in line) == ("unauthorised", False)
