"""The auditor on what a real Kafka wrote: clean as it is, and each damage of its index files is found, byte by byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from quorumlog_storage.audit.audit import AuditReport, audit
from quorumlog_storage.audit.directory_audit import Options
from quorumlog_storage.edge.read_only_disk import ReadOnlyDisk
from tests.formats.golden_directory import unpack

ARCHIVE = Path(__file__).parent / "golden" / "kafka-4.3.1-logdir.tar.xz"
KAFKA = Options(gaps_between_segments=True)  # its cleaner leaves gaps between segments, too


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(ARCHIVE, tmp_path_factory.mktemp("kafka") / "logs") / "node1"


def audited(*paths: Path) -> AuditReport:
    return audit(ReadOnlyDisk(), [str(path) for path in paths], KAFKA)


def test_a_directory_of_kafka_is_clean(written: Path) -> None:
    report = audited(written)
    assert report.faults == [] and report.notes == []
    ends = {f"{topic}-{partition}": log.end for (topic, partition), log in report.logs}
    assert ends["txn-0"] == 99 and ends["compacted-0"] == 1800 and ends["rolled-0"] == 6000


@pytest.mark.parametrize("kind", [".log", ".index", ".timeindex", ".txnindex", ".snapshot"])
def test_each_damage_of_a_transactional_partition_is_found(written: Path, kind: str, tmp_path: Path) -> None:
    copy = tmp_path / "txn-1"
    shutil.copytree(written / "txn-1", copy)
    missed = []
    for path in sorted(copy.glob(f"*{kind}")):
        content = path.read_bytes()
        for position in range(len(content)):
            damaged = bytearray(content)
            damaged[position] ^= 1 << position % 8
            path.write_bytes(damaged)
            if not audited(copy).faults:
                missed.append(f"{path.name} at {position}")
        path.write_bytes(content)
    assert missed == []


@pytest.mark.parametrize("kind", [".timeindex", ".txnindex", ".snapshot"])
def test_each_cut_is_found(written: Path, kind: str, tmp_path: Path) -> None:
    copy = tmp_path / "txn-1"
    shutil.copytree(written / "txn-1", copy)
    for path in sorted(copy.glob(f"*{kind}")):
        content = path.read_bytes()
        for size in range(len(content)):
            path.write_bytes(content[:size])
            assert audited(copy).faults, (path.name, size)
        path.write_bytes(content)
