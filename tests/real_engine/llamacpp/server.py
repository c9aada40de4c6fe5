"""Serves a GGUF model with llama.cpp's own HTTP server; run by the Python that has xllamacpp.

``python server.py PORT FILE SLOTS``: metrics on, loopback only, until it is killed.
"""

import sys
import threading

import xllamacpp

CONTEXT = 8192


def main(port: int, file: str, slots: int) -> None:
    """Serve for good."""
    wanted = xllamacpp.CommonParams()
    wanted.model.path = file
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = port
    wanted.n_ctx = CONTEXT
    wanted.n_parallel = slots
    wanted.endpoint_metrics = True
    wanted.warmup = False
    wanted.cpuparams.n_threads = 1
    wanted.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(wanted)
    sys.stdout.write(f"serving at {server.listening_address}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
