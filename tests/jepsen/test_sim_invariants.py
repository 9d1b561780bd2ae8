"""The invariants of simulated brokers bite: each is shown a broker on which it holds, then one mistake made by hand."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from calm_cluster import calm_cluster

from jepsen.checkers.findings import Findings
from jepsen.sim.cluster import SimCluster
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.invariants.replicas.answers import AnswerInvariants
from jepsen.sim.invariants.replicas.appends import AppendInvariants
from jepsen.sim.invariants.replicas.fetches import FetchInvariants
from jepsen.sim.invariants.replicas.leaderships import Leaderships
from jepsen.sim.invariants.replicas.lives import LifeInvariants
from jepsen.sim.invariants.replicas.log_parts import LogPartsInvariants
from jepsen.sim.invariants.replicas.offsets import OffsetInvariants
from jepsen.sim.invariants.replicas.partitions import PartitionInvariants
from jepsen.sim.invariants.replicas.producers import ProducerInvariants
from jepsen.sim.invariants.replicas.tails import TailInvariants
from jepsen.sim.machine.machine import Machine
from jepsen.sim.sizes import Sizes
from jepsen.sim.time.scheduler import Scheduler
from jepsen.sim.truth.durability import Durability
from jepsen.sim.truth.log_mirror import Batch, LogMirror
from jepsen.sim.truth.mirrors import Mirrors, log_of
from quorumlog.ids import Offset
from quorumlog.messages.fetch import FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopicResponse
from quorumlog.messages.produce import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResponse,
)
from quorumlog.records import Record, encode_batch
from quorumlog_broker.partition.partition import Role
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.log.log import Log
from quorumlog_storage.producers.transactions import Unstable
from quorumlog_storage.rules.epochs import EpochStart
from quorumlog_storage.segment.transaction_index import AbortedTransaction, encode_entries

SEED = 1  # of small segments, so that they have index entries, and of tails with room


@dataclass
class Scene:
    """A leader that has stored records, and fresh findings. lead: the leader's machine; led: its replica."""

    cluster: SimCluster
    lead: Machine
    led: Replica
    follow: Machine
    followed: Replica

    def __post_init__(self) -> None:
        self.findings = Findings(lambda: 0)
        self.mirrors: Mirrors = self.cluster.invariants.mirrors
        self.tails = TailInvariants(self.mirrors, self.findings)
        self.durability = Durability(self.cluster.brokers, self.mirrors, lambda: 0)
        self.offsets = OffsetInvariants(self.durability, self.findings)
        self.leaderships = Leaderships(self.mirrors)
        self.answers = AnswerInvariants(self.leaderships, self.mirrors, self.findings)
        self.fetches = FetchInvariants(self.offsets, self.mirrors, self.findings)
        self.parts = LogPartsInvariants(self.mirrors, self.findings)
        self.lives = LifeInvariants(self.findings)
        self.appends = AppendInvariants(self.lives, self.findings)
        for machine, replica in ((self.lead, self.led), (self.follow, self.followed)):
            self.look(machine, replica)
        self.leaderships.after(self.lead, [self.led])
        assert not self.findings

    def look(self, machine: Machine, replica: Replica) -> None:
        self.tails.after(machine, [replica])
        self.offsets.after(machine, [replica])
        self.parts.after(machine, [replica])

    @property
    def end(self) -> Offset:
        assert self.led.log is not None
        return self.led.log.end_offset

    def acked(self, base_offset: Offset, acks: int, topic_id: bytes = b"") -> None:
        """The leader answers that one record lies at this offset. topic_id: of the request; empty: it has a name."""
        records = encode_batch([Record(0, 0, None, b"value", ())])
        topic = ProduceTopic(
            name=self.led.topic, partitions=(ProducePartition(index=self.led.key[1], records=records),)
        )
        answer = ProducePartitionResponse(index=self.led.key[1], base_offset=base_offset)
        self.answers.on_produced(
            self.lead,
            ProduceRequest(acks=acks, timeout_ms=1, topics=(topic,)),
            ProduceResponse(
                topics=(ProduceTopicResponse(name=self.led.topic, topic_id=topic_id, partitions=(answer,)),)
            ),
        )

    def fetched(self, records: bytes, high_watermark: Offset) -> None:
        """The leader answers a consumer with these."""
        answer = FetchPartitionResponse(index=self.led.key[1], high_watermark=high_watermark, records=records)
        topic = FetchTopicResponse(topic_id=self.led.key[0], partitions=(answer,))
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1)
        self.fetches.on_fetched(self.lead, request, FetchResponse(topics=(topic,)))

    def all_records(self) -> bytes:
        content = self.mirrors.of_replica(self.lead, self.led).content(0, self.end)
        assert content is not None
        return content

    def found(self) -> set[str]:
        return {finding.name for finding in self.findings.found}


