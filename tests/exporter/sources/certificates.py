"""Certificates for one run of the tests, made by openssl; a private key in a repository alarms scanners."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files in ``folder``: an authority, a server's pair for 127.0.0.1, and a client's pair."""

    folder: Path

    def file(self, name: str) -> Path:
        return self.folder / name

    def server(self, *, asks_client: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file("server.pem"), self.file("server.key"))
        if asks_client:
            context.load_verify_locations(self.file("ca.pem"))
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def make_certificates(folder: Path) -> Certificates:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make certificates")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=30)

    openssl("req", "-x509", *key, "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem")
    for name in ("server", "client"):
        (folder / "san").write_text("subjectAltName=IP:127.0.0.1,DNS:engine.test\n")
        openssl("req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-days", "2", "-extfile", "san", "-out", f"{name}.pem"),
        )
    return Certificates(folder)
