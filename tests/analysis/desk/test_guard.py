from __future__ import annotations

import itertools
import ssl
from pathlib import Path

import pytest

from analysis.desk.guard import open_to_others
from analysis.desk.token import WebhookToken

PASSWORD = {"me": "$2b$10$x"}
READ, OPEN = "could read incidents and close them", "could open incidents"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "desk.example"])  # noqa: S104 - only named here
def test_others_reach_nothing_that_nobody_has_opened_to_them(host: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of this test")
    token = WebhookToken(tmp_path / "token")
    plain, if_given, always = (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for _ in range(3))
    if_given.verify_mode, always.verify_mode = ssl.CERT_OPTIONAL, ssl.CERT_REQUIRED
    for proof, tls, open_pages in itertools.product(
        (None, token), (None, plain, if_given, always), (True, False)
    ):
        why = open_to_others(host, {}, proof, tls, open_pages=open_pages)
        if not (open_pages or tls is always):
            assert READ in why
            assert "open_pages" in why
        elif proof is None:
            assert OPEN in why
        else:
            assert why == ""
        assert open_to_others(host, PASSWORD, proof, tls, open_pages=open_pages) == ""
        assert open_to_others("127.0.0.1", {}, proof, tls, open_pages=open_pages) == ""