@pytest.fixture(scope="module")
def cluster() -> Iterator[SimCluster]:
    with calm_cluster(12, seed=SEED, sizes=Sizes.of_seed(Scheduler(SEED).rng)) as cluster:
        yield cluster


@pytest.fixture
def scene(cluster: SimCluster) -> Scene:
    for machine in cluster.brokers:
        for replica in _replicas(machine):
            if replica.core.is_leader and replica.tail.end_offset > 3:
                other = next(one for one in cluster.brokers if one is not machine)
                followed = next(one for one in _replicas(other) if one.key == replica.key)
                return Scene(cluster, machine, replica, other, followed)
    raise AssertionError("nobody leads a partition with records")


def _replicas(machine: Machine) -> list[Replica]:
    plane = data_plane_of(machine)
    assert plane is not None
    return list(plane.registry.replicas.values())


# --- who acknowledged ---


@pytest.mark.parametrize("is_replica", [True, False])
def test_an_acknowledgement_without_a_copy_is_found_unless_the_replica_was_taken_away(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_replica: bool
) -> None:
    """Who left by committed metadata deletes its copy, also while the leader has not heard of it yet."""
    log, at = log_of(scene.led), scene.follow.node_id
    partitions = PartitionInvariants(scene.cluster.brokers, scene.mirrors, scene.durability, scene.findings)
    known = scene.cluster.invariants.partitions._registrations[log]
    replicas = known.replicas if is_replica else tuple(one for one in known.replicas if one != at)
    partitions._registrations = {log: replace(known, replicas=replicas, isr=(scene.lead.node_id,))}
    partitions.after(scene.lead, [scene.led])
    assert not scene.findings
    kept, empty = scene.mirrors.of_replica, LogMirror(scene.follow.disk, "/data/no-such-log", lambda _batch: None)
    monkeypatch.setattr(
        scene.mirrors, "of_replica", lambda machine, one: empty if machine is scene.follow else kept(machine, one)
    )
    partitions._known.clear()  # the leader's high watermark is news again
    partitions.after(scene.lead, [scene.led])
    assert scene.found() == ({"high-watermark-on-disk"} if is_replica else set())


# --- the tail ---


