"""What only the quorum's own code can read of a node's directories: the metadata log's records, snapshots and votes.

And what the metadata says about the partitions: which topics are compacted, which replica lies in which directory.
"""

from __future__ import annotations

from pathlib import Path

from quorumlog.ids import format_uuid
from quorumlog.records import CorruptRecords
from quorumlog.topic_name import METADATA_TOPIC
from quorumlog_cli.offline.metadata_log import read_image
from quorumlog_cli.offline.snapshots import find_snapshots
from quorumlog_cli.terminal.errors import CliError
from quorumlog_quorum.metadata.frame import BadRecord, ReplayError
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata
from quorumlog_quorum.raft.quorum_state import QUORUM_STATE_NAME, CorruptQuorumState, decode_quorum_state
from quorumlog_storage.audit.audit import AuditReport
from quorumlog_storage.audit.directory_audit import DirectoryReport
from quorumlog_storage.audit.log_audit import LogReport
from quorumlog_storage.files.disk import Disk, DiskError, FileMissing

INTERNAL_COMPACTED = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_UNKNOWN_DIRECTORIES = 100  # ids below it are reserved: unassigned, lost, migrating


def check_metadata_files(disk: Disk, path: str, report: LogReport) -> None:
    """An `ExtraCheck` of quorumlog_storage/audit/directory_audit.py: snapshots, quorum-state, and the image."""
    for snapshot in find_snapshots(Path(path), contents=report.segments > 0 and not _is_kafkas(disk, path)):
        if snapshot.problem:
            report.findings.add(
                "metadata-snapshot", str(snapshot.path), offset=snapshot.id.offset,
                expected="a whole snapshot", found=snapshot.problem,
            )  # fmt: skip
    _check_votes(disk, path, report)
    if report.findings.faults or _is_kafkas(disk, path):
        return
    try:
        read_image(Path(path))
    except (CliError, BadRecord, ReplayError, CorruptRecords) as error:
        report.findings.add("metadata-records", path, expected="records that make an image", found=str(error))
    except UnsupportedMetadata as error:
        report.findings.note("metadata-records", path, f"{error}: newer software wrote them")


def _is_kafkas(disk: Disk, path: str) -> bool:
    """Kafka's records have another frame than ours, and its quorum-state has no checksum."""
    try:
        return b"crc32c" not in disk.read_bytes(f"{path}/{QUORUM_STATE_NAME}")
    except DiskError:
        return False


def _check_votes(disk: Disk, path: str, report: LogReport) -> None:
    name = f"{path}/{QUORUM_STATE_NAME}"
    try:
        state = decode_quorum_state(name, disk.read_bytes(name))
    except FileMissing:
        if report.end:
            report.findings.add("quorum-state", name, expected="the votes of this node", found="no file")
        return
    except CorruptQuorumState as error:
        report.findings.add("quorum-state", name, expected="the votes of this node", found=error.reason)
        return
    except DiskError as error:
        report.findings.add("unreadable", name, expected="a readable file", found=str(error))
        return
    if state.epoch < report.last_epoch:
        wanted = f"epoch {report.last_epoch} or later, that of a record"
        report.findings.add("quorum-state", name, expected=wanted, found=str(state.epoch))


def image_in(paths: list[str]) -> Image | None:
    """The newest image of the metadata logs in these log directories; None where none can be read."""
    found: list[Image] = []
    for path in paths:
        place = Path(path) / f"{METADATA_TOPIC}-0"
        if place.is_dir():
            try:
                found.append(read_image(place))
            except (CliError, BadRecord, ReplayError, CorruptRecords, UnsupportedMetadata, DiskError):
                continue
    return max(found, key=lambda image: image.offset, default=None)


def compacted_topics(image: Image | None) -> frozenset[str]:
    """Those whose cleanup.policy says so."""
    if image is None:
        return INTERNAL_COMPACTED
    names = [topic.name for topic in image.sorted_topics()]
    asked = [name for name in names if "compact" in image.topic_config(name).get("cleanup.policy", "")]
    return INTERNAL_COMPACTED | frozenset(asked)


def check_assignments(report: AuditReport, image: Image | None) -> None:
    """Notes where a replica lies that the metadata does not place there. The image may be older than the files."""
    if image is None:
        return
    for directory in report.directories:
        for (topic, partition), log in directory.logs.items():
            text = _misplaced(directory, image, topic, partition, log)
            if text:
                log.findings.note("assignment", log.path, text)


def _misplaced(directory: DirectoryReport, image: Image, topic: str, partition: int, log: LogReport) -> str:
    if topic == METADATA_TOPIC or log.topic_id is None or directory.meta is None:
        return ""
    placed = image.partition(log.topic_id, partition)
    if placed is None:
        return f"the metadata knows no partition {topic}-{partition} of topic id {format_uuid(log.topic_id)}"
    if directory.meta.node_id not in placed.replicas:
        nodes = ", ".join(map(str, placed.replicas))
        return f"the metadata places it on nodes {nodes}, not on {directory.meta.node_id}"
    assigned = placed.directory(directory.meta.node_id)
    if assigned != directory.meta.directory_id and int.from_bytes(assigned) >= _UNKNOWN_DIRECTORIES:
        return f"the metadata places it in directory {format_uuid(assigned)}, not in this one"
    return ""
