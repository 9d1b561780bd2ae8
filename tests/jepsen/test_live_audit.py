"""What the auditor finds in the files that nodes left is a finding of the live run."""

from __future__ import annotations

from pathlib import Path

from jepsen.live.evidence.audited import AUDIT, audit_nodes, line_of
from quorumlog.records import Record, encode_batch, headers
from quorumlog_storage.directory.directory import format_directory
from quorumlog_storage.directory.log_checkpoints import checkpoint_high_watermarks, checkpoint_logs
from quorumlog_storage.directory.meta_properties import MetaProperties
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.segment.batch import stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

SAME = [b"a", b"b", b"c"]


def node(path: Path, number: int, values: list[bytes]) -> Path:
    """The log directory of a node that holds these records, each in a batch of its own."""
    disk = RealDisk()
    format_directory(disk, str(path), MetaProperties("c", number, bytes([number]) * 16))
    directories = PartitionDirectories(disk, str(path), clean=True)
    held = PartitionLog.create(directories, ("t", 0), bytes([5]) * 16, LogConfig(remembers_producers=True))
    for value in values:
        data = encode_batch([Record(0, 1_700_000_000_000, None, value, ())])
        held.log.append(stamped_batches(data, headers(data), held.log.end_offset, 1))
    held.close()
    checkpoint_logs(directories, [held])
    checkpoint_high_watermarks(directories, {held: held.log.end_offset})
    return path


def test_equal_nodes_have_no_finding(tmp_path: Path) -> None:
    found, report = audit_nodes([node(tmp_path / f"n{one}", one, SAME) for one in (1, 2, 3)])
    assert found == [] and report is not None and "3 logs in 3 directories" in line_of(report)


@rule("storage 12.3")
def test_a_damaged_byte_is_a_finding(tmp_path: Path) -> None:
    paths = [node(tmp_path / f"n{one}", one, SAME) for one in (1, 2)]
    segment = paths[1] / "t-0" / f"{0:020}.log"
    data = bytearray(segment.read_bytes())
    data[-3] ^= 1
    segment.write_bytes(data)
    found, _ = audit_nodes(paths)
    assert found and all(one.name.startswith(AUDIT) for one in found) and str(segment) in str(found)


@rule("storage 12.3")
def test_replicas_that_differ_are_a_finding(tmp_path: Path) -> None:
    found, _ = audit_nodes([node(tmp_path / "n1", 1, SAME), node(tmp_path / "n2", 2, [b"a", b"x", b"c"])])
    assert found and "t-0" in str(found)
