"""Serves a GGUF model with llama.cpp's own HTTP server; run by the Python that has xllamacpp.

``python server.py PORT FILE SLOTS``: metrics on, loopback only, until it is killed.
"""

import sys
import threading

import xllamacpp

CONTEXT = 8192
HTTP_THREADS = 64
"""Each request holds one until it is answered; what waits for one is counted nowhere."""


def main(port: int, file: str, slots: int) -> None:
    """Serve for good."""
    wanted = xllamacpp.CommonParams()
    wanted.model.path = file
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = port
    wanted.n_ctx = CONTEXT
    wanted.n_parallel = slots
    wanted.n_threads_http = HTTP_THREADS
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
