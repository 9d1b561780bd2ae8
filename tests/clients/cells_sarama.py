"""sarama, Go's most used client, at the last version that leaves a batch's largest timestamp at -1.

The cells are a program in Go (`sarama/main.go`), which is built once for each run.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import client_matrix as matrix
import pytest
from client_matrix import NO_GO, NO_MODULES, Cell, Client, Place

SOURCE = Path(__file__).parent / "sarama"
BUILD_S = 300.0
CELL_S = 90.0


@functools.cache
def program() -> str:
    """Path of the built program; "" if Go's module proxy could not be asked. In CI that is an error."""
    folder = tempfile.TemporaryDirectory(prefix="sarama-")
    FOLDERS.append(folder)
    built = Path(folder.name) / "cells"
    command = ["go", "build", "-buildvcs=false", "-mod=readonly", "-o", str(built), "."]
    run = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, timeout=BUILD_S, check=False)
    if run.returncode and ("CI" in os.environ or "dial tcp" not in run.stderr):
        raise AssertionError(run.stderr)
    return str(built) if run.returncode == 0 else ""


FOLDERS: list[tempfile.TemporaryDirectory[str]] = []  # removed when the run ends


def missing() -> str:
    if shutil.which("go") is None:
        return NO_GO
    return "" if program() else NO_MODULES


def version() -> str:
    found = re.search(r"sarama v([\d.]+)", (SOURCE / "go.mod").read_text())
    assert found is not None
    return found[1]


def cell(name: str) -> Cell:
    def run(place: Place) -> None:
        command = [program(), place.servers, place.topic, name]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=CELL_S, check=False)
        assert ran.returncode == 0, ran.stderr

    return run


SARAMA = Client(
    "sarama",
    version,
    missing,
    {
        matrix.METADATA: cell("metadata"),
        matrix.CREATE_TOPIC: cell("create topic"),
        matrix.PRODUCE: cell("produce"),
        matrix.IDEMPOTENT: cell("idempotent"),
        matrix.NO_ACKS: cell("no acks"),
        matrix.GZIP: cell("gzip"),
        matrix.SNAPPY: cell("snappy"),
        matrix.LZ4: cell("lz4"),
        matrix.ZSTD: cell("zstd"),
        matrix.WHOLE_RECORD: cell("produce"),
        matrix.CONSUME: cell("produce"),
        matrix.SEEK: cell("seek"),
        matrix.ENDS: cell("ends"),
        matrix.BY_TIME: cell("by time"),
        matrix.GROUP: cell("group"),
    },
    marks=(pytest.mark.timeout(BUILD_S + CELL_S),),  # whichever cell is first builds the program
)
