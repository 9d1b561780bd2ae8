"""The workloads of `quorumlog storage recover` and `adopt`: a survivor becomes the quorum, a broker comes along.

An operator gives the same command again until it has ended. Then the node is in one new incarnation in all of its
directories, its metadata is what it was, and one voter is named.
"""

from __future__ import annotations

import random

from jepsen.crash.check import require
from jepsen.crash.struck_disk import StruckDisk
from jepsen.crash.workloads.formatting import CLUSTER, config, format_and_open
from jepsen.crash.workloads.reports import ToldAsError
from jepsen.crash.world import World
from quorumlog.cluster_incarnation import ClusterIncarnation
from quorumlog.messages.metadata_records import FeatureLevelRecord, NoOpRecord, TopicRecord
from quorumlog.records.control import LeaderChange, control_batch
from quorumlog.records.rowwise.values import encode_values
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY, METADATA_PARTITION
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_quorum.offline.lost_majority import RecoveryRefused
from quorumlog_quorum.offline.metadata_survey import MetadataSurvey, survey
from quorumlog_server.directories.adopt import adopt
from quorumlog_server.directories.directories import open_directories
from quorumlog_server.directories.recover import recover
from quorumlog_storage.directory.checkpointed_log import CheckpointedLog
from quorumlog_storage.directory.offset_files import RECOVERY_POINTS, OffsetFile
from quorumlog_storage.segment.batch import received_batches
from quorumlog_storage.segment.log_config import LogConfig

LOG = f"/meta/{METADATA_DIRECTORY}"
ADOPTED_INTO = ClusterIncarnation(1, bytes([7]) * 16)
_EPOCH, _END = 4, 4
_RECORDS = (
    FeatureLevelRecord(name="metadata.version", level=3),
    TopicRecord(name="t", topic_id=bytes([5]) * 16),
    NoOpRecord(),
)


def survivor(world: World, _rng: random.Random) -> None:
    """A node that has stopped, with a log of one epoch."""
    format_and_open(world)
    disk = world.process.disk
    log = CheckpointedLog.open(
        disk,
        LOG,
        LogConfig(),
        OffsetFile(disk, f"{LOG}/{RECOVERY_POINTS}"),
        METADATA_PARTITION,
        clean=False,
        on_loss=lambda _: None,
    )
    elected = control_batch([LeaderChange(2, (1, 2, 3), (1, 2))], base_offset=0, timestamp_ms=7, leader_epoch=_EPOCH)
    values = [encode_record(record, 3) for record in _RECORDS]
    log.log.append(received_batches(elected + encode_values(values, 1, _EPOCH, 7)))
    log.close()
    world.end(None)


def half_recovered(world: World, rng: random.Random) -> None:
    """An earlier attempt that lost its power at some call."""
    survivor(world, rng)
    disk = world.process.disk
    disk.watch(rng.randrange(10, 60))
    try:
        recover_survivor(world)
    except BaseException as error:
        if disk.struck is None:
            raise error
    world.end(rng)


def recover_survivor(world: World) -> None:
    """Recovers twice in a row as an operator might: the second command finds nothing to do."""
    disk = world.process.disk
    try:
        recover(disk, config(), new_uuid=lambda: bytes([6]) * 16, wall_ms=9, unsafe=True)
    except RecoveryRefused as refusal:
        if "only voter already" not in str(refusal):
            raise ToldAsError(str(refusal)) from refusal


def reopen_recovered(world: World) -> None:
    recover_survivor(world)
    _open(world.process.disk)


def check_recovered(world: World) -> None:
    found = _surveyed(world)
    require(found.image.incarnation == ClusterIncarnation(1, bytes([6]) * 16), "recover", found.image.incarnation)
    require(found.image.incarnation == _incarnation(world), "recover", f"directories: {_incarnation(world)}")
    require(list(found.image.topic_ids) == ["t"], "recover", "the topic is gone")
    voters = found.voters.voters if found.voters is not None else ()
    require([voter.id for voter in voters] == [1], "recover", f"voters {voters}")


def adopt_broker(world: World) -> None:
    numbers = iter(range(1, 100))
    adopt(
        world.process.disk,
        config(),
        incarnation=ADOPTED_INTO,
        end_offset=_END,
        last_epoch=_EPOCH,
        new_uuid=lambda: next(numbers).to_bytes(16, "big"),
    )


def reopen_adopted(world: World) -> None:
    adopt_broker(world)
    _open(world.process.disk)


def check_adopted(world: World) -> None:
    require(_incarnation(world) == ADOPTED_INTO, "adopt", f"directories: {_incarnation(world)}")
    strays = [name for name in world.disk.list("/meta") if name.endswith("-stray")]
    require(len(strays) == 1, "adopt", f"the earlier log is kept as {strays}")
    require(not world.disk.exists(LOG), "adopt", "the earlier log is still in its place")


def _open(disk: StruckDisk) -> None:
    opened = open_directories(disk, config())
    if opened.failures:
        raise opened.failures[0]
    require(opened.cluster_id == CLUSTER, "recover", f"cluster {opened.cluster_id}")
    opened.close()


def _incarnation(world: World) -> ClusterIncarnation:
    opened = open_directories(world.disk, config())
    opened.close()
    return opened.incarnation


def _surveyed(world: World) -> MetadataSurvey:
    return survey(world.disk, LOG)
