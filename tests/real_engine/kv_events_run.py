"""KV events in the run: the engine publishes them, and the line between it and the sidecar is cut for a while."""

from __future__ import annotations

import json
import time
from pathlib import Path

from tests.real_engine.cut import Line
from tests.real_engine.serve import free_port

FILE = "kv_oracle.jsonl"
CUT_AFTER_SECONDS, CUT_SECONDS = 5.0, 2.0


class KvEvents:
    """What the engine and a sidecar are told of them, and the line between the two."""

    def __init__(self, out: Path) -> None:
        """The oracle tells of them in a file in ``out``."""
        self._truth = out / FILE
        self._line = Line()
        self._replay = free_port()

    @property
    def flags(self) -> list[str]:
        """What the engine is told."""
        config = {
            "enable_kv_cache_events": True,
            "publisher": "zmq",
            "endpoint": "tcp://127.0.0.1:*",  # without a star vLLM would connect; so it binds a port of loopback
            "replay_endpoint": f"tcp://127.0.0.1:{self._replay}",
            "topic": "kv-events",
        }
        return ["--kv-events-config", json.dumps(config)]

    @property
    def environment(self) -> dict[str, str]:
        """What the oracle in the engine is told."""
        return {"THRASHOLD_KV_ORACLE": str(self._truth)}

    @property
    def settings(self) -> dict[str, str]:
        """What the sidecar is told of the engine."""
        ports = {"endpoint": self._line.port, "replay_endpoint": self._replay}
        return {key: f"tcp://127.0.0.1:{port}" for key, port in ports.items()}

    def join(self) -> None:
        """Let the sidecar through to the engine, which has begun to publish."""
        first = json.loads(self._truth.read_text(encoding="utf-8").partition("\n")[0])
        self._line.join(int(first["endpoint"].rpartition(":")[2]))

    def close(self) -> None:
        """Let nobody through any more."""
        self._line.cut()

    def cut_for_a_while(self) -> None:
        """Under load, which goes on: what was missed must be played back. Takes some seconds."""
        time.sleep(CUT_AFTER_SECONDS)
        self._line.cut()
        time.sleep(CUT_SECONDS)
        self._line.mend()
