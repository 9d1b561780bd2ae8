"""Loss 7: a snapshot stands in place of the record that deleted a topic.

A broker is away while a topic is deleted and the metadata log is cut behind a snapshot. When it comes back, it must not
take every directory for deleted that the snapshot does not name: one that it got by a mistake, from a backup or from
another cluster is data of which nothing is known. And it must free what the deleted topic left behind.
"""

from __future__ import annotations

from dataclasses import replace

from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import CONTROLLERS, DATA, METADATA_LOG
from jepsen.sim.sizes import Sizes
from quorumlog.ids import Offset
from quorumlog.messages.metadata_records import PartitionRecord, SnapshotStateRecord, TopicRecord
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from quorumlog_quorum.metadata.frame import MetadataRecord, decode_record, encode_record
from quorumlog_quorum.snapshots import (
    SnapshotHeading,
    SnapshotId,
    SnapshotReader,
    parse_snapshot_name,
    snapshot_path,
    values_of,
    write_snapshot,
)
from quorumlog_storage.directory.partition_metadata import render_partition_metadata
from tests.losses.cluster_world import World, files_of, overwrite, world
from tests.losses.promises import promised

LEADER, AWAY, OTHER = 11, 12, 13
STRANGER = "stranger-0"
SIZES = Sizes(
    name="many snapshots",
    node={
        "metadata.log.segment.bytes": "3000",
        "metadata.log.segment.ms": "1000",
        "metadata.log.max.record.bytes.between.snapshots": "1000",
        "metadata.log.max.snapshot.interval.ms": "1000",
        "metadata.max.retention.bytes": "1000",
        "metadata.max.retention.ms": "1000",
        "metadata.retention.check.interval.ms": "500",
    },
)
WHOLE_LOGS = Sizes(
    name="many snapshots, and all of the log",
    node={
        "metadata.log.max.record.bytes.between.snapshots": "500",
        "metadata.log.max.snapshot.interval.ms": "1000",
    },
)


def test_a_broker_that_was_away_deletes_what_was_deleted_and_nothing_else() -> None:
    with world(sizes=SIZES) as w:
        away = w.cluster.machines["b2"]
        w.create("deleted", [LEADER, AWAY, OTHER], partitions=2)
        w.create("kept", [LEADER, AWAY, OTHER])
        w.produce("deleted", ["a", "b"])
        kept = w.produce("kept", ["c", "d"])
        away.kill()
        plant_a_stranger(away)
        end = w.cluster.image.offset
        w.delete("deleted")
        w.prepare(lambda: log_start(w) > end + 1, "the metadata log is cut behind the deletion")
        remembered = [one.name for _, one in w.cluster.image.sorted_deleted()]
        away.start()
        w.prepare(w.cluster.is_healthy, "the broker is back")
        came_back = directories(away)
        w.prepare(lambda: not w.cluster.image.deleted, "the deleted topic is forgotten")
        w.run_for(120)
        left, found = directories(away), w.read("kept")
    with promised():
        assert remembered == ["deleted"], "while a registered broker is away"
        assert not came_back & {"deleted-0", "deleted-1", STRANGER}
        assert {name for name in left if not name.startswith("__")} == {"kept-0", f"{STRANGER}-stray"}
        assert found == kept


def log_start(w: World) -> Offset:
    """The lowest log start of the running controllers: every one must offer a snapshot to who comes back."""
    nodes = [machine.node for host, machine in w.cluster.machines.items() if host in CONTROLLERS]
    return min(node.driver.core.log.start for node in nodes if node is not None and node.driver is not None)


def plant_a_stranger(machine: Machine) -> None:
    """A directory with records, of a topic of which this cluster knows nothing."""
    files = files_of(machine)
    content = next(files[path] for path in files if "/kept-0/" in path and path.endswith(".log"))
    machine.disk.make_directory(f"{DATA}/{STRANGER}")
    overwrite(machine, f"{DATA}/{STRANGER}/partition.metadata", render_partition_metadata(bytes([77]) * 16))
    overwrite(machine, f"{DATA}/{STRANGER}/00000000000000000000.log", content)
    machine.disk.sync_directory(DATA)


def directories(machine: Machine) -> set[str]:
    """Those of partitions; of a marked one the name without its unique part."""
    names = {path.removeprefix(f"{DATA}/").split("/")[0] for path in files_of(machine) if path.count("/") > 3}
    return {name if "." not in name else f"{name.split('.')[0]}-{name.rsplit('-', 1)[1]}" for name in names}


def test_a_snapshot_that_lacks_a_topic_is_not_believed() -> None:
    """Its batches have good checksums, and its records do not give its state hash: a mistake of some software."""
    with world(sizes=WHOLE_LOGS) as w:
        broker = w.cluster.machines["b2"]
        w.create("kept", [LEADER, AWAY, OTHER])
        kept = w.produce("kept", ["a", "b"])
        w.prepare(lambda: "kept" in topics_in(broker), "a snapshot holds the topic")
        broker.kill()
        forge(broker)
        forged = topics_in(broker)
        broker.start()
        w.prepare(w.cluster.is_healthy, "the broker is back")
        w.run_for(5)
        left, names, found = directories(broker), broker.disk.list(METADATA_LOG), w.read("kept")
    with promised():
        assert forged == []
        assert any(name.endswith(".damaged") for name in names)
        assert {name for name in left if not name.startswith("__")} == {"kept-0"}
        assert found == kept


def latest_snapshot(machine: Machine) -> SnapshotId | None:
    found = [parse_snapshot_name(name) for name in machine.disk.list(METADATA_LOG)]
    return max((one for one in found if one is not None), key=lambda one: one.offset, default=None)


def records_in(machine: Machine, snapshot: SnapshotId) -> list[MetadataRecord]:
    reader = SnapshotReader(machine.disk, snapshot_path(METADATA_LOG, snapshot), snapshot)
    found: list[MetadataRecord] = []
    while batches := reader.read():
        found += [decode_record(value) for value in values_of(batches)]
    return found


def topics_in(machine: Machine) -> list[str]:
    """The topics in the machine's latest snapshot."""
    snapshot = latest_snapshot(machine)
    found = [] if snapshot is None else records_in(machine, snapshot)
    return [record.name for record in found if isinstance(record, TopicRecord)]


def forge(machine: Machine) -> None:
    """Write the latest snapshot again, without its topics, and with the right number of records."""
    snapshot = latest_snapshot(machine)
    assert snapshot is not None
    records = records_in(machine, snapshot)
    left = [one for one in records if not isinstance(one, TopicRecord | PartitionRecord)]
    state = left.pop()
    assert isinstance(state, SnapshotStateRecord)
    left.append(replace(state, records=len(left)))
    heading = SnapshotHeading(id=snapshot, last_contained_timestamp_ms=0)
    write_snapshot(machine.disk, METADATA_LOG, heading, [[encode_record(one, LATEST_LEVEL) for one in left]])
