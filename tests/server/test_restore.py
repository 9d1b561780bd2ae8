"""Directories that a restore makes: no transaction is open, all replicas are equal, nothing is beside other data."""

from __future__ import annotations

import itertools
from pathlib import Path

import backup_world as world
import pytest
from backup_world import DATA, DONE, NEXT_PRODUCER_ID, OPEN, OTHER
from test_first_voters import config
from test_format import SECRET

from jepsen.crash.faults import Fault
from jepsen.crash.struck_disk import ProcessEnded, Strike, StruckDisk
from quorumlog.backup.manifest import BadBackup
from quorumlog.messages.metadata_records import (
    ConfigRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from quorumlog.records import headers
from quorumlog.records.control import EndTxnMarker, decode_control
from quorumlog.records.coordinator import TRANSACTION_TYPES, decode
from quorumlog.records.open_transactions import OpenTransactions
from quorumlog.records.rowwise.plain import decode_batch
from quorumlog.topic_name import TRANSACTION_STATE
from quorumlog_broker.coordinator.transactions.state.table import COMPLETE_COMMIT, PREPARE_ABORT
from quorumlog_quorum.metadata.image import CLUSTER_DEFAULT
from quorumlog_quorum.offline.lost_majority import SKIPPED_PRODUCER_IDS
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.directories.directories import DirectoryProblem, open_directories
from quorumlog_server.directories.first_voters import FirstVoters
from quorumlog_server.restoring.backup_folder import read_backup
from quorumlog_server.restoring.new_metadata import first_records, places
from quorumlog_server.restoring.restore import RestorePlan, RestoreRefused, restore_node
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.disk import Disk
from tests.parts import few

NODES = (1, 2, 3)


class Place:
    """A node's directories and a backup beside them, on a real disk."""

    def __init__(self, root: Path) -> None:
        self.disk, self.root, self.standalone = RealDisk(), str(root), True
        self.backup, self.target = f"{root}/backup", f"{root}/a"
        world.put_all(self.disk, self.backup)

    def config(self, node: int) -> NodeConfig:
        return config(node, log_dirs=f"{self.target},{self.root}/b", metadata_log_dir=f"{self.root}/meta")

    def plan(self) -> RestorePlan:
        return RestorePlan(
            backup=read_backup(self.disk, self.backup),
            cluster_id="new",
            secret=SECRET,
            nodes=NODES,
            first_voters=FirstVoters(standalone=self.standalone),
        )

    def restore(self, node: int = 1, disk: Disk | None = None) -> int:
        """How many replicas the node has."""
        numbers = itertools.count(1_000)
        return restore_node(
            disk or self.disk,
            self.config(node),
            self.plan(),
            new_uuid=lambda: next(numbers).to_bytes(16, "big"),
            protect=lambda _path: None,
        )

    def log(self, name: str) -> bytes:
        return self.disk.read_bytes(f"{self.target}/{name}/{0:020d}.log")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(("name", "markers"), [("data-0", [(5, OPEN)]), ("other-0", [(3, OPEN)]), ("data-1", [])])
def test_what_is_open_at_the_cut_is_aborted_and_everything_else_is_as_it_was(
    name: str, markers: list[tuple[int, int]], place: Place
) -> None:
    assert place.restore() == 4
    content, before = place.log(name), b"".join(world.CONTENT[name[:-2], int(name[-1])])
    assert content.startswith(before)
    added, opened = content[len(before) :], OpenTransactions()
    found = []
    for header in headers(added):
        (record,) = decode_batch(added, header)
        kind = decode_control(record.key, record.value)
        assert isinstance(kind, EndTxnMarker) and not kind.committed
        found.append((header.base_offset, header.producer_id))
    assert found == markers
    for header in headers(content):
        opened.follow(header, content[header.position : header.end])
    assert not opened.by_producer, "a read_committed consumer would wait for ever"


def test_the_coordinator_aborts_what_was_open_and_fences_its_producer(place: Place) -> None:
    place.restore()
    content = place.log(f"{TRANSACTION_STATE}-0")
    newest = {}
    for header in headers(content):
        for record in decode_batch(content, header):
            one = decode(TRANSACTION_TYPES, record.key, record.value)
            newest[one.key.transactional_id] = one.value
    assert {name: value.transaction_status for name, value in newest.items()} == {
        "hangs": PREPARE_ABORT,
        "ends": COMPLETE_COMMIT,
    }
    assert (newest["hangs"].producer_id, newest["hangs"].producer_epoch) == (OPEN, 2)


def test_replicas_of_all_nodes_are_equal(tmp_path: Path) -> None:
    places = []
    for node in NODES:
        (tmp_path / str(node)).mkdir()
        places.append(Place(tmp_path / str(node)))
        places[-1].restore(node)
    for name in ("data-0", "data-1", "other-0", f"{TRANSACTION_STATE}-0"):
        assert len({place.log(name) for place in places}) == 1


def test_the_first_metadata(place: Place) -> None:
    made = place.plan()
    where = places(made.backup.image, made.backup.manifest, NODES)
    directories = {node: made.directory_id(node) for node in NODES}
    records = list(first_records(made.backup.image, made.backup.manifest, where, directories))
    topics = {one.name: one.topic_id for one in records if isinstance(one, TopicRecord)}
    assert topics == world.TOPICS, "ids stay: groups' offsets carry them"
    partitions = [one for one in records if isinstance(one, PartitionRecord)]
    assert {(one.topic_id, one.partition) for one in partitions} >= {(DATA, 0), (DATA, 1), (OTHER, 0)}
    assert all(set(one.replicas) == {*NODES} == {*one.eligible_leader_replicas} for one in partitions)
    assert not any(one.isr or one.leader != -1 for one in partitions)
    assert {one.replicas[0] for one in partitions} == {*NODES}, "each leads about as much as the others"
    assert not any(isinstance(one, RegisterBrokerRecord) for one in records)
    (ids,) = [one for one in records if isinstance(one, ProducerIdsRecord)]
    assert ids.next_producer_id == NEXT_PRODUCER_ID + SKIPPED_PRODUCER_IDS > DONE


def test_the_hold_is_on_for_all_and_off_for_nobody(place: Place) -> None:
    made = place.plan()
    where = places(made.backup.image, made.backup.manifest, NODES)
    records = first_records(made.backup.image, made.backup.manifest, where, {1: DATA, 2: DATA, 3: DATA})
    paused = [one for one in records if isinstance(one, ConfigRecord) and one.name == "retention.paused"]
    assert [(one.resource_name, one.value) for one in paused] == [(CLUSTER_DEFAULT, "true")]


def test_what_was_under_way_in_the_old_cluster_is_not_in_the_new_one(place: Place) -> None:
    """Neither the pause of the backup itself, nor the mark of a roll, which would keep every roll from going."""
    made = place.plan()
    where = places(made.backup.image, made.backup.manifest, NODES)
    records = first_records(made.backup.image, made.backup.manifest, where, {1: DATA, 2: DATA, 3: DATA})
    names = {one.name for one in records if isinstance(one, ConfigRecord)}
    assert names == {"retention.ms", "retention.paused"}


def test_beside_other_data_nothing_is_written(place: Place) -> None:
    place.disk.make_directory(f"{place.root}/b")
    world.put(place.disk, f"{place.root}/b/somebody's", b"data")
    with pytest.raises(RestoreRefused, match="/b is not empty: a restore never writes beside other data"):
        place.restore()
    assert not place.disk.exists(place.target)
    assert place.disk.read_bytes(f"{place.root}/b/somebody's") == b"data"


def test_a_second_restore_is_refused(place: Place) -> None:
    place.restore()
    before = place.log("data-0")
    with pytest.raises(RestoreRefused, match="is not empty"):
        place.restore()
    assert place.log("data-0") == before


def test_a_node_of_another_cluster(place: Place) -> None:
    with pytest.raises(RestoreRefused, match="node 4 is not among the nodes of the new cluster"):
        place.restore(4)
    assert not place.disk.exists(place.target)


def test_voters_that_nobody_has_named_are_asked_for_before_anything_is_written(place: Place) -> None:
    place.standalone = False
    with pytest.raises(RestoreRefused, match="say one of --standalone"):
        place.restore()
    assert not place.disk.exists(place.target)


def test_damage_that_is_met_on_the_way_leaves_no_node_that_starts(place: Place) -> None:
    world.put(place.disk, f"{place.backup}/records/other-0", world.rows(0, "x"))
    with pytest.raises(BadBackup):
        place.restore()
    with pytest.raises(DirectoryProblem):
        open_directories(place.disk, place.config(1))


@pytest.mark.counts
def test_a_restore_that_is_killed_at_any_call_leaves_no_node_that_starts(tmp_path: Path) -> None:
    """Or a whole one, where only the last calls are missing."""

    def new_place(name: str) -> Place:
        (tmp_path / name).mkdir()
        return Place(tmp_path / name)

    whole = new_place("whole")
    counting = StruckDisk(whole.disk)
    counting.watch()
    whole.restore(disk=counting)
    calls = len(counting.calls)
    for number in range(0, calls, calls // few(calls)):
        place = new_place(str(number))
        struck = StruckDisk(place.disk)
        struck.watch(number, Strike(Fault.KILL, 0.5))
        with pytest.raises(ProcessEnded):
            place.restore(disk=struck)
        try:
            open_directories(place.disk, place.config(1))
        except DirectoryProblem:
            continue
        for name in ("data-0", "data-1", "other-0", f"{TRANSACTION_STATE}-0"):
            assert place.log(name) == whole.log(name), f"it starts without {name} when it is killed at {number}"
