"""Starting from a snapshot of a large cluster: the time from opening the file to the published image.

A process of its own reads the file as a node does: in pieces that are verified, through the loader's steps, each in a
turn of its loop, with the node's freezer at work. A subscriber finds what the image gives to one broker. Measured are
the time, the processor time, and the longest turn by the thread's clock, collection included. In the same run the bytes
of the file are read and checked alone; what the load takes more than that is the image.

    python -m bench.quorum.snapshot_start FILE        # the process of one round; prints JSON
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.measuring.report import Row
from bench.measuring.turns import MeasuredLoop, Turns
from quorumlog.messages.common import Endpoint
from quorumlog.messages.metadata_records import FeatureLevelRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord
from quorumlog.nursery import Nursery
from quorumlog.slices import Sliced
from quorumlog_broker.replicas.reconciler import changes_of
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import LATEST_LEVEL, METADATA_VERSION
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.loader import MetadataLoader
from quorumlog_quorum.metadata.snapshot_records import slices_of
from quorumlog_quorum.snapshots import SnapshotHeading, SnapshotId, SnapshotReader, parse_snapshot_name, write_snapshot
from quorumlog_server.process.freezing import Freezer
from quorumlog_storage.edge.disk import RealDisk

PARTITIONS, QUICK_PARTITIONS = 200_000, 20_000
PARTITIONS_PER_TOPIC = 100
BROKERS = (1, 2, 3, 4, 5, 6)
REPLICAS = 3
GOAL_S = 5.0  # for 200,000 partitions
TURN_GOAL_MS = 50.0
EPOCH = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """used_s: processor time. read_s: of reading and checking the file alone. peak_mb: resident."""

    seconds: float
    used_s: float
    read_s: float
    longest_turn_ms: float
    p999_turn_ms: float
    peak_mb: float
    partitions: int


def measure(folder: Path, partitions: int, rounds: int) -> list[Row]:
    folder.mkdir(parents=True)
    written = time.process_time()
    path = write(folder, partitions)
    written = time.process_time() - written
    starts = [_one_round(path) for _ in range(rounds)]
    assert all(start.partitions == partitions for start in starts)
    size_mb = path.stat().st_size / 1e6
    goal_s = GOAL_S if partitions >= PARTITIONS else None
    name = f"start from a snapshot of {partitions:,} partitions"
    return [
        Row(name="the snapshot's size", unit="MB", rounds=[size_mb]),
        Row(name="its making, processor time", unit="s", rounds=[written]),
        Row(name=name, unit="s", rounds=[one.seconds for one in starts], goal=goal_s, at_least=False),
        Row(name="processor time of it", unit="s", rounds=[one.used_s for one in starts]),
        Row(name="of that, reading and checking the file", unit="s", rounds=[one.read_s for one in starts]),
        Row(
            name="the longest turn",
            unit="ms",
            rounds=[one.longest_turn_ms for one in starts],
            goal=TURN_GOAL_MS,
            at_least=False,
        ),
        Row(name="turns, p99.9", unit="ms", rounds=[one.p999_turn_ms for one in starts]),
        Row(name="peak memory of the process", unit="MB", rounds=[one.peak_mb for one in starts]),
    ]


def write(folder: Path, partitions: int) -> Path:
    """A snapshot of so many partitions, in topics of a hundred, on six brokers."""
    delta = Delta(EMPTY)
    for record in records_of(partitions):
        delta.replay(record)
    image = delta.apply(2 * partitions, EPOCH)
    heading = SnapshotHeading(id=SnapshotId(image.offset, image.epoch), last_contained_timestamp_ms=1_700_000_000_000)
    return Path(write_snapshot(RealDisk(), str(folder), heading, slices_of(image)))


def records_of(partitions: int) -> Iterator[FeatureLevelRecord | RegisterBrokerRecord | TopicRecord | PartitionRecord]:
    """Of a cluster with so many partitions, in topics of a hundred, on six brokers."""
    yield FeatureLevelRecord(name=METADATA_VERSION, level=LATEST_LEVEL)
    for broker_id in BROKERS:
        endpoint = Endpoint(name="INTERNAL", host=f"broker-{broker_id}.example", port=9093)
        yield RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=_uuid(broker_id),
            broker_epoch=broker_id,
            endpoints=(endpoint,),
            fenced=False,
            log_directories=(_uuid(100 + broker_id),),
        )
    for number in range(partitions):
        topic, index = divmod(number, PARTITIONS_PER_TOPIC)
        if index == 0:
            yield TopicRecord(name=f"topic-{topic:05}", topic_id=_uuid(1_000 + topic))
        replicas = tuple(BROKERS[(number + place) % len(BROKERS)] for place in range(REPLICAS))
        yield PartitionRecord(
            partition=index,
            topic_id=_uuid(1_000 + topic),
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=number % 11,
            partition_epoch=number % 37 + 11,
            directories=tuple(_uuid(100 + broker_id) for broker_id in replicas),
        )


def _uuid(number: int) -> bytes:
    return (1_000 + number).to_bytes(16, "big")


def _one_round(path: Path) -> Start:
    command = [sys.executable, "-m", "bench.quorum.snapshot_start", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Start(**json.loads(done.stdout))


# --- in the process of one round ---


def main(argv: list[str]) -> int:
    path = Path(argv[0])
    read_s = time.process_time()
    for _ in _pieces(path):
        pass
    read_s = time.process_time() - read_s
    loop = MeasuredLoop()
    before, used = time.monotonic(), time.process_time()
    loaded = loop.run_until_complete(_start(path))
    seconds, used_s = time.monotonic() - before, time.process_time() - used
    turns = Turns({(length + 1) / 10: count for (_, length), count in sorted(loop.turns.items())})
    start = Start(
        seconds=seconds,
        used_s=used_s,
        read_s=read_s,
        longest_turn_ms=turns.longest_ms,
        p999_turn_ms=turns.percentile_ms(0.999),
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        partitions=sum(len(topic.partitions) for topic in loaded.topics.values()),
    )
    print(json.dumps(asdict(start)))
    return 0


async def _start(path: Path) -> Image:
    """As the driver does it: one step a turn."""
    loader = MetadataLoader()
    nursery = Nursery(_on_crash)
    freezer = Freezer(lambda: loader.partition_changes)
    loader.on_progress(freezer.wake)
    task = nursery.start(freezer.run(), "freezer")

    def find_changes(delta: Delta, image: Image) -> Sliced[None]:
        yield from changes_of(delta, image, BROKERS[0])

    loader.subscribe(find_changes)
    snapshot = _id_of(path)
    loader.on_high_watermark(snapshot.offset)
    load = loader.on_snapshot(SnapshotHeading(id=snapshot, last_contained_timestamp_ms=-1))
    for piece in _pieces(path):
        await _in_turns(load.add(piece))
    await _in_turns(load.finish())
    assert loader.image.offset == snapshot.offset
    task.cancel()
    return loader.image


async def _in_turns(steps: Sliced[None]) -> None:
    for _ in steps:
        await asyncio.sleep(0)
    await asyncio.sleep(0)


def _id_of(path: Path) -> SnapshotId:
    snapshot = parse_snapshot_name(path.name)
    assert snapshot is not None, path
    return snapshot


def _pieces(path: Path) -> Iterator[bytes]:
    reader = SnapshotReader(RealDisk(), str(path), _id_of(path))
    while piece := reader.read():
        yield piece
    reader.close()


def _on_crash(name: str, error: BaseException) -> None:
    raise AssertionError(name) from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
