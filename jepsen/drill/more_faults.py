"""Twenty faults beside the eight, of which a seed draws one: what else an operator meets.

Where no alert is right, `no_alert` says why.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from jepsen.drill.faults import (
    AWAY,
    BETWEEN_S,
    BIG,
    BULK,
    EIGHT,
    HELD_GROUPS,
    OF_DIRECTORY,
    READY_S,
    SILENT_S,
    Fault,
    Place,
    Step,
    Struck,
    certificate,
    feed,
    killed,
    lost,
    make_bulk,
)
from jepsen.drill.sights import Expected
from jepsen.live.disks.edge_control import NEARLY
from jepsen.live.plan import Blow
from quorumlog.client.administration.quotas import QuotaChange
from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import QuorumlogError
from quorumlog.client.offsets import LATEST
from quorumlog.explaining.thresholds import Thresholds
from quorumlog.ids import NO_NODE, NodeId
from quorumlog.rpc.transport import RpcError
from quorumlog.security.tls.issuing.folder import Folder
from quorumlog.testing.protected import FOLDER
from quorumlog.testing.waiting import wait_until

CHURN_S = Thresholds().epochs_ms / 1000 + SILENT_S  # elections are counted for so long
STALL_S = 2.0  # shorter than a session
ALONE, STRICT = "alone", "strict"


def _nearly_full(place: Place) -> Struck:
    node = place.victim
    expected = Expected(
        causes=("directory.nearly-full",),
        subject=f"directory/{place.cluster.extra(node)}",
        alerts=("QuorumlogDirectoryNearlyFull",),
    )
    return Struck(expected, place.cluster.order(node, NEARLY))


def _offline(blow: Blow) -> Callable[[Place], Struck]:
    def put(place: Place) -> Struck:
        node = place.victim
        end = place.cluster.order(node, blow.name)

        def lift() -> None:
            end()
            place.cluster.restart(node, READY_S)

        expected = Expected(
            causes=("directory.offline",),
            subject=f"directory/{place.cluster.extra(node)}",
            alerts=("QuorumlogDirectoryOffline",),
            consequences=OF_DIRECTORY | AWAY,
        )
        return Struck(expected, lift)

    return put


def _dead_controller(place: Place) -> Struck:
    node = place.cluster.controller
    return lost(node, killed(place, node))


def _paused(place: Place) -> Struck:
    node = place.victim
    place.cluster.pause(node)
    struck = lost(node, lambda: place.cluster.resume(node))
    besides = struck.expected.consequences | {"node.stalled"}  # it was held up, and says so afterwards
    return replace(struck, expected=replace(struck.expected, consequences=besides))


def _cut_off(place: Place) -> Struck:
    node = place.victim
    place.cluster.partition(node)
    return lost(node, place.cluster.heal)


def _no_majority(place: Place) -> Struck:
    nodes = place.cluster.others
    for node in nodes:
        place.cluster.kill(node)

    def lift() -> None:
        place.cluster.nodes.start(nodes)
        place.cluster.nodes.wait_ready(nodes, READY_S)

    expected = Expected(
        causes=("quorum.no-leader", "quorum.no-majority"),
        subject="quorum",
        no_alert="QuorumlogNoController waits 30 s on purpose, so that an election is no alert",
        consequences=AWAY | HELD_GROUPS | {"quorum.epochs-churn", "quorum.no-leader", "quorum.no-majority"},
    )
    return Struck(expected, lift)


def _stalled(place: Place) -> Struck:
    """For less than a session."""
    node = place.victim
    place.cluster.pause(node)
    time.sleep(STALL_S)
    place.cluster.resume(node)
    expected = Expected(
        causes=("node.stalled",), subject=f"broker/{node}", alerts=("QuorumlogLoopStall",), consequences=AWAY
    )
    return Struck(expected, lambda: None)


def _make_alone(place: Place) -> None:
    node = place.victim
    place.admin.create_topic(ALONE, assignment=[[node]], exist_ok=True)


def _no_leader(place: Place) -> Struck:
    lift = killed(place, place.admin.describe_topic(ALONE).partitions[0].leader_id)
    expected = Expected(
        causes=("leader.all-replicas-dead",),
        subject=f"partition/{ALONE}-0",
        alerts=("QuorumlogOfflinePartitions",),
        consequences=AWAY,
    )
    return Struck(expected, lift)


def _make_strict(place: Place) -> None:
    place.admin.create_topic(STRICT, 3, 3, {"min.insync.replicas": "3"}, exist_ok=True)


def _below_minimum(place: Place) -> Struck:
    lift = killed(place, place.victim)
    expected = Expected(
        causes=("isr.below-minimum",),
        subject=f"partition/{STRICT}-",
        alerts=("QuorumlogBrokerLost",),
        consequences=AWAY,
    )
    return Struck(expected, lift)


def _empty_group(place: Place) -> Struck:
    from quorumlog.client.group.offsets import CommittedOffset

    end = feed(place, BULK)
    wait_until(lambda: place.admin.list_offsets({(BULK, 0): LATEST})[BULK, 0].offset, 30, "records to be behind")
    place.admin.alter_group_offsets("nobody", {(BULK, 0): CommittedOffset(0)})

    def lift() -> None:
        end()
        place.admin.delete_group("nobody")

    expected = Expected(
        causes=("group.no-members",), subject="group/nobody", calm=True, no_alert="a notice: nothing is to be done"
    )
    return Struck(expected, lift)


def _throttled(place: Place) -> Struck:
    entity = {"client-id": "noisy"}
    place.admin.alter_client_quotas([QuotaChange(entity, {"producer_byte_rate": 20_000.0})])

    def send(_client: Cluster, is_over: Callable[[], bool], note: Step) -> None:
        with place.cluster.connect(client_id="noisy") as own, own.producer() as producer:
            while not is_over():
                for _ in range(50):
                    producer.send(BULK, BIG, partition=0)
                producer.flush(60)
                note()

    end = place.load.work("noisy", send)

    def lift() -> None:
        end()
        place.admin.alter_client_quotas([QuotaChange(entity, {"producer_byte_rate": None})])

    expected = Expected(
        causes=("quota.throttles",), subject="client/", calm=True, no_alert="a notice: the quota does what it is for"
    )
    return Struck(expected, lift)


def _failing_logins(place: Place) -> Struck:
    def fail(_client: Cluster, is_over: Callable[[], bool], _note: Step) -> None:
        while not is_over():
            try:
                with place.cluster.connect(sasl_password="wrong", default_api_timeout_ms=2_000) as stranger:
                    stranger.admin.describe_cluster()
            except (QuorumlogError, RpcError, TimeoutError):
                pass

    ends = [place.load.work(f"stranger {number}", fail) for number in range(12)]

    def lift() -> None:
        for end in ends:
            end()

    expected = Expected(
        causes=("logins.fail",),
        subject="",
        alerts=("QuorumlogLoginsFail",),
    )
    return Struck(expected, lift)


def _cordoned(place: Place) -> Struck:
    from quorumlog.client.admin import BROKER_RESOURCE

    node = str(place.victim)
    place.admin.alter_configs(node, {"cordoned.log.dirs": "*"}, resource_type=BROKER_RESOURCE)
    expected = Expected(
        causes=("broker.cordoned",), subject=f"broker/{node}", calm=True, no_alert="a notice: an operator did it"
    )
    return Struck(
        expected, lambda: place.admin.alter_configs(node, {"cordoned.log.dirs": None}, resource_type=BROKER_RESOURCE)
    )


# --- the same trouble by other ways


def _stopped(place: Place) -> Struck:
    node = place.victim
    place.cluster.stop(node)
    expected = Expected(
        causes=("broker.shut-down",),
        subject=f"broker/{node}",
        calm=True,
        no_alert="QuorumlogBrokerFenced waits two minutes on purpose, so that a restart in order is no alert",
        consequences=AWAY,
    )
    return Struck(expected, lambda: place.cluster.restart(node, READY_S))


def _cut_from_controller(place: Place) -> Struck:
    """The other brokers and all clients reach it; its heartbeats reach nobody."""
    node = place.victim
    place.cluster.partition(node, place.cluster.controller)
    return lost(node, place.cluster.heal)


def _all_dead(place: Place) -> Struck:
    nodes = place.cluster.nodes.ids
    for node in nodes:
        place.cluster.kill(node)

    def lift() -> None:
        place.cluster.nodes.start(nodes)
        place.cluster.nodes.wait_ready(nodes, READY_S)

    expected = Expected(
        causes=("cluster.unreachable",),
        subject="cluster",
        no_alert="QuorumlogNoController waits 30 s on purpose, so that an election is no alert",
        consequences=AWAY | HELD_GROUPS | {"quorum.no-leader", "quorum.no-majority", "quorum.epochs-churn"},
    )
    return Struck(expected, lift)


def _churn(place: Place) -> Struck:
    """The active controller stands still until another one is elected, again and again."""
    began_s = time.monotonic()
    for _ in range(Thresholds().epochs + 1):
        node = place.cluster.controller
        place.cluster.pause(node)
        wait_until(partial(_leads_elsewhere, place, node), READY_S, "another controller")
        place.cluster.resume(node)
        place.cluster.wait_healthy()
    expected = Expected(
        causes=("quorum.epochs-churn",),
        subject="quorum",
        alerts=("QuorumlogQuorumChurn",),
        consequences=AWAY | HELD_GROUPS | {"node.stalled", "quorum.no-leader", "quorum.no-majority"},
    )
    return Struck(expected, lambda: None, time.monotonic() - began_s)


def _leads_elsewhere(place: Place, node: NodeId) -> bool:
    try:
        return place.cluster.controller not in (node, NO_NODE)
    except QuorumlogError:
        return False  # nobody leads yet


# --- partitions

MOVED, OUTRUN, STRUCK = "moved", "outrun", "struck"


def _make_moved(place: Place) -> None:
    place.admin.create_topic(MOVED, assignment=[[place.cluster.controller]], exist_ok=True)


def _cannot_move(place: Place) -> Struck:
    node = place.victim
    lift = killed(place, node)
    replicas = place.admin.describe_topic(MOVED).partitions[0].replicas
    [moved] = place.admin.alter_partition_reassignments({(MOVED, 0): [*replicas, node]}).values()
    assert not moved.error, moved
    expected = Expected(
        causes=("reassignment.cannot-end",),
        subject=f"partition/{MOVED}-0",
        alerts=("QuorumlogBrokerLost",),
        consequences=AWAY,
    )
    return Struck(expected, lift)


def _make_outrun(place: Place) -> None:
    first, second = place.cluster.others
    configs = {"min.insync.replicas": "1"}  # with two, one that leaves the ISR stays eligible, and leads without loss
    place.admin.create_topic(OUTRUN, assignment=[[first, second]], configs=configs, exist_ok=True)


def _outrun(place: Place) -> Struck:
    """Its follower is cut off and leaves the ISR, and then its leader dies: who lives lacks records."""
    began_s = time.monotonic()
    first, second = place.admin.describe_topic(OUTRUN).partitions[0].replicas
    place.cluster.partition(first, second)
    end = feed(place, OUTRUN)
    wait_until(lambda: place.admin.describe_topic(OUTRUN).partitions[0].isr == (first,), READY_S, "the ISR to shrink")
    end()
    back = killed(place, first)

    def lift() -> None:
        place.cluster.heal()
        back()

    expected = Expected(
        causes=("leader.unclean-needed",),
        subject=f"partition/{OUTRUN}-0",
        alerts=("QuorumlogOfflinePartitions",),
        consequences=AWAY,
    )
    return Struck(expected, lift, time.monotonic() - began_s)


def _make_struck(place: Place) -> None:
    """Its only replica lies in the directory that is struck."""
    node = place.victim
    place.admin.create_topic(STRUCK, assignment=[[node]], exist_ok=True)
    place.admin.alter_replica_log_dirs({(STRUCK, 0, node): str(place.cluster.extra(node))})
    wait_until(lambda: _is_in_extra(place, node), READY_S, "the replica to have moved")


def _is_in_extra(place: Place, node: NodeId) -> bool:
    [extra] = [one for one in place.admin.describe_log_dirs()[node] if one.path == str(place.cluster.extra(node))]
    return any(topic.name == STRUCK and not part.is_future for topic in extra.topics for part in topic.partitions)


def _leader_on_failed_disk(place: Place) -> Struck:
    struck = _offline(Blow.FAIL)(place)
    expected = replace(
        struck.expected,
        causes=("leader.directory-offline",),
        subject=f"partition/{STRUCK}-0",
        consequences=struck.expected.consequences | {"directory.offline"},
    )
    return replace(struck, expected=expected)


# --- records, and groups that read them

DAMAGED, STORM, LATE = "damaged", "storm", "late"
SEGMENT_BYTES = 100_000


def _make_damaged(place: Place) -> None:
    """A follower's log with closed segments."""
    assignment = [[place.cluster.controller, place.victim]]
    configs = {"internal.segment.bytes": str(SEGMENT_BYTES)}
    place.admin.create_topic(DAMAGED, assignment=assignment, configs=configs, exist_ok=True)
    with place.cluster.connect() as client, client.producer() as producer:
        for _ in range(6):  # a follower that takes all at once has one segment
            for _ in range(SEGMENT_BYTES // len(BIG) // 2):
                producer.send(DAMAGED, BIG, partition=0)
            producer.flush(60)
    place.cluster.wait_in_sync(DAMAGED)


def _damaged(place: Place) -> Struck:
    """One bit in a closed segment is another one, as a disk that rots leaves it."""
    node = place.admin.describe_topic(DAMAGED).partitions[0].replicas[1]
    folder = place.cluster.nodes.layout.node(node).folder
    path = min(folder.glob(f"*/{DAMAGED}-0/*.log"))
    flip_bit(path, SEGMENT_BYTES // 2)
    expected = Expected(
        causes=("directory.damaged",),
        subject=f"directory/{path.parents[1]}",
        alerts=("QuorumlogDamagedRecords",),
    )
    return Struck(expected, lambda: flip_bit(path, SEGMENT_BYTES // 2))


def flip_bit(path: Path, position: int) -> None:
    """The lowest one of the byte at this position."""
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1]))


def _make_storm(place: Place) -> None:
    place.admin.create_topic(STORM, 2, 3, exist_ok=True)


def _storm(place: Place) -> Struck:
    """A member that is started again and again, beside one that stays."""

    def stay(client: Cluster, is_over: Callable[[], bool], _note: Step) -> None:
        with client.consumer(STORM, group="restless") as consumer:
            while not is_over():
                consumer.poll(timeout_ms=500)

    def come_and_go(client: Cluster, is_over: Callable[[], bool], note: Step) -> None:
        while not is_over():
            with client.consumer(STORM, group="restless") as consumer:
                while not consumer.assignment and not is_over():
                    consumer.poll(timeout_ms=200)
            note()

    ends = [place.load.work("stay", stay), place.load.work("come and go", come_and_go)]

    def lift() -> None:
        for end in ends:
            end()

    expected = Expected(
        causes=("group.rebalances-often",),
        subject="group/restless",
        no_alert="no series names the group, and of the whole cluster many rebalances are a deployment",
        consequences=frozenset({"group.member-does-not-rejoin"}),
    )
    return Struck(expected, lift)


def _make_late(place: Place) -> None:
    place.admin.create_topic(LATE, 1, 3, exist_ok=True)
    with place.cluster.connect() as client, client.producer() as producer:
        for _ in range(2 * Thresholds().lag):
            producer.send(LATE, b"1", partition=0)
        producer.flush(60)


def _far_behind(place: Place) -> Struck:
    """It reads a record at a time, and more come meanwhile."""

    def crawl(client: Cluster, is_over: Callable[[], bool], note: Step) -> None:
        with client.consumer(
            LATE, group="reports", max_poll_records=1, auto_offset_reset="earliest", enable_auto_commit=False
        ) as consumer:
            while not is_over():
                if consumer.poll(timeout_ms=500):
                    consumer.commit()
                    note()
                    time.sleep(1.0)  # its work

    ends = [_flood(place, LATE), place.load.work("crawl", crawl)]

    def lift() -> None:
        for end in ends:
            end()
        wait_until(lambda: not place.admin.describe_group("reports").group.members, 30, "the group to be empty")
        place.admin.delete_group("reports")

    expected = Expected(
        causes=("group.lag-grows",),
        subject="group/reports",
        no_alert="QuorumlogGroupLag waits five minutes on purpose: a group that catches up is no alert",
        consequences=frozenset({"group.lag", "group.commits-nothing"}),
    )
    return Struck(expected, lift)


def _flood(place: Place, topic: str) -> Step:
    def send(client: Cluster, is_over: Callable[[], bool], note: Step) -> None:
        with client.producer() as producer:
            while not is_over():
                for _ in range(20):
                    producer.send(topic, b"1", partition=0)
                producer.flush(20)
                note()
                time.sleep(BETWEEN_S)

    return place.load.work(f"flood {topic}", send)


# --- certificates


def _refused_certificate(place: Place) -> Struck:
    """A renewed certificate that was cut off half-way while it was copied."""
    node = place.victim
    good = (place.cluster.nodes.layout.root / FOLDER / _keystore(node)).read_bytes()
    put_certificate(place, node, good[: len(good) // 2])
    expected = Expected(causes=("certificate.not-taken",), subject="listener/", alerts=("QuorumlogCertificateRefused",))
    return Struck(expected, lambda: put_certificate(place, node, good))


def put_certificate(place: Place, node: NodeId, data: bytes) -> None:
    """It looks at once, because it is told to."""
    Folder(place.cluster.nodes.layout.root / FOLDER, datetime.now(UTC)).write(_keystore(node), data, replace=True)
    process = place.cluster.nodes.process(node)
    assert process is not None
    process.send(signal.SIGHUP)


def _keystore(node: NodeId) -> str:
    return f"node-{node}.keystore.pem"


MORE = (
    Fault("paused-node", "a node is stopped by SIGSTOP", _paused),
    Fault("cut-off-node", "a node reaches no other, and clients reach it", _cut_off),
    Fault("dead-controller", "the active controller is killed", _dead_controller),
    Fault("lost-quorum", "two of three nodes are killed", _no_majority),
    Fault("stalled-node", "a node stands still for two seconds", _stalled),
    Fault("failing-disk", "a disk fails each call", _offline(Blow.FAIL)),
    Fault("hung-disk", "a disk does not answer", _offline(Blow.HANG)),
    Fault("nearly-full-disk", "a tenth of a disk is left", _nearly_full),
    Fault("offline-partition", "the only replica's node is killed", _no_leader, _make_alone),
    Fault("below-minimum", "a partition needs three replicas in sync and has two", _below_minimum, _make_strict),
    Fault("group-without-members", "a group is behind, and nobody reads for it", _empty_group, make_bulk),
    Fault("throttled-client", "a client uses more than its quota", _throttled, make_bulk),
    Fault("stopped-node", "a node is stopped in order", _stopped),
    Fault("cut-from-controller", "a node reaches all but the active controller", _cut_from_controller),
    Fault("dead-cluster", "all nodes are killed", _all_dead),
    Fault("churning-quorum", "four active controllers stand still, one after the other", _churn, silent_s=CHURN_S),
    Fault("stuck-reassignment", "a replica is added on a dead node", _cannot_move, _make_moved),
    Fault("outrun-follower", "a follower falls behind, and then its leader dies", _outrun, _make_outrun),
    Fault("leader-on-failed-disk", "the disk of the only replica fails", _leader_on_failed_disk, _make_struck),
    Fault("damaged-batch", "one bit in a closed segment is another one", _damaged, _make_damaged),
    Fault("rebalance-storm", "a member is started again and again", _storm, _make_storm),
    Fault("growing-lag", "a group reads slower than others produce", _far_behind, _make_late),
    Fault("refused-certificate", "half of a renewed certificate was copied", _refused_certificate),
    Fault("failing-logins", "many logins fail", _failing_logins),
    Fault("cordoned-broker", "a broker's directories are cordoned", _cordoned),
    Fault(
        "expiring-certificate",
        "a node's certificate ends in five days",
        certificate("certificate.expires", "QuorumlogCertificateExpires", timedelta(days=5), 0.0, frozenset()),
    ),
)
BY_NAME = {one.name: one for one in (*EIGHT, *MORE)}