def test_a_tail_with_other_bytes_is_found(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = list(scene.led.tail._batches)
    changed = batches[-1]._replace(parts=(b"".join(batches[-1].parts)[:-1] + b"?",))
    monkeypatch.setattr(scene.led.tail, "_batches", [*batches[:-1], changed])
    scene.tails.on_cut(scene.lead, log_of(scene.led))
    assert scene.found() == {"tail-equals-log"}


def test_a_tail_that_outlives_its_log_is_found(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica that kept its tail follows now, and has another log."""
    monkeypatch.setattr(scene.led, "topic", "other")
    scene.tails.on_cut(scene.lead, log_of(scene.led))
    assert scene.found() == {"tail-equals-log"}


# --- offsets ---


def test_a_high_watermark_that_falls_is_found(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene.led.core, "high_watermark", scene.led.core.high_watermark - 1)
    scene.offsets.after(scene.lead, [scene.led])
    assert scene.found() == {"high-watermark-falls"}


def test_a_log_start_that_falls_is_found_unless_the_log_was_renamed(scene: Scene) -> None:
    assert scene.led.log is not None
    key, log = (scene.lead.host, scene.led.name), log_of(scene.led)
    scene.offsets._starts[key] = {log: 1}
    scene.offsets.on_disk(scene.lead, "rename", f"/data/d0/{scene.led.name}")
    scene.offsets.after(scene.lead, [scene.led])
    assert not scene.findings
    scene.offsets._starts[key] = {log: 1}
    scene.offsets.after(scene.lead, [scene.led])
    assert scene.found() == {"log-start-falls"}


def test_the_start_of_a_failed_replica_is_not_that_of_the_log_after_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its directory was replaced under the process, which has the old log in memory."""
    assert scene.led.log is not None
    monkeypatch.setattr(scene.led.core, "failed", True)
    with monkeypatch.context() as old:
        old.setattr(Log, "start_offset", 1)
        scene.offsets.after(scene.lead, [scene.led])
    monkeypatch.setattr(scene.led.core, "failed", False)
    scene.offsets.after(scene.lead, [scene.led])
    assert not scene.findings


# --- epochs and indexes ---


def _epochs_begin_later(scene: Scene) -> tuple[EpochStart, ...]:
    assert scene.led.log is not None
    last = scene.led.log.epochs.entries[-1]
    return (EpochStart(last.epoch, last.start_offset + 1),)


def _an_epoch_in_the_middle(scene: Scene) -> tuple[EpochStart, ...]:
    assert scene.led.log is not None
    entries = scene.led.log.epochs.entries
    return (*entries, EpochStart(entries[-1].epoch + 1, scene.end - 1))


def _an_epoch_past_the_end(scene: Scene) -> tuple[EpochStart, ...]:
    assert scene.led.log is not None
    entries = scene.led.log.epochs.entries
    return (*entries, EpochStart(entries[-1].epoch + 1, scene.end + 1))


@pytest.mark.parametrize("mistake", [_epochs_begin_later, _an_epoch_in_the_middle, _an_epoch_past_the_end])
def test_wrong_epochs_are_found(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, mistake: Callable[[Scene], tuple[EpochStart, ...]]
) -> None:
    assert scene.led.log is not None
    monkeypatch.setattr(scene.led.log.epochs, "entries", mistake(scene))
    scene.parts.after(scene.lead, [scene.led])
    assert scene.found() == {"epochs-equal-log"}


WRONG_ENTRIES = [
    ("wrong offset", "offsets", 0, "index-equals-log"),
    ("wrong position", "offsets", 1, "index-equals-log"),
    ("wrong time", "times", 0, "time-index-equals-log"),
    ("time of a wrong offset", "times", 1, "time-index-equals-log"),
]


@pytest.mark.parametrize(
    ("which", "column", "finding"), [c[1:] for c in WRONG_ENTRIES], ids=[c[0] for c in WRONG_ENTRIES]
)
def test_a_wrong_index_entry_is_found(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, which: str, column: int, finding: str
) -> None:
    assert scene.led.log is not None
    segments = reversed(scene.led.log.view.segments)
    segment = next(one for one in segments if len(one.indexes.offsets.index) and len(one.indexes.times.index))
    offsets, times = segment.indexes.offsets.index, segment.indexes.times.index
    segment.indexes.offsets.slot, segment.indexes.times.slot = {None: offsets}, {None: times}  # they may have left
    index = offsets if which == "offsets" else times
    columns = (index._columns[0][:], index._columns[1][:])
    columns[column][-1] += 1
    monkeypatch.setattr(index, "_columns", columns)
    LogPartsInvariants(scene.mirrors, scene.findings).after(scene.lead, [scene.led])
    assert scene.found() == {finding}


# --- producers ---


def producers_found(scene: Scene) -> set[str]:
    ProducerInvariants(scene.mirrors, scene.findings).after(scene.lead, [scene.led])
    return scene.found()


def test_a_log_that_knows_its_producers_is_accepted(scene: Scene) -> None:
    subject = ProducerInvariants(scene.mirrors, scene.findings)
    subject.after(scene.lead, [scene.led])
    assert subject.compared > 0 and not scene.findings


def test_a_forgotten_producer_is_found(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    assert scene.led.log is not None and scene.led.log.producers is not None
    monkeypatch.setattr(scene.led.log.producers.states, "entries", OrderedDict())
    assert producers_found(scene) == {"producers-equal-log"}


def test_an_open_transaction_that_no_batch_began_is_found(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    assert scene.led.log is not None
    view = scene.led.log.view._replace(unstable=Unstable(first_open=3))
    monkeypatch.setattr(scene.led.log, "view", view)
    assert producers_found(scene) == {"producers-equal-log"}


def test_an_aborted_transaction_that_no_marker_ended_is_found(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    log = scene.led.log
    assert log is not None
    index = log.active.transactions
    monkeypatch.setattr(index, "_content", bytearray(encode_entries([AbortedTransaction(1, 2, 3, 4)])))
    monkeypatch.setattr(log, "view", log.view._replace(aborted=(index,)))
    assert producers_found(scene) == {"aborted-equal-log"}


# --- answers ---


def test_acks_all_above_the_high_watermark_is_found(scene: Scene) -> None:
    scene.acked(scene.led.core.high_watermark - 1, acks=-1)
    assert not scene.findings
    scene.acked(scene.led.core.high_watermark, acks=-1)
    assert scene.found() == {"ack-below-high-watermark"}


def test_an_acknowledgement_of_a_life_that_never_led_is_found(scene: Scene) -> None:
    scene.lead, scene.led = scene.follow, scene.followed
    scene.acked(0, acks=1)
    assert scene.found() == {"acknowledged-without-leading"}


def test_an_answer_for_a_topic_made_anew_is_found_by_id_only(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene.led.core, "role", Role.OFFLINE)
    led = scene.leaderships._of_lives[scene.lead.host, scene.lead.life]
    led[b"of the old topic", scene.led.key[1]] = led.pop(scene.led.key)
    scene.acked(scene.led.core.high_watermark - 1, acks=-1)
    assert not scene.findings
    scene.acked(scene.led.core.high_watermark - 1, acks=-1, topic_id=scene.led.key[0])
    assert scene.found() == {"acknowledged-without-leading"}


def test_acks_1_beyond_the_disk_is_found(scene: Scene) -> None:
    scene.acked(scene.end - 1, acks=1)
    assert not scene.findings
    scene.acked(scene.end, acks=1)
    assert scene.found() == {"leader-ack-on-disk"}


@pytest.mark.parametrize(("was_weak", "found"), [(True, set()), (False, {"leader-ack-on-disk"})])
def test_acks_1_for_what_is_not_synced_is_right_if_durability_was_raised_meanwhile(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, was_weak: bool, found: set[str]
) -> None:
    monkeypatch.setattr(LogMirror, "durable_end", lambda _: scene.end - 1)
    if was_weak:
        with monkeypatch.context() as before:
            before.setattr(scene.led, "config", replace(scene.led.config, durability="replicated"))
            scene.leaderships.after(scene.lead, [scene.led])
    scene.acked(scene.end - 1, acks=1)
    assert scene.found() == found


def test_acks_1_for_what_was_written_after_the_leadership_is_found(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene.led.core, "role", Role.FOLLOWER)
    scene.leaderships.after(scene.lead, [scene.led])
    (over,) = scene.leaderships.of(scene.lead, scene.led.key)
    assert over.is_over and over.on_disk == scene.end
    over.on_disk = scene.end - 1  # the last record was not synced then
    scene.acked(scene.end - 2, acks=1)
    assert not scene.findings
    scene.acked(scene.end - 1, acks=1)
    assert scene.found() == {"leader-ack-on-disk"}


def test_a_record_of_acks_1_that_its_leader_lost_is_found(scene: Scene) -> None:
    scene.acked(scene.end - 1, acks=1)
    scene.answers.check_kept(scene.lead)
    assert not scene.findings
    leadership = scene.leaderships.current(scene.lead, scene.led.key)
    assert leadership is not None
    leadership.chain = b"another log"
    scene.answers.on_cut(scene.lead, log_of(scene.led))
    assert scene.found() == {"leader-ack-is-kept"}


# --- fetches ---


def test_a_right_fetch_answer_is_accepted(scene: Scene) -> None:
    scene.fetched(scene.all_records(), scene.led.core.high_watermark)
    assert not scene.findings and scene.fetches.batches > 3


def test_a_consumer_that_reads_above_the_high_watermark_is_found(scene: Scene) -> None:
    scene.fetched(scene.all_records(), scene.end - 1)
    assert scene.found() == {"fetch-below-high-watermark"}


def test_a_high_watermark_that_never_was_is_found(scene: Scene) -> None:
    scene.fetched(b"", scene.led.core.high_watermark + 1)
    assert scene.found() == {"told-high-watermark"}


@pytest.mark.parametrize(
    "mistake",
    [lambda data: data[:-1], lambda data: data[:-1] + b"?", lambda data: data[10:]],
    ids=["cut short", "other bytes", "not from the start of a batch"],
)
def test_a_fetch_answer_with_other_bytes_is_found(scene: Scene, mistake: Callable[[bytes], bytes]) -> None:
    scene.fetched(mistake(scene.all_records()), scene.led.core.high_watermark)
    assert scene.found() == {"fetch-equals-log"}


# --- lives ---


def _batch(scene: Scene, epoch: int) -> Batch:
    last = scene.mirrors.of_replica(scene.lead, scene.led).batch_at(scene.end - 1)
    assert last is not None
    return last._replace(epoch=epoch)


def test_appends_of_another_epoch_than_the_leaders_are_found(scene: Scene) -> None:
    epoch = scene.led.core.leader_epoch
    scene.appends.on_written(scene.lead, log_of(scene.led), _batch(scene, epoch))
    assert not scene.findings
    scene.appends.on_written(scene.lead, log_of(scene.led), _batch(scene, epoch - 1))
    assert scene.found() == {"appends-in-own-epoch"}


def test_a_followers_append_above_its_epoch_is_found(scene: Scene) -> None:
    epoch = scene.followed.core.leader_epoch
    scene.appends.on_written(scene.follow, log_of(scene.followed), _batch(scene, epoch))
    assert not scene.findings
    scene.appends.on_written(scene.follow, log_of(scene.followed), _batch(scene, epoch + 1))
    assert scene.found() == {"append-above-epoch"}


def test_an_append_before_the_log_is_ready_is_found(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene.led.core, "ready", False)
    scene.appends.on_written(scene.lead, log_of(scene.led), _batch(scene, scene.led.core.leader_epoch))
    assert scene.found() == {"append-before-leading"}


def test_appends_and_fetches_before_the_registration_are_found(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    plane = data_plane_of(scene.lead)
    assert plane is not None and scene.lead.node is not None
    image = plane.registry.image
    own = image.brokers[scene.lead.node_id]
    earlier = image.brokers.set(scene.lead.node_id, replace(own, incarnation_id=b"an earlier life."))
    monkeypatch.setattr(plane.registry, "image", replace(image, brokers=earlier))
    scene.appends.on_written(scene.lead, log_of(scene.led), _batch(scene, scene.led.core.leader_epoch))
    assert scene.found() == {"registered-before-append"}
    scene.lives.on_fetch(scene.lead)
    assert scene.found() == {"registered-before-append", "fetches-in-own-life"}
