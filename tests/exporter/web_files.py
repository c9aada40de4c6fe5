"""What the tests of TLS and passwords share: certificates, a hash, and web config files."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import bcrypt
import httpx
import trustme

HASH = bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()
TLS = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n"


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


def make_certificates(folder: Path) -> Certificates:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    server = authority.issue_cert("127.0.0.1", "localhost")
    server.private_key_pem.write_to_path(str(folder / "server.key"))
    for place, pem in enumerate(server.cert_chain_pems):
        pem.write_to_path(str(folder / "server.pem"), append=place > 0)
    other = trustme.CA().issue_cert("elsewhere")
    other.private_key_pem.write_to_path(str(folder / "other.key"))
    return Certificates(folder, authority)


def write(certificates: Certificates, text: str) -> Path:
    file = certificates.folder / "web.yml"
    file.write_text(text)
    return file


def get(url: str, trust: ssl.SSLContext | None = None, auth: tuple[str, str] | None = None) -> httpx.Response:
    verify = trust if trust is not None else False
    with httpx.Client(verify=verify, trust_env=False, timeout=30) as client:
        return client.get(url, auth=auth)
