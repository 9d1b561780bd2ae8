"""Kafka's own dump tool over files of ours. Skips where there is no Java, or no Maven to get the tool with."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from bench.peers.kafka_tools import Kafka, Unavailable, get_kafka, missing

DUMP = "org.apache.kafka.tools.DumpLogSegments"
TIMEOUT_S = 300.0
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
# "Non-consecutive offsets" is none: it is said of each segment that does not begin at 0, and of compacted ones
COMPLAINTS = re.compile(
    r"mismatch|Found timestamp|out of order|isvalid: false|isValid: false|Could not|corrupt|exception|"
    r"Index file .* does not|warn|error|skipping",
    re.IGNORECASE,
)


def kafka() -> Kafka:
    """Kafka's jars and a Java that runs them, or the test is skipped with the reason."""
    if lacking := missing():
        pytest.skip(f"Kafka's tools cannot run: {lacking}")
    try:
        return get_kafka()
    except Unavailable as error:
        pytest.skip(f"Kafka's tools cannot run: {error}")


def files_below(folder: Path) -> list[Path]:
    """Every file that the dump tool knows, in the order of paths."""
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)


def dump(tool: Kafka, files: Iterable[Path], *options: str) -> str:
    """What the tool prints for these files. Raises ToolFailed."""
    names = ",".join(str(path) for path in files)
    return tool.run(DUMP, "--files", names, *options, timeout_s=TIMEOUT_S)


def must_be_sound(said: str, files: Iterable[Path]) -> None:
    """The tool read each file and found nothing wrong."""
    for path in files:
        assert f"Dumping {path}" in said, f"{path} was not read: {said[-2_000:]}"
    # a record's content could hold any word: lines of records are not complaints
    lines = [line for line in said.splitlines() if not line.startswith(("|", "Dumping "))]
    assert [line for line in lines if COMPLAINTS.search(line)] == []
