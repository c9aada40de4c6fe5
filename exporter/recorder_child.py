"""The process that reads a recording for the sidecar's page: JSON in its argument, an export on its output.

A process of its own, so that an export takes neither the sidecar's interpreter nor its memory, and all
it took is given back when it ends. It ends by itself when nobody reads on.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from exporter.recorder_export import export_openmetrics
from exporter.recorder_file import RecordingError
from exporter.recorder_reader import Recording
from exporter.recorder_request import EMPTY, FAILED, REFUSED
from exporter.recorder_selection import Selection, UnknownSignalError, nothing_in

_NICENESS = 10
_GZIP_LEVEL = 4
_BUFFER_BYTES = 1 << 16


def main(request: str) -> None:
    """Write what ``request`` asks for to standard output."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.nice(_NICENESS)  # the engine beside us and the sidecar go first
    asked = json.loads(request)
    selection = Selection(asked["start"], asked["end"], tuple(asked["signals"]))
    out = open(1, "wb", buffering=_BUFFER_BYTES, closefd=False)  # noqa: SIM115 - ends with the process
    try:
        with Recording(Path(asked["path"])) as recording:
            empty = nothing_in(recording, selection)
            if empty:
                _leave(EMPTY, empty)
            if asked["zipped"]:
                with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=_GZIP_LEVEL, mtime=0) as zipped:
                    export_openmetrics(recording, zipped, selection)
            else:
                export_openmetrics(recording, out, selection)
        out.flush()
    except UnknownSignalError as error:
        _leave(REFUSED, str(error))
    except (RecordingError, OSError) as error:
        _leave(FAILED, str(error))


def _leave(code: int, line: str) -> NoReturn:
    """End at once: what stands in the buffer must not look like the beginning of an answer."""
    os.write(2, line.encode())
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1])
