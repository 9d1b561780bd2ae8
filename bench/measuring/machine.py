"""What the machine itself can do: a bare socket copy, a bare write loop, and its load.

These figures stand beside the floor's, so that a slow floor on a fast machine is noticed.
"""

from __future__ import annotations

import os
import platform
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.measuring.report import Row

SOCKET_BYTES = 512 << 20
WRITE_BYTES = 64 << 20
PIECE_BYTES = 512 << 10
MEGABYTE = 1_000_000

SINK = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
buffer, left = bytearray(1 << 20), int(sys.argv[2])
while left:
    left -= connection.recv_into(buffer)
connection.sendall(b"!")
"""


def facts() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],  # before the run: was the machine busy?
    }


def measure(folder: Path, rounds: int) -> list[Row]:
    """folder: on the disk of the logs."""
    copies = [socket_copy() for _ in range(rounds)]
    writes = [write_loop(folder) for _ in range(rounds)]
    return [
        Row(name="bare socket copy", unit="MB/s", rounds=copies),
        Row(
            name=f"bare write loop ({PIECE_BYTES >> 10} KiB, synced)", unit="MB/s", rounds=[rate for rate, _ in writes]
        ),
        Row(name="  one sync of it", unit="ms", rounds=[sync_ms for _, sync_ms in writes]),
    ]


def socket_copy() -> float:
    """MB/s from this process to another over loopback."""
    piece = memoryview(bytes(1 << 20))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        sink = subprocess.Popen([sys.executable, "-P", "-c", SINK, str(port), str(SOCKET_BYTES)])
        connection, _ = server.accept()
        with connection:
            start = time.perf_counter()
            for _ in range(SOCKET_BYTES // len(piece)):
                connection.sendall(piece)
            assert connection.recv(1) == b"!"
            seconds = time.perf_counter() - start
        sink.wait()
    return SOCKET_BYTES / seconds / MEGABYTE


def write_loop(folder: Path) -> tuple[float, float]:
    """MB/s of writes that are each synced before the next, and the median sync in ms."""
    piece, syncs = os.urandom(PIECE_BYTES), []
    path = folder / "write-loop"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        start = time.perf_counter()
        for position in range(0, WRITE_BYTES, PIECE_BYTES):
            assert os.pwrite(file, piece, position) == PIECE_BYTES
            before = time.perf_counter()
            os.fdatasync(file)
            syncs.append(time.perf_counter() - before)
        seconds = time.perf_counter() - start
    finally:
        os.close(file)
        path.unlink()
    return WRITE_BYTES / seconds / MEGABYTE, statistics.median(syncs) * 1000
