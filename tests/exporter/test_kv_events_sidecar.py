"""``thrashold exporter`` with KV events: the whole way from the wire to the page, and a clean end."""

from __future__ import annotations

import time
from pathlib import Path

from tests.exporter.running import PAGE, call, engine, running
from tests.exporter.settings_files import write
from tests.exporter.sources.kv_listening import free_ports
from tests.support.kv_events import removed, stored
from tests.support.kv_publisher import Publisher

_PATIENCE_SECONDS = 30.0


def test_the_page_tells_what_was_published_and_the_sidecar_ends_well(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with engine(PAGE) as url, Publisher(port) as publisher:
        text = f"engines:\n  - url: {url}\n    name: w\n    kv_events: tcp://127.0.0.1:{port}\n"
        with running("--config", str(write(tmp_path, text))) as sidecar:
            publisher.subscribed()
            publisher.publish(stored(1, 2, 3), removed(1))
            publisher.publish(stored(1, medium="CPU"), rank=4)
            wanted = [
                'thrashold_kv_block_stores_total{engine="w",medium="gpu",rank="4"} 3.0',
                'thrashold_kv_block_stores_total{engine="w",medium="cpu",rank="4"} 1.0',
                'thrashold_kv_block_removals_total{engine="w",medium="gpu",rank="4"} 1.0',
                'thrashold_source_up{source="w/kv_events"} 1.0',
            ]
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while missing := [line for line in wanted if line not in _lines(sidecar.get("/metrics").text)]:
                assert time.monotonic() < deadline, (
                    f"{missing} in\n{sidecar.get('/metrics').text}\n{sidecar.log()}"
                )
                time.sleep(0.1)
            sidecar.terminate()
            assert sidecar.process.returncode == 0, sidecar.log()
            assert "Traceback" not in sidecar.log()


def test_once_says_whether_events_can_be_heard(tmp_path: Path) -> None:
    first, second = free_ports(2)
    with engine(PAGE) as url, Publisher(first):
        text = f"engines:\n  - {{url: {url}, name: v, kv_events: 'tcp://127.0.0.1:{first}'}}\n"
        text += f"  - {{url: {url}, name: w, kv_events: 'tcp://127.0.0.1:{second}'}}\n"
        done = call("--once", "--config", str(write(tmp_path, text)))
    assert done.returncode == 0, done.stderr
    assert 'thrashold_source_up{source="v/kv_events"} 1.0' in done.stdout
    assert 'thrashold_source_up{source="w/kv_events"} 0.0' in done.stdout
    assert 'thrashold_kv_block_stores_total{engine="v",medium="gpu",rank="0"} 0.0' in done.stdout
    assert 'thrashold_kv_block_stores_total{engine="w"' not in done.stdout
    assert f"w/kv_events: tcp://127.0.0.1:{second}: nothing listens there" in done.stderr


def _lines(page: str) -> set[str]:
    """Series, each with its labels in alphabetical order."""
    found = set()
    for line in page.splitlines():
        name, brace, rest = line.partition("{")
        labels, _, value = rest.rpartition("}")
        found.add(name + "{" + ",".join(sorted(labels.split(","))) + "}" + value if brace else line)
    return found
