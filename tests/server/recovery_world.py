"""A stopped controller's directories on the simulated disk, with a metadata log in them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from test_format import format_

from jepsen.sim.machine.disk import SimDisk
from quorumlog.cluster_incarnation import ClusterIncarnation
from quorumlog.messages.metadata_records import FeatureLevelRecord, PartitionRecord, TopicRecord
from quorumlog.records.control import LeaderChange, control_batch
from quorumlog.records.rowwise.values import encode_values
from quorumlog_quorum.disk.metadata_log import METADATA_PARTITION
from quorumlog_quorum.metadata.frame import MetadataRecord, encode_record
from quorumlog_quorum.offline.metadata_survey import MetadataSurvey, survey
from quorumlog_server.config.config import NodeConfig, from_values
from quorumlog_server.directories.adopt import Adopted, adopt
from quorumlog_server.directories.recover import Recovered, recover
from quorumlog_storage.directory.checkpointed_log import CheckpointedLog
from quorumlog_storage.directory.directory import read_meta
from quorumlog_storage.directory.offset_files import RECOVERY_POINTS, OffsetFile
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.segment.batch import received_batches
from quorumlog_storage.segment.log_config import LogConfig

LOG = "/meta/__cluster_metadata-0"
DIRECTORIES = ("/data/a", "/data/b", "/meta")
TOPIC = (1_000_001).to_bytes(16, "big")
LEVEL = FeatureLevelRecord(name="metadata.version", level=3)
NEW_TOPIC = (
    TopicRecord(name="t", topic_id=TOPIC),
    PartitionRecord(partition=0, topic_id=TOPIC, replicas=(1,), isr=(1,), leader=1, directories=(bytes(15) + b"\xff",)),
)


def config_of(node_id: int = 1, roles: str = "broker,controller") -> NodeConfig:
    voters = ",".join(f"{number}@127.0.0.1:{9_000 + number}" for number in (1, 2, 3))
    return from_values(
        {
            "node.id": str(node_id),
            "process.roles": roles,
            "controller.quorum.voters": voters,
            "listeners": f"CLIENT://127.0.0.1:{8_000 + node_id},INTERNAL://127.0.0.1:{9_000 + node_id}",
            "log.dirs": "/data/a,/data/b",
            "metadata.log.dir": "/meta",
        }
    )


def write_log(disk: Disk, path: str, epochs: Sequence[tuple[int, Sequence[MetadataRecord]]], level: int = 3) -> None:
    """Each epoch begins with a LeaderChange; its records follow in one batch."""
    points = OffsetFile(disk, f"{path}/{RECOVERY_POINTS}")
    log = CheckpointedLog.open(disk, path, LogConfig(), points, METADATA_PARTITION, clean=False, on_loss=lambda _: None)
    for epoch, records in epochs:
        end = log.log.end_offset
        batch = control_batch([LeaderChange(2, (1, 2, 3), (1, 2))], base_offset=end, timestamp_ms=7, leader_epoch=epoch)
        values = [encode_record(record, level) for record in records]
        log.log.append(received_batches(batch))
        if values:
            log.log.append(received_batches(encode_values(values, end + 1, epoch, 7)))
    log.close()


def survivor(epochs: Sequence[tuple[int, Sequence[MetadataRecord]]] = ((4, (LEVEL, *NEW_TOPIC)),)) -> SimDisk:
    disk = SimDisk()
    format_(disk, config_of())
    write_log(disk, LOG, epochs)
    return disk


_ids = itertools.count(1)


def recovered(disk: Disk, config: NodeConfig | None = None, **changes: Any) -> Recovered:
    fields: dict[str, Any] = {"new_uuid": new_uuid, "wall_ms": 9, "unsafe": True} | changes
    return recover(disk, config or config_of(), **fields)


def adopted(
    disk: Disk, incarnation: ClusterIncarnation, end: int, epoch: int, config: NodeConfig | None = None
) -> Adopted:
    return adopt(
        disk,
        config or config_of(),
        incarnation=incarnation,
        end_offset=end,
        last_epoch=epoch,
        new_uuid=new_uuid,
    )


def new_uuid() -> bytes:
    return (5_000_000 + next(_ids)).to_bytes(16, "big")


def incarnations(disk: Disk) -> set[ClusterIncarnation]:
    return {read_meta(disk, path).incarnation for path in DIRECTORIES}


def log_of(disk: Disk) -> MetadataSurvey:
    return survey(disk, LOG)
